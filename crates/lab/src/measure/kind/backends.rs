//! `backends`: real servers that compute, wait or batch, behind reverse proxies that let in a fixed
//! number of requests, all of them, or as many as they find to be enough.
//!
//! The server has one core, the proxy and its clients the other.

mod calls;
mod tiers;

use super::local::on_core;
use super::proxies::{Addresses, BACKEND_CORE, PROXY_CORE, Program, command, started};
use super::workers::site::{self, Site};
use super::workers::spread;
use super::{Keys, Kind, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use crate::peers;
use anyhow::{Context, Result, ensure};
use calls::{Answer, Calls, Route};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::{OwnedChild, port};
use std::fs;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tiers::Tier;

const WORKERS: u32 = 200;
/// Before anything is measured. With a hundred inside, the longest that is measured takes 12 s.
const WARM_UP: Duration = Duration::from_secs(15);
/// So long it is looked for at most.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(100);

/// `backends`.
#[derive(Debug)]
pub struct Backends {
    keys: BackendKeys,
    ways: Vec<Way>,
    /// Of the last way without classes, ms.
    mean_ms: Mutex<(u32, f64)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackendKeys {
    server: Server,
    /// What is requested: name, size (ms of processor time, or tokens) and share of a hundred.
    routes: Vec<(String, f64, u32)>,
    /// So many disks share the requests, each of which takes 15 ms of one.
    #[serde(default)]
    disks: u32,
    /// The length of the vectors of what batches, where it is not its own choice: a shorter one makes
    /// steps shorter.
    width: Option<u32>,
    /// Clients that each always wait for an answer.
    clients: Option<u32>,
    /// Requests a second, by chance, whatever came of those before.
    per_second: Option<f64>,
    seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Server {
    /// nginx before PHP-FPM, with more workers than any limit.
    PhpFpm,
    /// A stand-in of a server of language models.
    Batching,
}

/// A proxy before it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    program: Program,
    /// Requests inside at once, where it is told.
    limit: Option<u32>,
    /// Keys of our upstream.
    #[serde(default)]
    keys: String,
    /// Whether it looks for the limit, so that it is waited for.
    #[serde(default)]
    is_looked_for: bool,
    /// Classes with targets, as parts of the mean of the last way without any.
    #[serde(default)]
    classes: Vec<Tier>,
}

impl Backends {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let own: BackendKeys = keys.own()?;
        if own.clients.is_some() == own.per_second.is_some() {
            return Err(("clients".into(), "either `clients` or `per_second`".into()));
        }
        if own.routes.iter().map(|route| route.2).sum::<u32>() != 100 {
            return Err(("routes".into(), "their shares are a hundred".into()));
        }
        if own.width.is_some() && own.server != Server::Batching {
            return Err(("width".into(), "for `server = \"batching\"` alone".into()));
        }
        Ok(Box::new(Self {
            keys: own,
            ways: keys.ways()?,
            mean_ms: Mutex::new((0, 0.0)),
        }))
    }

    fn measure(&self, bench: &Bench<'_>, at: SocketAddr, way: &Way, turn: u32) -> Result<Row> {
        let at = Addresses {
            proxy: port::free()?,
            backend: at,
        };
        let (of_turn, mean_ms) = *self.mean_ms.lock().expect("no measurement panics");
        ensure!(
            way.classes.is_empty() || (of_turn == turn && mean_ms > 0.0),
            "the ways begin and end with one that has no classes"
        );
        let keys = format!("{}{}", way.keys, tiers::config(&way.classes, mean_ms));
        let proxy = command(bench, &way.program, &at, (way.limit, &keys))?;
        let mut proxy = started(bench, proxy, at.proxy)?;
        let calls = Calls {
            address: at.proxy,
            core: PROXY_CORE,
            routes: self.routes(),
            tiers: way.classes.clone(),
            seed: turn.into(),
            clients: self.keys.clients,
            per_second: self.keys.per_second,
        };
        let is_over = AtomicBool::new(false);
        let begin = Instant::now();
        let (answers, from, search) = std::thread::scope(|scope| {
            let client = scope.spawn(|| calls.run(&is_over));
            let waited = self.wait(bench, way, &mut proxy);
            is_over.store(true, Ordering::Relaxed);
            let answers = client.join().expect("no call panics")?;
            let (from, search) = waited?;
            anyhow::Ok((answers, from, search))
        })?;
        let from = from.duration_since(begin);
        let mut row = self.figures(&answers, from);
        row.extend(search);
        if way.classes.is_empty() {
            let mean = row.get("mean_ms").and_then(Value::as_f64);
            let mean = mean.unwrap_or(0.0);
            *self.mean_ms.lock().expect("no measurement panics") = (turn, mean);
        } else {
            let measured = answers.iter().filter(|one| one.at >= from && one.is_right);
            let measured: Vec<&Answer> = measured.collect();
            row.extend(tiers::achieved(&way.classes, mean_ms, &measured)?);
        }
        Ok(row)
    }

    /// Waits until all is measured; from when on, and what came of looking for a limit.
    fn wait(&self, bench: &Bench<'_>, way: &Way, proxy: &mut OwnedChild) -> Result<(Instant, Row)> {
        let begin = Instant::now();
        bench.pause(WARM_UP)?;
        let mut search = Search::default();
        if way.is_looked_for {
            let patience = Duration::from_secs(bench.seconds(PATIENCE.as_secs(), 5));
            while !search.is_found && begin.elapsed() < patience {
                search.read(proxy);
                bench.pause(LOOK)?;
            }
            search.took_s = begin.elapsed().as_secs_f64();
        }
        let from = Instant::now();
        let seconds = Duration::from_secs(bench.seconds(self.keys.seconds, 4));
        while from.elapsed() < seconds {
            search.read(proxy);
            ensure!(!proxy.has_ended(), "the proxy ended: {}", proxy.message());
            bench.pause(LOOK)?;
        }
        let of_search = match way.is_looked_for {
            true => search.figures(),
            false => Row::new(),
        };
        Ok((from, of_search))
    }

    fn routes(&self) -> Vec<Route> {
        let routes = self.keys.routes.iter();
        let route = |(name, size, share): &(String, f64, u32)| Route {
            name: name.clone(),
            size: *size,
            share: *share,
            is_chat: self.keys.server == Server::Batching,
            disks: self.keys.disks,
        };
        routes.map(route).collect()
    }

    /// Of the answers that came in `seconds` from this instant on.
    fn figures(&self, answers: &[Answer], from: Duration) -> Row {
        let last = answers.iter().map(|one| one.at).max().unwrap_or_default();
        let seconds = last.saturating_sub(from).as_secs_f64().max(0.001);
        let measured: Vec<&Answer> = answers.iter().filter(|one| one.at >= from).collect();
        let good: Vec<&&Answer> = measured.iter().filter(|one| one.is_right).collect();
        let times: Vec<f64> = good.iter().map(|one| one.ms).collect();
        let mut row = spread("", times);
        let work: f64 = good.iter().map(|one| one.size).sum();
        row.insert("work_per_s".into(), (work / seconds).into());
        row.insert("answers_per_s".into(), (good.len() as f64 / seconds).into());
        row.insert("errors".into(), (measured.len() - good.len()).into());
        for (number, (name, ..)) in self.keys.routes.iter().enumerate() {
            let of_route = good.iter().filter(|one| one.route == number);
            let times: Vec<f64> = of_route.map(|one| one.ms).collect();
            row.extend(spread(&format!("{name}_"), times));
        }
        row
    }
}

impl Kind for Backends {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["taskset", "setsid", "nginx", "haproxy"])?;
        let (_site, _child, at);
        match self.keys.server {
            Server::PhpFpm => {
                let wanted = site::Program::PhpFpm;
                let started = Site::start(bench, wanted, WORKERS, BACKEND_CORE)?;
                at = started.address;
                _site = started;
            }
            Server::Batching => {
                let folder = bench.folder("batching")?;
                let path = folder.join("batching.py");
                fs::write(&path, peers::BATCHING)?;
                at = port::free()?;
                let mut command = on_core(BACKEND_CORE, "/usr/bin/python3");
                command.arg(path).args(["--listen", &at.to_string()]);
                if let Some(width) = self.keys.width {
                    command.args(["--width", &width.to_string()]);
                }
                _child = started(bench, command, at)?;
            }
        }
        bench.by_turns(measure, record, |_, way, turn| {
            let way = keys_of(measure.place_of_way(way), &self.ways).context("a way")?;
            self.measure(bench, at, way, turn)
        })
    }
}

type Row = Map<String, Value>;

/// What the proxy says of its search.
#[derive(Default)]
struct Search {
    limit: u64,
    changes: u64,
    /// Whether it tries nothing else.
    is_found: bool,
    took_s: f64,
}

impl Search {
    fn read(&mut self, proxy: &mut OwnedChild) {
        while let Ok(line) = proxy.next_message(Duration::ZERO) {
            let before = line.split(" requests at a time").next();
            let number = before.and_then(|text| text.rsplit(' ').next()?.parse().ok());
            if let Some(number) = number.filter(|_| line.contains(" requests at a time")) {
                self.is_found = ["(enough", "(back"].iter().any(|word| line.contains(word));
                self.changes += u64::from(self.limit != number);
                self.limit = number;
            }
        }
    }

    fn figures(&self) -> Row {
        Row::from_iter([
            ("limit_found".to_owned(), self.limit.into()),
            ("changes".to_owned(), self.changes.into()),
            ("is_found".to_owned(), u64::from(self.is_found).into()),
            ("search_s".to_owned(), self.took_s.into()),
        ])
    }
}
