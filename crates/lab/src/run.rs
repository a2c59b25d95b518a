//! Runs an experiment: every case and seed, all its peers side by side, each run kept as it ends.
//!
//! Servers and generators are processes of their own, on hosts (network namespaces) of their own.
//! Compared are always peers that ran at the same time with the very same arrivals. Whatever ends a
//! run (its end, an error, Ctrl-C), its processes are ended and its hosts removed.

mod bottleneck;
mod busy;
#[cfg(test)]
mod example;
pub mod load;
pub(crate) mod quiet;
pub(crate) mod stand;
pub mod store;
pub mod summary;
mod tasks;

use crate::experiment::{Case, Experiment, Setup};
use crate::machine;
use crate::peers::Peer;
use anyhow::{Context, Result, bail, ensure};
use sooner_kernel::signals::EndSignals;
use sooner_testbed::scratch::Scratch;
use sooner_workload::{Trace, mkroot};
use stand::{Measured, Stand};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use store::{Line, Store};
use tasks::Task;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::{JoinSet, LocalSet};

/// How an experiment is run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The `sooner` program that serves, generates load and emulates paths.
    pub program: PathBuf,
    /// Where the results go.
    pub folder: PathBuf,
    /// Cases at the same time; each takes its peers' servers and generators.
    pub jobs: usize,
    /// How often a case is measured that a busy machine spoils.
    pub attempts_max: u32,
    /// Whether a quiet moment of the machine is waited for before each.
    pub waits_for_quiet: bool,
    /// Whether peers that are not installed are left out instead of refused.
    pub without_missing: bool,
}

/// What a run of an experiment tells.
#[derive(Debug)]
pub enum Event {
    /// How much there is to do.
    Planned {
        /// Cases and seeds still to be measured.
        tasks: usize,
        /// Length of all of them one after the other, s.
        seconds: u64,
    },
    /// A peer is left out.
    Missing {
        /// Its name.
        peer: String,
        /// Why, as what is said of it.
        why: String,
    },
    /// A case begins.
    Begun {
        /// The case's name.
        case: String,
        /// The seed.
        seed: u64,
    },
    /// A case was given up before its end and begins again, because the hypervisor took too much of
    /// the processors.
    GivenUp {
        /// The case's name.
        case: String,
        /// The seed.
        seed: u64,
    },
    /// A case could not be measured, in words; the others go on.
    Failed(String),
    /// A run is kept.
    Kept(Box<Line>),
}

/// Measures what is missing; blocks. SIGINT, SIGTERM and SIGHUP end it with an error, and
/// everything measured before is kept.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    tell: &mut dyn FnMut(Event),
) -> Result<()> {
    let experiment = with_present_peers(experiment.clone(), options, tell)?;
    let store = Store::open(&options.folder)
        .with_context(|| format!("cannot write to {}", options.folder.display()))?;
    let tasks = tasks::missing(&experiment, &store, options.attempts_max);
    let seconds = |task: &Task| {
        let setup = &experiment.cases[task.case].setup;
        setup.seconds + setup.drain_seconds
    };
    tell(Event::Planned {
        tasks: tasks.len(),
        seconds: tasks.iter().map(seconds).sum(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    runtime.block_on(until_told(measure_all(
        experiment, options, store, tasks, tell,
    )))
}

/// Why a peer cannot be measured here.
#[derive(Debug)]
enum Lack {
    /// It is not installed; the package that has it.
    Package(&'static str),
    /// What the kernel lacks, in words.
    Kernel(String),
}

impl Lack {
    fn remedy(&self) -> String {
        match self {
            Lack::Package(package) => format!("install the package {package}"),
            Lack::Kernel(_) if machine::is_guest() => "measure it on another kernel".into(),
            Lack::Kernel(_) => "measure it in a guest with --guest".into(),
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Package(package) => write!(f, "is not installed (package {package})"),
            Lack::Kernel(what) => write!(f, "cannot be measured here: {what}"),
        }
    }
}

/// Without those that are not installed where that is wanted; else they are an error.
fn with_present_peers(
    mut experiment: Experiment,
    options: &RunOptions,
    tell: &mut dyn FnMut(Event),
) -> Result<Experiment> {
    let mut missing: BTreeMap<String, Lack> = BTreeMap::new();
    for case in &experiment.cases {
        for name in &case.setup.peers {
            let peer: Peer = name
                .parse()
                .with_context(|| format!("case {}", case.name))?;
            if missing.contains_key(name) {
                continue;
            }
            let lack = peer.missing().map(Lack::Package);
            let lack = lack.or_else(|| peer.lacks().map(Lack::Kernel));
            missing.extend(lack.map(|lack| (name.clone(), lack)));
        }
    }
    for (peer, lack) in &missing {
        ensure!(
            options.without_missing,
            "{peer} {lack}; {}, or leave it out with --without-missing",
            lack.remedy()
        );
        tell(Event::Missing {
            peer: peer.clone(),
            why: lack.to_string(),
        });
    }
    for case in &mut experiment.cases {
        case.setup.peers.retain(|peer| !missing.contains_key(peer));
    }
    experiment.cases.retain(|case| !case.setup.peers.is_empty());
    Ok(experiment)
}

async fn until_told(work: impl Future<Output = Result<()>>) -> Result<()> {
    let mut signals = EndSignals::listen()?;
    tokio::select! {
        biased;
        why = signals.next() => bail!("{why}; the same command goes on where it stopped"),
        done = work => done,
    }
}

/// The share of one processor's time that a hypervisor may take from a run before it is given up.
const STOLEN_SHARE_MAX: f64 = 0.05;
/// How often a case is given up before it is measured to its end whatever happens.
const GIVEN_UP_MAX: u32 = 20;

/// More than a link of 100 Mbit/s carries while a run lasts, so that no download of it ends before.
const DOWNLOAD_BYTES: u64 = 8 << 30;

/// How the measuring of a task ended.
enum Ended {
    /// Every run is kept.
    Kept,
    /// So it is, but a busy machine spoilt one of them.
    HeldUp,
    /// Before its end, because too much was taken from it; nothing is kept.
    GivenUp,
}

/// What all cases under way share.
struct Shared {
    experiment: Experiment,
    options: RunOptions,
    store: RefCell<Store>,
    tasks: RefCell<VecDeque<Task>>,
    roots: RefCell<BTreeMap<String, Rc<Scratch>>>,
    events: UnboundedSender<Event>,
    /// Whether anything was kept since the start.
    has_kept: Cell<bool>,
    /// Cases that could not be measured.
    failed: Cell<usize>,
}

async fn measure_all(
    experiment: Experiment,
    options: &RunOptions,
    store: Store,
    tasks: Vec<Task>,
    tell: &mut dyn FnMut(Event),
) -> Result<()> {
    let workers = options.jobs.clamp(1, tasks.len().max(1));
    let (events, mut told) = unbounded_channel();
    let shared = Rc::new(Shared {
        experiment,
        options: options.clone(),
        store: RefCell::new(store),
        tasks: RefCell::new(tasks.into()),
        roots: RefCell::default(),
        events,
        has_kept: Cell::new(false),
        failed: Cell::new(0),
    });
    let all = LocalSet::new();
    let mut at_work = JoinSet::new();
    for _ in 0..workers {
        let shared = shared.clone();
        at_work.spawn_local_on(async move { shared.work().await }, &all);
    }
    let done = all.run_until(async {
        loop {
            tokio::select! {
                biased;
                Some(event) = told.recv() => tell(event),
                done = at_work.join_next() => match done {
                    Some(done) => done??,
                    None => return anyhow::Ok(()),
                },
            }
        }
    });
    done.await?;
    match shared.failed.get() {
        0 => Ok(()),
        count => bail!("{count} could not be measured; the same command tries them again"),
    }
}

impl Shared {
    /// Measures one task after the other.
    async fn work(&self) -> Result<()> {
        loop {
            let Some(task) = self.tasks.borrow_mut().pop_front() else {
                return Ok(());
            };
            if self.options.waits_for_quiet {
                quiet::wait().await;
            }
            let ended = match self.measure(task).await {
                Ok(ended) => ended,
                // What is wrong from the start is wrong with all of them.
                Err(error) if !self.has_kept.get() => return Err(error),
                Err(error) => {
                    self.failed.set(self.failed.get() + 1);
                    self.tell(Event::Failed(format!("{error:#}")));
                    continue;
                }
            };
            let again = match ended {
                Ended::Kept => None,
                Ended::HeldUp => (task.attempt < self.options.attempts_max).then_some(Task {
                    attempt: task.attempt + 1,
                    ..task
                }),
                Ended::GivenUp => Some(Task {
                    given_up: task.given_up + 1,
                    ..task
                }),
            };
            self.tasks.borrow_mut().extend(again);
        }
    }

    /// All peers of a task side by side.
    async fn measure(&self, task: Task) -> Result<Ended> {
        let case = &self.experiment.cases[task.case];
        self.tell(Event::Begun {
            case: case.name.clone(),
            seed: task.seed,
        });
        // Attempts of earlier days count on, so that no file is written twice.
        let attempt = self.store.borrow().last_attempt(case, task.seed) + 1;
        let stolen_before = quiet::stolen_cpu_seconds();
        let pressure_before = quiet::cpu_pressure_seconds();
        // No run that loses so much comes out VALID, so its time is better spent on another
        // attempt.
        let stolen_max_s = case.setup.seconds as f64 * STOLEN_SHARE_MAX;
        let may_give_up = self.options.waits_for_quiet && task.given_up < GIVEN_UP_MAX;
        let measured = tokio::select! {
            measured = self.side_by_side(case, task.seed, attempt) => measured,
            () = quiet::until_robbed(stolen_max_s), if may_give_up => {
                self.tell(Event::GivenUp { case: case.name.clone(), seed: task.seed });
                return Ok(Ended::GivenUp);
            }
        };
        let measured =
            measured.with_context(|| format!("case {}, seed {}", case.name, task.seed))?;
        let stolen_cpu_seconds = quiet::stolen_cpu_seconds() - stolen_before;
        let cpu_pressure_seconds = quiet::cpu_pressure_seconds() - pressure_before;
        let mut held_up = false;
        for (peer, measured) in case.setup.peers.iter().zip(measured) {
            let mut line = Line {
                case: case.name.clone(),
                seed: task.seed,
                peer: peer.clone(),
                attempt,
                ended_at: httpdate::fmt_http_date(std::time::SystemTime::now()),
                commit: machine::commit(),
                machine: machine::description(),
                stolen_cpu_seconds,
                cpu_pressure_seconds,
                setup: store::as_json(&case.setup),
                config: measured.config,
                remarks: measured.remarks,
                run: measured.run,
                counters: measured.counters,
                paths: measured.paths,
                place: 0,
            };
            line.judge_processor();
            held_up |= line.was_held_up();
            let kept = self.store.borrow_mut().add(line, &measured.counter_rows)?;
            self.has_kept.set(true);
            self.tell(Event::Kept(Box::new(kept)));
        }
        Ok(if held_up { Ended::HeldUp } else { Ended::Kept })
    }

    async fn side_by_side(&self, case: &Case, seed: u64, attempt: u32) -> Result<Vec<Measured>> {
        let setup = &case.setup;
        let root = self.root(&setup.trace)?;
        let mut stands = Vec::new();
        for (index, name) in setup.peers.iter().enumerate() {
            let peer: Peer = name.parse()?;
            let tag = tag(self.place_of(case), setup, seed, index);
            let stand = Stand::up(setup, &peer, &tag, seed, root.path(), &self.options.program);
            stands.push(stand.with_context(|| name.clone())?);
        }
        let _busy = busy::start(setup)?;
        // All generators run before any is waited for.
        let mut loads = Vec::new();
        for (stand, name) in stands.iter().zip(&setup.peers) {
            let samples = self
                .store
                .borrow()
                .samples_path(&case.name, seed, name, attempt);
            loads.push(stand.load(setup, name, seed, &samples)?);
        }
        let mut runs = Vec::new();
        for (load, name) in loads.into_iter().zip(&setup.peers) {
            runs.push(load.run(setup).await.with_context(|| name.clone())?);
        }
        let mut measured = Vec::new();
        for (stand, run) in stands.into_iter().zip(runs) {
            measured.push(stand.end(run)?);
        }
        Ok(measured)
    }

    /// Which of the cases it is.
    fn place_of(&self, case: &Case) -> usize {
        let same = |other: &Case| other.name == case.name;
        self.experiment.cases.iter().position(same).unwrap_or(0)
    }

    /// The files of a trace, written once.
    fn root(&self, trace: &str) -> Result<Rc<Scratch>> {
        if let Some(root) = self.roots.borrow().get(trace) {
            return Ok(root.clone());
        }
        let root = Rc::new(served_files(trace)?);
        self.roots
            .borrow_mut()
            .insert(trace.to_owned(), root.clone());
        Ok(root)
    }

    fn tell(&self, event: Event) {
        // The receiver is gone when the whole is being ended.
        let _ = self.events.send(event);
    }
}

/// Distinguishes hosts that are up at the same time: by case, seed and peer, as places, because
/// names are short and seeds are not.
fn tag(case_place: usize, setup: &Setup, seed: u64, peer_place: usize) -> String {
    let seed_place = setup.seeds.iter().position(|one| *one == seed);
    format!("{case_place}-{}-{peer_place}", seed_place.unwrap_or(0))
}

/// The trace's files in a folder that servers without privilege can read, and one for downloads
/// beside a run.
pub(crate) fn served_files(trace: &str) -> Result<Scratch> {
    let folder = Scratch::new()?;
    let write = "cannot write the trace's files; set TMPDIR to a place with room";
    mkroot(&Trace::open(trace)?, folder.path()).context(write)?;
    let download = File::create(folder.path().join(load::DOWNLOAD)).context(write)?;
    // Without a block on the disk.
    download.set_len(DOWNLOAD_BYTES).context(write)?;
    Ok(folder)
}

/// Where today's results of `experiment` go: `runs/DATE-MACHINE` beside it, or the newest of this
/// machine that has runs.
pub fn folder_of(experiment: &Experiment) -> PathBuf {
    let runs = experiment.folder.join("runs");
    let machine = machine::folder_name();
    newest(&runs, &machine).unwrap_or_else(|| runs.join(format!("{}-{machine}", machine::today())))
}

/// How long `2026-01-02-` is, before the name of a machine.
const DATE_LETTERS: usize = 11;

/// The newest folder of `machine` with runs.
fn newest(runs: &Path, machine: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(runs).ok()?;
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    folders.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.get(DATE_LETTERS..) == Some(machine) && path.join(store::LINES).is_file()
    });
    folders.sort();
    folders.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_experiment_goes_on_in_its_folder() {
        let runs = tempfile::tempdir().unwrap();
        for (name, has_runs) in [
            ("2026-01-02-m", true),
            ("2026-01-03-m", false),
            ("2026-01-04-n", true),
            ("2026-01-05-32core-m", true),
            ("m", true),
        ] {
            std::fs::create_dir(runs.path().join(name)).unwrap();
            if has_runs {
                std::fs::write(runs.path().join(name).join(store::LINES), "").unwrap();
            }
        }
        assert_eq!(
            newest(runs.path(), "m"),
            Some(runs.path().join("2026-01-02-m"))
        );
        assert_eq!(newest(runs.path(), "x"), None);
        assert_eq!(newest(runs.path(), "2core-m"), None);
    }

    #[test]
    fn hosts_have_short_names_whatever_the_seeds() {
        let setup = example::case("peers = [\"nginx\"]\nseeds = [1, 18446744073709551615]").setup;
        let tags = [1, u64::MAX].map(|seed| tag(12, &setup, seed, 3));
        assert_eq!(tags, ["12-0-3", "12-1-3"]);
    }
}
