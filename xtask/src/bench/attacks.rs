//! Attacks on TLS and HTTP/2, one kind after the other: what do the others notice, and what does the server keep of them?

use std::fs;

use serde_json::json;

use super::Effort;
use super::check::{Checks, median, spread};
use super::others::{self, Stand};
use super::parse::figure;
use super::record::{Record, slim};
use super::server::{Root, Server};
use crate::clients::attack::KINDS;

/// What is asked for: smaller than half of all downloads in flight, so that under SRPT it comes first whenever it can.
const HOSTILE_BYTES: usize = 100_000;
/// The others' mean under attack, in means without.
const MEAN_MAX: f64 = 1.2;
/// Memory that may stay taken, KiB: allocators keep what they once had.
const MEMORY_KEPT_KIB_MAX: f64 = 16_384.0;

/// Every kind against both mechanisms.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("attacks", "others")?;
    let mut part = Checks::default();
    let mut table = String::from(
        "| attack | server | others' mean, ms, alone | under attack | ratio | share of the link it took | descriptors kept | memory kept, KiB |\n|---|---|---|---|---|---|---|---|\n",
    );
    let root = Root::of("epa")?;
    fs::write(root.path().join("hostile.bin"), vec![b'x'; HOSTILE_BYTES])?;
    for (kind, _) in KINDS {
        for server in [Server::UserSpace, Server::Bands] {
            let at = |what: &str| format!("{kind}, {}: {what}", server.name());
            let (figures, valid) = repeat(kind, server, &root, effort, &mut record)?;
            let shown: Vec<String> = figures.iter().map(|all| spread(all, 2)).collect();
            table += &format!("| {kind} | {} | {} |\n", server.name(), shown.join(" | "));
            part.claim(valid, at("all runs VALID"));
            part.at_most(
                &at("others' mean under attack / alone"),
                median(&figures[2]),
                MEAN_MAX,
            );
            part.at_most(&at("descriptors kept"), median(&figures[4]), 0.0);
            part.at_most(
                &at("memory kept, KiB"),
                median(&figures[5]),
                MEMORY_KEPT_KIB_MAX,
            );
        }
    }
    record.table("others", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// The columns of every repetition, and whether the generators may be believed.
fn repeat(
    kind: &str,
    server: Server,
    root: &Root,
    effort: Effort,
    record: &mut Record,
) -> anyhow::Result<([Vec<f64>; 6], bool)> {
    let mut figures = [const { Vec::new() }; 6];
    let mut valid = true;
    for repetition in 0..effort.repetitions {
        let stand = Stand {
            server,
            root,
            secured: true,
            clients: &["attack-clients", kind],
            seconds: if effort.quick { 15 } else { 45 },
            seed: 1 + u64::from(repetition),
        };
        let outcome = others::beside(&stand)?;
        record.add(&json!({"attack": kind, "server": server.name(), "repetition": repetition, "alone": slim(&outcome.alone),
            "with": slim(&outcome.with), "hostile_share": outcome.hostile_share, "descriptors_kept": outcome.descriptors_kept,
            "memory_kept_kib": outcome.memory_kept_kib}))?;
        let runs = [&outcome.alone, &outcome.with];
        valid &= runs.iter().all(|run| run["verdict"] == "VALID");
        let means = runs.map(|run| figure(run, "/all/mean_response_ms"));
        let row = [
            means[0],
            means[1],
            means[1] / means[0],
            outcome.hostile_share,
            outcome.descriptors_kept,
            outcome.memory_kept_kib,
        ];
        figures
            .iter_mut()
            .zip(row)
            .for_each(|(all, one)| all.push(one));
    }
    Ok((figures, valid))
}
