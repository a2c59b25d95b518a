//! `sooner lab run --guest`: the same command in a guest, what it leaves, and that nothing outlives
//! it. The guest is the installed one, or the folder in SOONER_GUEST_KERNEL.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sooner_testbed::{program, skip};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// A lab command in a guest on the experiments in a folder; none where there is no guest.
fn in_guest(test: &str, folder: &Path, words: &[&str]) -> Option<Command> {
    let unpacked = std::env::var_os("SOONER_GUEST_KERNEL");
    if unpacked.is_none() && program::missing(&["linux.uml"]) {
        skip(test, "needs the package user-mode-linux");
        return None;
    }
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("sooner"));
    command
        .args(["lab", "run", "tiny", "--guest", "--experiments"])
        .arg(folder)
        .args(words)
        .stdin(Stdio::null());
    if let Some(unpacked) = unpacked {
        command.arg("--guest-kernel").arg(unpacked);
    }
    Some(command)
}

/// An experiment of one case for the guest's queues and netem.
fn tiny(folder: &Path, seconds: u32) {
    let text = format!(
        "rows = []\nquestion = \"?\"\npublished = \"-\"\nbaseline = \"sooner fair user-space\"\n[setup]\n\
        peers = [\"sooner fair user-space\"]\nschedule = \"0.5\"\nrate = \"2mbit\"\nnetem = \"delay 20ms\"\n\
        trace = \"sizes:det:mean=3000\"\nseconds = {seconds}\ndrain_seconds = 5\n[[case]]\nname = \"a\"\n\
        [quick]\nseconds = {seconds}\n"
    );
    fs::create_dir_all(folder.join("tiny")).unwrap();
    fs::write(folder.join("tiny/experiment.toml"), text).unwrap();
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into()
}

#[test]
fn a_guest_measures_what_it_is_told_and_says_that_it_is_one() {
    let folder = tempfile::tempdir().unwrap();
    tiny(folder.path(), 8);
    let test = "a_guest_measures_what_it_is_told_and_says_that_it_is_one";
    let Some(mut command) = in_guest(test, folder.path(), &["--json"]) else {
        return;
    };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("a, seed 1"), "{}", said(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &printed["runs"][0];
    let machine = run["machine"].as_str().unwrap();
    assert!(
        machine.starts_with("user-mode Linux ") && machine.contains(", on "),
        "{machine}"
    );
    // netem's delay, twice for a request on a connection of its own.
    assert!(
        run["run"]["all"]["mean_response_ms"].as_f64() >= Some(40.0),
        "{run}"
    );
    let runs = fs::read_dir(folder.path().join("tiny/runs")).unwrap();
    let names: Vec<String> = runs
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into())
        .collect();
    assert!(
        names.len() == 1 && names[0].ends_with("-guest"),
        "{names:?}"
    );
}

#[test]
fn what_is_wrong_inside_is_said_outside() {
    let folder = tempfile::tempdir().unwrap();
    tiny(folder.path(), 8);
    let test = "what_is_wrong_inside_is_said_outside";
    let Some(mut command) = in_guest(test, folder.path(), &["--case", "b"]) else {
        return;
    };
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("no case b"), "{}", said(&output));
}

/// Starts a long one and waits until it measures.
fn under_way(test: &str, folder: &Path) -> Option<Child> {
    tiny(folder, 120);
    let mut command = in_guest(test, folder, &["--quick"])?;
    let log = folder.join("log");
    let child = command
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    until("nothing is measured", || {
        fs::read_to_string(&log).unwrap().contains("a, seed 1")
    });
    Some(child)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(50));
    }
}

/// The processes of a guest, which are one group.
fn processes_of(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let group = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split(' ').nth(3));
        let words = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        words.contains("rootfstype=hostfs") && group.is_some_and(|group| group == pid.to_string())
    })
    .collect()
}

#[test]
fn the_guest_ends_with_its_command_however_that_ends() {
    let test = "the_guest_ends_with_its_command_however_that_ends";
    for signal in [Signal::INT, Signal::KILL] {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut child) = under_way(test, folder.path()) else {
            return;
        };
        let guest = guest_of(child.id());
        assert!(!processes_of(guest).is_empty());
        kill_process(
            Pid::from_raw(child.id().try_into().unwrap()).unwrap(),
            signal,
        )
        .unwrap();
        let status = child.wait().unwrap();
        assert!(!status.success());
        until("the guest is still there", || {
            processes_of(guest).is_empty()
        });
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        assert_eq!(
            log.contains("goes on where it stopped"),
            signal == Signal::INT,
            "{log}"
        );
    }
}

/// The process of a parent that is a guest, which leads a group of its own.
fn guest_of(parent: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    let is_guest = |id: &&str| {
        let words = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        words.contains("rootfstype=hostfs")
    };
    children
        .split_whitespace()
        .find(is_guest)
        .unwrap()
        .parse()
        .unwrap()
}
