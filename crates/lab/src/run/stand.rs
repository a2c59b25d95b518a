//! One server on hosts of its own, what is counted there, and the generator that asks it.

use super::bottleneck;
use super::load::{Aim, arguments, beside, of_neighbours};
use crate::counters::{Sampler, SamplerOptions};
use crate::emulator::report::Report;
use crate::experiment::{Client, Setup};
use crate::hosts::{ClientSpec, Hosts, HostsSpec, SERVER_ADDRESS};
use crate::peers::{PORT, Peer, PeerOptions, Running, TLS_PORT};
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use sooner_testbed::OwnedChild;
use sooner_testbed::certificate::Certificate;
use sooner_testbed::scratch::Scratch;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How often the server's host is looked at.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// Connections that may wait to be accepted where the set-up does not say.
const BACKLOG: u32 = 4096;
/// How long a generator may take to start, to work out its figures and to print them.
const PATIENCE: Duration = Duration::from_secs(180);
/// What a failed generator said last.
const MESSAGE_LINES: usize = 3;

/// A server that answers, ready to be measured. Its parts are ended in this order.
pub struct Stand {
    sampler: Sampler,
    rows: Rows,
    running: Running,
    hosts: Hosts,
    // Configurations and logs of the server.
    scratch: Scratch,
    config: String,
    program: PathBuf,
    setup: Setup,
    /// When the generator began.
    began: OnceLock<Instant>,
    /// Another host before the same link.
    neighbour: Option<(OwnedChild, String)>,
}

/// What came out beside the generator's report.
pub struct Measured {
    /// The generator's report of its run.
    pub run: Value,
    /// What served.
    pub config: String,
    /// What had to be done differently on this machine.
    pub remarks: Vec<String>,
    /// The server's host in a few figures.
    pub counters: Value,
    /// The server's host every second.
    pub counter_rows: Vec<Value>,
    /// What the emulator of the paths did.
    pub paths: Option<Value>,
}

impl Stand {
    /// Sets up hosts called `tag` with paths that lose packets by `seed`, and starts `peer` there
    /// on the files in `root`.
    pub fn up(
        setup: &Setup,
        peer: &Peer,
        tag: &str,
        seed: u64,
        root: &Path,
        program: &Path,
    ) -> Result<Self> {
        let scratch = Scratch::new()?;
        let hosts = Hosts::up(&hosts_of(setup, peer, tag, seed), program)?;
        let tls = setup
            .tls
            .then(|| Certificate::make(scratch.path(), &[&SERVER_ADDRESS.to_string()]));
        let options = PeerOptions {
            tls: tls.transpose().context("cannot make a certificate")?,
            http2: setup.streams.is_some(),
            backlog: setup.backlog.unwrap_or(BACKLOG),
            workers: setup.workers,
            ..PeerOptions::new(program, scratch.path())
        };
        let rate = setup.rate_bits_per_sec;
        let running = peer.start(&hosts, root, rate, &options)?;
        let rows = Rows::default();
        let counting = SamplerOptions {
            namespace: hosts.server_namespace().to_owned(),
            device: hosts.server_device().to_owned(),
            port: asked_port(setup),
            pid: running.id(),
            every: COUNT_EVERY,
        };
        let has_neighbours = setup
            .bottleneck
            .as_ref()
            .is_some_and(|link| link.neighbours.is_some());
        let neighbour = has_neighbours.then(|| bottleneck::neighbour(&hosts, program, root));
        let neighbour = neighbour.transpose()?;
        let sampler =
            Sampler::start(counting, rows.clone()).context("cannot count on the server's host")?;
        Ok(Self {
            sampler,
            rows,
            running,
            config: peer.config_text(root, rate, &options),
            hosts,
            scratch,
            program: program.to_owned(),
            setup: setup.clone(),
            began: OnceLock::new(),
            neighbour,
        })
    }

    /// Starts the generator.
    pub fn load(&self, setup: &Setup, label: &str, seed: u64, samples: &Path) -> Result<Load> {
        let from: Vec<IpAddr> = self
            .hosts
            .client_addresses()
            .into_iter()
            .map(IpAddr::V4)
            .collect();
        let scheme = if setup.tls { "https" } else { "http" };
        let port = asked_port(setup);
        let url = format!("{scheme}://{}:{port}", self.hosts.server_address());
        let aim = Aim {
            url: &url,
            from: &from,
            label,
            seed,
            samples,
        };
        let beside = match setup.downloads {
            0 => None,
            _ => {
                // Ended with the run, and not before it.
                let most = Duration::from_secs(setup.seconds + setup.drain_seconds) + PATIENCE;
                let words = beside(setup, &aim, most.as_secs());
                Some(self.spawn(words, Stdio::null())?)
            }
        };
        let measuring = self.spawn(arguments(setup, &aim)?, Stdio::piped())?;
        let _: &Instant = self.began.get_or_init(Instant::now);
        let mut changes = Vec::from_iter(bottleneck::steps(&self.hosts, setup));
        changes.extend(self.neighbours(setup, &aim));
        Ok(Load {
            measuring,
            beside,
            changes,
        })
    }

    /// Starts the neighbours' downloads when it is time.
    fn neighbours(&self, setup: &Setup, aim: &Aim<'_>) -> Option<JoinHandle<Result<()>>> {
        let (_, url) = self.neighbour.as_ref()?;
        let (_, from_s, _) = setup.bottleneck.as_ref()?.neighbours?;
        let words = of_neighbours(setup, aim, url)?;
        let mut command = self.hosts.on_client(&self.program);
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut command = Command::from(command);
        command.kill_on_drop(true);
        Some(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs_f64(from_s)).await;
            // Whether the run's figures may be believed does not matter here.
            command
                .status()
                .await
                .context("the neighbours' downloads")?;
            Ok(())
        }))
    }

    fn spawn(&self, arguments: Vec<String>, stdout: Stdio) -> Result<Child> {
        let mut command = Command::from(self.hosts.on_client(&self.program));
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped())
            // Ctrl-C reaches only the lab, which decides what is said.
            .process_group(0)
            .kill_on_drop(true);
        command.spawn().context("cannot start sooner load")
    }

    /// Ends the server and takes its hosts away.
    pub fn end(self, mut run: Value) -> Result<Measured> {
        let seconds = self
            .began
            .get()
            .map_or(0.0, |began| began.elapsed().as_secs_f64());
        if let Some(found) = bottleneck::found(&self.hosts, &self.program, &self.setup, seconds) {
            run["uplink"] = found;
        }
        drop(self.neighbour);
        ensure!(
            !self.running.has_ended(),
            "{} ended before its run did",
            self.running.label()
        );
        let summary = self
            .sampler
            .stop()
            .context("cannot count on the server's host")?;
        self.running.stop();
        let mut remarks = self.hosts.remarks().to_vec();
        let has_emulator = self.hosts.has_emulator();
        let paths = paths(self.hosts.down(), has_emulator)?;
        remarks.extend(paths.iter().flat_map(Report::remarks));
        drop(self.scratch);
        if let (Some(_), Some(paths)) = (&self.setup.bottleneck, &paths) {
            let released = paths
                .clients
                .iter()
                .map(|client| client.to_client.released_bytes);
            run["carried_bytes"] = released.sum::<u64>().into();
        }
        Ok(Measured {
            run,
            config: self.config,
            remarks,
            counters: serde_json::to_value(summary)?,
            counter_rows: self.rows.take()?,
            paths: paths.map(serde_json::to_value).transpose()?,
        })
    }
}

/// What an emulator said at its end; one that was there says something, unless it died meanwhile
/// and took the paths along.
fn paths(said: Option<String>, has_emulator: bool) -> Result<Option<Report>> {
    ensure!(
        said.is_some() || !has_emulator,
        "the emulator of the clients' paths ended before its run did"
    );
    let report = said.map(|text| serde_json::from_str(&text)).transpose();
    report.context("the emulator's report")
}

fn hosts_of(setup: &Setup, peer: &Peer, tag: &str, seed: u64) -> HostsSpec {
    let client = |client: &Client| ClientSpec {
        rtt_ms: client.rtt_ms,
        loss: client.loss,
        jitter_ms: client.jitter_ms,
    };
    HostsSpec {
        shaper: peer.shaper(),
        bottleneck: setup.bottleneck.as_ref().map(bottleneck::of_hosts),
        netem: setup.netem.clone(),
        queue_packets: setup.queue_packets,
        congestion_control: setup.congestion_control.clone(),
        super_packets: setup.super_packets,
        mss_bytes: setup.mss,
        clients: setup.clients.iter().map(client).collect(),
        syn_cookies: setup.syn_cookies,
        syn_backlog: setup.backlog,
        somaxconn: setup.backlog,
        initial_window_segments: setup.initial_window,
        initial_rto_ms: setup.initial_rto_ms,
        send_buffer_bytes: setup.send_buffer_bytes,
        seed,
        ..HostsSpec::new(tag, setup.rate_bits_per_sec)
    }
}

/// Where the generator asks.
fn asked_port(setup: &Setup) -> u16 {
    if setup.tls { TLS_PORT } else { PORT }
}

/// A generator at work; it is killed when this is dropped.
pub struct Load {
    measuring: Child,
    /// Downloads that are not measured.
    beside: Option<Child>,
    /// What happens to the link meanwhile.
    changes: Vec<JoinHandle<Result<()>>>,
}

impl Load {
    /// Waits for its report.
    pub async fn run(mut self, setup: &Setup) -> Result<Value> {
        let within = Duration::from_secs(setup.seconds + setup.drain_seconds) + PATIENCE;
        let output = timeout(within, self.measuring.wait_with_output()).await;
        let output = output.map_err(|_| {
            anyhow!(
                "the generator did not end {} s after its run",
                PATIENCE.as_secs()
            )
        })??;
        // 1 says that the figures may not be believed; the report says why.
        if !matches!(output.status.code(), Some(0 | 1)) {
            let said = last_words(&output.stderr);
            bail!("the generator failed ({}): {said}", output.status);
        }
        if let Some(mut beside) = self.beside.take()
            && beside
                .try_wait()
                .context("the downloads beside the run")?
                .is_some()
        {
            let output = beside.wait_with_output().await?;
            bail!(
                "the downloads beside the run ended before it did: {}",
                last_words(&output.stderr)
            );
        }
        for change in self.changes {
            if change.is_finished() {
                change.await??;
            } else {
                change.abort();
            }
        }
        let mut report: Value =
            serde_json::from_slice(&output.stdout).context("the generator gave no report")?;
        match report["runs"].as_array_mut() {
            Some(runs) if runs.len() == 1 => Ok(runs.remove(0)),
            _ => bail!("the generator gave no run"),
        }
    }
}

/// What a generator said last.
fn last_words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(MESSAGE_LINES)..].join("; ")
}

/// The sampler's lines, which its thread writes and we read at the end.
#[derive(Clone, Default)]
struct Rows(Arc<Mutex<Vec<u8>>>);

impl Rows {
    fn take(&self) -> Result<Vec<Value>> {
        let bytes = std::mem::take(&mut *self.lock());
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let rows = lines.map(serde_json::from_slice).collect::<Result<_, _>>();
        rows.context("what was counted on the server's host")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        // Whole lines are in it whatever became of the writer.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Write for Rows {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::example;

    #[test]
    fn every_repetition_loses_packets_of_its_own() {
        let setup = example::case("peers = [\"nginx\"]\nclients = [{ loss = 0.05 }]").setup;
        let seeds =
            [1, 7].map(|seed| hosts_of(&setup, &Peer::Nginx { limit_conn: None }, "t", seed).seed);
        assert_eq!(seeds, [1, 7]);
    }

    #[test]
    fn a_run_whose_emulator_died_is_an_error() {
        assert!(paths(None, false).unwrap().is_none());
        let error = paths(None, true).unwrap_err().to_string();
        assert!(error.contains("ended before its run did"), "{error}");
        assert!(paths(Some("half a rep".into()), true).is_err());
    }
}
