//! `cargo xtask test`: the one test command. Everything that must hold before a change is merged,
//! cheapest first; every step runs even when one before it failed.

use crate::tally::Tally;
use crate::{
    book, bpf, extension, fuzz, h2spec, instructions, package, packages, portable, postgres,
    process, programs, runner, suites, tidy,
};
use anyhow::{Context, Result};
use std::thread;
use std::time::{Duration, Instant};

/// How long each fuzz target runs here; `cargo xtask fuzz SECONDS` looks longer.
const FUZZ_SMOKE: Duration = Duration::from_secs(2);

/// What is run, in this order.
type Step = (&'static str, fn(&mut Tally) -> Result<()>);
const STEPS: [Step; 16] = [
    ("packages", install),
    ("tidy", check_tidy),
    ("format", format),
    ("clippy", clippy),
    ("doc", doc),
    ("book", book::check),
    ("portable", portable::check),
    ("bpf", bpf::check),
    ("h2spec", h2spec::build),
    ("extension", extension::check),
    ("build", build_tests),
    ("package", package::check),
    ("instructions", instructions::check),
    ("test", run_tests),
    ("suites", suites::few),
    ("fuzz", |tally| fuzz::run(FUZZ_SMOKE, None, tally)),
];

/// Runs one step; whether nothing failed.
pub fn run_step(name: &str) -> Result<bool> {
    let found = STEPS.iter().find(|(step, _)| *step == name);
    let names = || STEPS.map(|(step, _)| step).join(" ");
    let (_, step) = found.with_context(|| format!("no step {name}; there are: {}", names()))?;
    let mut tally = Tally::default();
    step(&mut tally)?;
    tally.print();
    Ok(tally.is_good())
}

/// Runs the steps, all but fuzzing when `quick`; whether nothing failed.
pub fn run(quick: bool) -> bool {
    let mut tally = Tally::default();
    let mut times = Vec::new();
    thread::scope(|scope| {
        for (name, step) in &STEPS {
            if quick && *name == "fuzz" {
                tally.skip("fuzz", "left out by --quick");
                continue;
            }
            println!("== {name}");
            // Only the tests leave something of the processors.
            if !quick && *name == "test" {
                scope.spawn(fuzz::build_ahead);
            }
            let started = Instant::now();
            if let Err(error) = step(&mut tally) {
                println!("{name}: {error:#}");
                tally.step(name, false);
            }
            times.push((*name, started.elapsed()));
        }
    });
    report(&tally, &times);
    tally.is_good()
}

fn report(tally: &Tally, times: &[(&str, Duration)]) {
    println!("== summary");
    for (name, time) in times {
        println!("{name:>12} {:6.1} s", time.as_secs_f64());
    }
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
    println!("{:>12} {:6.1} s", "all", total.as_secs_f64());
    tally.print();
}

fn install(_: &mut Tally) -> Result<()> {
    packages::install(packages::FOR_TESTS);
    packages::unpack_node_postgres();
    Ok(())
}

fn check_tidy(tally: &mut Tally) -> Result<()> {
    tally.step("tidy", tidy::run()?);
    Ok(())
}

fn format(tally: &mut Tally) -> Result<()> {
    let finished = process::run(&mut process::cargo(&["fmt", "--all", "--check"]))?;
    tally.step("format", finished.success);
    Ok(())
}

fn clippy(tally: &mut Tally) -> Result<()> {
    let arguments = [
        "clippy",
        "--keep-going",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    tally.step(
        "clippy",
        process::run(&mut process::cargo(&arguments))?.success,
    );
    Ok(())
}

/// Links between items in the documentation must lead somewhere.
fn doc(tally: &mut Tally) -> Result<()> {
    let mut command = process::cargo(&[
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ]);
    tally.step(
        "doc",
        process::run(command.env("RUSTDOCFLAGS", "-D warnings"))?.success,
    );
    Ok(())
}

/// The build by itself, so that its time is.
fn build_tests(tally: &mut Tally) -> Result<()> {
    tally.step("the build of the tests", programs::build()?.is_some());
    Ok(())
}

/// All tests, before PostgreSQL 16 and 18 as well, and the fuzz targets are built meanwhile.
fn run_tests(tally: &mut Tally) -> Result<()> {
    let Some(mut parts) = programs::build()? else {
        return Ok(());
    };
    let versions = postgres::add(&mut parts, tally);
    runner::run(parts, tally);
    drop(versions);
    Ok(())
}
