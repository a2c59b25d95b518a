//! Figures of runs that Ctrl-C ends.

use super::Site;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Command, Stdio};

/// The run in the JSON of a command that gets a signal when the server has had so many requests.
pub fn stopped(site: &Site, words: &[&str], count: usize) -> Value {
    let child = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .arg("load")
        .args(words)
        .arg("--json")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(site.requests(count).len() >= count);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["runs"][0].clone()
}

#[test]
fn in_the_warm_up_the_rate_that_was_asked_for_is_still_told() {
    let Some(site) = Site::start("in_the_warm_up_the_rate") else {
        return;
    };
    let url = site.url("/");
    let words = ["rate", &url, "--rate", "50", "--for", "20s"];
    let ran = stopped(&site, &[&words[..], &["--warm-up", "15s"]].concat(), 10);
    assert_eq!(
        (&ran["asked_per_sec"], &ran["sent"]),
        (&50.0.into(), &0.into())
    );
    assert_eq!(ran["measured_s"], 0.0, "{ran}");
}
