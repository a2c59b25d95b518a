//! Measuring on a machine that others share: wait for a quiet moment, and measure again what a generator says was held up.
//!
//! A hypervisor that takes processor time away makes generator and servers late together, and says nothing about either. Nothing is
//! chosen by its result: what decides is the generator's own verdict, and every attempt is kept.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How often a repetition is measured before an INVALID one is taken.
const ATTEMPTS_MAX: u32 = 6;
/// How long the machine is watched before it counts as quiet.
const WATCH: Duration = Duration::from_secs(5);
/// The share of one core's time that may be taken away meanwhile.
const STOLEN_SHARE_MAX: f64 = 0.01;
/// How long a quiet moment is waited for.
const PATIENCE: Duration = Duration::from_secs(600);

/// One attempt, and what is known of the machine meanwhile.
pub struct Attempt {
    /// 1 for the first.
    pub number: u32,
    /// Processor seconds that a hypervisor gave to others meanwhile, over all cores.
    pub stolen_cpu_seconds: f64,
}

/// Measures with `measure`, again while one of the runs that `runs_of` picks was held up; `keep` gets every attempt.
pub fn until_undisturbed<T>(
    mut measure: impl FnMut() -> anyhow::Result<T>,
    runs_of: impl for<'a> Fn(&'a T) -> Vec<&'a Value>,
    mut keep: impl FnMut(&T, &Attempt) -> anyhow::Result<()>,
) -> anyhow::Result<T> {
    let mut number = 1;
    loop {
        await_quiet();
        let before = stolen_cpu_seconds();
        let outcome = measure()?;
        let attempt = Attempt {
            number,
            stolen_cpu_seconds: stolen_cpu_seconds() - before,
        };
        keep(&outcome, &attempt)?;
        if !runs_of(&outcome).into_iter().any(was_held_up) || number == ATTEMPTS_MAX {
            return Ok(outcome);
        }
        let stolen = attempt.stolen_cpu_seconds;
        eprintln!("held up ({stolen:.1} s of processor time taken by others); once more");
        number += 1;
    }
}

/// Whether the generator of a run, and not the server, was late.
fn was_held_up(run: &Value) -> bool {
    let reason = run["verdict_reason"].as_str().unwrap_or_default();
    run["verdict"] != "VALID" && reason.contains("send lag")
}

/// Returns when nobody takes processor time away, or patience ends.
fn await_quiet() {
    let start = Instant::now();
    let mut has_said = false;
    while start.elapsed() < PATIENCE {
        let before = stolen_cpu_seconds();
        sleep(WATCH);
        let share = (stolen_cpu_seconds() - before) / WATCH.as_secs_f64();
        if share <= STOLEN_SHARE_MAX {
            return;
        }
        if !has_said {
            eprintln!(
                "waiting for a quiet machine ({:.0} % of a core is taken away)",
                share * 100.0
            );
            has_said = true;
        }
    }
}

/// Processor seconds that a hypervisor gave to others since the machine started, over all cores.
fn stolen_cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat
        .split_whitespace()
        .nth(8)
        .and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.unwrap_or(0.0) / 100.0
}
