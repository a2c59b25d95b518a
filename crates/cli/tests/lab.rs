//! `sooner lab` as a process: three experiments of those that ship, so short that they show only
//! that everything works; bad input; and that nothing outlives it, however it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sooner_testbed::skip;

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("sooner"));
    command.arg("lab").args(arguments).stdin(Stdio::null());
    command
}

/// Whether links can be made here; else that is said.
fn may_make_links(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let has_tools = ["ip", "tc"].iter().all(|tool| {
        Command::new(tool)
            .arg("-V")
            .output()
            .is_ok_and(|output| output.status.success())
    });
    if !is_root || !has_tools {
        skip(test, "needs root, and ip and tc (iproute2)");
    }
    is_root && has_tools
}

fn namespaces_of(pid: u32) -> Vec<String> {
    let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let prefix = format!("sooner-lab-{pid}-");
    names
        .filter(|name| name.starts_with(&prefix))
        .map(String::from)
        .collect()
}

/// The run of every server in a results folder.
fn lines(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("runs.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn three_experiments_run_quickly() {
    if !may_make_links("three_experiments_run_quickly") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let names = ["transient-overload", "loads", "wan"];
    let mut command = lab(&["run", "--quick", "--without-missing", "--out"]);
    let output = command
        .arg(out.path())
        .args(names)
        .arg("--experiments")
        .arg(shipped())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    for name in names {
        let lines = lines(&out.path().join(name));
        let served: Vec<&Value> = lines.iter().map(|line| &line["peer"]).collect();
        assert!(served.len() >= 2, "{name}: {served:?}");
        // Common random numbers: all servers had the very same requests.
        let asked: Vec<u64> = lines
            .iter()
            .map(|line| line["run"]["all"]["n"].as_u64().unwrap())
            .collect();
        assert!(
            asked[0] > 10 && asked.iter().all(|n| *n == asked[0]),
            "{name}: {asked:?}"
        );
        for line in &lines {
            let (peer, run) = (&line["peer"], &line["run"]);
            assert_eq!(run["all"]["errors"], 0, "{name}, {peer}: {run}");
            assert!(
                line["counters"]["samples"].as_u64() > Some(3),
                "{name}, {peer}"
            );
            assert!(line["paths"].is_null() == (name != "wan"), "{name}, {peer}");
        }
        let kept = |part: &str| {
            fs::read_dir(out.path().join(name).join(part))
                .unwrap()
                .count()
        };
        assert_eq!(
            (kept("detail"), kept("samples")),
            (lines.len(), lines.len()),
            "{name}"
        );
        assert!(String::from_utf8_lossy(&output.stdout).contains("/ideal"));
    }
}

/// An experiment that takes long enough to be interrupted.
fn long(folder: &Path) {
    let text = "rows = [\"X1\"]\nquestion = \"?\"\npublished = \"-\"\nbaseline = \"sooner fair user-space\"\n[setup]\n\
        peers = [\"sooner fair user-space\"]\nschedule = \"0.5\"\nseconds = 60\n[[case]]\nname = \"a\"\n";
    fs::create_dir_all(folder.join("long")).unwrap();
    fs::write(folder.join("long/experiment.toml"), text).unwrap();
}

/// Starts the long one and waits until its hosts are up.
fn under_way(folder: &Path) -> Child {
    long(folder);
    let child = lab(&["run", "long", "--quick", "--experiments"])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while namespaces_of(child.id()).len() < 2 {
        assert!(start.elapsed() < PATIENCE, "no hosts");
        sleep(Duration::from_millis(20));
    }
    child
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn nothing_outlives_it() {
    if !may_make_links("nothing_outlives_it") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut interrupted = under_way(folder.path());
    send(&interrupted, Signal::INT);
    assert!(!interrupted.wait().unwrap().success());
    assert_eq!(namespaces_of(interrupted.id()), [""; 0]);

    let mut killed = under_way(folder.path());
    send(&killed, Signal::KILL);
    killed.wait().unwrap();
    assert!(
        !namespaces_of(killed.id()).is_empty(),
        "nobody could remove them"
    );
    let mut next = under_way(folder.path());
    assert_eq!(namespaces_of(killed.id()), [""; 0], "the next start does");
    send(&next, Signal::TERM);
    next.wait().unwrap();
    assert_eq!(namespaces_of(next.id()), [""; 0]);
}

#[test]
fn one_case_that_fails_does_not_cost_the_others() {
    if !may_make_links("one_case_that_fails_does_not_cost_the_others") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    long(folder.path());
    let path = folder.path().join("long/experiment.toml");
    let more = "[[case]]\nname = \"b\"\nsetup = { trace = \"/no/such.csv.gz\" }\n[[case]]\nname = \"c\"\n\
        [quick]\ncases = [\"a\", \"b\", \"c\"]\nseconds = 5\n";
    fs::write(&path, fs::read_to_string(&path).unwrap() + more).unwrap();
    let out = folder.path().join("out");
    let mut command = lab(&["run", "long", "--quick", "--experiments"]);
    let output = command
        .arg(folder.path())
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("not measured: case b, seed 1: "),
        "{message}"
    );
    assert!(!output.status.success() && message.contains("1 could not be measured"));
    let measured = lines(&out.join("long"));
    let cases: Vec<&Value> = measured.iter().map(|line| &line["case"]).collect();
    assert_eq!(cases, ["a", "c"]);
}

/// The one line of an error, with exit code 2.
fn refusal(output: &Output) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    message
}

#[test]
fn bad_input_is_told_with_its_place_and_nothing_is_run() {
    let folder = tempfile::tempdir().unwrap();
    long(folder.path());
    let unknown = lab(&["run", "C99", "--experiments"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(refusal(&unknown).contains("no experiment and no row is called C99"));
    let case = lab(&["run", "long", "--case", "b", "--experiments"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(refusal(&case).contains("long has no case b"));
    let path = folder.path().join("long/experiment.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("seconds = 60", "second = 60")).unwrap();
    let broken = lab(&["list", "--experiments"])
        .arg(folder.path())
        .output()
        .unwrap();
    let message = refusal(&broken);
    assert!(
        message.contains("experiment.toml:8: unknown field `second`"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn without_privilege_it_says_what_it_needs() {
    let is_root = rustix::process::geteuid().is_root();
    let has_setpriv = Command::new("setpriv").arg("-V").output().is_ok();
    if is_root && !has_setpriv {
        skip(
            "without_privilege_it_says_what_it_needs",
            "no setpriv (util-linux)",
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    long(folder.path());
    let mut command = lab(&["run", "long", "--quick", "--experiments"]);
    command.arg(folder.path());
    if is_root {
        // The same process without what makes root powerful.
        let own = command;
        command = Command::new("setpriv");
        command.args(["--bounding-set=-all", "--inh-caps=-all"]);
        command.arg(own.get_program()).args(own.get_args());
    }
    let output = command.output().unwrap();
    let message = refusal(&output);
    assert!(message.contains("sooner demo"), "{message}");
}

#[test]
fn the_list_needs_no_clone_but_runs_do() {
    let folder = tempfile::tempdir().unwrap();
    let list = lab(&["list"]).current_dir(folder.path()).output().unwrap();
    assert!(list.status.success(), "{list:?}");
    let text = String::from_utf8(list.stdout).unwrap();
    assert!(text.contains("attach-web"), "{text}");
    let said = String::from_utf8(list.stderr).unwrap();
    assert!(said.contains("--experiments DIR"), "{said}");
    for words in [&["run", "attach-web"][..], &["report"]] {
        let refused = lab(words).current_dir(folder.path()).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("--experiments DIR"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
