//! Instructions that the simulator takes for a job, counted by valgrind: what a change makes slower
//! is seen on any machine, however busy it is.

use crate::process;
use crate::tally::Tally;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// The name under which the check is counted.
const STEP: &str = "instructions a simulated job";
const POLICIES: [&str; 6] = ["fcfs", "srpt", "psjf", "fair", "las", "fsp"];
/// Two lengths of a run: what starting costs is left out, and the jobs before those that count, which
/// at the load of 0.9 are as many for both.
const JOBS: [u64; 2] = [2_000, 12_000];
/// How many times what is committed a job may take.
const GROWTH_MAX: f64 = 1.1;

fn committed() -> PathBuf {
    process::root().join("crates/simulator/instructions.json")
}

/// Counts, and compares with what is committed. Counts as skipped without valgrind or with another
/// compiler than the committed counts are of.
pub fn check(tally: &mut Tally) -> Result<()> {
    if !process::is_installed("valgrind") {
        tally.skip(STEP, "no valgrind (Debian: valgrind)");
        return Ok(());
    }
    let path = committed();
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let before: Value = serde_json::from_str(&text)?;
    let compiler = compiler()?;
    if before["compiler"] != compiler.as_str() {
        let reason = format!(
            "the committed counts are of {}, this is {compiler}",
            before["compiler"]
        );
        tally.skip(STEP, &reason);
        return Ok(());
    }
    let mut is_good = true;
    for (policy, count) in count()? {
        let limit = before["instructions_a_job"][policy].as_f64().unwrap_or(0.0) * GROWTH_MAX;
        let is_right = (limit / 2.0..=limit).contains(&count);
        let verdict = if is_right {
            ""
        } else {
            ": not what is committed"
        };
        println!("{policy}: {count:.0} instructions a job, at most {limit:.0}{verdict}");
        is_good &= is_right;
    }
    if !is_good {
        println!("`cargo xtask instructions` writes new counts, for a change that is worth them");
    }
    tally.step(STEP, is_good);
    Ok(())
}

/// Counts, and writes what is to be committed.
pub fn write() -> Result<bool> {
    let counts: serde_json::Map<String, Value> = count()?
        .into_iter()
        .map(|(policy, count)| (policy.into(), json!(count.round())))
        .collect();
    let document = json!({"compiler": compiler()?, "instructions_a_job": counts});
    let text = serde_json::to_string_pretty(&document)? + "\n";
    std::fs::write(committed(), &text)?;
    print!("{text}");
    Ok(true)
}

fn compiler() -> Result<String> {
    let version = process::output(Command::new("rustc").arg("--version"))?;
    Ok(version.trim().into())
}

fn count() -> Result<Vec<(&'static str, f64)>> {
    // As the tests have built it: with optimization, and with the checks of what is added up.
    let arguments = ["build", "--workspace", "--example", "play"];
    process::output(&mut process::cargo(&arguments))?;
    let of = |policy: &'static str| {
        let [short, long] = JOBS.map(|jobs| instructions(policy, jobs));
        Ok((policy, (long? - short?) / (JOBS[1] - JOBS[0]) as f64))
    };
    POLICIES.into_iter().map(of).collect()
}

fn instructions(policy: &str, jobs: u64) -> Result<f64> {
    let program = process::root().join("target/debug/examples/play");
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([policy, &jobs.to_string(), "0.9"]);
    let finished = process::run_quietly(&mut valgrind)?;
    anyhow::ensure!(
        finished.success,
        "play {policy} {jobs} fails: {}",
        finished.lines.join("; ")
    );
    let collected = finished.lines.iter().find_map(|line| {
        let (_, count) = line.split_once("Collected :")?;
        count.trim().parse().ok()
    });
    collected.with_context(|| format!("valgrind counted nothing: {}", finished.lines.join("; ")))
}
