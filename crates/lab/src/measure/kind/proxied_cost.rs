//! `proxied-cost`: processor time of reverse proxies for a request, before a server that answers at
//! once. All of them work in the same seconds on the same core, since the speed of a virtual
//! machine's processor changes by half within minutes.

use super::local::{on_core, requests_of_wrk};
use super::proxies::{Addresses, BACKEND_CORE, Program, command, started};
use super::{Keys, Kind, figures, keys_of};
use crate::counters::processes::usage;
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::{OwnedChild, nginx, port};
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

    fn costs(&self, bench: &Bench<'_>, ways: &[&Way], case: &Case) -> Result<Vec<Row>> {
        let backend = port::free()?;
        let _server = answers_at_once(bench, backend)?;
        let script = bench.folder("wrk")?.join("request.lua");
        write_script(&script, case)?;
        let mut proxies = Vec::new();
        for way in ways {
            let at = Addresses {
                proxy: port::free()?,
                backend,
            };
            let proxy = command(bench, &way.program, &at, (way.limit, &way.keys))?;
            proxies.push((started(bench, proxy, at.proxy)?, at.proxy));
        }
        let asking = |at: SocketAddr, seconds: u64| {
            let mut wrk = on_core(BACKEND_CORE, "wrk");
            wrk.args(["-t1", "-c", &self.keys.connections.to_string()]);
            wrk.args(["-d", &seconds.to_string(), "-s"]).arg(&script);
            wrk.arg(format!("http://{at}/item/17"));
            bench.start(wrk)
        };
        for (_, at) in &proxies {
            bench.finish("wrk", asking(*at, 1)?, &[0])?;
        }
        let cpu = || proxies.iter().map(|(proxy, _)| usage(proxy.id()).cpu_s);
        let (before, begin): (Vec<f64>, _) = (cpu().collect(), Instant::now());
        let seconds = bench.seconds(self.keys.seconds, 1);
        let asked = proxies.iter().map(|&(_, at)| asking(at, seconds));
        let asked: Vec<OwnedChild> = asked.collect::<Result<_>>()?;
        let requests = asked
            .into_iter()
            .map(|wrk| requests_of_wrk(&bench.finish("wrk", wrk, &[0])?));
        let requests: Vec<f64> = requests.collect::<Result<_>>()?;
        let took_s = begin.elapsed().as_secs_f64();
        let used = before
            .iter()
            .zip(cpu())
            .map(|(before, after)| after - before);
        let costs = used.zip(requests).map(|(cpu_s, requests)| {
            figures([
                ("us_per_request", cpu_s * 1e6 / requests),
                ("requests_per_sec", requests / took_s),
            ])
        });
        Ok(costs.collect())
    }
}

type Row = Map<String, Value>;

impl Kind for ProxiedCost {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["wrk", "nginx", "haproxy", "taskset"])?;
        bench.side_by_side(measure, record, |case, ways| {
            let case = keys_of(measure.place_of_case(case), &self.cases)?;
            let ways = ways
                .iter()
                .map(|way| keys_of(measure.place_of_way(way), &self.ways));
            self.costs(bench, &ways.collect::<Result<Vec<_>>>()?, case)
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
