//! What others notice: the same arrivals on two links, one of them with clients as well that mean no good.

use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::Effort;
use super::attempts::until_undisturbed;
use super::check::{Checks, median, spread};
use super::link::{Link, Running};
use super::parse::{figure, run_of};
use super::proc::{descriptors, resident_kib};
use super::record::{Record, slim};
use super::server::{CLEAR_PORT, Root, Server, TLS_PORT, sooner};
use crate::certificate::Certificate;

const RATE_MBIT: u64 = 10;
/// What those clients get before the others are counted.
const AHEAD: Duration = Duration::from_secs(3);
/// What the server gets to forget them.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// The others' mean beside those clients, in means without.
const MEAN_MAX: f64 = 1.2;
/// Memory that may stay taken, KiB: allocators keep what they once had.
const MEMORY_KEPT_KIB_MAX: f64 = 16_384.0;

/// Head of the columns of [`Repeated::row`].
pub const COLUMNS: &str = "others' mean, ms, alone | beside them | ratio | their share of the link | descriptors kept | memory kept, KiB";

/// One measurement.
pub struct Stand<'run> {
    /// Who serves.
    pub server: Server,
    /// The trace's files, and what those clients ask for.
    pub root: &'run Root,
    /// Whether all of it is over TLS.
    pub secured: bool,
    /// The task of this program that those clients are; it also gets the server's address and how many seconds to go on.
    pub clients: &'run [&'run str],
    /// Length of the others' run.
    pub seconds: u64,
}

/// The measurements of one stand.
pub struct Repeated {
    columns: [Vec<f64>; 6],
    valid: bool,
}

/// What was measured once.
struct Outcome {
    /// The others' run without those clients.
    alone: Value,
    /// The same arrivals with them.
    with: Value,
    /// What those clients took of the link, as a share of its rate.
    hostile_share: f64,
    /// Descriptors that the server keeps when they have gone.
    descriptors_kept: f64,
    /// Resident memory that it keeps, KiB.
    memory_kept_kib: f64,
}

/// Every repetition, with arrivals of its own.
pub fn repeat(stand: &Stand, effort: Effort, record: &mut Record) -> anyhow::Result<Repeated> {
    let mut repeated = Repeated {
        columns: [const { Vec::new() }; 6],
        valid: true,
    };
    for seed in 1..=u64::from(effort.repetitions) {
        let outcome = until_undisturbed(
            || beside(stand, seed),
            |outcome| vec![&outcome.alone, &outcome.with],
            |outcome, attempt| {
                record.add(&json!({"clients": stand.clients, "server": stand.server.name(), "seed": seed, "attempt": attempt.number,
                    "stolen_cpu_seconds": attempt.stolen_cpu_seconds, "alone": slim(&outcome.alone), "with": slim(&outcome.with),
                    "hostile_share": outcome.hostile_share, "descriptors_kept": outcome.descriptors_kept,
                    "memory_kept_kib": outcome.memory_kept_kib}))
            },
        )?;
        repeated.add(&outcome);
    }
    Ok(repeated)
}

impl Repeated {
    fn add(&mut self, outcome: &Outcome) {
        let runs = [&outcome.alone, &outcome.with];
        self.valid &= runs.iter().all(|run| run["verdict"] == "VALID");
        let [alone, with] = runs.map(|run| figure(run, "/all/mean_response_ms"));
        let row = [
            alone,
            with,
            with / alone,
            outcome.hostile_share,
            outcome.descriptors_kept,
            outcome.memory_kept_kib,
        ];
        self.columns
            .iter_mut()
            .zip(row)
            .for_each(|(all, one)| all.push(one));
    }

    /// Medians and ranges, in the order of [`COLUMNS`].
    pub fn row(&self) -> String {
        let shown: Vec<String> = self.columns.iter().map(|all| spread(all, 2)).collect();
        shown.join(" | ")
    }

    /// Holds the medians to what is claimed; `who` begins every claim.
    pub fn hold(&self, who: &str, part: &mut Checks) {
        let [_, _, ratio, _, descriptors_kept, memory_kept_kib] = &self.columns;
        part.claim(self.valid, format!("{who}: all runs VALID"));
        part.at_most(
            &format!("{who}: others' mean beside them / alone"),
            median(ratio),
            MEAN_MAX,
        );
        part.at_most(
            &format!("{who}: descriptors kept"),
            median(descriptors_kept),
            0.0,
        );
        part.at_most(
            &format!("{who}: memory kept, KiB"),
            median(memory_kept_kib),
            MEMORY_KEPT_KIB_MAX,
        );
    }
}

/// Measures on both links at the same time.
fn beside(stand: &Stand, seed: u64) -> anyhow::Result<Outcome> {
    let up = |name: &str| Link::up(name, RATE_MBIT, stand.server.shaper());
    let (quiet_link, link) = (up("q")?, up("h")?);
    let (quiet_server, running) = (stand.start(&quiet_link)?, stand.start(&link)?);
    let (quiet_pid, pid) = (pid_of(&quiet_server)?, pid_of(&running)?);
    let hostile = Running(
        link.on_client(&std::env::current_exe()?.display().to_string())
            .args(stand.clients)
            .arg(format!("10.77.0.1:{}", stand.port()))
            .arg((stand.seconds + 4).to_string())
            .stdin(Stdio::null())
            .spawn()?,
    );
    // They all have what they will get before the others are counted.
    std::thread::sleep(AHEAD);
    let clients = [stand.others(&quiet_link, seed)?, stand.others(&link, seed)?];
    let [alone, with] = clients.map(run_of);
    let sent_bits = 8.0 * (link.sent_bytes()? - quiet_link.sent_bytes()?);
    drop(hostile);
    std::thread::sleep(AFTERWARDS);
    // Both have had the same requests, so what differs is left over; a file that only those clients asked for stays open in the cache.
    let kept = (
        descriptors(pid) - descriptors(quiet_pid) - 1.0,
        resident_kib(pid) - resident_kib(quiet_pid),
    );
    drop((quiet_server, running));
    Ok(Outcome {
        alone: alone?,
        with: with?,
        hostile_share: sent_bits
            / (RATE_MBIT as f64 * 1e6 * (stand.seconds + AHEAD.as_secs()) as f64),
        descriptors_kept: kept.0.max(0.0),
        memory_kept_kib: kept.1.max(0.0),
    })
}

impl Stand<'_> {
    fn port(&self) -> u16 {
        if self.secured { TLS_PORT } else { CLEAR_PORT }
    }

    fn start(&self, link: &Link) -> anyhow::Result<Running> {
        let root = self.root.path();
        if self.secured {
            let certificate = Certificate::of(self.root.scratch())?;
            self.server
                .start_secured(link, root, RATE_MBIT, &certificate, "")
        } else {
            self.server.start(link, root, RATE_MBIT)
        }
    }

    fn others(&self, link: &Link, seed: u64) -> anyhow::Result<Child> {
        let scheme = if self.secured { "https" } else { "http" };
        let mut command = link.on_client(&sooner());
        command.args(["load", "replay", "epa", "--poisson", "--json"]);
        command.args(["--rho", "0.7", "--uplink", "10mbit"]);
        command.args(["--congestion-control", "cubic"]);
        command.args(["--url", &format!("{scheme}://10.77.0.1:{}", self.port())]);
        command.args(["--for", &self.seconds.to_string()]);
        command.args(["--seed", &seed.to_string()]);
        if self.secured {
            command.arg("--insecure");
        }
        Ok(command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?)
    }
}

/// `ip netns exec` and `setpriv` replace themselves, so the server has the id we started.
fn pid_of(running: &Running) -> anyhow::Result<u32> {
    let name = fs::read_to_string(format!("/proc/{}/comm", running.id()))?;
    anyhow::ensure!(
        name.trim() == "sooner",
        "process {} is {}",
        running.id(),
        name.trim()
    );
    Ok(running.id())
}
