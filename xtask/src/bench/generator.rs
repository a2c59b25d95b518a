//! Does `sooner load` measure what wrk and h2load measure? The same nginx on the same limited link, eight connections, one after the other.

use std::fs;
use std::process::Stdio;

use anyhow::Context;
use serde_json::{Value, json};

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::Link;
use super::parse::{self, figure, run_of};
use super::record::{Record, slim};
use super::server::{CLEAR_PORT, Root, Server, TLS_PORT, sooner};
use crate::certificate::Certificate;
use crate::process;

const CONNECTIONS: &str = "8";
/// The largest share by which two generators may differ.
const DIFFERENCE_MAX: f64 = 0.05;
const BODIES: [(usize, u64); 3] = [(1_000, 10), (10_000, 10), (100_000, 100)];
const HEAD: &str =
    "| body | spoken | figure | other | sooner load | ratio |\n|---|---|---|---|---|---|\n";

/// What is spoken, and who else speaks it.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    secured: bool,
    /// Arguments of `sooner load closed`.
    ours: &'static [&'static str],
    /// The other generator, and arguments of its.
    other: Other,
}

#[derive(Clone, Copy)]
enum Other {
    Wrk,
    H2load(&'static [&'static str]),
}

const CLEAR: [Way; 1] = [Way {
    name: "HTTP/1.1",
    secured: false,
    ours: &[],
    other: Other::Wrk,
}];

const SECURED: [Way; 3] = [
    Way {
        name: "HTTP/1.1 over TLS",
        secured: true,
        ours: &["--insecure"],
        other: Other::H2load(&["--h1"]),
    },
    Way {
        name: "HTTP/2 over TLS",
        secured: true,
        ours: &["--insecure", "--http2"],
        other: Other::H2load(&["-m", "1"]),
    },
    Way {
        name: "HTTP/2 over TLS, 4 streams",
        secured: true,
        ours: &["--insecure", "--http2", "--streams", "4"],
        other: Other::H2load(&["-m", "4"]),
    },
];

/// Requests a second and mean response time by wrk and by us.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    measure("beside-wrk", &CLEAR, effort, checks)
}

/// The same over TLS and with HTTP/2, by h2load and by us.
pub fn secured(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    if !process::is_installed("h2load") {
        checks.claim(
            false,
            "generator: h2load is needed (Debian: nghttp2-client)".into(),
        );
        return Ok(());
    }
    measure("beside-h2load", &SECURED, effort, checks)
}

fn measure(name: &str, ways: &[Way], effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("generator", name)?;
    let mut part = Checks::default();
    let mut table = String::from(HEAD);
    let root = Root::empty()?;
    for way in ways {
        for (bytes, rate_mbit) in BODIES {
            fs::write(root.path().join("file"), vec![b'x'; bytes])?;
            let both = one_after_the_other(way, &root, rate_mbit, effort, &mut record)?;
            for (figure, [other, ours]) in
                ["requests a second", "mean response, ms"].iter().zip(&both)
            {
                let ratio = median(ours) / median(other);
                table += &format!(
                    "| {bytes} B | {} | {figure} | {} | {} | {ratio:.3} |\n",
                    way.name,
                    spread(other, 2),
                    spread(ours, 2)
                );
                part.at_most(
                    &format!("{bytes} B, {}, {figure}: |ratio - 1|", way.name),
                    (ratio - 1.0).abs(),
                    DIFFERENCE_MAX,
                );
            }
        }
    }
    record.table(name, &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// Requests a second, then means: each of the other generator's repetitions and of ours.
fn one_after_the_other(
    way: &Way,
    root: &Root,
    rate_mbit: u64,
    effort: Effort,
    record: &mut Record,
) -> anyhow::Result<[[Vec<f64>; 2]; 2]> {
    let link = Link::up("g", rate_mbit, super::link::Shaper::Host)?;
    let server = if way.secured {
        let certificate = Certificate::of(root.scratch())?;
        Server::Nginx.start_secured(&link, root.path(), rate_mbit, &certificate, "")?
    } else {
        Server::Nginx.start(&link, root.path(), rate_mbit)?
    };
    let mut both: [[Vec<f64>; 2]; 2] = Default::default();
    let seconds = if effort.quick { "5" } else { "10" };
    for repetition in 0..effort.repetitions {
        let other = match way.other {
            Other::Wrk => by_wrk(&link, seconds)?,
            Other::H2load(arguments) => by_h2load(&link, seconds, arguments)?,
        };
        for (generator, measured) in [other, by_us(&link, seconds, way, record)?]
            .into_iter()
            .enumerate()
        {
            record.add(&json!({"way": way.name, "rate_mbit": rate_mbit, "ours": generator == 1, "repetition": repetition,
                "per_sec": measured[0], "mean_ms": measured[1]}))?;
            for (figure, value) in measured.into_iter().enumerate() {
                both[figure][generator].push(value);
            }
        }
    }
    drop(server);
    Ok(both)
}

fn url(secured: bool) -> String {
    if secured {
        format!("https://10.77.0.1:{TLS_PORT}/file")
    } else {
        format!("http://10.77.0.1:{CLEAR_PORT}/file")
    }
}

fn by_us(link: &Link, seconds: &str, way: &Way, record: &mut Record) -> anyhow::Result<[f64; 2]> {
    let mut command = link.on_client(&sooner());
    command.args(["load", "closed", "--url", &url(way.secured)]);
    command.args(["--connections", CONNECTIONS, "--for", seconds, "--json"]);
    command.args(way.ours);
    let run = run_of(
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?,
    )?;
    record.add(&slim(&run))?;
    let per_sec = figure(&run, "/all/completed") / figure(&run, "/measured_s");
    Ok([per_sec, figure(&run, "/all/mean_response_ms")])
}

fn by_h2load(link: &Link, seconds: &str, arguments: &[&str]) -> anyhow::Result<[f64; 2]> {
    let mut command = link.on_client("h2load");
    command.args(["-c", CONNECTIONS, "-D", seconds, "--warm-up-time", "2"]);
    // Windows of 2^30 - 1 and 2^30: the client's flow control limits neither generator.
    command.args(["-w", "30", "-W", "30"]);
    let printed = process::output(command.args(arguments).arg(url(true)))?;
    parse::h2load(&printed).context("h2load printed no summary")
}

fn by_wrk(link: &Link, seconds: &str) -> anyhow::Result<[f64; 2]> {
    let mut command = link.on_client("wrk");
    command.args([
        "-t1",
        "-c",
        CONNECTIONS,
        "-d",
        seconds,
        "-s",
        "/dev/stdin",
        &url(false),
    ]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("wrk is needed")?;
    // Its own summary rounds; the script prints microseconds.
    let script = "done = function(summary, latency) io.write(string.format('{\"per_sec\": %f, \"mean_ms\": %f}\\n', \
                  summary.requests / summary.duration * 1e6, latency.mean / 1e3)) end";
    std::io::Write::write_all(
        &mut child.stdin.take().context("no pipe")?,
        script.as_bytes(),
    )?;
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .find(|line| line.starts_with('{'))
        .context("wrk printed no summary")?;
    let summary: Value = serde_json::from_str(line)?;
    Ok([figure(&summary, "/per_sec"), figure(&summary, "/mean_ms")])
}
