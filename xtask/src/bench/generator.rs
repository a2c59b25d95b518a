//! Does `sooner load` measure what wrk measures? The same nginx on the same limited link, eight connections, one after the other.

use std::fs;
use std::process::Stdio;

use anyhow::Context;
use serde_json::{Value, json};

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::{Link, Stack};
use super::parse::{figure, run_of};
use super::record::{Record, slim};
use super::server::{Root, Server, sooner};

const URL: &str = "http://10.77.0.1:8080/file";
const CONNECTIONS: &str = "8";
/// The largest share by which the two may differ.
const DIFFERENCE_MAX: f64 = 0.05;

/// Requests a second and mean response time by both generators.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("generator", "beside-wrk")?;
    let mut part = Checks::default();
    let mut table =
        String::from("| body | figure | wrk | sooner load | ratio |\n|---|---|---|---|---|\n");
    let root = Root::empty()?;
    for (bytes, rate_mbit) in [(1_000, 10), (10_000, 10), (100_000, 100)] {
        fs::write(root.path().join("file"), vec![b'x'; bytes])?;
        let link = Link::up("g", rate_mbit, super::link::Shaper::Host, Stack::Plain)?;
        let server = Server::Nginx.start(&link, root.path(), rate_mbit)?;
        let (mut wrk, mut ours) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for repetition in 0..effort.repetitions {
            let seconds = if effort.quick { "5" } else { "10" };
            for (kept, measured) in [
                (&mut wrk, by_wrk(&link, seconds)?),
                (&mut ours, by_us(&link, seconds, &mut record)?),
            ] {
                record.add(&json!({"body_bytes": bytes, "repetition": repetition, "per_sec": measured[0], "mean_ms": measured[1]}))?;
                kept.iter_mut()
                    .zip(measured)
                    .for_each(|(all, one)| all.push(one));
            }
        }
        for (index, name) in ["requests a second", "mean response, ms"]
            .iter()
            .enumerate()
        {
            let ratio = median(&ours[index]) / median(&wrk[index]);
            table += &format!(
                "| {bytes} B | {name} | {} | {} | {ratio:.3} |\n",
                spread(&wrk[index], 2),
                spread(&ours[index], 2)
            );
            part.at_most(
                &format!("{bytes} B, {name}: |sooner load / wrk - 1|"),
                (ratio - 1.0).abs(),
                DIFFERENCE_MAX,
            );
        }
        drop(server);
    }
    record.table("beside-wrk", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

fn by_us(link: &Link, seconds: &str, record: &mut Record) -> anyhow::Result<[f64; 2]> {
    let mut command = link.on_client(&sooner());
    command.args([
        "load",
        "closed",
        "--url",
        URL,
        "--connections",
        CONNECTIONS,
        "--for",
        seconds,
        "--json",
    ]);
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
        URL,
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
