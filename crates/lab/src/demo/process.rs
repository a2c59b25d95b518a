//! The demo's two processes: `sooner serve` and `sooner load replay`.
//!
//! Both are killed, by their own process id, when their handle is dropped. They are process groups
//! of their own, so that Ctrl-C reaches only the demo and it decides what is said.

use super::DemoOptions;
use super::setup::{drain, warm_up};
use crate::progress::Step;
use anyhow::{Context, Result, bail, ensure};
use sooner_stats::{Report, Run};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// How long a server may take until it listens.
const START_WAIT: Duration = Duration::from_secs(10);
/// How often it is tried, and progress is shown.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// No more of what a process wrote to stderr is kept.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024;

/// A running `sooner serve`.
pub struct Server {
    child: Child,
    address: SocketAddr,
    message: JoinHandle<String>,
}

impl Server {
    /// Starts a server of `root` on a free port of 127.0.0.1 and waits until it accepts
    /// connections.
    pub async fn start(options: &DemoOptions, policy: &str, root: &Path) -> Result<Server> {
        let address = free_address().context("no free port on 127.0.0.1")?;
        let mut command = command(options);
        command.arg("serve").arg(root);
        command.args(["--listen", &address.to_string(), "--policy", policy]);
        command.args([
            "--uplink",
            &options.uplink.to_string(),
            "--mechanism",
            "user-space",
        ]);
        command.args(["--access-log", "off"]).stdout(Stdio::null());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", options.program.display()))?;
        let stderr = child.stderr.take().context("the server has no stderr")?;
        let message = tokio::spawn(first_bytes(stderr));
        let mut server = Server {
            child,
            address,
            message,
        };
        server.wait_until_listening().await?;
        Ok(server)
    }

    async fn wait_until_listening(&mut self) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(self.address).await.is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(self.ended(status).await);
            }
            ensure!(
                start.elapsed() < START_WAIT,
                "sooner serve does not listen on {} after {} s",
                self.address,
                START_WAIT.as_secs()
            );
            tokio::time::sleep(POLL_EVERY).await;
        }
        Ok(())
    }

    /// Waits for the server's end, which is an error while it is needed.
    async fn failed(&mut self) -> anyhow::Error {
        match self.child.wait().await {
            Ok(status) => self.ended(status).await,
            Err(error) => error.into(),
        }
    }

    async fn ended(&mut self, status: ExitStatus) -> anyhow::Error {
        let message = (&mut self.message).await.unwrap_or_default();
        ended("sooner serve", status, message.as_bytes())
    }

    /// Kills the server and waits until it is gone.
    pub async fn stop(mut self) {
        // an error means that it has ended already
        self.child.kill().await.ok();
    }
}

/// Replays the trace against `server` and returns the run.
pub async fn replay(
    options: &DemoOptions,
    policy: &str,
    server: &mut Server,
    progress: &mut dyn FnMut(Step<'_>),
) -> Result<Run> {
    let child = load_command(options, policy, server.address)
        .spawn()
        .context("cannot start sooner load")?;
    let output = child.wait_with_output();
    tokio::pin!(output);
    let start = Instant::now();
    let mut tick = tokio::time::interval(POLL_EVERY * 5);
    loop {
        tokio::select! {
            output = &mut output => return run_of(output?),
            error = server.failed() => return Err(error),
            _ = tick.tick() => {
                progress(Step::Replay { policy, elapsed: start.elapsed(), total: options.duration });
            }
        }
    }
}

fn load_command(options: &DemoOptions, policy: &str, address: SocketAddr) -> Command {
    let seconds = |duration: Duration| duration.as_secs_f64().to_string();
    let mut command = command(options);
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
    command.stdout(Stdio::piped());
    command
}

/// `sooner` with everything that holds for both processes.
fn command(options: &DemoOptions) -> Command {
    let mut command = Command::new(&options.program);
    command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .process_group(0);
    command
}

fn run_of(output: Output) -> Result<Run> {
    // 1 says that the figures may not be believed; the report says why.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(ended("sooner load", output.status, &output.stderr));
    }
    let report: Report =
        serde_json::from_slice(&output.stdout).context("sooner load gave no report")?;
    let [run] = <[Run; 1]>::try_from(report.runs).map_err(|runs| {
        anyhow::anyhow!(
            "sooner load gave {} runs where one was asked for",
            runs.len()
        )
    })?;
    Ok(run)
}

/// A process that ended and should not have, with the last line it wrote.
fn ended(what: &str, status: ExitStatus, stderr: &[u8]) -> anyhow::Error {
    let text = String::from_utf8_lossy(stderr);
    let last = text
        .split(['\n', '\r'])
        .map(str::trim)
        .rfind(|line| !line.is_empty());
    match last {
        Some(line) => anyhow::anyhow!("{what} failed: {}", line.trim_start_matches("sooner: ")),
        None => anyhow::anyhow!("{what} ended without a message ({status})"),
    }
}

/// A port that was free a moment ago.
fn free_address() -> Result<SocketAddr> {
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    if address.port() == 0 {
        bail!("the system chose no port");
    }
    Ok(address)
}

/// Reads to the end, so that the writer never blocks, and keeps the beginning.
async fn first_bytes(mut from: impl AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    let mut limited = (&mut from).take(MESSAGE_BYTES_MAX);
    // what could be read is still worth showing
    limited.read_to_end(&mut kept).await.ok();
    tokio::io::copy(&mut from, &mut tokio::io::sink())
        .await
        .ok();
    String::from_utf8_lossy(&kept).into_owned()
}
