//! From a set-up to the command line of the load generator.

use crate::experiment::{Gaps, Model, Setup};
use sooner_workload::{Object, Trace, TraceError};
use std::net::IpAddr;
use std::path::Path;

/// Where the load goes, and what is kept of it.
pub struct Aim<'a> {
    /// The server, like `http://10.77.0.1:8080`.
    pub url: &'a str,
    /// The client hosts' addresses; none: the system's choice.
    pub from: &'a [IpAddr],
    /// What the run shall be called.
    pub label: &'a str,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Where every request is written down.
    pub samples: &'a Path,
}

/// The heads of today's servers have 200 to 300 bytes; with one length for all, all get the very
/// same requests.
const PLAN_HEAD_BYTES: u64 = 250;
/// The file of the downloads beside a run, in every root.
pub const DOWNLOAD: &str = "download.bin";
/// The servers sign their own.
const ANY_CERTIFICATE: &str = "--insecure";

/// The arguments of `sooner` for one run.
pub fn arguments(setup: &Setup, aim: &Aim<'_>) -> Result<Vec<String>, TraceError> {
    match setup.model {
        Model::Saturated => saturating(setup, aim),
        _ => Ok(measuring(setup, aim)),
    }
}

/// Endless downloads of the largest object.
fn saturating(setup: &Setup, aim: &Aim<'_>) -> Result<Vec<String>, TraceError> {
    let trace = Trace::open(&setup.trace)?;
    let largest = trace.objects.iter().max_by_key(|object| object.size_bytes);
    let path = largest.map_or("/".into(), Object::path);
    let url = format!("{}{path}", aim.url);
    Ok(downloading(
        setup,
        &url,
        setup.users.unwrap_or(1),
        setup.seconds,
    ))
}

/// The arguments of `sooner` for the downloads beside a run, which is over after `seconds` at the
/// latest.
pub fn beside(setup: &Setup, aim: &Aim<'_>, seconds: u64) -> Vec<String> {
    let url = format!("{}/{DOWNLOAD}", aim.url);
    let mut words = downloading(setup, &url, setup.downloads, seconds);
    words.extend(from(aim));
    words
}

/// The arguments of the neighbours' downloads, from a host at `url`.
pub fn of_neighbours(setup: &Setup, aim: &Aim<'_>, url: &str) -> Option<Vec<String>> {
    let (count, from_s, until_s) = setup.bottleneck.as_ref()?.neighbours?;
    let url = format!("{url}/{DOWNLOAD}");
    let mut words = downloading(setup, &url, count, ((until_s - from_s) as u64).max(1));
    words.extend(from(aim));
    Some(words)
}

/// The addresses that requests are sent from.
fn from(aim: &Aim<'_>) -> Vec<String> {
    let from: Vec<String> = aim.from.iter().map(ToString::to_string).collect();
    match from.len() {
        0 | 1 => Vec::new(),
        _ => vec!["--from".into(), from.join(",")],
    }
}

fn downloading(setup: &Setup, url: &str, connections: u32, seconds: u64) -> Vec<String> {
    let mut words: Vec<String> = ["load", "closed", "--json"].map(String::from).into();
    let mut give = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    give("--url", url.to_owned());
    give("--connections", connections.to_string());
    give("--for", seconds.to_string());
    if let Some(name) = &setup.congestion_control {
        give("--congestion-control", name.clone());
    }
    if setup.tls {
        words.push(ANY_CERTIFICATE.into());
    }
    words
}

fn measuring(setup: &Setup, aim: &Aim<'_>) -> Vec<String> {
    let mut words = program(setup);
    let mut give = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    give("--url", aim.url.to_owned());
    give("--label", aim.label.to_owned());
    give("--seed", aim.seed.to_string());
    give("--plan-head", PLAN_HEAD_BYTES.to_string());
    give("--uplink", format!("{}bit", setup.rate_bits_per_sec));
    give("--for", setup.seconds.to_string());
    give("--warm-up", setup.warm_up_seconds.to_string());
    give("--drain", setup.drain_seconds.to_string());
    give("--samples", aim.samples.display().to_string());
    give(
        "--requests-per-connection",
        setup.requests_per_connection.to_string(),
    );
    if setup.model.has_load() {
        let is_one_load = setup.schedule.parse::<f64>().is_ok();
        give(
            if is_one_load { "--rho" } else { "--schedule" },
            setup.schedule.clone(),
        );
    }
    if let Some(crowd) = &setup.crowd {
        give("--crowd", crowd.clone());
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
        Model::Open | Model::Saturated => {}
        Model::Closed => {
            give("--model", "closed".into());
            give("--users", setup.users.unwrap_or(1).to_string());
            give("--think", setup.think_seconds.to_string());
        }
        Model::Surge => give("--users", setup.users.unwrap_or(1).to_string()),
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
    words.extend(switches(setup));
    words
}

/// What is said without a value, and what is spoken.
fn switches(setup: &Setup) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    if setup.gaps == Gaps::Poisson && setup.model.has_load() {
        words.push("--poisson".into());
    }
    if setup.tls {
        words.push(ANY_CERTIFICATE.into());
    }
    if let Some(count) = setup.streams {
        words.extend(["--http2", "--streams", &count.to_string()].map(String::from));
    }
    if setup.expect_refusals {
        words.push("--expect-refusals".into());
    }
    words
}

/// What generates the load, and what it asks for.
fn program(setup: &Setup) -> Vec<String> {
    let files = setup.surge_files().unwrap_or(1).to_string();
    let words: &[&str] = match setup.model {
        Model::Surge => &["load", "surge", "--files", &files, "--json"],
        Model::Open | Model::Closed | Model::PartlyOpen | Model::Saturated => {
            &["load", "replay", &setup.trace, "--json"]
        }
    };
    words.iter().copied().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    /// The command line for a set-up that has these keys too.
    fn line(keys: &str) -> String {
        let text = format!(
            "rows = []\nquestion = \"q\"\npublished = \"p\"\nbaseline = \"nginx\"\n\
             [setup]\npeers = [\"nginx\"]\n{keys}\n[[case]]\nname = \"c\""
        );
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("experiment.toml"), text).unwrap();
        let experiment = Experiment::open(folder.path()).unwrap();
        let aim = Aim {
            url: "http://10.0.0.1:80",
            from: &[],
            label: "l",
            seed: 7,
            samples: Path::new("s"),
        };
        arguments(&experiment.cases[0].setup, &aim)
            .unwrap()
            .join(" ")
    }

    #[test]
    fn downloads_go_on_for_as_long_as_they_are_told() {
        let setup = crate::run::example::case("peers = [\"nginx\"]\ndownloads = 50").setup;
        let aim = Aim {
            url: "https://10.0.0.1:443",
            from: &[],
            label: "",
            seed: 1,
            samples: Path::new(""),
        };
        let line = beside(&setup, &aim, 200).join(" ");
        assert!(
            line.contains("--url https://10.0.0.1:443/download.bin"),
            "{line}"
        );
        assert!(line.contains("--connections 50 --for 200"), "{line}");
    }

    #[test]
    fn the_generator_is_told_what_the_setup_says() {
        for (keys, said, unsaid) in [
            (
                "schedule = \"0.9\"\ngaps = \"poisson\"",
                &["load replay epa ", "--rho 0.9", "--poisson"][..],
                &["--crowd", "--expect-refusals", "--users"][..],
            ),
            (
                "schedule = \"W1\"\ncrowd = \"9000,0.5\"\nexpect_refusals = true",
                &["--schedule W1", "--crowd 9000,0.5", "--expect-refusals"],
                &["--poisson"],
            ),
            (
                "model = \"surge\"\ntrace = \"surge:3\"\nusers = 400\ngaps = \"poisson\"",
                &["load surge --files 3 ", "--users 400", "--seed 7"],
                &[
                    "replay",
                    "--rho",
                    "--schedule",
                    "--poisson",
                    "--think",
                    "--model",
                ],
            ),
            (
                "model = \"saturated\"\nusers = 50",
                &[
                    "load closed --json --url http://10.0.0.1:80/objects/",
                    "--connections 50",
                ],
                &["--uplink", "--seed", "--samples", "--model"],
            ),
            (
                "schedule = \"0.1\"\ntls = true",
                &["--insecure"],
                &["--http2", "--resume"],
            ),
        ] {
            let line = line(keys);
            assert!(said.iter().all(|words| line.contains(words)), "{line}");
            assert!(!unsaid.iter().any(|words| line.contains(words)), "{line}");
        }
    }
}
