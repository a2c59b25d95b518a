//! The demo's two processes: `sooner serve` and `sooner load replay`, both ended when their handle
//! is dropped.

use super::DemoOptions;
use super::setup::{drain, warm_up};
use crate::progress::Step;
use anyhow::{Context, Result, ensure};
use sooner_stats::{Report, Run};
use sooner_testbed::OwnedChild;
use sooner_testbed::child::waiting::{failure, spawn};
use sooner_testbed::port;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

const SERVER: &str = "sooner serve";
const LOAD: &str = "sooner load";
/// How long a server may take until it listens.
const START_WAIT: Duration = Duration::from_secs(10);
/// How often the processes are looked at.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// Progress is shown at every so many looks.
const LOOKS_PER_STEP: u32 = 5;

/// A running `sooner serve`.
pub struct Server {
    process: OwnedChild,
    address: SocketAddr,
}

impl Server {
    /// Starts a server of `root` on a free port of 127.0.0.1 and waits until it accepts
    /// connections.
    pub async fn start(options: &DemoOptions, policy: &str, root: &Path) -> Result<Server> {
        let address = port::free().context("no free port on 127.0.0.1")?;
        let mut command = Command::new(&options.program);
        command.arg("serve").arg(root);
        command.args(["--listen", &address.to_string(), "--policy", policy]);
        command.args(["--uplink", &options.uplink.to_string()]);
        command.args(["--mechanism", "user-space", "--access-log", "off"]);
        let process = spawn(SERVER, &mut command)?;
        let mut server = Server { process, address };
        server.wait_until_listening().await?;
        Ok(server)
    }

    async fn wait_until_listening(&mut self) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(self.address).await.is_err() {
            self.check()?;
            ensure!(
                start.elapsed() < START_WAIT,
                "{SERVER} does not listen on {} after {} s",
                self.address,
                START_WAIT.as_secs()
            );
            tokio::time::sleep(POLL_EVERY).await;
        }
        Ok(())
    }

    /// Its end is an error while it is needed.
    fn check(&mut self) -> Result<()> {
        if self.process.has_ended() {
            return Err(failure(SERVER, &mut self.process));
        }
        Ok(())
    }
}

/// Replays the trace against `server` and returns the run.
pub async fn replay(
    options: &DemoOptions,
    policy: &str,
    server: &mut Server,
    progress: &mut dyn FnMut(Step<'_>),
) -> Result<Run> {
    let mut load = spawn(LOAD, &mut load_command(options, policy, server.address))?;
    let start = Instant::now();
    let mut looks = 0;
    while !load.has_ended() {
        server.check()?;
        if looks % LOOKS_PER_STEP == 0 {
            progress(Step::Replay {
                policy,
                elapsed: start.elapsed(),
                total: options.duration,
            });
        }
        looks += 1;
        tokio::time::sleep(POLL_EVERY).await;
    }
    run_of(&mut load)
}

fn load_command(options: &DemoOptions, policy: &str, address: SocketAddr) -> Command {
    let seconds = |duration: Duration| duration.as_secs_f64().to_string();
    let mut command = Command::new(&options.program);
    command.args(["load", "replay", &options.trace_name, "--poisson", "--json"]);
    command.args(["--url", &format!("http://{address}"), "--label", policy]);
    command.args([
        "--schedule",
        &options.schedule.to_string(),
        "--uplink",
        &options.uplink.to_string(),
    ]);
    command.args([
        "--for",
        &seconds(options.duration),
        "--warm-up",
        &seconds(warm_up(options.duration)),
    ]);
    command.args([
        "--drain",
        &seconds(drain(options.duration)),
        "--seed",
        &options.seed.to_string(),
    ]);
    command
}

fn run_of(load: &mut OwnedChild) -> Result<Run> {
    // 1 says that the figures may not be believed; the report says why.
    let code = load.end().and_then(|status| status.code());
    if !matches!(code, Some(0 | 1)) {
        return Err(failure(LOAD, load));
    }
    let lines: Vec<String> = std::iter::from_fn(|| load.next_line(START_WAIT).ok()).collect();
    let report: Report = serde_json::from_str(&lines.join("\n"))
        .with_context(|| format!("{LOAD} gave no report"))?;
    let [run] = <[Run; 1]>::try_from(report.runs)
        .map_err(|runs| anyhow::anyhow!("{LOAD} gave {} runs instead of one", runs.len()))?;
    Ok(run)
}
