//! `proxied-cost`: processor time of a reverse proxy for a request, before a server that answers at
//! once.

use super::local::{on_core, requests_of_wrk};
use super::proxies::{Addresses, BACKEND_CORE, Program, command, started};
use super::{Keys, Kind, figures, keys_of};
use crate::counters::processes::usage;
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::{OwnedChild, nginx};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

/// `proxied-cost`.
#[derive(Debug)]
pub struct ProxiedCost {
    keys: CostKeys,
    ways: Vec<Way>,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CostKeys {
    /// Each of which always waits for an answer.
    connections: u32,
    seconds: u64,
}

/// A proxy.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    program: Program,
    /// Requests inside at once.
    limit: Option<u32>,
    /// Keys of our upstream, and the tables behind it.
    #[serde(default)]
    keys: String,
}

/// What is requested.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    method: String,
    /// Of JSON.
    #[serde(default)]
    body: String,
}

impl ProxiedCost {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
            cases: keys.cases()?,
        }))
    }

    fn cost(&self, bench: &Bench<'_>, way: &Way, case: &Case) -> Result<Map<String, Value>> {
        let at = Addresses::free()?;
        let _server = answers_at_once(bench, at.backend)?;
        let proxy = command(bench, &way.program, &at, (way.limit, &way.keys))?;
        let proxy = started(bench, proxy, at.proxy)?;
        let script = bench.folder("wrk")?.join("request.lua");
        write_script(&script, case)?;
        let ask = |seconds: u64| -> Result<f64> {
            let mut wrk = on_core(BACKEND_CORE, "wrk");
            wrk.args(["-t1", "-c", &self.keys.connections.to_string()]);
            wrk.args(["-d", &seconds.to_string(), "-s"]).arg(&script);
            wrk.arg(format!("http://{}/item/17", at.proxy));
            requests_of_wrk(&bench.finish("wrk", bench.start(wrk)?, &[0])?)
        };
        ask(1)?;
        let (before, begin) = (usage(proxy.id()).cpu_s, Instant::now());
        let requests = ask(bench.seconds(self.keys.seconds, 1))?;
        let cpu_s = usage(proxy.id()).cpu_s - before;
        Ok(figures([
            ("us_per_request", cpu_s * 1e6 / requests),
            ("requests_per_sec", requests / begin.elapsed().as_secs_f64()),
        ]))
    }
}

impl Kind for ProxiedCost {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["wrk", "nginx", "haproxy", "taskset"])?;
        bench.by_turns(measure, record, |case, way, _| {
            let case = keys_of(measure.place_of_case(case), &self.cases)?;
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            self.cost(bench, way, case)
        })
    }
}

/// nginx that gives everything the same answer.
fn answers_at_once(bench: &Bench<'_>, address: SocketAddr) -> Result<OwnedChild> {
    let folder = bench.folder("server")?;
    let answer = "x".repeat(512);
    let http = format!(
        "  access_log off;\n  keepalive_requests 100000000;\n  \
         server {{ listen {address} backlog=4096; location / {{ return 200 \"{answer}\"; }} }}\n"
    );
    nginx::write_config(&folder, 4096, &http)?;
    let mut command = on_core(BACKEND_CORE, "nginx");
    nginx::tell(&mut command, &folder);
    started(bench, command, address)
}

fn write_script(path: &Path, case: &Case) -> Result<()> {
    let Case { method, body } = case;
    let mut lines = format!("wrk.method = \"{method}\"\nwrk.headers[\"X-Key\"] = \"one\"\n");
    if !body.is_empty() {
        lines += "wrk.headers[\"Content-Type\"] = \"application/json\"\n";
        lines += &format!("wrk.body = [[{body}]]\n");
    }
    fs::write(path, lines)?;
    Ok(())
}
