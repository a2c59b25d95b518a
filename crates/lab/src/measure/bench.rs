//! What kinds measure with: a place for files, processes that end with their handles, turns, and
//! patience for a machine that others share.
//!
//! A quiet moment is waited for before each measurement, and what a generator says was held up is
//! measured again; nothing is chosen by its result.

use super::rows::{Record, slim};
use super::{Experiment, Item, Measure};
use crate::run::quiet;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};
use sooner_testbed::child::waiting::failure;
use sooner_testbed::scratch::Scratch;
use sooner_testbed::{OwnedChild, program};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

/// How often a turn is measured before one is taken that was held up.
const ATTEMPTS_MAX: u32 = 6;
/// How long the machine is watched before it counts as quiet, and the share of one core that may be
/// taken away meanwhile.
const WATCH: Duration = Duration::from_secs(5);
const STOLEN_SHARE_MAX: f64 = 0.01;
/// How long a quiet moment is waited for.
const QUIET_PATIENCE: Duration = Duration::from_secs(600);
/// How often it is looked whether all is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Where and how all is measured.
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    /// The `sooner` program.
    pub program: &'a Path,
    /// Where results go.
    pub folder: &'a Path,
    /// Whether all is as short as can be.
    pub is_quick: bool,
    /// Whether all is to end.
    pub is_over: &'a AtomicBool,
    /// Gets a line whenever something begins.
    pub tell: &'a (dyn Fn(&str) + Sync),
}

/// What kinds measure with.
pub struct Bench<'a> {
    /// The `sooner` program.
    pub program: &'a Path,
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Whether all is as short as can be.
    pub is_quick: bool,
    part: &'a str,
    context: RunContext<'a>,
    scratch: Scratch,
    runtime: tokio::runtime::Runtime,
    last_number: Cell<u32>,
}

impl<'a> Bench<'a> {
    /// One for a part.
    pub fn new(
        experiment: &'a Experiment,
        part: &'a str,
        context: RunContext<'a>,
    ) -> Result<Bench<'a>> {
        Ok(Bench {
            program: context.program,
            experiment,
            is_quick: context.is_quick,
            part,
            context,
            scratch: Scratch::new()?,
            runtime: runtime()?,
            last_number: Cell::new(0),
        })
    }
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
        self.last_number.set(self.last_number.get() + 1);
        self.last_number.get()
    }

    /// Tells the operator something.
    pub fn tell(&self, line: &str) {
        (self.context.tell)(line);
    }

    /// A length of time, or the other one where all is short.
    pub fn seconds(&self, full: u64, quick: u64) -> u64 {
        if self.is_quick { quick } else { full }
    }

    /// Runs a future to its end, or until all is to end.
    pub fn block_on_work<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let told_to_end = async {
            while !self.context.is_over.load(Ordering::Relaxed) {
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
            ensure!(
                !self.context.is_over.load(Ordering::Relaxed),
                "it was told to end"
            );
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

    /// The report of a process: `sooner load` ends with 1 where its figures may not be believed,
    /// and its report says why.
    pub fn report(&self, child: OwnedChild) -> Result<Value> {
        let text = self.finish("the generator", child, &[0, 1])?;
        serde_json::from_str(&text).context("the generator printed no report")
    }

    /// The first run of a report.
    pub fn run_of(&self, child: OwnedChild) -> Result<Value> {
        let mut report = self.report(child)?;
        let run = report.pointer_mut("/runs/0").map(Value::take);
        Ok(slim(run.context("a report without runs")?))
    }

    /// A page beside the results.
    pub fn keep_page(&self, html: &str) -> Result<()> {
        let path = self.context.folder.join(format!("{}.html", self.part));
        Ok(fs::write(path, html)?)
    }

    /// How often each way is measured.
    pub fn turns(&self, measure: &Measure) -> u32 {
        if self.is_quick { 1 } else { measure.turns }
    }

    /// Measures every way of every case by turns, so that a busy spell of the machine meets all of
    /// them.
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
            if cases.iter().any(is_named) {
                cases.retain(is_named)
            } else {
                cases.truncate(1)
            }
        }
        cases
    }

    /// Measures all ways of a case in the same seconds, turn after turn: `all` gives their figures in
    /// the order in which it gets them. For what a processor that is now faster and now slower would
    /// hide.
    pub fn side_by_side(
        &self,
        measure: &Measure,
        record: &mut Record,
        all: impl Fn(&Item, &[Item]) -> Result<Vec<Map<String, Value>>>,
    ) -> Result<()> {
        for case in self.cases(measure) {
            for turn in 0..self.turns(measure) {
                let ways = self.in_order(measure, &case, turn);
                self.tell(&format!("{} {}, turn {turn}", measure.name, case.id));
                self.await_quiet()?;
                let before = quiet::stolen_cpu_seconds();
                let figures = all(&case, &ways)?;
                let stolen_cpu_seconds = quiet::stolen_cpu_seconds() - before;
                for (way, figures) in ways.iter().zip(figures) {
                    let attempt = Attempt {
                        number: 1,
                        stolen_cpu_seconds,
                    };
                    record.add(measure.row(&case, way, turn, figures, attempt))?;
                }
            }
        }
        Ok(())
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

/// An event loop for one thread.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.context("cannot start the event loop")
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
