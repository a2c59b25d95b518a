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

/// A program that will run on the client's core.
pub fn on_client_core(program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", CLIENT_CORE, program]);
    command
}

/// The requests that wrk says it has made, all of them answered with 200.
pub fn requests(said: &str) -> anyhow::Result<f64> {
    let is_clean = !said.contains("Non-2xx") && !said.contains("Socket errors");
    anyhow::ensure!(is_clean, "not every answer was 200");
    let mut lines = said.lines();
    let count = lines.find_map(|line| line.trim().split_once(" requests in "));
    Ok(count.context("wrk printed no count")?.0.parse()?)
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
    let output = on_client_core("wrk")
        .args(["-t1", "-c32", "-d", seconds, url])
        .output()
        .context("wrk is needed")?;
    let cpu = cpu_seconds(running.id()) - before;
    let elapsed = start.elapsed().as_secs_f64();
    let requests = requests(&String::from_utf8_lossy(&output.stdout)).context(url.to_owned())?;
    Ok(Cost {
        us_per_request: cpu * 1e6 / requests,
        requests_per_sec: requests / elapsed,
        cores: cpu / elapsed,
    })
}
