//! `sharing`: a page of many small calls beside a client that keeps all its connections busy, before
//! one backend.

use super::local::on_core;
use super::proxies::{Addresses, PROXY_CORE, Program, backend, command, started};
use super::{Keys, Kind, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The backend's rate: a millisecond for a kilobyte.
const RATE_MBIT: u64 = 8;
const WARM_UP_SECONDS: u64 = 2;
/// Longer than all calls of a page take here.
const PAGE_EVERY_SECONDS: u64 = 2;
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

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Clients {
    #[default]
    Both,
    PageAlone,
    HogAlone,
}

impl Sharing {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        }))
    }

    /// The part of the backend that pages take: replayed at this load, they come as often as said.
    fn page_load(&self) -> f64 {
        let page_ms = (self.keys.calls * self.keys.call_ms) as f64;
        page_ms / 1000.0 / PAGE_EVERY_SECONDS as f64
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
        let hog = (way.clients != Clients::PageAlone).then(|| {
            let mut command = on_core(PROXY_CORE, bench.program);
            command.args(["load", "closed", "--json", "--from", HOG_ADDRESS]);
            command.args(["--url", &format!("{url}/objects/1.hog"), "--for", &seconds]);
            command.args(["--connections", &self.keys.hog_connections.to_string()]);
            bench.start(command)
        });
        let page = (way.clients != Clients::HogAlone).then(|| {
            let mut command = on_core(PROXY_CORE, bench.program);
            command.args(["load", "replay"]).arg(&files.trace);
            command.args(["--json", "--from", PAGE_ADDRESS, "--url", &url]);
            command.args(["--uplink", &format!("{RATE_MBIT}mbit")]);
            command.args(["--rho", &self.page_load().to_string()]);
            command.args(["--requests-per-connection", "1000000"]);
            command.args(["--for", &seconds, "--warm-up", &WARM_UP_SECONDS.to_string()]);
            bench.start(command)
        });
        let mut found = Map::new();
        for (name, client) in [("page", page), ("hog", hog)] {
            if let Some(client) = client {
                found.insert(name.to_owned(), bench.run_of(client?)?);
            }
        }
        Ok(found)
    }
}

impl Kind for Sharing {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["taskset", "nginx", "haproxy"])?;
        let files = Files::make(bench, &self.keys)?;
        bench.by_turns(measure, record, |_, way, _| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            self.measure(bench, way, &files)
        })
    }
}

/// The backend's files, and when a page asks for them.
struct Files {
    root: PathBuf,
    trace: PathBuf,
}

impl Files {
    fn make(bench: &Bench<'_>, keys: &SharingKeys) -> Result<Self> {
        let root = bench.folder("root")?;
        let trace = write_trace(bench.scratch(), keys)?;
        let mut mkroot = bench.sooner(&["load", "mkroot"]);
        mkroot.arg(&trace).arg(&root);
        bench.output(mkroot)?;
        Ok(Self { root, trace })
    }
}

fn write_trace(folder: &Path, keys: &SharingKeys) -> Result<PathBuf> {
    let (call_bytes, hog_bytes) = (keys.call_ms * 1000, keys.hog_ms * 1000);
    let mut lines = String::from("t,bytes,client,object,status\n");
    let pages = (keys.seconds + WARM_UP_SECONDS) / PAGE_EVERY_SECONDS + 1;
    for page in 0..pages {
        for call in 0..keys.calls {
            // Times that are no whole seconds stay as they are.
            let (s, ms) = (page * PAGE_EVERY_SECONDS, 1 + call / 8);
            writeln!(lines, "{s}.{ms:03},{call_bytes},0,0,200")?;
        }
    }
    let calls = pages * keys.calls;
    let objects = format!(
        "object,requests,max_bytes,ext\n0,{calls},{call_bytes},call\n1,0,{hog_bytes},hog\n"
    );
    let path = folder.join("page.csv");
    fs::write(&path, lines)?;
    fs::write(folder.join("page.objects.csv"), objects)?;
    Ok(path)
}
