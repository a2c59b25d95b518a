//! `cargo xtask fuzz`: every fuzz target for a few seconds.
//!
//! The targets are one program, built by stable Rust with LLVM's coverage counters and libFuzzer,
//! as cargo-fuzz does, but without AddressSanitizer (which needs nightly): what is fuzzed is safe
//! code, so that a panic, an overflow, an endless loop or a memory hog is all there is to find.

use crate::process::{self, Finished};
use crate::tally::Tally;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The compiler for the crates of the workspace, from the root.
const INSTRUMENTED: &str = "fuzz/instrumented";
/// The targets, a file each, from the root.
const TARGETS: &str = "fuzz/src/targets";
/// The environment variable that names the target.
const TARGET: &str = "SOONER_FUZZ_TARGET";

/// One input may take this long; all of them are parsed in microseconds.
const INPUT_SECONDS_MAX: u32 = 5;
/// Memory of one target; a small input must not make a parser allocate more.
const MEMORY_MB_MAX: u32 = 1024;

/// What libFuzzer says before the path of an input that fails.
const WRITTEN_TO: &str = "Test unit written to ";

/// Builds the targets and runs each for a while, or only the one named. Counts each as one test.
pub fn run(each: Duration, only: Option<&str>, tally: &mut Tally) -> Result<()> {
    if !process::is_installed("c++") {
        tally.skip("fuzz", "no C++ compiler for libFuzzer (Debian: g++)");
        return Ok(());
    }
    let built = process::run_showing_errors(&mut build_command())?;
    let Some(program) = program(&built) else {
        tally.step("the build of the fuzz targets", false);
        return Ok(());
    };
    let targets: Vec<String> = targets()?
        .into_iter()
        .filter(|name| only.is_none_or(|only| only == name))
        .collect();
    anyhow::ensure!(
        !targets.is_empty(),
        "no such fuzz target: they are the files of {TARGETS}"
    );
    for (target, failure) in run_all(targets, &program, each) {
        let name = format!("fuzz {target}");
        let failure = failure?;
        tally.step(&name, failure.is_none());
        if let Some(why) = failure {
            tally.reason(&name, &why);
        }
    }
    Ok(())
}

/// Runs the targets, one a core at a time, and gives why each failed, if it did.
fn run_all(
    targets: Vec<String>,
    program: &Path,
    each: Duration,
) -> Vec<(String, Result<Option<String>>)> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let waiting = Mutex::new(targets);
    let take = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let run_some = || {
        std::iter::from_fn(take)
            .map(|target| {
                let failure = run_one(&target, program, each);
                (target, failure)
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

/// Builds the targets with what others leave of the processors, so that [`run`] finds them built.
/// Says nothing: [`run`] builds once more, and says what is wrong.
pub fn build_ahead() {
    if process::is_installed("c++") {
        let _ = process::run_quietly(&mut process::at_idle(&build_command()));
    }
}

/// With the features of the tests' dependencies, so that those are not compiled once more.
fn build_command() -> Command {
    let mut build = process::cargo(&["build", "--workspace", "--example", "fuzz"]);
    build
        .args(["--features", "sooner-fuzz/engine"])
        .args(["--message-format", "json-render-diagnostics"])
        .env(
            "RUSTC_WORKSPACE_WRAPPER",
            process::root().join(INSTRUMENTED),
        );
    build
}

/// What Cargo says it has built.
fn program(built: &Finished) -> Option<PathBuf> {
    let messages = built
        .lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok());
    messages
        .filter(|message: &Value| message["target"]["kind"] == json!(["example"]))
        .find_map(|message| Some(message["executable"].as_str()?.into()))
}

/// Runs one target; gives why it failed, if it did.
fn run_one(target: &str, program: &Path, each: Duration) -> Result<Option<String>> {
    let root = process::root();
    let corpus = root.join("fuzz/corpus").join(target);
    let artifacts = root.join("fuzz/artifacts").join(target);
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(program);
    command
        .current_dir(&root)
        .env(TARGET, target)
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
    Ok((!finished.success).then(|| what_failed(&finished.lines)))
}

/// The panic or libFuzzer's complaint, and the input that caused it: other machines lack the file.
fn what_failed(lines: &[String]) -> String {
    let complains = |line: &&String| line.contains(" panicked at ") || line.contains("ERROR:");
    let complaint = lines.iter().skip_while(|line| !complains(line));
    let mut words: Vec<String> = complaint.take(2).cloned().collect();
    let written = lines.iter().find_map(|line| line.split_once(WRITTEN_TO));
    if let Some(input) = written.and_then(|(_, path)| fs::read(path).ok()) {
        words.push(format!("its input: {}", input.escape_ascii()));
    }
    words.join("\n")
}

/// The names of the files of targets.
fn targets() -> Result<Vec<String>> {
    let folder = process::root().join(TARGETS);
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut names = entries
        .map(|entry| {
            Ok(entry?
                .path()
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into())
        })
        .collect::<Result<Vec<String>>>()?;
    names.sort();
    Ok(names)
}
