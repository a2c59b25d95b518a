//! Runs parts of the tests at the same time, the longest first, and says which tests took longest.

use crate::process::{self, Finished};
use crate::programs::{Outcome, Part, is_event};
use crate::tally::Tally;
use anyhow::Result;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Tests at once for two cores: with two, the tests of servers left two fifths of them idle, and with
/// four they waited for one another's waiting.
const TESTS_PER_TWO_CORES: usize = 5;
/// Modules that measure how long something takes, or how much memory: nothing runs beside them.
const ALONE: [&str; 8] = [
    "attach_in_use",
    "attach_workers",
    "flood",
    "gate_memory",
    "gate_under_fire",
    "oltp_growth",
    "surge",
    "uplink_auto",
];
/// Modules of tests that take tens of seconds each: a process a test, so that none waits for another.
const SLOW: [&str; 5] = ["drivers", "lab", "lab_measures", "oltp", "principles"];
/// What a test counts as before it was ever run, in seconds: one of a slow module, and any other.
const SECONDS_UNKNOWN: [f64; 2] = [30.0, 1.0];
/// How many of the slowest tests are shown.
const SLOWEST: usize = 30;
/// So few that failed are run again, alone; more are no accident of a busy machine.
const AGAIN_MAX: usize = 3;
/// How often in a row one of them has to pass then.
const AGAIN_TIMES: usize = 3;

/// Runs the parts, those that need the machine for themselves last.
pub fn run(parts: Vec<Part>, tally: &mut Tally) {
    let before = Times::read();
    let parts = parts.into_iter().flat_map(|part| {
        if is_slow(&part) {
            part.one_by_one()
        } else {
            vec![part]
        }
    });
    let (alone, mut together): (Vec<Part>, Vec<Part>) =
        parts.partition(|part| ALONE.contains(&part.module.as_str()));
    together.sort_by_key(|part| Reverse(before.of(part)));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let ran = run_some(together, (cores * TESTS_PER_TWO_CORES).div_ceil(2), tally);
    let (mut times, mut failed) = (ran.times, ran.failed);
    // Beside these only what takes an idle processor goes on: documents and fuzz targets are built.
    let ran = run_some(alone, 1, tally);
    times.extend(ran.times);
    failed.extend(ran.failed);
    run_again(failed, tally);
    times.sort_by_key(|(_, seconds)| Reverse((seconds * 1e3) as u64));
    println!("-- the slowest tests");
    for (name, seconds) in times.iter().take(SLOWEST) {
        println!("{seconds:8.1} s  {name}");
    }
    Times::write(&times);
}

/// What parts came to.
#[derive(Default)]
struct Ran {
    /// Each test's seconds.
    times: Vec<(String, f64)>,
    /// The tests that failed, which are not counted yet.
    failed: Vec<Part>,
}

/// Runs so many parts at a time, in this order.
fn run_some(parts: Vec<Part>, at_once: usize, tally: &mut Tally) -> Ran {
    let waiting = Mutex::new(parts.into_iter());
    let done = Mutex::new((tally, Ran::default()));
    // A call, because a lock taken in the condition would be held for the whole turn.
    let take = || lock(&waiting).next();
    let work = || {
        while let Some(part) = take() {
            let started = Instant::now();
            let ran = part.run();
            let (tally, all) = &mut *lock(&done);
            account(&part, ran, started.elapsed(), tally, all);
        }
    };
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(work);
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).1
}

/// A busy machine fails a test now and then that waits for less than it may take there. Where it
/// passes by itself it counts as passed, and is named; what failed stands above.
fn run_again(failed: Vec<Part>, tally: &mut Tally) {
    let is_few = failed.len() <= AGAIN_MAX;
    for part in failed {
        let name = part.name();
        let has_passed = is_few && (0..AGAIN_TIMES).all(|_| passes(&part));
        tally.step(&name, has_passed);
        if has_passed {
            tally.unsteady(&name);
        }
    }
}

fn passes(part: &Part) -> bool {
    let ran = part.run();
    ran.is_ok_and(|(outcomes, finished)| {
        let passed = outcomes.iter().filter(|one| one.passed == Some(true));
        finished.success && passed.count() == part.tests.len()
    })
}

fn is_slow(part: &Part) -> bool {
    SLOW.contains(&part.module.as_str())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts what came of a part, and shows what failed.
fn account(
    part: &Part,
    ran: Result<(Vec<Outcome>, Finished)>,
    took: Duration,
    tally: &mut Tally,
    all: &mut Ran,
) {
    let name = format!("{}: {}", part.label, part.module);
    let (outcomes, finished) = match ran {
        Ok(ran) => ran,
        Err(error) => {
            println!("{name}: {error:#}");
            tally.step(&name, false);
            return;
        }
    };
    let failed = outcomes.iter().filter(|one| one.passed == Some(false));
    let failed = failed.count();
    let (ended, of) = (outcomes.len(), part.tests.len());
    // A test has ended the process, or the harness has.
    if ended < of {
        tally.step(&format!("{name}: only {ended} of {of} tests ended"), false);
    } else if failed == 0 && !finished.success {
        tally.step(
            &format!("{name}: its process failed behind its tests"),
            false,
        );
    }
    let apart = finished.lines.iter().filter(|line| !is_event(line));
    let apart: Vec<&str> = apart.map(String::as_str).collect();
    if failed > 0 || ended < of || !finished.success {
        println!("{}", apart.join("\n"));
    }
    tally.lines(apart.iter().copied());
    let seconds = took.as_secs_f64();
    println!("{name}: {ended} tests, {failed} failed, {seconds:.1} s");
    for outcome in outcomes {
        let name = part.full_name(&outcome.name);
        all.times.push((name.clone(), outcome.seconds));
        if outcome.passed == Some(false) {
            println!("{name} FAILED:\n{}", outcome.text);
            tally.reason(&name, &outcome.text);
            all.failed.push(part.only(&outcome.name));
        } else {
            tally.test(&name, outcome.passed, &outcome.text);
        }
    }
}

/// How long each part took when it was last run, so that the longest begin first.
struct Times(BTreeMap<String, f64>);

impl Times {
    fn file() -> PathBuf {
        process::root().join("target/test-times.json")
    }

    fn read() -> Self {
        let text = fs::read_to_string(Self::file()).unwrap_or_default();
        Self(serde_json::from_str(&text).unwrap_or_default())
    }

    /// In milliseconds.
    fn of(&self, part: &Part) -> u64 {
        let [slow, other] = SECONDS_UNKNOWN;
        let unknown = if is_slow(part) { slow } else { other };
        let names = part.tests.iter().map(|test| part.full_name(test));
        let seconds = names.map(|name| self.0.get(&name).copied().unwrap_or(unknown));
        (seconds.sum::<f64>() * 1e3) as u64
    }

    /// What cannot be written is not known the next time.
    fn write(times: &[(String, f64)]) {
        let times: BTreeMap<&str, f64> = times.iter().map(|(name, s)| (&**name, *s)).collect();
        if let Ok(text) = serde_json::to_string(&times) {
            let _ = fs::write(Self::file(), text);
        }
    }
}
