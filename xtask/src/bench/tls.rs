//! Response times over TLS: the EPA trace at load 0.8 by HTTP/1.1 and HTTP/2, beside nginx and the ideal with handshakes counted.

use serde_json::Value;

use super::Effort;
use super::check::{Checks, median};
use super::record::Record;
use super::replays::{self, Case, Protocol, all, errors, over_ideal, ratios};
use super::server::Server;

/// What the mean may be at most, in ideal means: a handshake takes a turn of its own before its response has one.
const MEAN_MAX: f64 = 1.3;

const fn case(name: &'static str, protocol: &'static [&'static str]) -> Case {
    Case {
        name,
        trace: "epa",
        load: &["--rho", "0.8"],
        seconds: 120,
        protocol: Protocol::Secured(protocol),
        more: &["--congestion-control", "cubic"],
        seed: 1,
    }
}

const CASES: [Case; 3] = [
    case("0.8, HTTP/1.1, a connection each", &[]),
    case("0.8, HTTP/2, a connection each", &["--http2"]),
    case(
        "0.8, HTTP/2, up to 20 streams a connection",
        &["--http2", "--streams", "20"],
    ),
];

const SERVERS: [Server; 3] = [Server::Nginx, Server::UserSpace, Server::Bands];

/// Every way to speak, with all servers side by side.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("tls", "loads")?;
    let mut part = Checks::default();
    let mut table = String::from(replays::TABLE_HEAD);
    for case in &CASES {
        let runs = replays::repeat(case, &SERVERS, effort, &mut record)?;
        for (server, runs_of_one) in SERVERS.iter().zip(&runs) {
            table += &replays::row(case, *server, runs_of_one);
            if *server != Server::Nginx {
                hold(case, *server, runs_of_one, &runs[0], &mut part);
            }
        }
    }
    record.table("loads", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

fn hold(case: &Case, server: Server, runs: &[Value], nginx: &[Value], checks: &mut Checks) {
    let at = |what: &str| format!("load {}, {}: {what}", case.name, server.name());
    let valid = runs
        .iter()
        .chain(nginx)
        .all(|run| run["verdict"] == "VALID");
    checks.claim(valid, at("all runs VALID"));
    checks.at_most(&at("errors and incompletes"), errors(runs), 0.0);
    checks.at_most(
        &at("mean / ideal SRPT"),
        median(&over_ideal(runs)),
        MEAN_MAX,
    );
    let mean = "/all/mean_response_ms";
    checks.at_most(
        &at("mean / nginx's"),
        median(&ratios(&all(runs, mean), &all(nginx, mean))),
        1.0,
    );
}
