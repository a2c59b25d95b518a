//! Measures an experiment's parts: ways by turns, each result kept as it comes.
//!
//! On a machine that others share a quiet moment is waited for before each, and what a generator says was held up is measured again;
//! nothing is chosen by its result. The work is done by a thread of its own, which looks often whether it is to end, so that SIGINT, SIGTERM
//! and SIGHUP end everything that was started.

use super::rows::Record;
use super::{Experiment, Item, Measure, Part, Shown};
use crate::machine;
use crate::run::quiet;
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Map, Value};
use sooner_kernel::signals::EndSignals;
use sooner_testbed::child::waiting::failure;
use sooner_testbed::scratch::Scratch;
use sooner_testbed::{OwnedChild, program};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How often a turn is measured before one is taken that was held up.
const ATTEMPTS_MAX: u32 = 6;
/// How long the machine is watched before it counts as quiet, and the share of one core that may be taken away meanwhile.
const WATCH: Duration = Duration::from_secs(5);
const STOLEN_SHARE_MAX: f64 = 0.01;
/// How long a quiet moment is waited for.
const QUIET_PATIENCE: Duration = Duration::from_secs(600);
/// How often it is looked whether all is to end.
const LOOK: Duration = Duration::from_millis(20);

/// How an experiment is measured.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The `sooner` program.
    pub program: PathBuf,
    /// Where the results go.
    pub folder: PathBuf,
    /// Whether all is as short as can be: it only shows that everything works.
    pub is_quick: bool,
    /// Only these parts; none named: all.
    pub parts: Vec<String>,
}

/// Where an experiment's results of today on this machine go.
pub fn folder_of(experiment: &Experiment) -> PathBuf {
    let name = format!("{}-{}", machine::today(), machine::folder_name());
    experiment.folder.join("runs").join(name)
}

/// Measures the parts, one after the other, and returns each with what it shows. `tell` gets a line whenever something begins.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Vec<(String, Shown)>> {
    let known = |name: &&String| experiment.parts.iter().any(|part| part.name == **name);
    if let Some(unknown) = options.parts.iter().find(|name| !known(name)) {
        let names: Vec<&str> = experiment
            .parts
            .iter()
            .map(|part| part.name.as_str())
            .collect();
        bail!(
            "experiment {} has no part {unknown}; it has {}",
            experiment.name,
            names.join(", ")
        );
    }
    let is_over = AtomicBool::new(false);
    let runtime = runtime()?;
    thread::scope(|scope| {
        let (done, ended) = oneshot::channel();
        let worker = scope.spawn(|| {
            let measured = measure_all(experiment, options, &is_over, tell);
            // Nothing waits for it where a signal came first.
            done.send(()).ok();
            measured
        });
        let why = runtime.block_on(async {
            let mut signals = EndSignals::listen()?;
            tokio::select! {
                biased;
                why = signals.next() => anyhow::Ok(Some(why)),
                _ = ended => Ok(None),
            }
        });
        is_over.store(true, Ordering::Relaxed);
        let measured = worker
            .join()
            .map_err(|_| anyhow!("the measuring thread panicked"))?;
        match why? {
            Some(why) => bail!("{why}"),
            None => measured,
        }
    })
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.context("cannot start the event loop")
}

fn measure_all(
    experiment: &Experiment,
    options: &RunOptions,
    is_over: &AtomicBool,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Vec<(String, Shown)>> {
    let mut all = Vec::new();
    for part in experiment.chosen_parts(options) {
        let bench = Bench {
            program: &options.program,
            experiment,
            is_quick: options.is_quick,
            scratch: Scratch::new()?,
            runtime: runtime()?,
            is_over,
            tell,
            folder: &options.folder,
            part: &part.name,
            numbers: RefCell::new(0),
        };
        let mut record = Record::begin(&options.folder, &part.name)?;
        for measure in &part.measures {
            let measured = measure.kind.run(&bench, measure, &mut record);
            measured.with_context(|| format!("{}, {}", experiment.name, measure.name))?;
        }
        let mut shown = part
            .shown(record.rows())
            .map_err(|problem| anyhow!("part {}: {problem}", part.name))?;
        if options.is_quick {
            // So short a run proves nothing, either way.
            shown.verdicts.clear();
        }
        fs::write(
            options.folder.join(format!("{}.md", part.name)),
            shown.markdown(),
        )?;
        all.push((part.name.clone(), shown));
    }
    Ok(all)
}

impl Experiment {
    /// The named parts, or all; where all is short and none is named, one of each kind.
    fn chosen_parts(&self, options: &RunOptions) -> Vec<&Part> {
        let mut kinds = BTreeSet::new();
        let mut is_new = |part: &Part| {
            let of_part: Vec<&str> = part
                .measures
                .iter()
                .map(|one| one.kind_name.as_str())
                .collect();
            of_part.into_iter().fold(false, |is_new, kind| {
                kinds.insert(kind.to_owned()) || is_new
            })
        };
        let mut is_chosen = |part: &&Part| match (&options.parts[..], options.is_quick) {
            ([], true) => is_new(part),
            ([], false) => true,
            (named, _) => named.contains(&part.name),
        };
        self.parts.iter().filter(|part| is_chosen(part)).collect()
    }
}

/// What kinds measure with.
pub struct Bench<'a> {
    /// The `sooner` program.
    pub program: &'a Path,
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Whether all is as short as can be.
    pub is_quick: bool,
    /// The part's name.
    pub part: &'a str,
    scratch: Scratch,
    runtime: tokio::runtime::Runtime,
    is_over: &'a AtomicBool,
    tell: &'a (dyn Fn(&str) + Sync),
    folder: &'a Path,
    numbers: RefCell<u32>,
}

impl Bench<'_> {
    /// A folder that every user may enter, removed at the end.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A new folder in it.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.scratch().join(format!("{name}-{}", self.number()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// One more than the last: for names and ports that must differ.
    pub fn number(&self) -> u32 {
        let mut number = self.numbers.borrow_mut();
        *number += 1;
        *number
    }

    /// Tells the operator something.
    pub fn tell(&self, line: &str) {
        (self.tell)(line);
    }

    /// A length of time, or the other one where all is short.
    pub fn seconds(&self, full: u64, quick: u64) -> u64 {
        if self.is_quick { quick } else { full }
    }

    /// Runs a future to its end.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Runs a future to its end, or until all is to end.
    pub fn block_on_work<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let told_to_end = async {
            while !self.is_over.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK).await;
            }
        };
        self.runtime.block_on(async {
            tokio::select! {
                done = work => done,
                () = told_to_end => bail!("it was told to end"),
            }
        })
    }

    /// Waits; an error where all is to end.
    pub fn pause(&self, duration: Duration) -> Result<()> {
        let begin = Instant::now();
        loop {
            ensure!(!self.is_over.load(Ordering::Relaxed), "it was told to end");
            let left = duration.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK));
        }
    }

    /// Fails where one of these programs is not installed.
    pub fn need(&self, programs: &[&str]) -> Result<()> {
        for name in programs {
            ensure!(!program::missing(&[name]), "{name} is not installed");
        }
        Ok(())
    }

    /// `sooner` with these arguments.
    pub fn sooner(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command.args(arguments);
        command
    }

    /// Starts a process that is ended with its handle.
    pub fn start(&self, mut command: Command) -> Result<OwnedChild> {
        OwnedChild::spawn(&mut command)
            .with_context(|| format!("cannot start {}", name_of(&command)))
    }

    /// Waits for a process to end with one of these codes; what it printed.
    pub fn finish(&self, name: &str, mut child: OwnedChild, codes: &[i32]) -> Result<String> {
        let mut lines = Vec::new();
        loop {
            match child.next_line(LOOK) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Timeout) => self.pause(Duration::ZERO)?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        while !child.has_ended() {
            self.pause(LOOK)?;
        }
        let code = child.end().and_then(|status| status.code());
        if !code.is_some_and(|code| codes.contains(&code)) {
            return Err(failure(name, &mut child));
        }
        Ok(lines.join("\n"))
    }

    /// Runs a command to its end, which must be a success; what it printed.
    pub fn output(&self, command: Command) -> Result<String> {
        let name = name_of(&command);
        self.finish(&name, self.start(command)?, &[0])
    }

    /// The report of a process: `sooner load` ends with 1 where its figures may not be believed, and its report says why.
    pub fn report(&self, child: OwnedChild) -> Result<Value> {
        let text = self.finish("the generator", child, &[0, 1])?;
        serde_json::from_str(&text).context("the generator printed no report")
    }

    /// The first run of a report.
    pub fn run_of(&self, child: OwnedChild) -> Result<Value> {
        let mut report = self.report(child)?;
        let run = report.pointer_mut("/runs/0").map(Value::take);
        Ok(super::rows::slim(run.context("a report without runs")?))
    }

    /// A page beside the results.
    pub fn keep_page(&self, html: &str) -> Result<()> {
        let path = self.folder.join(format!("{}.html", self.part));
        Ok(fs::File::create(path)?.write_all(html.as_bytes())?)
    }

    /// How often each way is measured.
    pub fn turns(&self, measure: &Measure) -> u32 {
        if self.is_quick { 1 } else { measure.turns }
    }

    /// Measures every way of every case by turns, so that a busy spell of the machine meets all of them.
    pub fn by_turns(
        &self,
        measure: &Measure,
        record: &mut Record,
        one: impl Fn(&Item, &Item, u32) -> Result<Map<String, Value>>,
    ) -> Result<()> {
        for case in self.cases(measure) {
            for turn in 0..self.turns(measure) {
                for way in self.in_order(measure, &case, turn) {
                    self.turn(measure, record, (&case, &way, turn), &one)?;
                }
            }
        }
        Ok(())
    }

    /// The same with cases by turns as well.
    pub fn all_by_turns(
        &self,
        measure: &Measure,
        record: &mut Record,
        one: impl Fn(&Item, &Item, u32) -> Result<Map<String, Value>>,
    ) -> Result<()> {
        for turn in 0..self.turns(measure) {
            for case in self.cases(measure) {
                for way in self.in_order(measure, &case, turn) {
                    self.turn(measure, record, (&case, &way, turn), &one)?;
                }
            }
        }
        Ok(())
    }

    /// Its cases; where all is short, those that the experiment names for that, or the first.
    pub fn cases(&self, measure: &Measure) -> Vec<Item> {
        let mut cases = measure.listed_cases();
        if self.is_quick {
            let is_named = |case: &Item| measure.quick.contains(&case.id);
            match cases.iter().any(is_named) {
                true => cases.retain(is_named),
                false => cases.truncate(1),
            }
        }
        cases
    }

    /// The ways of a case: forward and backward by turns.
    fn in_order(&self, measure: &Measure, case: &Item, turn: u32) -> Vec<Item> {
        let mut ways = measure.listed_ways();
        ways.retain(|way| way.cases.is_empty() || way.cases.contains(&case.id));
        let is_named = |way: &Item| measure.quick.contains(&way.id);
        if self.is_quick && ways.iter().any(is_named) {
            ways.retain(is_named);
        }
        if turn % 2 == 1 {
            ways.reverse();
        }
        ways
    }

    fn turn(
        &self,
        measure: &Measure,
        record: &mut Record,
        (case, way, turn): (&Item, &Item, u32),
        one: &impl Fn(&Item, &Item, u32) -> Result<Map<String, Value>>,
    ) -> Result<()> {
        self.tell(&format!(
            "{} {} {}, turn {turn}",
            measure.name, case.id, way.id
        ));
        self.until_undisturbed(
            || one(case, way, turn),
            |figures, attempt| record.add(measure.row(case, way, turn, figures, attempt)),
        )
    }

    /// Measures, and again while a generator says that it was held up; `keep` gets every attempt.
    pub fn until_undisturbed(
        &self,
        one: impl Fn() -> Result<Map<String, Value>>,
        mut keep: impl FnMut(Map<String, Value>, Attempt) -> Result<()>,
    ) -> Result<()> {
        for number in 1..=ATTEMPTS_MAX {
            self.await_quiet()?;
            let before = quiet::stolen_cpu_seconds();
            let figures = one()?;
            let is_held_up = figures.values().any(was_held_up);
            let stolen_cpu_seconds = quiet::stolen_cpu_seconds() - before;
            keep(
                figures,
                Attempt {
                    number,
                    stolen_cpu_seconds,
                },
            )?;
            if !is_held_up || self.is_quick {
                break;
            }
            self.tell(&format!(
                "held up ({stolen_cpu_seconds:.1} s of processor time taken by others); once more"
            ));
        }
        Ok(())
    }

    /// Returns when others take no processor time away, or patience ends.
    pub fn await_quiet(&self) -> Result<()> {
        let begin = Instant::now();
        while !self.is_quick && begin.elapsed() < QUIET_PATIENCE {
            let before = quiet::stolen_cpu_seconds();
            self.pause(WATCH)?;
            let share = (quiet::stolen_cpu_seconds() - before) / WATCH.as_secs_f64();
            if share <= STOLEN_SHARE_MAX {
                break;
            }
        }
        Ok(())
    }
}

/// One attempt, and what is known of the machine meanwhile.
#[derive(Clone, Copy)]
pub struct Attempt {
    /// 1 for the first.
    pub number: u32,
    /// Processor seconds that a hypervisor gave to others meanwhile, over all cores.
    pub stolen_cpu_seconds: f64,
}

/// Whether the generator of a run, and not the server, was late.
fn was_held_up(run: &Value) -> bool {
    match run {
        Value::Array(runs) => runs.iter().any(was_held_up),
        _ => {
            let reason = run["verdict_reason"].as_str().unwrap_or_default();
            run["verdict"] != "VALID" && reason.contains("send lag")
        }
    }
}

fn name_of(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name();
    name.unwrap_or_default().to_string_lossy().into_owned()
}

impl Measure {
    /// Its cases, or one without a name.
    pub(super) fn listed_cases(&self) -> Vec<Item> {
        listed(&self.cases)
    }

    /// Its ways, or one without a name.
    pub(super) fn listed_ways(&self) -> Vec<Item> {
        listed(&self.ways)
    }

    /// A row with all that says what it is of.
    pub(super) fn row(
        &self,
        case: &Item,
        way: &Item,
        turn: u32,
        figures: Map<String, Value>,
        attempt: Attempt,
    ) -> Map<String, Value> {
        let mut row = self.is.clone();
        for (keys, item) in [
            (&self.case_by, case),
            (&self.way_by.iter().cloned().collect(), way),
        ] {
            let keys = keys.iter().filter_map(|key| item.fields.get_key_value(key));
            row.extend(keys.map(|(key, value)| (key.clone(), value.clone())));
        }
        for key in &self.turn_by {
            // Seeds count from 1.
            let first = u32::from(key == "seed");
            row.insert(key.clone(), (turn + first).into());
        }
        row.insert("attempt".into(), attempt.number.into());
        row.insert(
            "stolen_cpu_seconds".into(),
            attempt.stolen_cpu_seconds.into(),
        );
        row.extend(figures);
        row
    }
}

fn listed(items: &[Item]) -> Vec<Item> {
    match items {
        [] => vec![Item::of(Map::new(), &[])],
        items => items.to_vec(),
    }
}
