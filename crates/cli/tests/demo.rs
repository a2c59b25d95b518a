//! `sooner demo` as a process: what it prints and writes, how it refuses bad input, and that
//! nothing outlives it.

use assert_cmd::Command as Checked;
use rustix::process::{Pid, Signal, kill_process};
use sooner_stats::Report;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A demo in a directory of its own; its temporary files go to `tmp` in it.
fn demo(dir: &Path, args: &[&str]) -> Checked {
    fs::create_dir_all(dir.join("tmp")).unwrap();
    let mut command = Checked::cargo_bin("sooner").unwrap();
    command
        .current_dir(dir)
        .env("TMPDIR", dir.join("tmp"))
        .arg("demo")
        .args(args);
    command
}

#[test]
fn both_policies_get_the_same_arrivals_and_the_page_tells() {
    let dir = tempfile::tempdir().unwrap();
    let output = demo(dir.path(), &["--for", "5", "--rho", "0.5", "--json"])
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    // Another program on this machine may have held a generator up: that is told by the exit code.
    let is_valid = |run: &sooner_stats::Run| run.verdict == sooner_stats::Verdict::Valid;
    let expected = i32::from(!report.runs.iter().all(is_valid));
    assert_eq!(output.status.code(), Some(expected), "{message}");
    let [fair, srpt] = &report.runs[..] else {
        panic!("{} runs", report.runs.len())
    };
    assert_eq!(
        [&fair.policy[..], &srpt.policy[..]],
        ["fair", "srpt"],
        "{message}"
    );
    assert!(fair.all.n > 0);
    assert_eq!((fair.all.n, fair.seed), (srpt.all.n, srpt.seed));
    assert_eq!(fair.realised_load, srpt.realised_load);
    let sizes = |run: &sooner_stats::Run| {
        run.by_size
            .iter()
            .map(|b| b.max_size_bytes)
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(fair), sizes(srpt));
    let page = fs::read_to_string(dir.path().join("sooner-demo.html")).unwrap();
    assert!(page.contains("sooner demo --uplink 10mbit --for 5 --rho 0.5 --trace epa --seed 1"));
    assert!(message.contains("sooner-demo.html"), "{message}");
    assert!(
        is_empty(&dir.path().join("tmp")),
        "temporary files are left"
    );
}

#[test]
fn bad_input_is_refused_in_one_line_and_nothing_is_written() {
    for (args, words) in [
        (&["--uplink", "10mbt"][..], &["mbt", "mbit"][..]),
        (&["--rho", "lots"], &["lots", "0.9"]),
        (&["--schedule", "0.2,1.2"], &["0.2,1.2", "LOW"]),
        (&["--schedule", "0.2,1.2,9,0.01"], &["shorter than 0.1 s"]),
        (&["--trace", "nowhere"], &["nowhere", "epa", "nasa"]),
        (&["--policies", "fair,best"], &["best", "srpt"]),
        (&["--policies", "fair,fair"], &["fair", "once"]),
        (&["--seconds", "1"], &["--for", "5"]),
        (
            &["--report", "no/such/dir/page.html"],
            &["no/such/dir/page.html"],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let output = demo(dir.path(), args).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        for word in words {
            assert!(message.contains(word), "{word} is not in {message}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only tmp");
    }
}

#[test]
fn a_measurement_that_fails_is_no_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    let output = demo(dir.path(), &["--uplink", "1bit"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("sooner: "), "{message}");
    assert!(!dir.path().join("sooner-demo.html").exists());
    assert!(
        is_empty(&dir.path().join("tmp")),
        "temporary files are left"
    );
}

#[test]
fn what_cannot_be_told_ends_no_demo() {
    let dir = tempfile::tempdir().unwrap();
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let status = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["demo", "--uplink", "1bit"])
        .current_dir(dir.path())
        .stdout(Stdio::null())
        .stderr(full.unwrap())
        .status();
    // The measurement fails, and does not panic.
    assert_eq!(status.unwrap().code(), Some(1));
}

#[test]
fn a_signal_ends_its_processes_and_removes_its_files() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let dir = tempfile::tempdir().unwrap();
        let mut running = start(&dir);
        let pid = running.id();
        wait_until("a server and a generator run", || children(pid).len() == 2);
        let children = children(pid);
        kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
        let status = running.wait().unwrap();
        assert_eq!(status.code(), Some(1), "{signal:?}");
        wait_until("both processes are gone", || {
            !children.iter().any(|child| is_running(*child))
        });
        assert!(
            is_empty(&dir.path().join("tmp")),
            "temporary files are left"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only tmp");
    }
}

fn start(dir: &TempDir) -> Child {
    fs::create_dir_all(dir.path().join("tmp")).unwrap();
    Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["demo", "--seconds", "30"])
        .current_dir(dir.path())
        .env("TMPDIR", dir.path().join("tmp"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The processes started by `pid`.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    tasks
        .split_whitespace()
        .map(|child| child.parse().unwrap())
        .collect()
}

/// Whether `pid` runs; a process that has ended but was not waited for does not.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
