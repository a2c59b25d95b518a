//! `sharing-link`: a page of many responses beside a client that keeps all its connections busy, on
//! one link. All responses are of one size, so that their sizes say nothing.

use super::super::link::{PeerSpec, Site};
use super::super::{Keys, Kind, keys_of};
use super::clients::{self, Clients};
use super::files::{Files, HOG_PATH, Page};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use crate::peers::Peer;
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};

/// `sharing-link`.
#[derive(Debug)]
pub struct SharingLink {
    keys: LinkKeys,
    ways: Vec<Way>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkKeys {
    rate_mbit: u64,
    /// Responses of a page, all at once.
    responses: u64,
    response_bytes: u64,
    /// Connections of the other client, each of which always waits for one.
    hog_connections: u64,
    seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    peer: String,
    /// Who is there.
    #[serde(default)]
    clients: Clients,
}

impl SharingLink {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let shared = Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        };
        for way in &shared.ways {
            let parsed = way.peer.parse::<Peer>();
            parsed.map_err(|error| ("peer".to_owned(), error.to_string()))?;
        }
        Ok(Box::new(shared))
    }

    fn page(&self) -> Page {
        Page {
            calls: self.keys.responses,
            call_bytes: self.keys.response_bytes,
            hog_bytes: self.keys.response_bytes,
            seconds: self.keys.seconds,
            rate_mbit: self.keys.rate_mbit,
        }
    }

    /// Those who are there, for a while, from an address each.
    fn measure(&self, bench: &Bench<'_>, way: &Way, files: &Files) -> Result<Map<String, Value>> {
        let spec = PeerSpec {
            peer: &way.peer,
            rate_mbit: self.keys.rate_mbit,
            is_tls: false,
        };
        let site = Site::with_clients(bench, &spec, &files.root, 2)?;
        let addresses = site.hosts.client_addresses();
        let [page_address, hog_address] = addresses[..].try_into().context("two clients")?;
        let (page_address, hog_address) = (page_address.to_string(), hog_address.to_string());
        let seconds = bench.seconds(self.keys.seconds, 6).to_string();
        let url = Site::origin(false);
        let hog = way.clients.has_hog().then(|| {
            let mut command = site.hosts.on_client(bench.program);
            clients::hog(&mut command, self.keys.hog_connections);
            command.args(["--from", &hog_address, "--for", &seconds]);
            command.args(["--url", &format!("{url}/{HOG_PATH}")]);
            bench.start(command)
        });
        let page = way.clients.has_page().then(|| {
            let mut command = site.hosts.on_client(bench.program);
            clients::page(&mut command, &self.page(), files);
            command.args(["--from", &page_address, "--for", &seconds, "--url", &url]);
            bench.start(command)
        });
        clients::figures(bench, page, hog)
    }
}

impl Kind for SharingLink {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let files = Files::make(bench, &self.page())?;
        bench.by_turns(measure, record, |_, way, _| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            self.measure(bench, way, &files)
        })
    }
}
