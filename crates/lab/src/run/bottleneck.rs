//! What happens to a link beyond the server while a run lasts, and what was found there.

use crate::experiment::{RouterLink, Setup};
use crate::hosts::{self, Hosts};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sooner_testbed::OwnedChild;
use sooner_workload::Rate;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Where the neighbours' host serves.
const NEIGHBOUR_PORT: u16 = 8090;
/// How far what is believed may be from what is true, where it counts as found.
const FOUND: f64 = 0.05;

/// What the hosts are told of it.
pub fn of_hosts(link: &RouterLink) -> hosts::Bottleneck {
    hosts::Bottleneck {
        saved_bytes: link.saved_bytes,
        client_bits_per_sec: link.client_rate.as_deref().and_then(bits_per_sec),
    }
}

/// Rates were looked at with the set-up.
fn bits_per_sec(rate: &str) -> Option<u64> {
    rate.parse::<Rate>().ok().map(Rate::bits_per_sec)
}

/// The neighbours' host: serves the same files from the router.
pub fn neighbour(hosts: &Hosts, program: &Path, root: &Path) -> Result<(OwnedChild, String)> {
    let address = format!("{}:{NEIGHBOUR_PORT}", hosts.router_address());
    let mut command = hosts.on_router(program).context("there is no router")?;
    command.arg("serve").arg(root);
    command.args(["--listen", &address, "--quiet"]);
    let child = OwnedChild::spawn(&mut command).context("the neighbours' host")?;
    Ok((child, format!("http://{address}")))
}

/// Changes the link's rate when it is time, from now on.
pub fn steps(hosts: &Hosts, setup: &Setup) -> Option<JoinHandle<Result<()>>> {
    let link = setup.bottleneck.as_ref()?;
    let steps: Vec<(f64, Command)> = link
        .steps
        .iter()
        .filter_map(|(at_s, rate)| Some((*at_s, hosts.change_of_rate(bits_per_sec(rate)?)?)))
        .collect();
    if steps.is_empty() {
        return None;
    }
    Some(tokio::spawn(async move {
        let start = tokio::time::Instant::now();
        for (at_s, command) in steps {
            tokio::time::sleep_until(start + Duration::from_secs_f64(at_s)).await;
            let status = tokio::process::Command::from(command).status().await;
            let status = status.context("tc")?;
            ensure!(status.success(), "tc could not change the link's rate");
        }
        Ok(())
    }))
}

/// What `sooner attach` beside the server believes of the link, and when it had found its rates;
/// none where nothing is searched. It is `now_s` since the generator began.
pub fn found(hosts: &Hosts, program: &Path, setup: &Setup, now_s: f64) -> Option<Value> {
    let link = setup.bottleneck.as_ref()?;
    let mut command = hosts.on_server(program);
    command
        .args(["attach", "top", "--json"])
        .stderr(Stdio::null());
    let output = command.output().ok()?;
    let top: Value = serde_json::from_slice(&output.stdout).ok()?;
    let uplink = top.get("uplink").filter(|uplink| !uplink.is_null())?;
    let rates = std::iter::once((0.0, setup.rate_bits_per_sec)).chain(
        link.steps
            .iter()
            .filter_map(|(at_s, rate)| Some((*at_s, bits_per_sec(rate)?))),
    );
    let found_s: Vec<Option<f64>> = rates
        .map(|(from_s, rate)| found_after_s(uplink, now_s, from_s, rate as f64))
        .collect();
    Some(json!({
        "state": uplink["state"],
        "carries_bits_per_sec": uplink["carries_bits_per_sec"],
        "decided": uplink["decided"],
        "found_s": found_s,
        "changes": changes(uplink),
    }))
}

/// The decisions that changed what was believed; probes that found the same are left out.
fn changes(uplink: &Value) -> Vec<&Value> {
    let mut believed = 0.0;
    let decisions = uplink["decisions"].as_array().into_iter().flatten();
    decisions
        .filter(|decision| {
            let carries = decision["carries_bits_per_sec"].as_f64().unwrap_or(0.0);
            let is_new = (carries - believed).abs() > FOUND * believed;
            if is_new {
                believed = carries;
            }
            is_new
        })
        .collect()
}

/// How long after `from_s` of the run a decision believed what is true then.
fn found_after_s(uplink: &Value, now_s: f64, from_s: f64, rate: f64) -> Option<f64> {
    let decisions = uplink["decisions"].as_array()?;
    let at_s = |decision: &Value| Some(now_s - decision["ago_s"].as_f64()?);
    let is_right = |decision: &&Value| {
        let carries = decision["carries_bits_per_sec"].as_f64();
        let is_later = at_s(decision).is_some_and(|at_s| at_s >= from_s);
        // A trial may find out that the queue is another's.
        let is_found = decision["state"] != "trial";
        is_later
            && is_found
            && carries.is_some_and(|carries| (carries - rate).abs() <= FOUND * rate)
    };
    Some(at_s(decisions.iter().find(is_right)?)? - from_s)
}
