//! A server on a link of its own: what other generators measure there, scripts that fetch, what others notice of clients that mean no good,
//! what a queueing discipline costs the machine, and traces replayed side by side.

use super::{Keys, Kind, figures, keys_of};
use crate::counters::processes::usage;
use crate::experiment::{Setup, SetupTable};
use crate::hosts::{Hosts, HostsSpec, SERVER_ADDRESS, SERVER_DEVICE, Shaper};
use crate::measure::rows::{number, slim};
use crate::measure::run::Bench;
use crate::measure::{Measure, Record};
use crate::peers::{PORT, Peer, PeerOptions, Running, TLS_PORT};
use crate::run::served_files;
use crate::run::stand::Stand;
use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sooner_testbed::OwnedChild;
use sooner_testbed::certificate::Certificate;
use sooner_testbed::scratch::Scratch;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Hosts with a server that answers.
struct Site {
    // Ended in this order.
    running: Running,
    hosts: Hosts,
}

/// How a server stands.
struct Place<'a> {
    peer: &'a str,
    rate_mbit: u64,
    is_tls: bool,
    super_packets: bool,
}

impl Site {
    fn start(bench: &Bench<'_>, place: &Place<'_>, root: &Path) -> Result<Site> {
        let peer: Peer = place.peer.parse()?;
        let folder = bench.folder("peer")?;
        let spec = HostsSpec {
            shaper: peer.shaper(),
            congestion_control: Some("cubic".into()),
            super_packets: place.super_packets,
            ..HostsSpec::new(&format!("m{}", bench.number()), place.rate_mbit * 1_000_000)
        };
        Self::on(bench, spec, place, root, &folder)
    }

    fn on(
        bench: &Bench<'_>,
        spec: HostsSpec,
        place: &Place<'_>,
        root: &Path,
        folder: &Path,
    ) -> Result<Site> {
        let peer: Peer = place.peer.parse()?;
        let rate = spec.rate_bits_per_sec;
        let hosts = Hosts::up(&spec, bench.program)?;
        let address = SERVER_ADDRESS.to_string();
        let certificate = place.is_tls.then(|| Certificate::make(folder, &[&address]));
        let options = PeerOptions {
            tls: certificate
                .transpose()
                .context("cannot make a certificate")?,
            http2: place.is_tls,
            ..PeerOptions::new(bench.program, folder)
        };
        let running = peer.start(&hosts, root, rate, &options)?;
        Ok(Site { running, hosts })
    }

    /// Where the server answers.
    fn origin(is_tls: bool) -> String {
        match is_tls {
            true => format!("https://{SERVER_ADDRESS}:{TLS_PORT}"),
            false => format!("http://{SERVER_ADDRESS}:{PORT}"),
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

/// `generators`: another generator and ours on the same link, one after the other.
#[derive(Debug)]
pub struct Generators {
    is_tls: bool,
    cases: Vec<Spoken>,
    ways: Vec<Generator>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GeneratorsKeys {
    #[serde(default)]
    tls: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spoken {
    bytes: usize,
    /// Arguments of `sooner load closed`, and of the other.
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    other: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Generator {
    generator: String,
}

const CONNECTIONS: &str = "8";
/// The summary of wrk rounds; this prints microseconds.
const WRK_SCRIPT: &str = "done = function(summary, latency) io.write(string.format('{\"per_sec\": %f, \"mean_ms\": %f}\\n', \
                  summary.requests / summary.duration * 1e6, latency.mean / 1e3)) end";

impl Generators {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            is_tls: keys.own::<GeneratorsKeys>()?.tls,
            cases: keys.cases()?,
            ways: keys.ways()?,
        }))
    }

    /// Requests a second and mean response time, ms.
    fn measure(
        &self,
        bench: &Bench<'_>,
        site: &Site,
        generator: &str,
        spoken: &Spoken,
    ) -> Result<[f64; 2]> {
        let seconds = bench.seconds(10, 3).to_string();
        let url = format!("{}/file", Site::origin(self.is_tls));
        match generator {
            "wrk" => {
                let script = bench.scratch().join("wrk.lua");
                fs::write(&script, WRK_SCRIPT)?;
                let mut command = site.hosts.on_client("wrk");
                command.args(["-t1", "-c", CONNECTIONS, "-d", &seconds, "-s"]);
                let text = bench.output({
                    command.arg(script).arg(url);
                    command
                })?;
                let line = text.lines().find(|line| line.starts_with('{'));
                let summary: Value = serde_json::from_str(line.context("wrk printed no summary")?)?;
                Ok([number(&summary["per_sec"]), number(&summary["mean_ms"])])
            }
            "h2load" => {
                let mut command = site.hosts.on_client("h2load");
                command.args(["-c", CONNECTIONS, "-D", &seconds, "--warm-up-time", "2"]);
                // Windows of 2^30 - 1 and 2^30: the client's flow control limits neither generator.
                command
                    .args(["-w", "30", "-W", "30"])
                    .args(&spoken.other)
                    .arg(url);
                let text = bench.output(command)?;
                h2load(&text).context("h2load printed no summary")
            }
            _ => {
                let mut words = vec![
                    "load",
                    "closed",
                    "--url",
                    &url,
                    "--connections",
                    CONNECTIONS,
                ];
                words.extend(["--for", &seconds, "--json"]);
                if self.is_tls {
                    words.push("--insecure");
                }
                words.extend(spoken.flags.iter().map(String::as_str));
                let run = bench.run_of(site.load(bench, &words)?)?;
                let per_sec = number(&run["all"]["completed"]) / number(&run["measured_s"]);
                Ok([per_sec, number(&run["all"]["mean_response_ms"])])
            }
        }
    }
}

impl Kind for Generators {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let programs: Vec<&str> = self.ways.iter().map(|way| way.generator.as_str()).collect();
        bench.need(
            &programs
                .into_iter()
                .filter(|name| *name != "sooner")
                .collect::<Vec<_>>(),
        )?;
        bench.by_turns(measure, record, |case, way, _| {
            let spoken = keys_of(measure.place_of_case(case), &self.cases)?;
            let generator = keys_of(measure.place_of_way(way), &self.ways)?;
            let root = bench.folder("root")?;
            fs::write(root.join("file"), vec![b'x'; spoken.bytes])?;
            let rate_mbit = case
                .fields
                .get("rate_mbit")
                .and_then(Value::as_u64)
                .unwrap_or(10);
            let place = Place {
                peer: "nginx",
                rate_mbit,
                is_tls: self.is_tls,
                super_packets: false,
            };
            let site = Site::start(bench, &place, &root)?;
            let [per_sec, mean_ms] = self.measure(bench, &site, &generator.generator, spoken)?;
            Ok(figures([("per_sec", per_sec), ("mean_ms", mean_ms)]))
        })
    }
}

/// Requests a second and mean response time in ms, from what h2load prints.
fn h2load(printed: &str) -> Option<[f64; 2]> {
    let after = |start: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(start))?;
        Some(line.split_whitespace().collect::<Vec<_>>())
    };
    // finished in 10.01s, 1143.40 req/s, 1.13MB/s
    let finished = after("finished in ")?;
    // time for request: min, max, mean, sd, +/- sd
    let times = after("time for request:")?;
    Some([finished.get(1)?.parse().ok()?, milliseconds(times.get(2)?)?])
}

/// A time as h2load writes it: `853us`, `6.99ms`, `1.02s`.
fn milliseconds(text: &str) -> Option<f64> {
    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
    let (number, factor) = units
        .into_iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    Some(number.parse::<f64>().ok()? * factor)
}

/// `script`: a script of Node that fetches, on the clients' host.
#[derive(Debug)]
pub struct Script {
    keys: ScriptKeys,
    ways: Vec<PeerKeys>,
    cases: Vec<ScriptCase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptKeys {
    /// In the experiment's folder.
    script: String,
    programs: Vec<String>,
    rate_mbit: u64,
    #[serde(default)]
    tls: bool,
    /// The field of what the script prints, as JSON.
    result: String,
    /// Files to fetch, of so many kilobytes each.
    #[serde(default)]
    files_kb: Vec<usize>,
    /// Whether a page with text and pictures is visited instead.
    #[serde(default)]
    page: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptCase {
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    tls: bool,
}

/// After so long a new link has its last address (IPv6's): Chromium gives up what it loads when one appears.
const SETTLED: Duration = Duration::from_secs(4);

impl Script {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let script = Self {
            keys: keys.own()?,
            ways: keys.ways()?,
            cases: keys.cases()?,
        };
        PeerKeys::check(&script.ways)?;
        Ok(Box::new(script))
    }

    /// The files that are served, and the arguments of the script behind those of the case.
    fn files(
        &self,
        bench: &Bench<'_>,
        origin: &str,
        case: &ScriptCase,
    ) -> Result<(std::path::PathBuf, Vec<String>)> {
        let root = bench.folder("root")?;
        if self.keys.page {
            super::page::write(&root)?;
            let profile = bench.folder("profile")?.display().to_string();
            return Ok((root, vec![format!("{origin}/index.html"), profile]));
        }
        let mut words = vec![origin.to_owned()];
        words.extend(case.arguments.iter().cloned());
        for (nth, kb) in self.keys.files_kb.iter().enumerate() {
            let name = format!("{nth}-{kb}k.bin");
            fs::write(root.join(&name), vec![b'x'; kb * 1_000])?;
            words.push(format!("/{name}"));
        }
        Ok((root, words))
    }
}

impl Kind for Script {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let programs: Vec<&str> = self.keys.programs.iter().map(String::as_str).collect();
        bench.need(&programs)?;
        bench.by_turns(measure, record, |case, way, _| {
            let case = keys_of(measure.place_of_case(case), &self.cases)?;
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            let is_tls = self.keys.tls || case.tls;
            let (root, words) = self.files(bench, &Site::origin(is_tls), case)?;
            let place = Place {
                peer: &way.name(bench)?,
                rate_mbit: self.keys.rate_mbit,
                is_tls,
                super_packets: false,
            };
            let site = Site::start(bench, &place, &root)?;
            if self.keys.page {
                bench.pause(SETTLED)?;
            }
            let mut node = site.hosts.on_client("node");
            node.arg(bench.experiment.folder.join(&self.keys.script))
                .args(words);
            let printed: Value =
                serde_json::from_str(&bench.output(node)?).context("the script printed no JSON")?;
            Ok(Map::from_iter([(self.keys.result.clone(), printed)]))
        })
    }
}

/// `beside-others`: what others notice, the same arrivals on two links, one of them with clients as well that mean no good.
#[derive(Debug)]
pub struct BesideOthers {
    keys: OthersKeys,
    ways: Vec<PeerKeys>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OthersKeys {
    seconds: u64,
    #[serde(default)]
    tls: bool,
    /// The clients, where no case names them.
    clients: Option<Vec<String>>,
}

const OTHERS_MBIT: u64 = 10;
/// What those clients get before the others are counted, and what the server gets to forget them.
const AHEAD: Duration = Duration::from_secs(3);
const AFTERWARDS: Duration = Duration::from_secs(2);
/// What is asked for: smaller than half of all downloads in flight, so that under SRPT it comes first whenever it can.
const HOSTILE_BYTES: usize = 100_000;

impl BesideOthers {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let others = Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        };
        PeerKeys::check(&others.ways)?;
        Ok(Box::new(others))
    }

    fn others(
        &self,
        bench: &Bench<'_>,
        site: &Site,
        seed: u32,
        seconds: u64,
    ) -> Result<OwnedChild> {
        let (url, seed, seconds) = (
            Site::origin(self.keys.tls),
            seed.to_string(),
            seconds.to_string(),
        );
        let mut words = vec![
            "load",
            "replay",
            "epa",
            "--poisson",
            "--json",
            "--rho",
            "0.7",
        ];
        words.extend(["--uplink", "10mbit", "--congestion-control", "cubic"]);
        words.extend(["--url", &url, "--for", &seconds, "--seed", &seed]);
        if self.keys.tls {
            words.push("--insecure");
        }
        site.load(bench, &words)
    }

    /// Measures on both links at the same time.
    fn beside(
        &self,
        bench: &Bench<'_>,
        peer: &str,
        clients: &[String],
        root: &Path,
        seed: u32,
    ) -> Result<Map<String, Value>> {
        let seconds = bench.seconds(self.keys.seconds, 6);
        let place = Place {
            peer,
            rate_mbit: OTHERS_MBIT,
            is_tls: self.keys.tls,
            super_packets: false,
        };
        let (quiet, busy) = (
            Site::start(bench, &place, root)?,
            Site::start(bench, &place, root)?,
        );
        let port = if self.keys.tls { TLS_PORT } else { PORT };
        let mut hostile = vec!["lab", "client"];
        hostile.extend(clients.iter().map(String::as_str));
        let (address, long) = (
            format!("{SERVER_ADDRESS}:{port}"),
            (seconds + 4).to_string(),
        );
        hostile.extend([address.as_str(), long.as_str()]);
        let hostile = busy.load(bench, &hostile)?;
        bench.pause(AHEAD)?;
        let [alone, with] = [
            self.others(bench, &quiet, seed, seconds)?,
            self.others(bench, &busy, seed, seconds)?,
        ]
        .map(|child| bench.run_of(child));
        let sent_bits = 8.0 * (busy.hosts.sent_bytes()? as f64 - quiet.hosts.sent_bytes()? as f64);
        drop(hostile);
        bench.pause(AFTERWARDS)?;
        let (pid, quiet_pid) = (busy.running.id(), quiet.running.id());
        // Both have had the same requests, so what differs is left over; a file that only those clients asked for stays open in the cache.
        let descriptors_kept = descriptors(pid)? - descriptors(quiet_pid)? - 1.0;
        let resident_kib = |pid| usage(pid).resident_bytes as f64 / 1024.0;
        let ahead_and_run = (seconds + AHEAD.as_secs()) as f64;
        let mut row = figures([
            (
                "hostile_share",
                sent_bits / (OTHERS_MBIT as f64 * 1e6 * ahead_and_run),
            ),
            ("descriptors_kept", descriptors_kept.max(0.0)),
            (
                "memory_kept_kib",
                (resident_kib(pid) - resident_kib(quiet_pid)).max(0.0),
            ),
        ]);
        row.insert("alone".into(), alone?);
        row.insert("with".into(), with?);
        Ok(row)
    }
}

fn descriptors(pid: u32) -> Result<f64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).context("the server is gone")?;
    Ok(entries.count() as f64)
}

impl Kind for BesideOthers {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let root = served_files("epa")?;
        fs::write(root.path().join("hostile.bin"), vec![b'x'; HOSTILE_BYTES])?;
        bench.by_turns(measure, record, |case, way, turn| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            let of_case = case
                .fields
                .get("clients")
                .cloned()
                .map(serde_json::from_value)
                .transpose()?;
            let clients: Vec<String> = of_case
                .or_else(|| self.keys.clients.clone())
                .context("no clients are named")?;
            let mut row = self.beside(bench, &way.peer, &clients, root.path(), turn + 1)?;
            row.insert("clients".into(), json!(clients));
            Ok(row)
        })
    }
}

/// `link-cost`: processor time of the whole machine for a gigabit, behind a queueing discipline.
///
/// A gigabit through HTB and the programs is work of the softirq of whatever runs at the moment, so no process can be asked for it. Server
/// and client are the same for all, so what differs is the queueing discipline's.
#[derive(Debug)]
pub struct LinkCost {
    rate: String,
    ways: Vec<BeforeDevice>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkKeys {
    rate: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BeforeDevice {
    before: Discipline,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Discipline {
    Nothing,
    Tbf,
    Attach,
}

/// Of a response: a few of TCP's windows.
const BODY_BYTES: usize = 100 * 1024;
/// Until connections have their windows.
const WARM_UP: Duration = Duration::from_secs(1);
const READY_WAIT: Duration = Duration::from_secs(10);

impl LinkCost {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            rate: keys.own::<LinkKeys>()?.rate,
            ways: keys.ways()?,
        }))
    }

    /// Puts it before the device; gone when what it returns is dropped, or with the link.
    fn install(
        &self,
        bench: &Bench<'_>,
        site: &Site,
        way: &Discipline,
    ) -> Result<Option<OwnedChild>> {
        match way {
            Discipline::Nothing => Ok(None),
            Discipline::Tbf => {
                let mut tbf = site.hosts.on_server("tc");
                tbf.args([
                    "qdisc",
                    "add",
                    "dev",
                    SERVER_DEVICE,
                    "root",
                    "tbf",
                    "rate",
                    &self.rate,
                ]);
                tbf.args(["burst", "128kb", "latency", "50ms"]);
                bench.output(tbf)?;
                Ok(None)
            }
            Discipline::Attach => {
                let mut attach = site.hosts.on_server(bench.program);
                attach.args([
                    "attach",
                    "web",
                    "--dev",
                    SERVER_DEVICE,
                    "--uplink",
                    &self.rate,
                ]);
                attach.args(["--port", &PORT.to_string()]);
                let mut running = bench.start(attach)?;
                let ready = running.next_line(READY_WAIT);
                ensure!(
                    ready.is_ok_and(|line| line.starts_with("ready:")),
                    "it did not attach"
                );
                Ok(Some(running))
            }
        }
    }
}

impl Kind for LinkCost {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let root = bench.folder("root")?;
        fs::write(root.join("large"), vec![b'x'; BODY_BYTES])?;
        bench.by_turns(measure, record, |_, way, _| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            let place = Place {
                peer: "nginx",
                rate_mbit: 1000,
                is_tls: false,
                super_packets: true,
            };
            // The link is limited by what is put before the device.
            let spec = HostsSpec {
                shaper: Shaper::Server,
                congestion_control: Some("cubic".into()),
                super_packets: true,
                ..HostsSpec::new(&format!("m{}", bench.number()), 1_000_000_000)
            };
            let site = Site::unshaped(bench, spec, &place, &root)?;
            let _installed = self.install(bench, &site, &way.before)?;
            let window = Duration::from_secs(bench.seconds(5, 1));
            let seconds = ((WARM_UP + window).as_secs() + 1).to_string();
            let url = format!("{}/large", Site::origin(false));
            let words = [
                "load",
                "closed",
                "--json",
                "--connections",
                "32",
                "--for",
                &seconds,
                "--url",
                &url,
            ];
            let _load = site.load(bench, &words)?;
            bench.pause(WARM_UP)?;
            let (busy, sent, begin) =
                (busy_cpu_seconds(), site.hosts.sent_bytes()?, Instant::now());
            bench.pause(window)?;
            let gigabits = (site.hosts.sent_bytes()? - sent) as f64 * 8.0 / 1e9;
            Ok(figures([
                (
                    "cpu_seconds_per_gigabit",
                    (busy_cpu_seconds() - busy) / gigabits,
                ),
                ("gigabits_per_sec", gigabits / begin.elapsed().as_secs_f64()),
            ]))
        })
    }
}

impl Site {
    /// nginx behind a device that nothing limits yet.
    fn unshaped(
        bench: &Bench<'_>,
        spec: HostsSpec,
        place: &Place<'_>,
        root: &Path,
    ) -> Result<Site> {
        let hosts = Hosts::up(&spec, bench.program)?;
        let folder = bench.folder("peer")?;
        let options = PeerOptions::new(bench.program, &folder);
        let peer: Peer = place.peer.parse()?;
        let running = peer.start_unshaped(&hosts, root, &options)?;
        Ok(Site { running, hosts })
    }
}

/// Processor seconds of the whole machine in which it was not idle, of all processors together; what a hypervisor took is not counted.
fn busy_cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|ticks| ticks.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq (proc(5))
    let busy = [0, 1, 2, 5, 6].iter().filter_map(|field| ticks.get(*field));
    busy.sum::<f64>() / crate::counters::processes::TICKS_PER_SEC
}

/// `replay`: a trace against servers that stand side by side, each on a link of its own, with the very same arrivals.
#[derive(Debug)]
pub struct Replay {
    ways: Vec<PeerKeys>,
    setups: Vec<Setup>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayKeys {
    setup: SetupTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayCase {
    #[serde(default)]
    setup: SetupTable,
}

impl Replay {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let (all, cases): (ReplayKeys, Vec<ReplayCase>) = (keys.own()?, keys.cases()?);
        let ways: Vec<PeerKeys> = keys.ways()?;
        PeerKeys::check(&ways)?;
        let peers: Vec<String> = ways.iter().map(|way| way.peer.clone()).collect();
        let setups = cases.into_iter().map(|case| {
            let setup = case.setup.over(&all.setup).with_peers(peers.clone());
            setup
                .complete()
                .map_err(|error| (error.key.to_owned(), error.to_string()))
        });
        Ok(Box::new(Self {
            setups: setups.collect::<Result<_, _>>()?,
            ways,
        }))
    }

    /// One run of each server, all at the same time.
    async fn side_by_side(
        &self,
        bench: &Bench<'_>,
        setup: &Setup,
        root: &Scratch,
        seed: u64,
    ) -> Result<Vec<Value>> {
        let mut stands = Vec::new();
        for way in &self.ways {
            let peer: Peer = way.peer.parse()?;
            let tag = format!("m{}", bench.number());
            stands.push(Stand::up(
                setup,
                &peer,
                &tag,
                seed,
                root.path(),
                bench.program,
            )?);
        }
        let samples = bench.scratch().join("samples");
        let loads = stands.iter().zip(&self.ways);
        let loads = loads.map(|(stand, way)| stand.load(setup, &way.peer, seed, &samples));
        let mut runs = Vec::new();
        for load in loads.collect::<Result<Vec<_>>>()? {
            runs.push(slim(load.run(setup).await?));
        }
        Ok(runs)
    }
}

impl Kind for Replay {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        for case in bench.cases(measure) {
            let mut setup = keys_of(measure.place_of_case(&case), &self.setups)?.clone();
            if bench.is_quick {
                setup.seconds = 10;
                setup.warm_up_seconds = 1;
                setup.drain_seconds = setup.drain_seconds.min(10);
            }
            let root = served_files(&setup.trace)?;
            for turn in 0..bench.turns(measure) {
                bench.tell(&format!("{}, seed {}", case.id, turn + 1));
                let seed = u64::from(turn) + 1;
                bench.until_undisturbed(
                    || {
                        let runs =
                            bench.block_on_work(self.side_by_side(bench, &setup, &root, seed))?;
                        Ok(Map::from_iter([("runs".to_owned(), Value::Array(runs))]))
                    },
                    |mut figures, attempt| {
                        let Some(Value::Array(runs)) = figures.remove("runs") else {
                            return Err(anyhow!("no runs"));
                        };
                        for (way, run) in measure.listed_ways().iter().zip(runs) {
                            let own = Map::from_iter([
                                ("run".to_owned(), run),
                                ("quick".to_owned(), bench.is_quick.into()),
                            ]);
                            record.add(measure.row(&case, way, turn, own, attempt))?;
                        }
                        Ok(())
                    },
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_h2load() {
        let printed = "finished in 10.01s, 1143.40 req/s, 1.13MB/s\nrequests: 1 total\n\
            time for request:     1.20ms     12.33ms      6.99ms      1.02ms    70.00%\n";
        assert_eq!(h2load(printed), Some([1143.4, 6.99]));
        assert_eq!(h2load("nothing"), None);
        assert_eq!(milliseconds("853us"), Some(0.853));
        assert_eq!(milliseconds("1.5s"), Some(1500.0));
    }
}
