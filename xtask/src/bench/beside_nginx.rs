//! Response times on a limited link: nginx, `sooner serve` without privilege and with bands, at the same time on links of their own, with
//! the very same arrivals, and beside them the ideal that no server can beat.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::{Link, Stack};
use super::parse::{figure, run_of};
use super::record::{Record, slim};
use super::server::{Root, Server, sooner};

const RATE_MBIT: u64 = 10;
/// A full packet on a 10 Mbit/s link, ms.
const PACKET_MS: f64 = 1.2112;
/// What the mean may be at most, in ideal means; on the alternating schedule the link drains a queue that any lost capacity lengthens.
const MEAN_MAX: f64 = 1.15;
const ALTERNATING_MEAN_MAX: f64 = 1.25;

/// How often a repetition is measured before an INVALID one is taken.
const ATTEMPTS_MAX: u32 = 4;

/// One row: what is offered and how.
struct Case {
    name: &'static str,
    trace: &'static str,
    load: &'static [&'static str],
    seconds: u32,
    stack: Stack,
    more: &'static [&'static str],
    seed: u64,
}

const PLAIN: &[&str] = &["--congestion-control", "cubic"];

const fn epa(name: &'static str, load: &'static [&'static str], seconds: u32) -> Case {
    Case {
        name,
        trace: "epa",
        load,
        seconds,
        stack: Stack::Plain,
        more: PLAIN,
        seed: 1,
    }
}

const LOADS: [Case; 5] = [
    epa("0.5", &["--rho", "0.5"], 120),
    epa("0.7", &["--rho", "0.7"], 120),
    epa("0.8", &["--rho", "0.8"], 120),
    epa("0.9", &["--rho", "0.9"], 120),
    epa("0.2/1.2", &["--schedule", "0.2,1.2,25,25"], 150),
];

/// The headline row as a stock machine would run it: other sizes, other arrivals, connections that are kept.
const DEFAULTS: Case = Case {
    name: "0.8, kernel defaults, NASA, 5 requests a connection",
    trace: "nasa",
    load: &["--rho", "0.8"],
    seconds: 120,
    stack: Stack::KernelDefaults,
    more: &["--requests-per-connection", "5"],
    seed: 20_261_121,
};

/// All loads on the EPA trace.
pub fn loads(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let servers = [Server::Nginx, Server::UserSpace, Server::Bands];
    let part = measure("loads", &LOADS, &servers, effort)?;
    checks.extend(part);
    Ok(())
}

/// The headline row with kernel defaults, beside the plain one.
pub fn kernel_defaults(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let servers = [Server::Nginx, Server::UserSpace, Server::Bands];
    let part = measure("kernel-defaults", &[DEFAULTS], &servers, effort)?;
    checks.extend(part);
    Ok(())
}

/// Longest first must fail what shortest first passes.
pub fn broken_policy(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let once = Effort {
        repetitions: 1,
        ..effort
    };
    let broken = measure(
        "broken-policy",
        &LOADS[2..3],
        &[Server::Nginx, Server::LongestFirst],
        once,
    )?;
    checks.expect_red("longest first at load 0.8", &broken);
    Ok(())
}

/// Runs every case with all servers side by side, keeps and prints the results, and holds them to the limits.
fn measure(
    part: &str,
    cases: &[Case],
    servers: &[Server],
    effort: Effort,
) -> anyhow::Result<Checks> {
    let mut record = Record::open("beside-nginx", part)?;
    let mut checks = Checks::default();
    let mut table = String::from(
        "| load | server | mean, ms | / ideal SRPT | smallest half, ms | its ideal | largest 1 %, ms | p99, ms | errors |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for case in cases {
        let root = Root::of(case.trace)?;
        let mut runs: Vec<Vec<Value>> = vec![Vec::new(); servers.len()];
        for repetition in 0..effort.repetitions {
            let seed = case.seed + u64::from(repetition);
            let kept = until_valid(case, servers, &root, seed, effort.quick, &mut record)?;
            runs.iter_mut()
                .zip(kept)
                .for_each(|(runs, run)| runs.push(run));
        }
        let nginx = runs[0].clone();
        for (server, runs) in servers.iter().zip(&runs) {
            table += &row(case, *server, runs);
            if *server != Server::Nginx {
                hold(case, *server, runs, &nginx, &mut checks);
            }
        }
    }
    record.table(part, &format!("{table}\n{}", checks.table()))?;
    Ok(checks)
}

/// One repetition; measured again while a generator says that it was held up, which has nothing to do with the servers. Every attempt is kept.
fn until_valid(
    case: &Case,
    servers: &[Server],
    root: &Root,
    seed: u64,
    quick: bool,
    record: &mut Record,
) -> anyhow::Result<Vec<Value>> {
    let mut attempt = 1;
    loop {
        let before = stolen_cpu_seconds();
        let runs = side_by_side(case, servers, root, seed, quick)?;
        let stolen = stolen_cpu_seconds() - before;
        for (server, run) in servers.iter().zip(&runs) {
            record.add(&json!({"case": case.name, "server": server.name(), "seed": seed, "attempt": attempt,
                "quick": quick, "stolen_cpu_seconds": stolen, "run": slim(run)}))?;
        }
        let held_up = runs.iter().any(|run| {
            let reason = run["verdict_reason"].as_str().unwrap_or_default();
            run["verdict"] != "VALID" && reason.contains("send lag")
        });
        if !held_up || attempt == ATTEMPTS_MAX {
            return Ok(runs);
        }
        eprintln!("held up ({stolen:.1} s of processor time taken by others); once more");
        attempt += 1;
    }
}

/// Processor seconds that a hypervisor gave to others, over all cores.
fn stolen_cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat
        .split_whitespace()
        .nth(8)
        .and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.unwrap_or(0.0) / 100.0
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
        let link = Link::up(server.tag(), RATE_MBIT, server.shaper(), case.stack)?;
        let running = server.start(&link, root.path(), RATE_MBIT)?;
        // Dropped in this order: first the server, then its hosts.
        stands.push((running, link));
    }
    let clients: Vec<Child> = stands
        .iter()
        .map(|(_, link)| client(case, link, seed, quick))
        .collect::<anyhow::Result<_>>()?;
    clients.into_iter().map(run_of).collect()
}

fn client(case: &Case, link: &Link, seed: u64, quick: bool) -> anyhow::Result<Child> {
    let seconds = if quick {
        case.seconds / 5
    } else {
        case.seconds
    };
    let mut command = link.on_client(&sooner());
    command.args([
        "load",
        "replay",
        case.trace,
        "--url",
        "http://10.77.0.1:8080",
        "--poisson",
        "--json",
    ]);
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

fn all(runs: &[Value], pointer: &str) -> Vec<f64> {
    runs.iter().map(|run| figure(run, pointer)).collect()
}

fn ratios(above: &[f64], below: &[f64]) -> Vec<f64> {
    above
        .iter()
        .zip(below)
        .map(|(above, below)| above / below)
        .collect()
}

fn over_ideal(runs: &[Value]) -> Vec<f64> {
    ratios(
        &all(runs, "/all/mean_response_ms"),
        &all(runs, "/all/ideal_srpt_mean_response_ms"),
    )
}

fn errors(runs: &[Value]) -> f64 {
    all(runs, "/all/errors").iter().sum::<f64>() + all(runs, "/incompletes").iter().sum::<f64>()
}

fn row(case: &Case, server: Server, runs: &[Value]) -> String {
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

/// Holds one server's medians to what is claimed.
fn hold(case: &Case, server: Server, runs: &[Value], nginx: &[Value], checks: &mut Checks) {
    let at = |what: &str| format!("load {}, {}: {what}", case.name, server.name());
    let valid = runs
        .iter()
        .chain(nginx)
        .all(|run| run["verdict"] == "VALID");
    checks.claim(valid, at("all runs VALID"));
    checks.at_most(&at("errors and incompletes"), errors(runs), 0.0);
    let beside_nginx = |group: &str| {
        let mean = format!("/{group}/mean_response_ms");
        median(&ratios(&all(runs, &mean), &all(nginx, &mean)))
    };
    if case.stack == Stack::KernelDefaults {
        // Super-packets and bbr queue what nobody ordered; what must remain is the gain itself.
        checks.at_most(&at("mean / nginx's"), beside_nginx("all"), 1.0);
        checks.at_most(
            &at("smallest half / nginx's"),
            beside_nginx("smallest_half"),
            1.0,
        );
        return;
    }
    let mean_max = if case.name.contains('/') {
        ALTERNATING_MEAN_MAX
    } else {
        MEAN_MAX
    };
    checks.at_most(
        &at("mean / ideal SRPT"),
        median(&over_ideal(runs)),
        mean_max,
    );
    let packets = if server == Server::Bands { 1.5 } else { 2.5 };
    let small_ideal = median(&all(runs, "/smallest_half/ideal_srpt_mean_response_ms"));
    let small = median(&all(runs, "/smallest_half/mean_response_ms"));
    checks.at_most(
        &at("smallest half, ms"),
        small,
        small_ideal + packets * PACKET_MS,
    );
    checks.at_most(
        &at("largest 1 % / nginx's"),
        beside_nginx("largest_1_percent"),
        1.0,
    );
}
