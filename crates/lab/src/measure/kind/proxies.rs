//! `proxies`: a backend that computes, at a high load of its core, behind reverse proxies with the
//! same limit: by expected time, and with two classes.

use super::local::on_core;
use super::{Keys, Kind, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::{OwnedChild, nginx, port};
use std::fmt::Write;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The proxy's core and the generator's; the backend has the other.
pub(super) const PROXY_CORE: &str = "0";
pub(super) const BACKEND_CORE: &str = "1";
const REQUESTS: u64 = 6_000;
/// Longer than any request waits here, s.
const TIMEOUT_SECONDS: u32 = 600;
const START_WAIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// `proxies`.
#[derive(Debug)]
pub struct Proxies {
    keys: ProxyKeys,
    ways: Vec<Proxy>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProxyKeys {
    rate_mbit: u64,
    limit: u32,
    kinds: Vec<(String, u64, u64)>,
    seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proxy {
    program: Program,
    /// Of ours.
    #[serde(default)]
    order: String,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Program {
    /// nginx, which can let everything in.
    Nginx,
    /// nginx with max_conns: what is above the limit is turned away, because it has no queue.
    NginxLimited,
    /// HAProxy with maxconn and its queue; by class where paths tell one.
    Haproxy,
    /// Ours.
    Sooner,
}

/// Where a proxy and its backend listen.
pub(super) struct Addresses {
    pub(super) proxy: SocketAddr,
    pub(super) backend: SocketAddr,
}

/// The command of a proxy on a core of its own and the generator's, before a backend that is given
/// `limit` jobs at once, if there is one; paths below `/fast/` go before those below `/slow/`, where it can. `keys`
/// are those of our upstream.
pub(super) fn command(
    bench: &Bench<'_>,
    program: &Program,
    at: &Addresses,
    (limit, keys): (Option<u32>, &str),
) -> Result<Command> {
    let folder = bench.folder("proxy")?;
    Ok(match program {
        Program::Nginx | Program::NginxLimited => {
            let limit = match (program, limit) {
                (Program::NginxLimited, Some(limit)) => format!(" max_conns={limit}"),
                _ => String::new(),
            };
            nginx::write_config(&folder, 16384, &nginx_lines(at, &limit))?;
            let mut command = on_core(PROXY_CORE, "nginx");
            nginx::tell(&mut command, &folder);
            command
        }
        Program::Haproxy => {
            let path = folder.join("haproxy.cfg");
            fs::write(&path, haproxy_config(at, limit))?;
            let program =
                sooner_testbed::program::find(&["haproxy"]).context("haproxy is not installed")?;
            let mut command = on_core(PROXY_CORE, program);
            command.args(["-q", "-db", "-f"]).arg(path);
            command
        }
        Program::Sooner => {
            let path = folder.join("sooner.toml");
            fs::write(&path, sooner_config(at, limit, keys))?;
            let mut command = on_core(PROXY_CORE, bench.program);
            command.args(["serve", "--quiet", "--config"]).arg(path);
            command
        }
    })
}

/// The backend's command: it computes as long as a link of this rate would take.
pub(super) fn backend(bench: &Bench<'_>, at: &Addresses, root: &Path, rate_mbit: u64) -> Command {
    let mut command = on_core(BACKEND_CORE, bench.program);
    command.args(["lab", "client", "backend", &at.backend.to_string()]);
    command.arg(root).arg(rate_mbit.to_string());
    command
}

impl Addresses {
    pub(super) fn free() -> Result<Self> {
        let [proxy, backend] = port::free_ones()?;
        Ok(Self { proxy, backend })
    }
}

impl Proxies {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        }))
    }

    /// One run for each stream of requests (path below which they are, load), all at the same time.
    fn measure(
        &self,
        bench: &Bench<'_>,
        way: &Proxy,
        files: &Files,
        streams: &[(String, String)],
        turn: u32,
    ) -> Result<Map<String, Value>> {
        let at = Addresses::free()?;
        let command_of_backend = backend(bench, &at, &files.root, self.keys.rate_mbit);
        let _backend = started(bench, command_of_backend, at.backend)?;
        let keys = format!("order = \"{}\"", way.order);
        let proxy = command(bench, &way.program, &at, (Some(self.keys.limit), &keys))?;
        let _proxy = started(bench, proxy, at.proxy)?;
        let clients = streams
            .iter()
            .zip(1 + 10 * u64::from(turn)..)
            .map(|((path, load), seed)| {
                let mut command = on_core(PROXY_CORE, bench.program);
                command.args(["load", "replay"]).arg(&files.trace);
                command.args(["--poisson", "--json", "--rho", load]);
                command.args(["--url", &format!("http://{}{path}", at.proxy)]);
                command.args(["--uplink", &format!("{}mbit", self.keys.rate_mbit)]);
                command.args(["--requests-per-connection", "1000000"]);
                let seconds = bench.seconds(self.keys.seconds, 5).to_string();
                command.args(["--for", &seconds, "--seed", &seed.to_string()]);
                bench.start(command)
            });
        let clients: Vec<OwnedChild> = clients.collect::<Result<_>>()?;
        let runs = clients.into_iter().map(|child| bench.run_of(child));
        let runs: Vec<Value> = runs.collect::<Result<_>>()?;
        Ok(Map::from_iter([("runs".to_owned(), runs.into())]))
    }
}

impl Kind for Proxies {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["taskset", "nginx", "haproxy"])?;
        let files = Files::make(bench, &self.keys.kinds)?;
        bench.by_turns(measure, record, |case, way, turn| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            let streams = case.fields.get("streams").cloned().unwrap_or_default();
            let streams: Vec<(String, String)> =
                serde_json::from_value(streams).context("streams are pairs of path and load")?;
            self.measure(bench, way, &files, &streams, turn)
        })
    }
}

pub(super) fn started(
    bench: &Bench<'_>,
    command: Command,
    address: SocketAddr,
) -> Result<OwnedChild> {
    let mut child = bench.start(command)?;
    let begin = Instant::now();
    while TcpStream::connect(address).is_err() {
        let is_over = child.has_ended() || begin.elapsed() > START_WAIT;
        if is_over {
            child.end();
        }
        ensure!(!is_over, "it does not listen: {}", child.message());
        bench.pause(LOOK)?;
    }
    Ok(child)
}

fn nginx_lines(at: &Addresses, limit: &str) -> String {
    let Addresses { proxy, backend } = at;
    format!(
        "  access_log off;\n  keepalive_requests 100000000;\n  \
         upstream app {{ zone app 64k; server {backend}{limit}; keepalive 1024; }}\n  \
         server {{ listen {proxy}; location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\"; \
         proxy_read_timeout {TIMEOUT_SECONDS}s; proxy_next_upstream off; }} }}\n"
    )
}

fn haproxy_config(at: &Addresses, limit: Option<u32>) -> String {
    let Addresses { proxy, backend } = at;
    let limit = limit.map_or(String::new(), |limit| format!(" maxconn {limit}"));
    format!(
        "global\n  maxconn 4096\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client {TIMEOUT_SECONDS}s\n  \
         timeout server {TIMEOUT_SECONDS}s\n  timeout queue {TIMEOUT_SECONDS}s\n  http-reuse always\n\
         frontend web\n  bind {proxy}\n  http-request set-priority-class int(-1) if {{ path_beg /fast/ }}\n  \
         http-request set-priority-class int(1) if {{ path_beg /slow/ }}\n  default_backend app\n\
         backend app\n  server app {backend}{limit}\n"
    )
}

fn sooner_config(at: &Addresses, limit: Option<u32>, keys: &str) -> String {
    let Addresses { proxy, backend } = at;
    let limit = limit.map_or(String::new(), |limit| format!("limit = {limit}\n"));
    let route = |path: &str, class: u8| {
        format!("[[route]]\npath = \"{path}\"\nupstream = \"app\"\nclass = {class}\n")
    };
    format!(
        "listen = [\"{proxy}\"]\n\n[[upstream]]\nname = \"app\"\nservers = [\"http://{backend}\"]\n{limit}\
         response_seconds = {TIMEOUT_SECONDS}.0\n{keys}\n\n{}{}{}",
        route("/fast/", 1),
        route("/slow/", 5),
        route("/", 3)
    )
}

/// The files of the backend, and the trace that asks for them.
struct Files {
    root: PathBuf,
    trace: PathBuf,
}

impl Files {
    fn make(bench: &Bench<'_>, kinds: &[(String, u64, u64)]) -> Result<Files> {
        let root = bench.folder("root")?;
        let trace = write_trace(bench.scratch(), kinds)?;
        let mut mkroot = bench.sooner(&["load", "mkroot"]);
        mkroot.arg(&trace).arg(&root);
        bench.output(mkroot)?;
        Ok(Files { root, trace })
    }
}

/// A trace of the kinds in random order, ten requests a second (a replay makes its own gaps).
fn write_trace(folder: &Path, kinds: &[(String, u64, u64)]) -> Result<PathBuf> {
    let mut chance = 1_u64;
    let mut lines = String::from("t,bytes,client,object,status\n");
    let mut counts = vec![0; kinds.len()];
    for nth in 0..REQUESTS {
        // Knuth's multiplicative generator: the upper bits are random enough to choose by.
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let kind = kind_of(kinds, (chance >> 33) % 100);
        counts[kind] += 1;
        writeln!(lines, "{},{},0,{kind},200", nth / 10, kinds[kind].1 * 1_000)?;
    }
    let mut objects = String::from("object,requests,max_bytes,ext\n");
    for (index, (ext, kb, _)) in kinds.iter().enumerate() {
        writeln!(objects, "{index},{},{},{ext}", counts[index], kb * 1_000)?;
    }
    let path = folder.join("backend.csv");
    fs::write(&path, lines)?;
    fs::write(folder.join("backend.objects.csv"), objects)?;
    Ok(path)
}

/// The kind with the share of a hundred that `chance` falls in.
fn kind_of(kinds: &[(String, u64, u64)], chance: u64) -> usize {
    let mut below = 0;
    let found = kinds.iter().position(|(_, _, share)| {
        below += share;
        chance < below
    });
    found.unwrap_or(0)
}
