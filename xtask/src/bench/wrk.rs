//! A server alone on one core and wrk on the other: what a request costs the server in processor time.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::link::Running;
use super::proc::cpu_seconds;

/// The server's core, and the client's.
const SERVER_CORE: &str = "0";
const CLIENT_CORE: &str = "1";
/// How long a server may take to listen.
const START_TIME: Duration = Duration::from_millis(800);

/// What serving cost.
pub struct Cost {
    /// CPU time, us a request.
    pub us_per_request: f64,
    /// Requests a second.
    pub requests_per_sec: f64,
    /// Cores the server used.
    pub cores: f64,
}

/// A command that will run on the server's core.
pub fn on_server_core() -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", SERVER_CORE]);
    command
}

/// Starts a server that logs to `log`, which begins empty: a file of gigabytes costs whoever writes to it next.
pub fn start(mut command: Command, log: &Path) -> anyhow::Result<Running> {
    let _ = fs::remove_file(log);
    let child = command.stdin(Stdio::null()).spawn();
    let running = Running(child.context("cannot start the server")?);
    sleep(START_TIME);
    Ok(running)
}

/// What the server costs while 32 clients ask for `url` on kept connections.
pub fn cost(running: &Running, url: &str, quick: bool) -> anyhow::Result<Cost> {
    let seconds = if quick { "2" } else { "5" };
    let (before, start) = (cpu_seconds(running.id()), Instant::now());
    let output = Command::new("taskset")
        .args(["-c", CLIENT_CORE, "wrk", "-t1", "-c32", "-d", seconds, url])
        .output()
        .context("wrk is needed")?;
    let cpu = cpu_seconds(running.id()) - before;
    let elapsed = start.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let requests = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in "))
        .context("wrk printed no count")?;
    let requests: f64 = requests.0.parse()?;
    let is_clean = !text.contains("Non-2xx") && !text.contains("Socket errors");
    anyhow::ensure!(is_clean, "{url}: not every answer was 200");
    Ok(Cost {
        us_per_request: cpu * 1e6 / requests,
        requests_per_sec: requests / elapsed,
        cores: cpu / elapsed,
    })
}
