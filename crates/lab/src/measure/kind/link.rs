//! A server on a link of its own: what other generators measure there, scripts that fetch, what
//! others notice of clients that mean no good, what a queueing discipline costs the machine, and
//! traces replayed side by side.

mod beside_others;
mod generators;
mod link_cost;
mod replay;
mod script;

pub use beside_others::BesideOthers;
pub use generators::Generators;
pub use link_cost::LinkCost;
pub use replay::Replay;
pub use script::Script;

use crate::hosts::{ClientSpec, Hosts, HostsSpec, SERVER_ADDRESS};
use crate::measure::bench::Bench;
use crate::peers::{PORT, Peer, PeerOptions, Running, TLS_PORT};
use anyhow::{Context, Result};
use serde::Deserialize;
use sooner_testbed::OwnedChild;
use sooner_testbed::certificate::Certificate;
use std::fs;
use std::path::Path;

/// Hosts with a server that answers.
pub struct Site {
    // Ended in this order.
    running: Running,
    pub hosts: Hosts,
}

/// How a server stands.
pub struct PeerSpec<'a> {
    pub peer: &'a str,
    pub rate_mbit: u64,
    pub is_tls: bool,
}

/// A certificate for the server, where it needs one.
fn certificate(is_tls: bool, folder: &Path) -> Result<Option<Certificate>> {
    let address = SERVER_ADDRESS.to_string();
    let made = is_tls.then(|| Certificate::make(folder, &[&address]));
    made.transpose().context("cannot make a certificate")
}

impl Site {
    fn start(bench: &Bench<'_>, peer_spec: &PeerSpec<'_>, root: &Path) -> Result<Site> {
        Self::with_clients(bench, peer_spec, root, 1)
    }

    /// For clients with so many addresses.
    pub fn with_clients(
        bench: &Bench<'_>,
        peer_spec: &PeerSpec<'_>,
        root: &Path,
        clients: usize,
    ) -> Result<Site> {
        let peer: Peer = peer_spec.peer.parse()?;
        let folder = bench.folder("peer")?;
        let spec = HostsSpec {
            shaper: peer.shaper(),
            congestion_control: Some("cubic".into()),
            clients: vec![ClientSpec::default(); clients],
            ..HostsSpec::new(
                &format!("m{}", bench.number()),
                peer_spec.rate_mbit * 1_000_000,
            )
        };
        let hosts = Hosts::up(&spec, bench.program)?;
        let options = PeerOptions {
            tls: certificate(peer_spec.is_tls, &folder)?,
            http2: peer_spec.is_tls,
            ..PeerOptions::new(bench.program, &folder)
        };
        let running = peer.start(&hosts, root, spec.rate_bits_per_sec, &options)?;
        Ok(Site { running, hosts })
    }

    /// Where the server answers.
    pub fn origin(is_tls: bool) -> String {
        if is_tls {
            format!("https://{SERVER_ADDRESS}:{TLS_PORT}")
        } else {
            format!("http://{SERVER_ADDRESS}:{PORT}")
        }
    }

    /// `sooner` on the clients' host.
    fn load(&self, bench: &Bench<'_>, words: &[&str]) -> Result<OwnedChild> {
        let mut command = self.hosts.on_client(bench.program);
        command.args(words);
        bench.start(command)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerKeys {
    peer: String,
    /// What stands in `[uplink]` of a configuration besides.
    uplink: Option<String>,
}

impl PeerKeys {
    fn check(all: &[PeerKeys]) -> Result<(), (String, String)> {
        let parsed = all.iter().map(|way| way.peer.parse::<Peer>().map(drop));
        let parsed: Result<(), _> = parsed.collect();
        parsed.map_err(|error| ("peer".to_owned(), error.to_string()))
    }

    /// The peer's name, with a configuration where one is needed.
    fn name(&self, bench: &Bench<'_>) -> Result<String> {
        let Some(uplink) = &self.uplink else {
            return Ok(self.peer.clone());
        };
        let path = bench.folder("config")?.join("sooner.toml");
        fs::write(&path, format!("[uplink]\n{uplink}\n"))?;
        Ok(format!("{} --config {}", self.peer, path.display()))
    }
}

impl Site {
    /// nginx behind a device that nothing limits yet.
    fn unshaped(bench: &Bench<'_>, spec: HostsSpec, root: &Path, is_tls: bool) -> Result<Site> {
        let hosts = Hosts::up(&spec, bench.program)?;
        let folder = bench.folder("peer")?;
        let options = PeerOptions {
            tls: certificate(is_tls, &folder)?,
            ..PeerOptions::new(bench.program, &folder)
        };
        let peer = Peer::Nginx { limit_conn: None };
        let running = peer.start_unshaped(&hosts, root, &options)?;
        Ok(Site { running, hosts })
    }
}
