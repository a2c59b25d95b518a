//! The load: two pgbench at the same time, one for each class. Their users pause between
//! transactions.
//!
//! A transaction sums 5000 rows of a table of 100,000 by category, and asks for the five largest:
//! about 1.5 ms of one processor. The pause is a script of its own, chosen as often as the work, so
//! that pgbench's log has the time of each apart; a user so pauses never, once or several times,
//! once in the mean.

use super::log::{self, Entry};
use anyhow::{Context, Result, bail};
use sooner_testbed::OwnedChild;
use sooner_testbed::child::waiting::{PATIENCE, finish, spawn, wait};
use sooner_testbed::postgres::{Address, Cluster, Installation};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The user with the transactions that go first.
pub const HIGH: &str = "high";
/// The other one.
pub const LOW: &str = "low";
/// As whom the gate logs in.
pub const APP: &str = "app";

const SET_UP: &str = "\
CREATE ROLE high LOGIN; CREATE ROLE low LOGIN; CREATE ROLE app LOGIN;
CREATE TABLE items AS SELECT id, id % 97 AS category, id * 7919 % 1000 AS price FROM generate_series(1, 100000) AS id;
ALTER TABLE items ADD PRIMARY KEY (id);
GRANT SELECT ON items TO PUBLIC;
VACUUM ANALYZE items;
";
const WORK: &str = "\\set from random(1, 95000)
SELECT category, sum(price) FROM items WHERE id BETWEEN :from AND :from + 4999 GROUP BY category ORDER BY 2 DESC LIMIT 5;
";
const WORK_FILE: &str = "work.sql";
const PAUSE_FILE: &str = "pause.sql";
/// How much later than the first pgbench the other may begin.
const START_LATE: Duration = Duration::from_secs(1);

/// How many clients there are.
#[derive(Clone, Copy, Debug)]
pub struct Clients {
    /// Of both classes.
    pub all: usize,
    /// Those who go first.
    pub high: usize,
}

/// Everything that is the same in each way.
pub struct Load<'a> {
    /// PostgreSQL's programs.
    pub installation: &'a Installation,
    /// For scripts and logs.
    pub folder: &'a Path,
    /// How many.
    pub clients: Clients,
    /// Of pauses and rows.
    pub seed: u64,
}

/// What both logs say of one way.
pub struct Measured {
    /// Transactions of those who go first, in the measured time.
    pub high: Vec<Entry>,
    /// And of the others.
    pub low: Vec<Entry>,
    /// The measured time.
    pub measured: Duration,
}

/// One pgbench.
struct Generator {
    child: OwnedChild,
    log: PathBuf,
}

impl Load<'_> {
    /// Makes users and the table, and writes the script.
    pub async fn prepare(&self, postgres: &Cluster) -> Result<()> {
        fs::write(self.folder.join(WORK_FILE), WORK).context("cannot write a script")?;
        let script = self.folder.join("set-up.sql");
        fs::write(&script, SET_UP).context("cannot write a script")?;
        let mut psql = self.installation.program("psql");
        postgres.address().tell(&mut psql, "postgres");
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "postgres", "-f"]);
        finish("psql", psql.arg(script)).await
    }

    /// Sets how long users pause in the mean.
    pub fn set_pause(&self, mean: Duration) -> Result<()> {
        // From nothing to twice the mean, evenly.
        let most_us = 2 * mean.as_micros();
        let script = format!("\\set pause_us random(0, {most_us})\n\\sleep :pause_us us\n");
        fs::write(self.folder.join(PAUSE_FILE), script).context("cannot write a script")
    }

    /// Transactions a second when no user pauses. A busy machine may do none in so short a time;
    /// then it has longer.
    pub async fn capacity_per_sec(&self, at: &Address, duration: Duration) -> Result<f64> {
        let all = self.clients.all;
        for longer in [1, 4, 16] {
            let duration = longer * duration;
            let mut one = self.start(at, LOW, all, self.seed, duration, &[WORK_FILE])?;
            let entries = one.finish(duration).await?;
            if let Some(window) = log::window(&[&entries]) {
                let done = log::within(&entries, window).len();
                if done > 0 {
                    return Ok(done as f64 / window.length().as_secs_f64());
                }
            }
        }
        bail!("pgbench made no transaction in {:?}", 16 * duration)
    }

    /// Puts the load on one way.
    pub async fn run(&self, at: &Address, duration: Duration) -> Result<Measured> {
        let files = [WORK_FILE, PAUSE_FILE];
        let Clients { all, high } = self.clients;
        // The one that begins first runs on for the other, which a busy machine starts late.
        let low_duration = duration + START_LATE;
        let mut low = self.start(at, LOW, all - high, self.seed, low_duration, &files)?;
        let other_seed = self.seed.wrapping_add(1);
        let mut high = self.start(at, HIGH, high, other_seed, duration, &files)?;
        let low = low.finish(low_duration).await?;
        let high = high.finish(duration).await?;
        let window = log::window(&[&high, &low]).context(
            "the classes made no transactions at the same time; give a longer --for, \
             or let the machine do less beside it",
        )?;
        Ok(Measured {
            high: log::within(&high, window),
            low: log::within(&low, window),
            measured: window.length(),
        })
    }

    fn start(
        &self,
        at: &Address,
        user: &str,
        clients: usize,
        seed: u64,
        duration: Duration,
        files: &[&str],
    ) -> Result<Generator> {
        let mut command = self.installation.program("pgbench");
        at.tell(&mut command, user);
        command.args(["-n", "-l", "-c", &clients.to_string()]);
        command.args(["-T", &duration.as_secs().to_string()]);
        command.args(["--random-seed", &seed.to_string()]);
        let prefix = self.folder.join(format!("log-{user}"));
        command.arg("--log-prefix").arg(&prefix);
        for file in files {
            command.arg("-f").arg(self.folder.join(file));
        }
        let child = spawn("pgbench", command.arg("postgres"))?;
        let log = PathBuf::from(format!("{}.{}", prefix.display(), child.id()));
        Ok(Generator { child, log })
    }
}

impl Generator {
    /// Waits for its end; the work in its log, which is removed.
    async fn finish(&mut self, duration: Duration) -> Result<Vec<Entry>> {
        wait("pgbench", &mut self.child, duration + PATIENCE).await?;
        let log = self.log.display();
        let text = fs::read_to_string(&self.log).with_context(|| format!("cannot read {log}"))?;
        fs::remove_file(&self.log).with_context(|| format!("cannot remove {log}"))?;
        let mut entries = log::parse(&text).context("pgbench's log")?;
        // The work is the first script.
        entries.retain(|entry| entry.script == 0);
        Ok(entries)
    }
}
