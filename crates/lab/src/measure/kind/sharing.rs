//! `sharing`: a page of many small calls beside a client that keeps all its connections busy, before
//! one backend.

mod clients;
mod files;
mod link;
mod postgres;

pub use link::SharingLink;
pub use postgres::SharingPostgres;

use super::local::on_core;
use super::proxies::{Addresses, PROXY_CORE, Program, backend, command, started};
use super::{Keys, Kind, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::Result;
use clients::Clients;
use files::{Files, HOG_PATH, Page};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The backend's rate: a millisecond for a kilobyte.
const RATE_MBIT: u64 = 8;
const PAGE_ADDRESS: &str = "127.0.0.1";
const HOG_ADDRESS: &str = "127.0.0.2";

/// `sharing`.
#[derive(Debug)]
pub struct Sharing {
    keys: SharingKeys,
    ways: Vec<Way>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharingKeys {
    /// Jobs inside the backend at once.
    limit: u32,
    /// Calls of a page, all at once.
    calls: u64,
    call_ms: u64,
    /// Connections of the other client, each of which always waits for one.
    hog_connections: u64,
    hog_ms: u64,
    seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    program: Program,
    /// Who is there.
    #[serde(default)]
    clients: Clients,
    /// Keys of our upstream.
    #[serde(default)]
    keys: String,
}

impl Sharing {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        }))
    }

    fn page(&self) -> Page {
        Page {
            calls: self.keys.calls,
            call_bytes: self.keys.call_ms * 1000,
            hog_bytes: self.keys.hog_ms * 1000,
            seconds: self.keys.seconds,
            rate_mbit: RATE_MBIT,
        }
    }

    /// Those who are there, for a while.
    fn measure(&self, bench: &Bench<'_>, way: &Way, files: &Files) -> Result<Map<String, Value>> {
        let at = Addresses::free()?;
        let _backend = started(
            bench,
            backend(bench, &at, &files.root, RATE_MBIT),
            at.backend,
        )?;
        let proxy = command(bench, &way.program, &at, (Some(self.keys.limit), &way.keys))?;
        let _proxy = started(bench, proxy, at.proxy)?;
        let seconds = bench.seconds(self.keys.seconds, 6).to_string();
        let url = format!("http://{}", at.proxy);
        let hog = way.clients.has_hog().then(|| {
            let mut command = on_core(PROXY_CORE, bench.program);
            clients::hog(&mut command, self.keys.hog_connections);
            command.args(["--from", HOG_ADDRESS, "--for", &seconds]);
            command.args(["--url", &format!("{url}/{HOG_PATH}")]);
            bench.start(command)
        });
        let page = way.clients.has_page().then(|| {
            let mut command = on_core(PROXY_CORE, bench.program);
            clients::page(&mut command, &self.page(), files);
            command.args(["--from", PAGE_ADDRESS, "--for", &seconds, "--url", &url]);
            bench.start(command)
        });
        clients::figures(bench, page, hog)
    }
}

impl Kind for Sharing {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["taskset", "nginx", "haproxy"])?;
        let files = Files::make(bench, &self.page())?;
        bench.by_turns(measure, record, |_, way, _| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            self.measure(bench, way, &files)
        })
    }
}
