//! From a set-up to the command line of the load generator.

use crate::experiment::{Gaps, Model, Setup};
use std::net::IpAddr;
use std::path::Path;

/// Where the load goes, and what is kept of it.
pub struct Aim<'a> {
    /// Server and port, like `10.77.0.1:8080`.
    pub authority: &'a str,
    /// The client hosts' addresses; none: the system's choice.
    pub from: &'a [IpAddr],
    /// What the run shall be called.
    pub label: &'a str,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Where every request is written down.
    pub samples: &'a Path,
}

/// The arguments of `sooner` for one run.
pub fn arguments(setup: &Setup, aim: &Aim<'_>) -> Vec<String> {
    let mut words: Vec<String> = ["load", "replay", &setup.trace, "--json"]
        .map(String::from)
        .into();
    let mut give = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    give("--url", format!("http://{}", aim.authority));
    give("--label", aim.label.to_owned());
    give("--seed", aim.seed.to_string());
    give("--uplink", format!("{}bit", setup.rate_bits_per_sec));
    give("--for", setup.seconds.to_string());
    give("--warm-up", setup.warm_up_seconds.to_string());
    give("--drain", setup.drain_seconds.to_string());
    give("--samples", aim.samples.display().to_string());
    give(
        "--requests-per-connection",
        setup.requests_per_connection.to_string(),
    );
    if setup.model != Model::Closed {
        let is_one_load = setup.schedule.parse::<f64>().is_ok();
        give(
            if is_one_load { "--rho" } else { "--schedule" },
            setup.schedule.clone(),
        );
    }
    if let Some(name) = &setup.congestion_control {
        give("--congestion-control", name.clone());
    }
    if let Some(seconds) = setup.patience_seconds {
        give("--patience", seconds.to_string());
        give("--reloads", setup.reloads.to_string());
    }
    if let Some(bytes) = setup.mss {
        give("--mss", bytes.to_string());
    }
    let from: Vec<String> = aim.from.iter().map(ToString::to_string).collect();
    if !from.is_empty() {
        give("--from", from.join(","));
    }
    match setup.model {
        Model::Open => {}
        Model::Closed => {
            give("--model", "closed".into());
            give("--users", setup.users.unwrap_or(1).to_string());
            give("--think", setup.think_seconds.to_string());
        }
        Model::PartlyOpen => {
            give("--model", "partly-open".into());
            if let Some(count) = setup.requests_per_visit {
                give("--requests-per-visit", count.to_string());
            } else if let Some(probability) = setup.stay {
                give("--stay", probability.to_string());
            }
            give("--think", setup.think_seconds.to_string());
        }
    }
    if setup.gaps == Gaps::Poisson && setup.model != Model::Closed {
        words.push("--poisson".into());
    }
    words
}
