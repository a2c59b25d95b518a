//! Twenty files of mixed sizes asked for at the same moment over HTTP/2, on one connection and on several: when are they there?

use std::fs;
use std::process::Command;

use anyhow::Context;
use serde_json::{Value, json};

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::Link;
use super::record::Record;
use super::server::{Root, Server, TLS_PORT};
use crate::certificate::Certificate;
use crate::process;

const RATE_MBIT: u64 = 10;
/// Kilobytes of each file, in the order in which they are asked for: what a page with thumbnails and pictures has.
const SIZES_KB: [u64; 20] = [
    30, 200, 2, 10, 50, 2, 2, 200, 10, 2, 50, 10, 2, 2, 10, 50, 2, 10, 50, 2,
];
const CONNECTIONS: [usize; 3] = [1, 4, 20];
/// The mean of ours with streams in order of size, in ideal means.
const MEAN_MAX: f64 = 1.3;
const NODE_SCRIPT: &str = include_str!("scripts/streams.mjs");

/// A server with settings.
struct Subject {
    name: &'static str,
    server: Server,
    uplink: &'static str,
}

const SUBJECTS: [Subject; 4] = [
    Subject {
        name: "nginx",
        server: Server::Nginx,
        uplink: "",
    },
    Subject {
        name: "sooner, user space, as it comes",
        server: Server::UserSpace,
        uplink: "",
    },
    Subject {
        name: "sooner, user space, streams by size",
        server: Server::UserSpace,
        uplink: "streams = \"size\"\n",
    },
    Subject {
        name: "sooner, with bands, streams by size",
        server: Server::Bands,
        uplink: "streams = \"size\"\n",
    },
];

/// Every server, one after the other, with every number of connections.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    if !process::is_installed("node") {
        checks.claim(false, "streams: node is needed (Debian: nodejs)".into());
        return Ok(());
    }
    let mut record = Record::open("streams", "streams")?;
    let mut part = Checks::default();
    let ideal_ms = ideal_mean_ms();
    let mut table = format!(
        "The ideal mean is {ideal_ms:.1} ms.\n\n| connections | server | mean, ms | / ideal | smallest half, ms |\n|---|---|---|---|---|\n"
    );
    let (root, paths) = files()?;
    let script = root.scratch().join("streams.mjs");
    fs::write(&script, NODE_SCRIPT)?;
    let rounds = if effort.quick {
        3
    } else {
        5 * effort.repetitions
    };
    for connections in CONNECTIONS {
        let mut means = Vec::new();
        for subject in &SUBJECTS {
            let link = Link::up("m", RATE_MBIT, subject.server.shaper())?;
            let certificate = Certificate::of(root.scratch())?;
            let running = subject.server.start_secured(
                &link,
                root.path(),
                RATE_MBIT,
                &certificate,
                subject.uplink,
            )?;
            let (mut all, mut small) = (Vec::new(), Vec::new());
            for round in 0..rounds {
                let times_ms = fetch(&link, &script, connections, &paths)?;
                record.add(&json!({"connections": connections, "server": subject.name, "round": round, "ms": times_ms}))?;
                all.push(mean(&times_ms));
                small.push(mean(&of_small_ones(&times_ms)));
            }
            drop(running);
            table += &format!(
                "| {connections} | {} | {} | {:.2} | {} |\n",
                subject.name,
                spread(&all, 1),
                median(&all) / ideal_ms,
                spread(&small, 1)
            );
            means.push(median(&all));
        }
        hold(connections, &means, ideal_ms, &mut part);
    }
    record.table("streams", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// The means are in the order of the subjects.
fn hold(connections: usize, means: &[f64], ideal_ms: f64, part: &mut Checks) {
    for (subject, mean_ms) in SUBJECTS.iter().zip(means).skip(1) {
        let at = |what: &str| format!("{connections} connections, {}: {what}", subject.name);
        part.at_most(&at("mean / nginx's"), mean_ms / means[0], 1.0);
        if !subject.uplink.is_empty() {
            part.at_most(&at("mean / ideal"), mean_ms / ideal_ms, MEAN_MAX);
        }
    }
}

/// The files, and their paths in the order in which they are asked for.
fn files() -> anyhow::Result<(Root, Vec<String>)> {
    let root = Root::empty()?;
    let mut paths = Vec::new();
    for (nth, kb) in SIZES_KB.into_iter().enumerate() {
        let name = format!("{nth}-{kb}k.bin");
        fs::write(root.path().join(&name), vec![b'x'; kb as usize * 1_000])?;
        paths.push(format!("/{name}"));
    }
    Ok((root, paths))
}

/// Milliseconds until each file was there.
fn fetch(
    link: &Link,
    script: &std::path::Path,
    connections: usize,
    paths: &[String],
) -> anyhow::Result<Vec<f64>> {
    let mut node: Command = link.on_client("node");
    node.arg(script)
        .arg(format!("https://10.77.0.1:{TLS_PORT}"))
        .arg(connections.to_string())
        .args(paths);
    let printed: Value = serde_json::from_str(&process::output(&mut node)?)?;
    let times = printed.as_array().context("node printed no array")?;
    Ok(times.iter().filter_map(Value::as_f64).collect())
}

/// The mean time until each file would be there, the smallest first and nothing else on the link.
fn ideal_mean_ms() -> f64 {
    let mut sizes = SIZES_KB;
    sizes.sort_unstable();
    let mut wire_bytes = 0;
    let times = sizes.map(|kb| {
        wire_bytes += wire_bytes_of(kb * 1_000);
        wire_bytes as f64 * 8.0 / (RATE_MBIT as f64 * 1_000.0)
    });
    mean(&times)
}

/// Body, a small head, headers of frames of 16 KiB, records of 16 KiB and packets of 1448 bytes.
fn wire_bytes_of(body_bytes: u64) -> u64 {
    let framed = body_bytes + 60 + 9 * body_bytes.div_ceil(16_384);
    let payload = framed + 22 * framed.div_ceil(16_384);
    payload + 66 * payload.div_ceil(1_448)
}

fn of_small_ones(times_ms: &[f64]) -> Vec<f64> {
    let mut sorted = SIZES_KB;
    sorted.sort_unstable();
    let middle = sorted[SIZES_KB.len() / 2 - 1];
    let small = times_ms
        .iter()
        .zip(SIZES_KB)
        .filter(|(_, kb)| *kb <= middle);
    small.map(|(ms, _)| *ms).collect()
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}
