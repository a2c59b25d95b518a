//! More than the link can carry for a while: the largest responses wait longer than anybody's patience, and are neither given up by the
//! server's own timeouts nor left in silence.

use serde_json::Value;

use super::Effort;
use super::check::{Checks, median, spread};
use super::record::Record;
use super::replays::{self, Case, Protocol, all, errors, over_ideal, ratios};
use super::server::Server;

/// What has to be waited for by somebody, or nothing is shown: the timeouts common in clients and proxies begin here.
const WAIT_MS_MIN: f64 = 10_000.0;
/// What the starvation guard promises, and what a trickle's own turn may add to it.
const SILENCE_MS_MAX: f64 = 12_000.0;

const fn case(name: &'static str, protocol: Protocol) -> Case {
    Case {
        name,
        trace: "epa",
        load: &["--rho", "1.2"],
        seconds: 120,
        protocol,
        more: &["--congestion-control", "cubic", "--drain", "120"],
        seed: 1,
    }
}

const CASES: [Case; 3] = [
    case("1.2, HTTP/1.1", Protocol::Clear),
    case("1.2, HTTP/1.1 over TLS", Protocol::Secured(&[])),
    case(
        "1.2, HTTP/2, up to 20 streams a connection",
        Protocol::Secured(&["--http2", "--streams", "20"]),
    ),
];

const SERVERS: [Server; 3] = [Server::Nginx, Server::UserSpace, Server::Bands];

/// Every way to speak, with all servers side by side.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("overload", "overload")?;
    let mut part = Checks::default();
    let mut table = String::from(
        "| load | server | mean, ms | / ideal SRPT | smallest half, ms | longest response, s | longest silence, s | errors |\n|---|---|---|---|---|---|---|---|\n",
    );
    for case in &CASES {
        let by_server = replays::repeat(case, &SERVERS, effort, &mut record)?;
        for (server, runs) in SERVERS.iter().zip(&by_server) {
            table += &row(case, *server, runs);
            if *server != Server::Nginx {
                hold(case, *server, runs, &by_server[0], &mut part);
            }
        }
    }
    record.table("overload", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

fn row(case: &Case, server: Server, runs: &[Value]) -> String {
    let in_seconds = |pointer: &str| {
        let seconds: Vec<f64> = all(runs, pointer).iter().map(|ms| ms / 1e3).collect();
        spread(&seconds, 1)
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
        case.name,
        server.name(),
        spread(&all(runs, "/all/mean_response_ms"), 0),
        spread(&over_ideal(runs), 2),
        spread(&all(runs, "/smallest_half/mean_response_ms"), 2),
        in_seconds("/all/max_response_ms"),
        in_seconds("/all/longest_silence_ms"),
        errors(runs),
    )
}

fn hold(case: &Case, server: Server, runs: &[Value], nginx: &[Value], checks: &mut Checks) {
    let at = |what: &str| format!("load {}, {}: {what}", case.name, server.name());
    let valid = runs.iter().all(|run| run["verdict"] == "VALID");
    checks.claim(valid, at("all runs VALID"));
    checks.at_most(&at("errors and incompletes"), errors(runs), 0.0);
    checks.at_least(
        &at("longest response, ms"),
        median(&all(runs, "/all/max_response_ms")),
        WAIT_MS_MIN,
    );
    let smallest_half = "/smallest_half/mean_response_ms";
    checks.at_most(
        &at("smallest half / nginx's"),
        median(&ratios(
            &all(runs, smallest_half),
            &all(nginx, smallest_half),
        )),
        1.0,
    );
    let silences = all(runs, "/all/longest_silence_ms");
    checks.at_most(
        &at("longest silence of any run, ms"),
        silences.into_iter().fold(0.0, f64::max),
        SILENCE_MS_MAX,
    );
}
