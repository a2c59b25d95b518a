//! What others notice of clients that mean no good.

use super::super::{Keys, Kind, figures, keys_of};
use super::{PeerKeys, PeerSpec, Site};
use crate::counters::processes::usage;
use crate::hosts::SERVER_ADDRESS;
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use crate::peers::{PORT, TLS_PORT};
use crate::run::served_files;
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sooner_testbed::OwnedChild;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// `beside-others`: what others notice, the same arrivals on two links, one of them with clients as
/// well that mean no good.
#[derive(Debug)]
pub struct BesideOthers {
    keys: OthersKeys,
    ways: Vec<PeerKeys>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OthersKeys {
    seconds: u64,
    #[serde(default)]
    tls: bool,
    /// The clients, where no case names them.
    clients: Option<Vec<String>>,
}

const OTHERS_MBIT: u64 = 10;
/// What those clients get before the others are counted, and what the server gets to forget them.
const AHEAD: Duration = Duration::from_secs(3);
const AFTERWARDS: Duration = Duration::from_secs(2);
/// Length of the file that those clients request: smaller than half of all downloads in flight, so
/// that under SRPT it comes first whenever it can.
const HOSTILE_BYTES: usize = 100_000;

impl BesideOthers {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let others = Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        };
        PeerKeys::check(&others.ways)?;
        Ok(Box::new(others))
    }

    fn others(
        &self,
        bench: &Bench<'_>,
        site: &Site,
        seed: u32,
        seconds: u64,
    ) -> Result<OwnedChild> {
        let (url, seed, seconds) = (
            Site::origin(self.keys.tls),
            seed.to_string(),
            seconds.to_string(),
        );
        let mut words = vec![
            "load",
            "replay",
            "epa",
            "--poisson",
            "--json",
            "--rho",
            "0.7",
        ];
        words.extend(["--uplink", "10mbit", "--congestion-control", "cubic"]);
        words.extend(["--url", &url, "--for", &seconds, "--seed", &seed]);
        if self.keys.tls {
            words.push("--insecure");
        }
        site.load(bench, &words)
    }

    /// Measures on both links at the same time.
    fn beside(
        &self,
        bench: &Bench<'_>,
        peer: &str,
        clients: &[String],
        root: &Path,
        seed: u32,
    ) -> Result<Map<String, Value>> {
        let seconds = bench.seconds(self.keys.seconds, 6);
        let spec = PeerSpec {
            peer,
            rate_mbit: OTHERS_MBIT,
            is_tls: self.keys.tls,
        };
        let (quiet, busy) = (
            Site::start(bench, &spec, root)?,
            Site::start(bench, &spec, root)?,
        );
        let port = if self.keys.tls { TLS_PORT } else { PORT };
        let mut hostile = vec!["lab", "client"];
        hostile.extend(clients.iter().map(String::as_str));
        let (address, long) = (
            format!("{SERVER_ADDRESS}:{port}"),
            (seconds + 4).to_string(),
        );
        hostile.extend([address.as_str(), long.as_str()]);
        let hostile = busy.load(bench, &hostile)?;
        bench.pause(AHEAD)?;
        let [alone, with] = [
            self.others(bench, &quiet, seed, seconds)?,
            self.others(bench, &busy, seed, seconds)?,
        ]
        .map(|child| bench.run_of(child));
        let sent_bits = 8.0 * (busy.hosts.sent_bytes()? as f64 - quiet.hosts.sent_bytes()? as f64);
        drop(hostile);
        bench.pause(AFTERWARDS)?;
        let (pid, quiet_pid) = (busy.running.id(), quiet.running.id());
        // Both have had the same requests, so what differs is left over; a file that only those
        // clients requested stays open in the cache.
        let descriptors_kept = descriptors(pid)? - descriptors(quiet_pid)? - 1.0;
        let resident_kib = |pid| usage(pid).resident_bytes as f64 / 1024.0;
        let ahead_and_run = (seconds + AHEAD.as_secs()) as f64;
        let mut row = figures([
            (
                "hostile_share",
                sent_bits / (OTHERS_MBIT as f64 * 1e6 * ahead_and_run),
            ),
            ("descriptors_kept", descriptors_kept.max(0.0)),
            (
                "memory_kept_kib",
                (resident_kib(pid) - resident_kib(quiet_pid)).max(0.0),
            ),
        ]);
        row.insert("alone".into(), alone?);
        row.insert("with".into(), with?);
        Ok(row)
    }
}

fn descriptors(pid: u32) -> Result<f64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).context("the server is gone")?;
    Ok(entries.count() as f64)
}

impl Kind for BesideOthers {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let root = served_files("epa")?;
        fs::write(root.path().join("hostile.bin"), vec![b'x'; HOSTILE_BYTES])?;
        bench.by_turns(measure, record, |case, way, turn| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            let of_case = case
                .fields
                .get("clients")
                .cloned()
                .map(serde_json::from_value)
                .transpose()?;
            let clients: Vec<String> = of_case
                .or_else(|| self.keys.clients.clone())
                .context("no clients are named")?;
            let mut row = self.beside(bench, &way.peer, &clients, root.path(), turn + 1)?;
            row.insert("clients".into(), json!(clients));
            Ok(row)
        })
    }
}
