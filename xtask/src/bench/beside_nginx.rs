//! Response times on a limited link: nginx, `sooner serve` without privilege and with bands, at the same time on links of their own, with
//! the very same arrivals, and beside them the ideal that no server can beat.

use serde_json::Value;

use super::Effort;
use super::check::{Checks, median};
use super::link::Stack;
use super::record::Record;
use super::replays::{self, Case, Protocol, all, errors, over_ideal, ratios};
use super::server::Server;

/// A full packet on a 10 Mbit/s link, ms.
const PACKET_MS: f64 = 1.2112;
/// What the mean may be at most, in ideal means; on the alternating schedule the link drains a queue that any lost capacity lengthens.
const MEAN_MAX: f64 = 1.15;
const ALTERNATING_MEAN_MAX: f64 = 1.25;

const PLAIN: &[&str] = &["--congestion-control", "cubic"];

const fn epa(name: &'static str, load: &'static [&'static str], seconds: u32) -> Case {
    Case {
        name,
        trace: "epa",
        load,
        seconds,
        stack: Stack::Plain,
        protocol: Protocol::Clear,
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
    protocol: Protocol::Clear,
    more: &["--requests-per-connection", "5"],
    seed: 20_261_121,
};

/// All loads on the EPA trace.
pub fn loads(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    (0..LOADS.len()).try_for_each(|index| load(index, effort, checks))
}

/// One of the loads, by its place among them; each has a record of its own, so that one can be measured again alone.
pub fn load(index: usize, effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let servers = [Server::Nginx, Server::UserSpace, Server::Bands];
    let part = format!("load-{}", LOADS[index].name.replace('/', "-"));
    let part = measure(&part, &LOADS[index..=index], &servers, effort)?;
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
    let mut table = String::from(replays::TABLE_HEAD);
    for case in cases {
        let runs = replays::repeat(case, servers, effort, &mut record)?;
        for (server, runs_of_one) in servers.iter().zip(&runs) {
            table += &replays::row(case, *server, runs_of_one);
            if *server != Server::Nginx {
                hold(case, *server, runs_of_one, &runs[0], &mut checks);
            }
        }
    }
    record.table(part, &format!("{table}\n{}", checks.table()))?;
    Ok(checks)
}

/// Holds one server's medians to what is claimed.
fn hold(case: &Case, server: Server, runs: &[Value], nginx: &[Value], checks: &mut Checks) {
    let at = |what: &str| format!("load {}, {}: {what}", case.name, server.name());
    // What nginx leaves unfinished is its result, and no doubt about the generator.
    let is_unfinished = |run: &Value| {
        let reason = run["verdict_reason"].as_str().unwrap_or_default();
        reason.contains("unfinished")
    };
    let valid = runs.iter().all(|run| run["verdict"] == "VALID")
        && nginx
            .iter()
            .all(|run| run["verdict"] == "VALID" || is_unfinished(run));
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
