//! `weights`: classes that share a backend by weight, each with requests that always wait, before
//! `sooner serve` as a user would run it. What each class got is the backend's word.

mod backend;

use super::local::on_core;
use super::proxies::{Addresses, PROXY_CORE, Program, command, started};
use super::{Keys, Kind, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result, ensure};
use backend::{Backend, CLASSES, Served};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::port;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Until all classes are known.
const WARM_UP_SECONDS: u64 = 5;
/// After that which is measured, so that all wait until its end.
const MORE_SECONDS: u64 = 2;

/// `weights`.
#[derive(Debug)]
pub struct Weights {
    keys: WeightKeys,
    ways: Vec<Way>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    /// Keys of our upstream.
    #[serde(default)]
    keys: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightKeys {
    limit: u32,
    /// Of each class its weight and the mean time of its requests, ms.
    classes: Vec<(u32, f64)>,
    /// Of each class; each connection always waits for an answer.
    connections: u32,
    seconds: u64,
}

impl Weights {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let keys_of_ways = keys.ways()?;
        let keys: WeightKeys = keys.own()?;
        if keys.connections <= keys.limit {
            let problem = "each class must have requests waiting: more than `limit`";
            return Err(("connections".into(), problem.into()));
        }
        if keys.classes.len() > CLASSES.len() {
            let problem = format!("no more than {} classes", CLASSES.len());
            return Err(("classes".into(), problem));
        }
        Ok(Box::new(Self {
            keys,
            ways: keys_of_ways,
        }))
    }

    fn measure(&self, bench: &Bench<'_>, way: &Way, turn: u32) -> Result<Map<String, Value>> {
        let classes_ms = self.keys.classes.iter().map(|class| class.1).collect();
        let backend = Backend::start(classes_ms, turn.into())?;
        let at = Addresses {
            proxy: port::free()?,
            backend: backend.address,
        };
        let keys = format!("{}\n{}", way.keys, config(&self.keys.classes));
        let proxy = command(bench, &Program::Sooner, &at, (Some(self.keys.limit), &keys))?;
        let _proxy = started(bench, proxy, at.proxy)?;
        let warm_up = Duration::from_secs(bench.seconds(WARM_UP_SECONDS, 1));
        let measured = Duration::from_secs(bench.seconds(self.keys.seconds, 2));
        let whole = (warm_up + measured).as_secs() + MORE_SECONDS;
        let clients = (0..self.keys.classes.len()).map(|class| {
            let mut command = on_core(PROXY_CORE, bench.program);
            command.args(["load", "closed", "--json", "--for", &whole.to_string()]);
            command.args(["--connections", &self.keys.connections.to_string()]);
            command.args(["--url", &format!("http://{}/{}/", at.proxy, CLASSES[class])]);
            bench.start(command)
        });
        let clients = clients.collect::<Result<Vec<_>>>()?;
        bench.pause(warm_up)?;
        let from = Instant::now();
        bench.pause(measured)?;
        let until = Instant::now();
        for (class, client) in clients.into_iter().enumerate() {
            let run = bench.run_of(client)?;
            let errors = run["all"]["errors"].as_u64().unwrap_or_default();
            ensure!(errors == 0, "class {class}: {errors} requests failed");
        }
        self.figures(&backend.served(), (from, until))
    }

    /// What each class got meanwhile, over its part by weight.
    fn figures(&self, served: &[Served], (from, until): (Instant, Instant)) -> Result<Row> {
        let mut seconds = vec![0.0; self.keys.classes.len()];
        let mut counts = vec![0_u32; seconds.len()];
        for one in served {
            let within = one
                .end
                .min(until)
                .saturating_duration_since(one.begin.max(from));
            let class = seconds.get_mut(one.class).context("a class of ours")?;
            *class += within.as_secs_f64();
            counts[one.class] += u32::from(from <= one.end && one.end < until);
        }
        let (all_seconds, all): (f64, u32) = (seconds.iter().sum(), counts.iter().sum());
        ensure!(all > 0, "none was served");
        let weights: u32 = self.keys.classes.iter().map(|class| class.0).sum();
        let mut row = Row::new();
        let mut most: f64 = 0.0;
        for (number, (weight, _)) in self.keys.classes.iter().enumerate() {
            let share = seconds[number] / all_seconds;
            let part = f64::from(*weight) / f64::from(weights);
            most = most.max((share / part - 1.0).abs());
            row.insert(format!("c{number}_share"), share.into());
            row.insert(format!("c{number}_of_weight"), (share / part).into());
            let count = f64::from(counts[number]) / f64::from(all);
            row.insert(format!("c{number}_count_share"), count.into());
        }
        let places = f64::from(self.keys.limit) * (until - from).as_secs_f64();
        row.insert("most_off".into(), most.into());
        row.insert("busy".into(), (all_seconds / places).into());
        row.insert("requests".into(), all.into());
        Ok(row)
    }
}

type Row = Map<String, Value>;

/// The classes of our configuration.
fn config(classes: &[(u32, f64)]) -> String {
    let mut text = String::new();
    for (number, (weight, _)) in classes.iter().enumerate() {
        let name = CLASSES[number];
        let class = format!("name = \"{name}\"\nweight = {weight}\npath = [\"/{name}/*\"]");
        writeln!(text, "\n[[class]]\n{class}").expect("a string takes all");
    }
    text
}

impl Kind for Weights {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["taskset"])?;
        bench.by_turns(measure, record, |_, way, turn| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            self.measure(bench, way, turn)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_within_what_is_measured() {
        let weights = Weights {
            ways: Vec::new(),
            keys: WeightKeys {
                limit: 2,
                classes: vec![(1, 10.0), (3, 20.0)],
                connections: 3,
                seconds: 1,
            },
        };
        let from = Instant::now() + Duration::from_secs(10);
        let at = |ms: i64| match ms {
            0.. => from + Duration::from_millis(ms as u64),
            _ => from - Duration::from_millis(ms.unsigned_abs()),
        };
        let served = [
            (0, -200, -100),
            (0, -50, 20),
            (1, 20, 40),
            (1, 40, 60),
            (1, 95, 200),
        ];
        let served = served.map(|(class, begin, end)| Served {
            class,
            begin: at(begin),
            end: at(end),
        });
        let row = weights.figures(&served, (at(0), at(100))).expect("figures");
        let of = |name: &str| row[name].as_f64().expect("a number");
        assert!((of("c0_share") - 20.0 / 65.0).abs() < 1e-9);
        assert!((of("c0_of_weight") - 80.0 / 65.0).abs() < 1e-9);
        assert!((of("most_off") - 15.0 / 65.0).abs() < 1e-9);
        assert!((of("c1_count_share") - 2.0 / 3.0).abs() < 1e-9);
        assert!((of("busy") - 65.0 / 200.0).abs() < 1e-9);
    }
}
