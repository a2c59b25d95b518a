//! What ordering costs in throughput: fifty endless downloads fill the link, nginx beside it on a link of its own.

use std::fs::File;
use std::process::{Child, Stdio};

use serde_json::json;

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::{Link, Stack};
use super::parse::{figure, run_of};
use super::record::{Record, slim};
use super::server::{Root, Server, sooner};

/// Rate in Mbit/s, and the share of nginx's goodput that may be lost in user space and with bands.
const CASES: [(u64, f64, f64); 2] = [(10, 0.015, 0.005), (100, 0.03, 0.01)];
const SERVERS: [Server; 3] = [Server::Nginx, Server::UserSpace, Server::Bands];
/// More than any run can fetch.
const DOWNLOAD_BYTES: u64 = 4_000_000_000;

/// Goodput of each server at each rate.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("saturated", "goodput")?;
    let mut part = Checks::default();
    let mut table =
        String::from("| uplink | server | goodput, Mbit/s | / nginx |\n|---|---|---|---|\n");
    let root = Root::empty()?;
    File::create(root.path().join("download.bin"))?.set_len(DOWNLOAD_BYTES)?;
    for (rate_mbit, user_space_loss_max, bands_loss_max) in CASES {
        let mut goodputs = [const { Vec::new() }; SERVERS.len()];
        for repetition in 0..effort.repetitions {
            for (index, run) in side_by_side(rate_mbit, &root, effort.quick)?
                .into_iter()
                .enumerate()
            {
                record.add(&json!({"rate_mbit": rate_mbit, "server": SERVERS[index].name(), "repetition": repetition, "run": slim(&run)}))?;
                goodputs[index].push(figure(&run, "/goodput_bits_per_sec") / 1e6);
            }
        }
        for (index, server) in SERVERS.iter().enumerate() {
            let shares: Vec<f64> = goodputs[index]
                .iter()
                .zip(&goodputs[0])
                .map(|(ours, nginx)| ours / nginx)
                .collect();
            table += &format!(
                "| {rate_mbit}mbit | {} | {} | {} |\n",
                server.name(),
                spread(&goodputs[index], 3),
                spread(&shares, 4)
            );
            let loss_max = if *server == Server::Bands {
                bands_loss_max
            } else {
                user_space_loss_max
            };
            if *server != Server::Nginx {
                part.at_least(
                    &format!("{rate_mbit}mbit, {}: goodput / nginx's", server.name()),
                    median(&shares),
                    1.0 - loss_max,
                );
            }
        }
    }
    record.table("goodput", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

fn side_by_side(
    rate_mbit: u64,
    root: &Root,
    quick: bool,
) -> anyhow::Result<Vec<serde_json::Value>> {
    let mut stands = Vec::new();
    for server in SERVERS {
        let link = Link::up(server.tag(), rate_mbit, server.shaper(), Stack::Plain)?;
        let running = server.start(&link, root.path(), rate_mbit)?;
        stands.push((running, link));
    }
    let clients: Vec<Child> = stands
        .iter()
        .map(|(_, link)| client(link, quick))
        .collect::<anyhow::Result<_>>()?;
    clients.into_iter().map(run_of).collect()
}

fn client(link: &Link, quick: bool) -> anyhow::Result<Child> {
    let seconds = if quick { "10" } else { "30" };
    let mut command = link.on_client(&sooner());
    command.args([
        "load",
        "closed",
        "--url",
        "http://10.77.0.1:8080/download.bin",
        "--connections",
        "50",
        "--for",
        seconds,
        "--json",
    ]);
    Ok(command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?)
}
