//! Traces replayed against servers that stand side by side, each on a link of its own, with the very same arrivals.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::Effort;
use super::attempts::until_undisturbed;
use super::check::spread;
use super::link::{Link, Running};
use super::parse::{figure, run_of};
use super::record::{Record, slim};
use super::server::{CLEAR_PORT, Root, Server, TLS_PORT, sooner};
use crate::certificate::Certificate;

/// Rate of every link.
pub const RATE_MBIT: u64 = 10;

/// Head of the table of [`row`].
pub const TABLE_HEAD: &str = "| load | server | mean, ms | / ideal SRPT | smallest half, ms | its ideal | largest 1 %, ms | p99, ms | errors |\n|---|---|---|---|---|---|---|---|---|\n";

/// What is spoken.
#[derive(Clone, Copy)]
pub enum Protocol {
    /// HTTP/1.1 in clear text.
    Clear,
    /// TLS, with these arguments of the generator.
    Secured(&'static [&'static str]),
}

/// One row: what is offered and how.
pub struct Case {
    /// As it is reported.
    pub name: &'static str,
    /// Which trace.
    pub trace: &'static str,
    /// The load, as arguments of the generator.
    pub load: &'static [&'static str],
    /// Length of a run.
    pub seconds: u32,
    /// What is spoken.
    pub protocol: Protocol,
    /// More arguments of the generator.
    pub more: &'static [&'static str],
    /// Seed of the first repetition.
    pub seed: u64,
}

/// Every repetition of one case: the runs of each server, in the servers' order.
pub fn repeat(
    case: &Case,
    servers: &[Server],
    effort: Effort,
    record: &mut Record,
) -> anyhow::Result<Vec<Vec<Value>>> {
    let root = Root::of(case.trace)?;
    let mut runs: Vec<Vec<Value>> = vec![Vec::new(); servers.len()];
    for repetition in 0..effort.repetitions {
        let seed = case.seed + u64::from(repetition);
        let kept = until_valid(case, servers, &root, seed, effort.quick, record)?;
        runs.iter_mut()
            .zip(kept)
            .for_each(|(runs, run)| runs.push(run));
    }
    Ok(runs)
}

/// One repetition, its attempts kept.
fn until_valid(
    case: &Case,
    servers: &[Server],
    root: &Root,
    seed: u64,
    quick: bool,
    record: &mut Record,
) -> anyhow::Result<Vec<Value>> {
    until_undisturbed(
        || side_by_side(case, servers, root, seed, quick),
        |runs| runs.iter().collect(),
        |runs, attempt| {
            for (server, run) in servers.iter().zip(runs) {
                record.add(&json!({"case": case.name, "server": server.name(), "seed": seed, "attempt": attempt.number,
                    "quick": quick, "stolen_cpu_seconds": attempt.stolen_cpu_seconds, "run": slim(run)}))?;
            }
            Ok(())
        },
    )
}

/// One repetition: every server on a link of its own, the same arrivals for each at the same time.
fn side_by_side(
    case: &Case,
    servers: &[Server],
    root: &Root,
    seed: u64,
    quick: bool,
) -> anyhow::Result<Vec<Value>> {
    eprintln!("load {}, seed {seed}", case.name);
    let mut stands = Vec::new();
    for server in servers {
        let link = Link::up(server.tag(), RATE_MBIT, server.shaper())?;
        let running = start(case, *server, &link, root)?;
        // Dropped in this order: first the server, then its hosts.
        stands.push((running, link));
    }
    let clients: Vec<Child> = stands
        .iter()
        .map(|(_, link)| client(case, link, seed, quick))
        .collect::<anyhow::Result<_>>()?;
    clients.into_iter().map(run_of).collect()
}

fn start(case: &Case, server: Server, link: &Link, root: &Root) -> anyhow::Result<Running> {
    match case.protocol {
        Protocol::Clear => server.start(link, root.path(), RATE_MBIT),
        Protocol::Secured(_) => {
            let certificate = Certificate::of(root.scratch())?;
            server.start_secured(link, root.path(), RATE_MBIT, &certificate, "")
        }
    }
}

fn client(case: &Case, link: &Link, seed: u64, quick: bool) -> anyhow::Result<Child> {
    let seconds = if quick {
        case.seconds / 5
    } else {
        case.seconds
    };
    let mut command = link.on_client(&sooner());
    command.args(["load", "replay", case.trace, "--poisson", "--json", "--url"]);
    match case.protocol {
        Protocol::Clear => command.arg(format!("http://10.77.0.1:{CLEAR_PORT}")),
        Protocol::Secured(more) => command
            .arg(format!("https://10.77.0.1:{TLS_PORT}"))
            .arg("--insecure")
            .args(more),
    };
    command.args(case.load).args(case.more);
    command.args([
        "--uplink",
        &format!("{RATE_MBIT}mbit"),
        "--for",
        &seconds.to_string(),
        "--seed",
        &seed.to_string(),
    ]);
    Ok(command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?)
}

/// One figure of every run.
pub fn all(runs: &[Value], pointer: &str) -> Vec<f64> {
    runs.iter().map(|run| figure(run, pointer)).collect()
}

/// Each figure in units of the other.
pub fn ratios(above: &[f64], below: &[f64]) -> Vec<f64> {
    above
        .iter()
        .zip(below)
        .map(|(above, below)| above / below)
        .collect()
}

/// Means in ideal means.
pub fn over_ideal(runs: &[Value]) -> Vec<f64> {
    ratios(
        &all(runs, "/all/mean_response_ms"),
        &all(runs, "/all/ideal_srpt_mean_response_ms"),
    )
}

/// Failed and unfinished requests of all runs.
pub fn errors(runs: &[Value]) -> f64 {
    all(runs, "/all/errors").iter().sum::<f64>() + all(runs, "/incompletes").iter().sum::<f64>()
}

/// One server's row of the table.
pub fn row(case: &Case, server: Server, runs: &[Value]) -> String {
    let shown = |pointer: &str, decimals: usize| spread(&all(runs, pointer), decimals);
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        case.name,
        server.name(),
        shown("/all/mean_response_ms", 1),
        spread(&over_ideal(runs), 2),
        shown("/smallest_half/mean_response_ms", 2),
        shown("/smallest_half/ideal_srpt_mean_response_ms", 2),
        shown("/largest_1_percent/mean_response_ms", 0),
        shown("/all/p99_response_ms", 0),
        errors(runs),
    )
}
