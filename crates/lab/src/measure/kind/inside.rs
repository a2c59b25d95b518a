//! `inside`: how many transactions a database needs inside, what the gate finds by itself, and what
//! a class that goes first gains and costs.
//!
//! The curve, the comparison of the gate's choice with the best and the costs are measured by turns
//! in short slices under one load, since a machine that others share does now a fifth more and now
//! a fifth less for half a minute; while the gate looks, it is watched. With a large pool the queue
//! is in the database, where no proxy orders it: that is measured beside, and PgBouncer with the
//! same pool.

mod shown;

use super::database::{Bouncer, GATE_PORT};
use super::oltp::{Load, LoadedDatabase};
use super::set_ups::{SetUp, set_up};
use super::slices::{SliceFigures, Slices};
use super::{Keys, Kind};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record, Shown};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shown::Found;
use sooner_report::curves::{Curve, Figure, Page, render};
use std::time::{Duration, Instant};

const USERS: u32 = 100;
/// Transactions at a time that are tried; the last is what a pool usually has, or more.
const LIMITS: [u32; 12] = [1, 2, 3, 4, 5, 6, 8, 11, 16, 24, 40, 100];
/// Where all is short, no more are tried.
const QUICK_LIMIT_MAX: u32 = 4;
/// Of transactions that are of another class than the rest.
const HIGH: &str = "high=0.1";
const PGBOUNCER_PORT: u16 = 6433;
/// Short runs, so that one way meets the same machine as the next.
const RUN_SECONDS: u64 = 6;
/// Longer than anything that is measured while they are there.
const MEANWHILE_SECONDS: u64 = 3000;

/// What the gate did: seconds, limit, and its words.
type Step = (f64, u32, String);

/// `inside`.
#[derive(Debug)]
pub struct Inside {
    keys: InsideKeys,
    set_up: &'static SetUp,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InsideKeys {
    set_up: String,
    /// Slices of each limit; of each of two limits or three ways that are compared; how long the
    /// gate may look.
    rounds: usize,
    pairs: usize,
    search_seconds: u64,
    /// Runs of each way.
    runs: u32,
}

/// A way to the database.
#[derive(Clone, Copy)]
enum Way {
    /// First come, first served, so many at a time.
    Fifo(u32),
    /// A class goes first.
    Priority(u32),
    /// PgBouncer with a pool of so many; it knows no classes, and statements have no names.
    Pgbouncer(u32),
}

impl Way {
    fn name(self) -> String {
        match self {
            Self::Fifo(limit) => format!("FIFO, {limit} inside"),
            Self::Priority(limit) => format!("priority, {limit} inside"),
            Self::Pgbouncer(pool) => format!("PgBouncer, pool of {pool}"),
        }
    }
}

/// The configuration's classes: `high` goes first, or none does.
fn classes(goes_first: bool) -> String {
    let rest = if goes_first { 2 } else { 1 };
    format!(
        "[[class]]\nname = \"high\"\npriority = 1\napplication_name = [\"high\"]\n\
         [[class]]\nname = \"rest\"\npriority = {rest}\napplication_name = [\"rest\"]\n"
    )
}

/// All, for so long at most. They change their class, which costs the gate a command on the server,
/// wherever classes count or do not.
fn users(seconds: u64, seed: u32) -> Load<'static> {
    Load {
        classes: &[HIGH],
        ..Load::closed(USERS, seconds, seed)
    }
}

impl Inside {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let own: InsideKeys = keys.own()?;
        Ok(Box::new(Self {
            set_up: set_up(&own.set_up)?,
            keys: own,
        }))
    }
}

impl Kind for Inside {
    fn run(&self, bench: &Bench<'_>, _: &Measure, record: &mut Record) -> Result<()> {
        let quick = InsideKeys {
            set_up: self.keys.set_up.clone(),
            rounds: 1,
            pairs: 2,
            search_seconds: 5,
            runs: 1,
        };
        let run = Run {
            loaded: &LoadedDatabase::new(bench, self.set_up)?,
            keys: if bench.is_quick { &quick } else { &self.keys },
        };
        run.curve(record)?;
        let steps = run.search(record)?;
        let found = Found::of(&record.rows().0).context("the gate tried nothing")?;
        run.choice_by_turns(&found, record)?;
        run.costs(&found, record)?;
        run.priorities(&found, record)?;
        run.loaded.check()?;
        bench.keep_page(&render(&page(self.set_up.name, &found.shares, &steps)))
    }

    fn shown(&self, rows: &[Value]) -> Option<Shown> {
        Some(shown::all(self.set_up.name, rows).unwrap_or_default())
    }
}

struct Run<'a> {
    loaded: &'a LoadedDatabase<'a>,
    keys: &'a InsideKeys,
}

fn row(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

impl Run<'_> {
    /// Every limit once a round, up and down by turns.
    fn curve(&self, record: &mut Record) -> Result<()> {
        let mut slices = Slices::start(self.loaded, &users(MEANWHILE_SECONDS, 1))?;
        for round in 0..self.keys.rounds {
            let mut order: Vec<usize> = (0..LIMITS.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            let mut rates = [0.0; LIMITS.len()];
            let is_left_out = |limit| self.loaded.bench.is_quick && limit > QUICK_LIMIT_MAX;
            for at in order.into_iter().filter(|at| !is_left_out(LIMITS[*at])) {
                rates[at] = slices.rate(LIMITS[at])?;
            }
            record.add(row(json!({"part": "curve", "round": round, "limits_transactions": LIMITS, "transactions_per_sec": rates})))?;
        }
        Ok(())
    }

    /// What the gate finds while there is load, and whether it has found it.
    fn search(&self, record: &mut Record) -> Result<Vec<Step>> {
        let bench = self.loaded.bench;
        let mut gate = self
            .loaded
            .gate("[limits]\ntransactions = \"auto\"\ntransactions_max = 100\n")?;
        let _users = self
            .loaded
            .users_meanwhile(&users(self.keys.search_seconds + 60, 2))?;
        let begin = Instant::now();
        let mut steps: Vec<Step> = Vec::new();
        let mut is_found = false;
        while !is_found && begin.elapsed().as_secs() < self.keys.search_seconds {
            bench.pause(Duration::ZERO)?;
            let Ok(line) = gate.next_message(Duration::from_millis(200)) else {
                continue;
            };
            let Some((_, words)) = line.split_once(".s.PGSQL.5432: ") else {
                continue;
            };
            let Ok(limit) = words.split(' ').next().unwrap_or_default().parse() else {
                continue;
            };
            bench.tell(words);
            is_found = words.contains("enough");
            steps.push((begin.elapsed().as_secs_f64(), limit, words.to_owned()));
        }
        if bench.is_quick && steps.is_empty() {
            // Too short for the gate to try anything.
            steps.push((
                begin.elapsed().as_secs_f64(),
                2,
                "2 for want of time".into(),
            ));
        }
        let choice = steps.last().map(|step| step.1);
        record.add(row(json!({"part": "choice", "is_found": is_found, "limit_transactions": choice, "steps": steps})))?;
        Ok(steps)
    }

    /// The throughput at the gate's choice, of that at the best.
    fn choice_by_turns(&self, found: &Found, record: &mut Record) -> Result<()> {
        let mut slices = Slices::start(self.loaded, &users(MEANWHILE_SECONDS, 3))?;
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..self.keys.pairs {
            rates[0].push(slices.rate(found.choice)?);
            rates[1].push(slices.rate(found.best)?);
        }
        record.add(row(json!({"part": "choice by turns", "limits_transactions": [found.choice, found.best], "transactions_per_sec": rates})))
    }

    /// What classes cost beside first come, first served at its best: throughput, the class that
    /// waits, and the mean of all. The gate tells the times, users' own are in the runs beside.
    fn costs(&self, found: &Found, record: &mut Record) -> Result<()> {
        let ways = [
            (found.best, classes(false)),
            (found.choice, classes(true)),
            (found.enough_at_a_fifth, classes(true)),
        ];
        let limits = ways.each_ref().map(|(limit, _)| *limit);
        let mut slices = Slices::start(self.loaded, &users(MEANWHILE_SECONDS, 4))?;
        // Little's law.
        let response =
            Duration::from_secs_f64(f64::from(USERS) / slices.rate(found.best)?.max(1.0));
        let mut all: [Vec<SliceFigures>; 3] = Default::default();
        for round in 0..self.keys.pairs {
            let mut order = [0, 1, 2];
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let (limit, classes) = &ways[at];
                all[at].push(slices.seen(*limit, classes, response)?);
            }
        }
        let each = |figure: fn(&SliceFigures) -> f64| {
            let of = |seen: &Vec<SliceFigures>| seen.iter().map(figure).collect::<Vec<f64>>();
            all.each_ref().map(of)
        };
        let rates = each(|seen| seen.transactions_per_sec);
        let (low, mean) = (each(|seen| seen.low_ms), each(|seen| seen.all_ms));
        record.add(row(json!({"part": "costs by turns", "limits_transactions": limits, "transactions_per_sec": rates, "low_ms": low, "all_ms": mean})))
    }

    /// Response times of both classes, with the queue outside and inside.
    fn priorities(&self, found: &Found, record: &mut Record) -> Result<()> {
        let ways = [
            Way::Fifo(found.best),
            Way::Priority(found.choice),
            Way::Priority(found.enough_at_a_fifth),
            Way::Fifo(100),
            Way::Priority(100),
            Way::Pgbouncer(found.choice),
        ];
        for turn in 0..self.keys.runs {
            // Which way comes behind which is another each turn.
            let mut order = ways;
            order.rotate_left(turn as usize % ways.len());
            for way in order {
                let report = self.through(way, turn)?;
                record.add(row(json!({"part": "priorities", "way": way.name(), "turn": turn, "report": report})))?;
            }
        }
        Ok(())
    }

    /// One run, through a gate or a PgBouncer of its own.
    fn through(&self, way: Way, turn: u32) -> Result<Value> {
        let (loaded, bench) = (self.loaded, self.loaded.bench);
        let (limit, goes_first, port) = match way {
            Way::Fifo(limit) => (limit, false, GATE_PORT),
            Way::Priority(limit) => (limit, true, GATE_PORT),
            Way::Pgbouncer(pool) => (pool, false, PGBOUNCER_PORT),
        };
        let is_pgbouncer = matches!(way, Way::Pgbouncer(_));
        let _proxy = if is_pgbouncer {
            let bouncer = Bouncer {
                mode: "transaction",
                pool: limit,
                users: "",
                lines: "",
            };
            loaded.database.pgbouncer(bench, port, &bouncer)?
        } else {
            loaded.gate(&format!(
                "[limits]\ntransactions = {limit}\n{}",
                classes(goes_first)
            ))?
        };
        loaded.users(&Load {
            port: Some(port),
            is_unnamed: is_pgbouncer,
            warm_up_seconds: bench.seconds(2, 1),
            ..users(bench.seconds(RUN_SECONDS, 2), turn + 1)
        })
    }
}

fn page(name: &str, shares: &[(f64, f64, f64)], steps: &[Step]) -> Page {
    let points = shares.iter();
    let points = points.map(|(limit, share, _)| (*limit, *share));
    let curve = |name: &str, points| Curve {
        name: name.to_owned(),
        is_exact: false,
        policy: name.to_owned(),
        points,
    };
    let mut stairs = Vec::new();
    for (at, (seconds, limit, _)) in steps.iter().enumerate() {
        let until = steps.get(at + 1).map_or(*seconds, |next| next.0);
        stairs.extend([(*seconds, f64::from(*limit)), (until, f64::from(*limit))]);
    }
    Page {
        title: format!("{name}: how many transactions at a time"),
        summary: format!("{USERS} users without a pause on PostgreSQL through `sooner gate`."),
        figures: vec![
            Figure {
                heading: "Throughput".into(),
                x: "transactions inside".into(),
                x_is_log: true,
                y: "of the most".into(),
                y_is_log: false,
                caption: "Every limit by turns, in slices of 0.6 s.".into(),
                curves: vec![curve("throughput", points.collect())],
            },
            Figure {
                heading: "What the gate tries".into(),
                x: "seconds".into(),
                x_is_log: false,
                y: "transactions inside".into(),
                y_is_log: true,
                caption: "Each number that it tries, by turns with one that it knows; the last is what it has found.".into(),
                curves: vec![curve("tried", stairs)],
            },
        ],
    }
}
