//! What an experiment has measured: one line of JSON a run, written as the run ends, so that an
//! interrupted experiment goes on where it stopped.
//!
//! A folder `runs/DATE-MACHINE/` holds `runs.jsonl` with everything that tables and verdicts need,
//! `detail/` with what plots need, compressed, and `samples/` with every single request, which is
//! too much to keep in a repository.

use crate::experiment::{Case, Setup, plain_name};
use crate::machine;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

pub(crate) const LINES: &str = "runs.jsonl";
const DETAIL: &str = "detail";
const SAMPLES: &str = "samples";
/// The parts of a run that only plots need.
const PLOTTED: [&str; 3] = ["by_size", "ccdf", "per_second"];

/// The share of a run that a server may wait for a processor. A server in user space that waits
/// leaves its link idle, so much more would be a measurement of its neighbours. What is harmless is
/// measured: the very same arrivals met the same server in several attempts, and up to this share
/// the mean was that of the quietest attempt (`crates/lab/tests/waiting.rs` says how nearly); from
/// 10 % on it grows.
pub const CPU_WAIT_SHARE_MAX: f64 = 0.09;
const WAITED: &str = "waited for a processor";
/// Servers of many processes or threads: what these wait adds up, and they wait for each other.
const MANY_THREADS: [&str; 2] = ["apache", "caddy"];
/// How the generator calls what a server lost, and what broke.
const NEVER_ANSWERED: &str = "never answered";
const FAILED: &str = "requests failed";
/// The share of requests without an answer above which nothing says that the server worked at all.
const UNANSWERED_SHARE_MAX: f64 = 0.5;
/// The share without an answer up to which `sooner load` calls a run VALID.
const LOST_SHARE_MAX: f64 = 0.01;
/// The figures that count what was lost.
const AT_LEAST: &str = "_at_least_ms";

/// One run as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    /// Name of the case.
    pub case: String,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Who served.
    pub peer: String,
    /// 1 for the first; runs that a busy machine spoilt are measured again.
    pub attempt: u32,
    /// When it ended, UTC.
    pub ended_at: String,
    /// Commit of the program.
    pub commit: Option<String>,
    /// Processor and kernel.
    pub machine: String,
    /// Processor seconds that a hypervisor gave to others meanwhile, over all cores.
    pub stolen_cpu_seconds: f64,
    /// Seconds in which something on this machine could run and waited for a processor (pressure
    /// stall information).
    #[serde(default)]
    pub cpu_pressure_seconds: f64,
    /// The case's set-up.
    pub setup: Value,
    /// The configuration that served.
    pub config: String,
    /// What had to be done differently on this machine.
    pub remarks: Vec<String>,
    /// What `sooner load --json` printed, without what only plots need.
    pub run: Value,
    /// The server's host meanwhile.
    pub counters: Value,
    /// What the emulator of the clients' paths did; none without one.
    pub paths: Option<Value>,
    /// Which of the store's folders it is kept in.
    #[serde(skip)]
    pub place: usize,
}

impl Line {
    /// Whether the figures may be believed.
    pub fn is_valid(&self) -> bool {
        self.run["verdict"] == "VALID"
    }

    /// Whether it was measured in a guest.
    pub fn is_of_guest(&self) -> bool {
        machine::is_of_guest(&self.machine)
    }

    /// A figure of the run by its JSON pointer, or one of the server's host behind `/counters`.
    pub fn figure(&self, pointer: &str) -> Option<f64> {
        let value = match pointer.strip_prefix("/counters") {
            Some(rest) => self.counters.pointer(rest),
            None => self.run.pointer(pointer),
        };
        value.and_then(Value::as_f64)
    }

    /// Whether the generator, and not the server, was late: what a busy machine does.
    pub fn was_held_up(&self) -> bool {
        let reason = self.run["verdict_reason"].as_str().unwrap_or_default();
        let busy = reason.contains("send lag") || reason.contains(WAITED);
        !self.is_valid() && busy
    }

    /// Whether it is VALID, or INVALID only for what its server never answered: no repetition would
    /// change that.
    pub fn counts(&self) -> bool {
        let reason = self.run["verdict_reason"].as_str().unwrap_or_default();
        let broke = reason.contains(FAILED) && self.only_connections_broke();
        self.is_valid() || reason.contains(NEVER_ANSWERED) || broke
    }

    /// Whether what failed were connections that timed out or were reset, as a host does that
    /// cannot serve all, and not most of them.
    fn only_connections_broke(&self) -> bool {
        let kinds = self.run["errors_by_kind"].as_object();
        let is_broken = |kind: &String| ["timeout", "reset"].contains(&kind.as_str());
        let figure = |pointer: &str| self.figure(pointer).unwrap_or(0.0);
        let without_answer = figure("/all/errors") + figure("/incompletes");
        kinds.is_some_and(|kinds| kinds.keys().all(is_broken))
            && without_answer <= UNANSWERED_SHARE_MAX * figure("/all/n")
    }

    /// The share of the run in which the server could run and waited for a processor.
    pub fn cpu_wait_share(&self) -> f64 {
        let wait_s = self.counters["cpu_wait_s"].as_f64().unwrap_or(0.0);
        wait_s / self.setup["seconds"].as_f64().unwrap_or(f64::INFINITY)
    }

    /// Takes the run's verdict away where the server waited too long for a processor: what it then
    /// loses is not its own doing, and the generator cannot see it. Only servers of one thread are
    /// judged. A run that was kept under a stricter limit gets its verdict back.
    pub fn judge_processor(&mut self) {
        let share = self.cpu_wait_share();
        let percent = share * 100.0;
        let has_one_thread = !MANY_THREADS.iter().any(|name| self.peer.starts_with(name));
        // Where other work is part of the set-up, that is what is measured.
        let is_busy = self.setup["busy_processes"].as_u64() > Some(0);
        let too_long = share > CPU_WAIT_SHARE_MAX && has_one_thread && !is_busy;
        let (verdict, reason) = if too_long && self.counts() {
            let reason =
                format!("the server {WAITED} {percent:.1} % of the time: run fewer at a time");
            ("INVALID", reason)
        } else if !too_long && self.only_waited() {
            let reason = format!(
                "the generator kept to its schedule; the server {WAITED} {percent:.1} % of the time"
            );
            ("VALID", reason)
        } else {
            return;
        };
        self.run["verdict"] = verdict.into();
        self.run["verdict_reason"] = reason.into();
    }

    /// Whether it is INVALID for its server's waiting and for nothing else: few requests are
    /// without an answer.
    fn only_waited(&self) -> bool {
        let reason = self.run["verdict_reason"].as_str().unwrap_or_default();
        let figure = |pointer: &str| self.figure(pointer).unwrap_or(0.0);
        let without_answer = figure("/all/errors") + figure("/incompletes");
        !self.is_valid()
            && reason.contains(WAITED)
            && without_answer <= LOST_SHARE_MAX * figure("/all/n")
    }
}

/// A set-up as it is kept in a line.
pub fn as_json(setup: &Setup) -> Value {
    serde_json::to_value(setup).unwrap_or_default()
}

/// Names of servers.
/// What is asked of an attempt to find the one that counts.
#[derive(Default)]
struct Attempt<'a> {
    valid: BTreeSet<&'a str>,
    all: BTreeSet<&'a str>,
    /// Of all its servers, in thousandths of the run.
    waited_permille: u64,
}

/// The runs of a folder, or of several: an experiment may be measured in parts, on several
/// machines.
#[derive(Debug)]
pub struct Store {
    /// The newest last; runs are added to that one.
    folders: Vec<PathBuf>,
    lines: Vec<Line>,
    /// Locked for as long as runs may be added, because attempts are numbered.
    _lock: Option<File>,
}

impl Store {
    /// Opens `folder`, or makes it, for this process alone; lines that were cut off by a crash are
    /// left out.
    pub fn open(folder: &Path) -> io::Result<Self> {
        for part in [DETAIL, SAMPLES] {
            fs::create_dir_all(folder.join(part))?;
        }
        let lines = OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join(LINES))?;
        match lines.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {
                let problem = "another sooner lab run writes there; wait for it, or give --out another folder";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, problem));
            }
        }
        Ok(Self {
            _lock: Some(lines),
            ..Self::read(folder)?
        })
    }

    /// Reads what is there; a folder without runs has none.
    pub fn read(folder: &Path) -> io::Result<Self> {
        Self::read_all(vec![folder.to_owned()])
    }

    /// Reads the runs of several folders, the newest last.
    pub fn read_all(folders: Vec<PathBuf>) -> io::Result<Self> {
        let mut all = Vec::new();
        for (place, folder) in folders.iter().enumerate() {
            let of_here = |line: Line| Line { place, ..line };
            all.extend(lines_in(folder)?.into_iter().map(of_here));
        }
        Ok(Self {
            folders,
            lines: all,
            _lock: None,
        })
    }

    /// Where a run of it lies.
    pub fn folder_of(&self, line: &Line) -> &Path {
        &self.folders[line.place]
    }

    /// Where runs are added.
    fn folder(&self) -> &Path {
        self.folders.last().map_or(Path::new("."), |last| last)
    }

    /// Every run that was kept, of each folder in the order of their ends.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The run that counts: of the attempt with the most valid peers, of several the one with the
    /// servers that waited least for a processor, so that only what ran at the same time on the
    /// same machine is ever compared.
    pub fn best(&self, case: &Case, seed: u64, peer: &str) -> Option<&Line> {
        let attempt = self.best_attempt(case, seed)?;
        let lines = self.tried(case, seed).filter(|line| line.peer == peer);
        let mut lines = lines.filter(|line| (line.place, line.attempt) == attempt);
        let last_that_counts = lines.clone().rfind(|line| line.counts());
        last_that_counts.or(lines.next_back())
    }

    /// Which folder, and which attempt there.
    fn best_attempt(&self, case: &Case, seed: u64) -> Option<(usize, u32)> {
        let mut attempts: BTreeMap<(usize, u32), Attempt<'_>> = BTreeMap::new();
        let wanted = |line: &&Line| case.setup.peers.contains(&line.peer);
        for line in self.tried(case, seed).filter(wanted) {
            let so_far = attempts.entry((line.place, line.attempt)).or_default();
            so_far
                .valid
                .extend(line.counts().then_some(line.peer.as_str()));
            so_far.all.insert(line.peer.as_str());
            so_far.waited_permille += (line.cpu_wait_share() * 1000.0) as u64;
        }
        let best = attempts.into_iter().max_by_key(|(attempt, of)| {
            (
                of.valid.len(),
                of.all.len(),
                Reverse(of.waited_permille),
                *attempt,
            )
        });
        best.map(|(attempt, _)| attempt)
    }

    /// Every run of this seed with exactly this set-up, of each folder in the order of their ends.
    pub fn tried(&self, case: &Case, seed: u64) -> impl DoubleEndedIterator<Item = &Line> + Clone {
        let (name, setup) = (case.name.clone(), as_json(&case.setup));
        self.lines
            .iter()
            .filter(move |line| line.case == name && line.seed == seed && line.setup == setup)
    }

    /// A figure of the run that counts; none where that is not valid, because it proves and refutes
    /// nothing. Where a server lost requests, the figures that count them hold nevertheless.
    pub fn figure(&self, case: &Case, seed: u64, peer: &str, pointer: &str) -> Option<f64> {
        let line = self.best(case, seed, peer)?;
        let may_count = line.is_valid() || (pointer.ends_with(AT_LEAST) && line.counts());
        line.figure(pointer).filter(|_| may_count)
    }

    /// Keeps a run with every second's row of `counters`; the `run` of `line` still has what plots
    /// need. Gives the line as it is kept.
    pub fn add(&mut self, mut line: Line, counters: &[Value]) -> io::Result<Line> {
        line.place = self.folders.len() - 1;
        let mut detail = serde_json::Map::new();
        if let Some(fields) = line.run.as_object_mut() {
            for name in PLOTTED {
                detail.extend(fields.remove(name).map(|value| (name.to_owned(), value)));
            }
        }
        detail.insert("counters".into(), Value::from(counters));
        let path = self.detail_path(&line);
        let mut file = GzEncoder::new(File::create(path)?, Compression::best());
        serde_json::to_writer(&mut file, &detail)?;
        file.finish()?.sync_data()?;
        self.append(&line)?;
        self.lines.push(line.clone());
        Ok(line)
    }

    fn append(&self, line: &Line) -> io::Result<()> {
        let path = self.folder().join(LINES);
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        if ends_in_mid_line(&path)? {
            text.insert(0, '\n');
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }

    /// What only plots need of a run.
    pub fn detail(&self, line: &Line) -> io::Result<Value> {
        let path = self.detail_path(line);
        let mut text = String::new();
        GzDecoder::new(File::open(path)?).read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Every attempt has its own: one that a busy machine spoilt must not take the place of the one
    /// that counts.
    fn detail_path(&self, line: &Line) -> PathBuf {
        let name = file_name(&line.case, line.seed, &line.peer, line.attempt);
        self.folder_of(line)
            .join(DETAIL)
            .join(format!("{name}.json.gz"))
    }

    /// Where a run's samples go.
    pub fn samples_path(&self, case: &str, seed: u64, peer: &str, attempt: u32) -> PathBuf {
        let name = file_name(case, seed, peer, attempt);
        self.folder().join(SAMPLES).join(format!("{name}.jsonl.gz"))
    }

    /// The name of a case as tables show it: a mark says that what counts was measured in a guest.
    pub fn shown_name(&self, case: &Case) -> String {
        let peers = case.setup.peers.iter();
        let mut of_seeds = peers.flat_map(|peer| {
            let seeds = case.setup.seeds.iter();
            seeds.filter_map(move |seed| self.best(case, *seed, peer))
        });
        let mark = if of_seeds.any(Line::is_of_guest) {
            " (guest)"
        } else {
            ""
        };
        format!("{}{mark}", case.name)
    }

    /// The number of the last attempt so far, whatever its set-up was.
    pub fn last_attempt(&self, case: &Case, seed: u64) -> u32 {
        let is_of = |line: &&Line| line.case == case.name && line.seed == seed;
        let attempts = self.lines.iter().filter(is_of).map(|line| line.attempt);
        attempts.max().unwrap_or(0)
    }
}

/// The runs of a folder, without those that have a line cut off by a crash.
fn lines_in(folder: &Path) -> io::Result<Vec<Line>> {
    let file = match File::open(folder.join(LINES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut lines = Vec::new();
    for line in BufReader::new(file).lines() {
        let Ok(mut line) = serde_json::from_str::<Line>(&line?) else {
            continue;
        };
        line.judge_processor();
        lines.push(line);
    }
    Ok(lines)
}

/// Whether a crash cut the last line off.
fn ends_in_mid_line(path: &Path) -> io::Result<bool> {
    match fs::read(path) {
        Ok(text) => Ok(text.last().is_some_and(|byte| *byte != b'\n')),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A run's name.
fn file_name(case: &str, seed: u64, peer: &str, attempt: u32) -> String {
    let (case, peer) = (plain_name(case), plain_name(peer));
    format!("{case}-{seed}-{peer}-{attempt}")
}

#[cfg(test)]
mod tests;
