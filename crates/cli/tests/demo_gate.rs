//! `sooner demo gate` as a process: a short run on a PostgreSQL of its own, bad input, Ctrl-C, and
//! that nothing outlives it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sooner_testbed::skip;
use tempfile::TempDir;

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The demo with temporary files in `folder`, where PostgreSQL's own user may go.
fn demo(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["demo", "gate"]).args(args);
    command.env("TMPDIR", folder).stdin(Stdio::null());
    command
}

fn folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether PostgreSQL is missing, after saying so.
fn is_missing(test: &str, said: &str) -> bool {
    let is_missing = said.contains("there is no PostgreSQL") || said.contains("no user `postgres`");
    if is_missing {
        skip(test, "needs the package postgresql");
    }
    is_missing
}

/// The processes with `word` in their command line, as the path of a folder that only they know.
fn processes(word: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        // PostgreSQL knows its data by a path from its own folder.
        let at = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let is_there = line.contains(word) || at.to_string_lossy().contains(word);
        is_there.then(|| format!("{id} {line}"))
    });
    lines.collect()
}

fn is_nothing_left(folder: &Path) {
    let files = fs::read_dir(folder).unwrap().count();
    assert_eq!(files, 0, "files are left");
    assert_eq!(
        processes(&folder.display().to_string()),
        Vec::<String>::new()
    );
}

#[test]
fn every_way_is_measured_and_class_priority_puts_the_high_ones_first() {
    let folder = folder();
    let output = demo(
        folder.path(),
        &["--seconds", "2", "--json", "--repetitions", "2"],
    )
    .output()
    .unwrap();
    let said = said(&output);
    if is_missing("every_way_is_measured", &said) {
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        return;
    }
    let report: Value = serde_json::from_slice(&output.stdout).expect(&said);
    // Other tests run beside this one, which may make it INVALID: the exit code says so.
    let is_valid = report["verdict"] == "VALID";
    assert_eq!(output.status.code(), Some(i32::from(!is_valid)), "{said}");
    assert_eq!(
        (&report["schema"], &report["fsync"]),
        (&1.into(), &false.into())
    );
    assert!(report["capacity_transactions_per_sec"].as_f64() > Some(0.0));
    let ways = report["ways"].as_array().unwrap();
    let names: Vec<_> = ways
        .iter()
        .map(|run| run["way"].as_str().unwrap())
        .collect();
    let one = ["direct", "gate-fcfs", "gate-priority"];
    assert_eq!(names, [one, one].concat());
    let shares = ways.iter().filter_map(|run| run["others_share"].as_f64());
    assert_eq!(shares.fold(0.0, f64::max) <= 0.1, is_valid, "{report}");
    for run in ways {
        assert!(run["measured_s"].as_f64() > Some(0.0), "{run}");
        assert!(run["transactions_per_sec"].as_f64() > Some(0.0), "{run}");
        for class in ["high", "low"] {
            let figures = &run[class];
            assert!(figures["transactions"].as_u64() > Some(0), "{run}");
            let times = ["p95_ms", "p99_ms"].map(|name| figures[name].as_f64().unwrap());
            assert!(0.0 < times[0] && times[0] <= times[1], "{run}");
        }
        let mean = |class: &str| run[class]["mean_ms"].as_f64().unwrap();
        if run["way"] == "gate-priority" {
            assert!(mean("high") < mean("low"), "{run}");
        }
    }
    is_nothing_left(folder.path());
}

#[test]
fn bad_input_is_refused_in_one_line() {
    for (args, words) in [
        (
            &["--high", "5", "--clients", "5"][..],
            &["--high 5", "--clients 5"][..],
        ),
        (&["--for", "1"], &["--for", "2"]),
        (&["--limit", "0"], &["limit"]),
        (&["--repetitions", "0"], &["repetitions"]),
    ] {
        let folder = folder();
        let output = demo(folder.path(), args).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for word in words {
            assert!(said.contains(word), "{word} is not in {said}");
        }
        is_nothing_left(folder.path());
    }
}

#[test]
fn a_signal_ends_its_processes_and_removes_its_files() {
    for (signal, program) in [(Signal::INT, "initdb"), (Signal::TERM, "pgbench")] {
        let folder = folder();
        let mut running = demo(folder.path(), &["--seconds", "30"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let at = folder.path().display().to_string();
        if !await_process(&mut running, &at, program) {
            let output = running.wait_with_output().unwrap();
            assert!(
                is_missing("a_signal_ends_its_processes", &said(&output)),
                "{}",
                said(&output)
            );
            return;
        }
        kill_process(Pid::from_raw(running.id() as i32).unwrap(), signal).unwrap();
        assert_eq!(running.wait().unwrap().code(), Some(1), "{signal:?}");
        is_nothing_left(folder.path());
    }
}

/// Waits until a program runs there; not if the demo ends before.
fn await_process(running: &mut Child, at: &str, program: &str) -> bool {
    let start = Instant::now();
    while !processes(at).iter().any(|line| line.contains(program)) {
        if running.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {program}");
        thread::sleep(Duration::from_millis(5));
    }
    true
}
