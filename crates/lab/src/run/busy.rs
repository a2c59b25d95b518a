//! Processes that compute without end beside the servers, as on a machine that does other work, too.

use crate::experiment::Setup;
use anyhow::{Context, Result};
use sooner_testbed::OwnedChild;
use std::process::Command;

/// What a run may take beside its seconds; then they end, whatever has become of the laboratory.
const PATIENCE_SECONDS: u64 = 300;
const WORK: &str = "while :; do :; done";

/// Starts those of a set-up; they end with what this returns.
pub fn start(setup: &Setup) -> Result<Vec<OwnedChild>> {
    let seconds = setup.seconds + setup.drain_seconds + PATIENCE_SECONDS;
    let one = |_| {
        let mut command = Command::new("timeout");
        command.args(["--signal", "KILL", &seconds.to_string(), "sh", "-c", WORK]);
        OwnedChild::spawn(&mut command).context("cannot start a process that computes")
    };
    (0..setup.busy_processes).map(one).collect()
}
