//! What counts as a request: servers with threads, and those of which each worker wakes for one.

use super::{APPLICATION, ONE_AT_A_TIME, PATIENCE, ask, until};
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use sooner_kernel::workers::lacks_for_workers;
use sooner_kernel::{capability, process_table};
use sooner_testbed::{OwnedChild, port, program, skip};

/// What each request uses, ms.
const USED_MS: u32 = 20;
const ASKED: u64 = 24;
/// Threads that only look whether there is something to do wake once a second.
const LONG_ENOUGH: Duration = Duration::from_millis(2500);

fn top() -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    let output = command.args(["attach", "top", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One request after another, with a pause between, is one more in each figure. Of so many threads
/// the last request may be of a connection that another thread closes: it counts with the next one.
fn each_counts_once(test: &str, threads: u64, words: impl Fn(SocketAddr) -> Vec<String>) {
    if !capability::has_sys_nice() {
        return skip(test, "needs CAP_SYS_NICE");
    }
    if let Some(lacks) = lacks_for_workers() {
        return skip(test, &format!("needs {lacks}"));
    }
    if program::missing(&["gunicorn"]) {
        return skip(test, "needs gunicorn");
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("burn.py"), APPLICATION).unwrap();
    let address = port::free().unwrap();
    let mut command = Command::new("gunicorn");
    command.args(words(address));
    command.current_dir(folder.path());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = OwnedChild::spawn(&mut command).unwrap();
    until("it answers", || ask(address, 0).is_some());
    until("its workers are there", || {
        process_table::children(server.id()).unwrap().len() >= 2
    });
    sleep(LONG_ENOUGH);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "cpu", "--observe", "--port"]);
    command.arg(address.port().to_string());
    let mut attached = OwnedChild::spawn(&mut command).unwrap();
    attached.next_line(PATIENCE).unwrap();
    sleep(LONG_ENOUGH);
    assert_eq!(top()["requests"], 0, "before the first one");
    for _ in 0..ASKED {
        ask(address, USED_MS).unwrap();
        sleep(Duration::from_millis(50));
    }
    sleep(LONG_ENOUGH);
    let seen = top();
    let requests = seen["requests"].as_u64().unwrap();
    assert!((ASKED - threads..=ASKED).contains(&requests), "{seen}");
    let used_ms = seen["used_p50_ms"].as_f64().unwrap();
    assert!((20.0..35.0).contains(&used_ms), "{seen}");
    attached.end_by(Signal::TERM);
    assert!(attached.end().unwrap().success());
    server.end_by(Signal::TERM);
    server.end();
}

fn gunicorn(workers: &str, address: SocketAddr) -> Vec<String> {
    let bind = address.to_string();
    let words = ["--workers", workers, "--bind", &bind, "burn:app"];
    let mut words: Vec<String> = words.map(Into::into).into();
    words.extend(["--worker-tmp-dir", "/dev/shm"].map(Into::into));
    words
}

#[test]
fn a_request_to_gunicorns_threads_counts_once() {
    let test = "a_request_to_gunicorns_threads_counts_once";
    each_counts_once(test, 8, |address| {
        let mut words = gunicorn("2", address);
        words.extend(["--threads", "4"].map(Into::into));
        words
    });
}

#[test]
fn a_request_for_which_all_workers_wake_counts_once() {
    let test = "a_request_for_which_all_workers_wake_counts_once";
    each_counts_once(test, 0, |address| gunicorn("4", address));
}
