//! `cargo xtask fuzz`: every fuzz target for a few seconds.
//!
//! The targets are built by stable Rust with LLVM's coverage counters and libFuzzer, as cargo-fuzz
//! does, but without AddressSanitizer (which needs nightly): what is fuzzed is safe code, so that a
//! panic, an overflow, an endless loop or a memory hog is all there is to find.

use crate::process;
use crate::tally::Tally;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What LLVM adds for libFuzzer to see: edges taken and the operands of comparisons.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// One input may take this long; all of them are parsed in microseconds.
const INPUT_SECONDS_MAX: u32 = 5;
/// Memory of one target; a small input must not make a parser allocate more.
const MEMORY_MB_MAX: u32 = 1024;

/// What libFuzzer says before the path of an input that fails.
const WRITTEN_TO: &str = "Test unit written to ";

/// Builds the targets and runs each for a while, or only the one named. Counts each target as one test.
pub fn run(each: Duration, only: Option<&str>, tally: &mut Tally) -> Result<()> {
    if !process::is_installed("c++") {
        tally.skip("fuzz", "no C++ compiler for libFuzzer (Debian: g++)");
        return Ok(());
    }
    let host = host_triple()?;
    if !build(&host)? {
        tally.step("the build of the fuzz targets", false);
        return Ok(());
    }
    let targets: Vec<String> = targets()?
        .into_iter()
        .filter(|name| only.is_none_or(|only| only == name))
        .collect();
    anyhow::ensure!(
        !targets.is_empty(),
        "no such fuzz target: they are the files of fuzz/fuzz_targets"
    );
    for (target, passed) in run_all(targets, &host, each) {
        tally.step(&format!("fuzz {target}"), passed?);
    }
    Ok(())
}

/// Runs the targets, one a core at a time, and gives what came of each.
fn run_all(targets: Vec<String>, host: &str, each: Duration) -> Vec<(String, Result<bool>)> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let waiting = Mutex::new(targets);
    let take = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let run_some = || {
        std::iter::from_fn(take)
            .map(|target| {
                let passed = run_one(&target, host, each);
                (target, passed)
            })
            .collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(run_some)).collect();
        workers
            .into_iter()
            .filter_map(|worker| worker.join().ok())
            .flatten()
            .collect()
    })
}

/// Builds the targets with what others leave of the processors, so that [`run`] finds them built. Says nothing: [`run`] builds once
/// more, and says what is wrong.
pub fn build_ahead() {
    if !process::is_installed("c++") {
        return;
    }
    if let Ok(host) = host_triple() {
        let _ = process::run_quietly(&mut process::at_idle(&build_command(&host)));
    }
}

fn build(host: &str) -> Result<bool> {
    Ok(process::run(&mut build_command(host))?.success)
}

/// Instruments everything but build scripts, which is why the host is named as a cross target.
fn build_command(host: &str) -> Command {
    let mut build = process::cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml"]);
    build
        .args(["--target-dir", "target/fuzz", "--target", host])
        .env("RUSTFLAGS", COVERAGE);
    build
}

fn run_one(target: &str, host: &str, each: Duration) -> Result<bool> {
    let root = process::root();
    let corpus = root.join("fuzz/corpus").join(target);
    let artifacts = root.join("fuzz/artifacts").join(target);
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(
        root.join("target/fuzz")
            .join(host)
            .join("release")
            .join(target),
    );
    command
        .current_dir(&root)
        .arg(format!("-max_total_time={}", each.as_secs()))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-verbosity=0", "-print_final_stats=1"])
        .arg(&corpus);
    let seeds = root.join("fuzz/seeds").join(target);
    if seeds.is_dir() {
        command.arg(seeds);
    }
    let started = Instant::now();
    let finished = process::run_quietly(&mut command)?;
    if !finished.success {
        println!("{}", finished.lines.join("\n"));
        println!("{}", what_failed(&finished.lines));
    }
    let verdict = if finished.success { "ok" } else { "FAILED" };
    let inputs = finished
        .lines
        .iter()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let inputs = inputs.unwrap_or("an unknown number of").trim();
    println!(
        "fuzz {target}: {verdict}, {inputs} inputs in {:.0} s",
        started.elapsed().as_secs_f64()
    );
    Ok(finished.success)
}

/// The panic and the input that caused it, once more behind all lines: a long record is cut in its middle, and other machines lack the file.
fn what_failed(lines: &[String]) -> String {
    let panic = lines
        .iter()
        .skip_while(|line| !line.contains(" panicked at "));
    let mut words: Vec<String> = panic.take(2).cloned().collect();
    let written = lines.iter().find_map(|line| line.split_once(WRITTEN_TO));
    if let Some(input) = written.and_then(|(_, path)| fs::read(path).ok()) {
        words.push(format!("its input: {}", input.escape_ascii()));
    }
    words.join("\n")
}

fn targets() -> Result<Vec<String>> {
    let arguments = [
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
        "--manifest-path",
        "fuzz/Cargo.toml",
    ];
    let metadata: Value = serde_json::from_str(&process::output(&mut process::cargo(&arguments))?)?;
    let targets = metadata["packages"][0]["targets"]
        .as_array()
        .context("the fuzz crate has no targets")?;
    Ok(targets
        .iter()
        .filter_map(|target| target["name"].as_str())
        .map(str::to_owned)
        .collect())
}

fn host_triple() -> Result<String> {
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}
