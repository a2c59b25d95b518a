//! `cargo xtask bench`: what the lab does not measure: processor time, TLS and HTTP/2, proxies, hostile clients, real browsers.
//!
//! Every part answers one question and has a folder under experiments/: its README says what is claimed, `runs/DATE-MACHINE/` keeps what
//! came out, each result written as it comes. Parts that need a link make network namespaces of their own, which needs root; load never
//! leaves them. Compared are always servers that ran side by side, and ratios, because machines are shared and noisy.

mod advise;
mod attach_cpu;
mod attacks;
mod attempts;
mod bookstore;
mod check;
mod classifier;
mod cpu;
mod crate_bench;
mod demo;
mod gate;
mod gate_costs;
mod gate_limits;
mod gate_memory;
mod gate_open;
mod gate_overhead;
mod gate_priorities;
mod gate_targets;
mod gate_users;
mod generator;
mod generator_cpu;
mod hostile;
mod link;
mod oltp;
mod others;
mod overload;
mod page;
mod parse;
mod postgres;
mod postgres_client;
mod proc;
mod proxied;
mod proxies;
mod ranks;
pub mod record;
mod replays;
mod server;
mod simulators;
mod slices;
mod slow_disk;
mod stolen;
mod streams;
mod tls;
mod tls_cpu;
mod wrk;

use anyhow::{Context, bail};

use crate::process;
use check::Checks;

/// How much is run.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Repetitions, each with a seed of its own.
    pub repetitions: u32,
    /// Whether runs are as short as can be: to see that the benchmark works, not for figures.
    pub quick: bool,
}

type Part = fn(Effort, &mut Checks) -> anyhow::Result<()>;

const PARTS: [(&str, Part); 26] = [
    ("ranks", ranks::run),
    ("simulators", simulators::run),
    ("advise", advise::run),
    ("classifier", classifier::run),
    ("attach-cpu", attach_cpu::run),
    ("gate", gate::run),
    ("gate-memory", gate_memory::run),
    ("gate-priorities", gate_priorities::run),
    ("gate-targets", gate_targets::run),
    ("gate-open", gate_open::run),
    ("gate-overhead", gate_overhead::run),
    ("gate-users", gate_users::run),
    ("bookstore", bookstore::run),
    ("demo", demo::run),
    ("generator", generator::run),
    ("generator-tls", generator::secured),
    ("generator-cpu", generator_cpu::run),
    ("cpu", cpu::run),
    ("hostile-clients", hostile::run),
    ("tls", tls::run),
    ("streams", streams::run),
    ("tls-cpu", tls_cpu::run),
    ("proxied", proxied::run),
    ("attacks", attacks::run),
    ("page", page::run),
    ("overload", overload::run),
];

/// Pieces of the parts `gate-priorities`, `gate-targets` and `attacks`, which take long.
const PIECES: [(&str, Part); 20] = [
    ("tpcc-1", |effort, checks| {
        gate_priorities::only("tpcc-1", effort, checks)
    }),
    ("tpcc-10", |effort, checks| {
        gate_priorities::only("tpcc-10", effort, checks)
    }),
    ("tpcc-10-repeatable-read", |effort, checks| {
        gate_priorities::only("tpcc-10-repeatable-read", effort, checks)
    }),
    ("tpcw-browsing", |effort, checks| {
        gate_priorities::only("tpcw-browsing", effort, checks)
    }),
    ("tpcw-shopping", |effort, checks| {
        gate_priorities::only("tpcw-shopping", effort, checks)
    }),
    ("tpcw-ordering", |effort, checks| {
        gate_priorities::only("tpcw-ordering", effort, checks)
    }),
    ("tpcc-30-disk", |effort, checks| {
        gate_priorities::only("tpcc-30-disk", effort, checks)
    }),
    ("tpcc-30-balanced", |effort, checks| {
        gate_priorities::only("tpcc-30-balanced", effort, checks)
    }),
    ("tpcc-30", |effort, checks| {
        gate_priorities::only("tpcc-30", effort, checks)
    }),
    ("tpcw-large", |effort, checks| {
        gate_priorities::only("tpcw-large", effort, checks)
    }),
    ("tpcw-shopping-fresh-seed", |effort, checks| {
        gate_priorities::only("tpcw-shopping-fresh-seed", effort, checks)
    }),
    ("tpcc-10-on-disk", |effort, checks| {
        gate_priorities::only("tpcc-10-on-disk", effort, checks)
    }),
    ("targets-tpcc-10", |effort, checks| {
        gate_targets::only("tpcc-10", effort, checks)
    }),
    ("targets-tpcw-shopping", |effort, checks| {
        gate_targets::only("tpcw-shopping", effort, checks)
    }),
    ("slow-header", |effort, checks| {
        attacks::only("slow-header", effort, checks)
    }),
    ("slow-read", |effort, checks| {
        attacks::only("slow-read", effort, checks)
    }),
    ("reset", |effort, checks| {
        attacks::only("reset", effort, checks)
    }),
    ("rapid-reset", |effort, checks| {
        attacks::only("rapid-reset", effort, checks)
    }),
    ("header-bomb", |effort, checks| {
        attacks::only("header-bomb", effort, checks)
    }),
    ("endless-head", |effort, checks| {
        attacks::only("endless-head", effort, checks)
    }),
];

/// Runs the named parts, or all; whether every check passed.
pub fn run(arguments: &[&str]) -> anyhow::Result<bool> {
    let mut effort = Effort {
        repetitions: 3,
        quick: false,
    };
    let mut chosen = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => effort.quick = true,
            "--repetitions" => {
                let count = words.next().context("--repetitions needs a number")?;
                effort.repetitions = count.parse().context("--repetitions needs a number")?;
            }
            name => match PARTS.iter().chain(&PIECES).find(|(part, _)| *part == name) {
                Some(part) => chosen.push(part),
                None => bail!("no part {name}; there are: {}", names()),
            },
        }
    }
    if chosen.is_empty() {
        chosen.extend(&PARTS);
    }
    let built = process::run(&mut process::cargo(&["build", "--release"]))?;
    anyhow::ensure!(built.success, "the release build failed");
    let mut checks = Checks::default();
    for (name, part) in chosen {
        eprintln!("== {name}");
        part(effort, &mut checks).with_context(|| format!("part {name}"))?;
    }
    checks.print();
    Ok(checks.all_passed())
}

/// The parts by name, for the usage text.
pub fn names() -> String {
    let names = PARTS.iter().chain(&PIECES).map(|(name, _)| *name);
    names.collect::<Vec<_>>().join(" ")
}

/// The process that part hostile-clients starts in a namespace of its own.
pub fn hostile_clients(arguments: &[&str]) -> anyhow::Result<bool> {
    hostile::clients(arguments)
}
