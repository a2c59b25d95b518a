//! Priorities before PostgreSQL: how many transactions it needs inside, what the gate finds by itself, and what a class that goes first gains and costs.
//!
//! With a large pool the queue is in the database, where nobody orders it: that is measured beside.

use std::fs;

use anyhow::Context;
use serde_json::{Value, json};

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::Running;
use super::oltp::{Load, Place, SET_UPS, SetUp, number, set_up};
use super::postgres::{GATE_PORT, PROXY_CORE};
use super::record::Record;

const USERS: u32 = 100;
/// Transactions at a time that are tried; the last is what a pool usually has, or more.
const LIMITS: [u32; 12] = [1, 2, 3, 4, 5, 6, 8, 11, 16, 24, 40, 100];
/// Of the most throughput there is, what is enough (thesis 9.3).
const ENOUGH: f64 = 0.95;
/// Of transactions that go first.
const SHARES: [&str; 2] = ["0.1", "0.2"];
const PRIORITIES: &str = "[[class]]\nname = \"high\"\npriority = 1\napplication_name = [\"high\"]\n\
                          [[class]]\nname = \"rest\"\npriority = 2\napplication_name = [\"rest\"]\n";

/// Seconds of one run, of one on the curve, and while the gate looks for its limit.
struct Lengths {
    run: u32,
    point: u32,
    search: u32,
}

/// A way to the database.
#[derive(Clone, Copy)]
enum Way {
    /// First come, first served, so many at a time.
    Fifo(u32),
    /// A class goes first.
    Priority(u32),
}

impl Way {
    fn name(self) -> String {
        match self {
            Self::Fifo(limit) => format!("FIFO, {limit} inside"),
            Self::Priority(limit) => format!("priority, {limit} inside"),
        }
    }
}

/// The curve, the controller's choice and the priorities of each set-up.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut gains = Vec::new();
    for set_up in &SET_UPS {
        gains.push(measure(set_up, effort, checks)?);
    }
    let mean = gains.iter().sum::<f64>() / gains.len() as f64;
    checks.at_least(
        "a tenth goes first: low / high, mean of all set-ups",
        mean,
        12.0,
    );
    Ok(())
}

/// Those of one set-up.
pub fn only(name: &str, effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    measure(set_up(name)?, effort, checks).map(drop)
}

fn measure(set_up: &'static SetUp, effort: Effort, checks: &mut Checks) -> anyhow::Result<f64> {
    let lengths = match effort.quick {
        true => Lengths {
            run: 2,
            point: 1,
            search: 5,
        },
        false => Lengths {
            run: 20,
            point: 6,
            search: 240,
        },
    };
    let mut bench = Bench {
        record: Record::open("gate-priorities", set_up.name)?,
        effort,
        lengths,
        table: String::new(),
        checks: Checks::default(),
    };
    let gain = bench.set_up(set_up)?;
    let text = format!("{}\n{}", bench.table, bench.checks.table());
    bench.record.table(set_up.name, &text)?;
    checks.extend(bench.checks);
    Ok(gain)
}

struct Bench {
    record: Record,
    effort: Effort,
    lengths: Lengths,
    table: String,
    checks: Checks,
}

impl Bench {
    /// One set-up; how many times faster the high class is than the low one, a tenth being high.
    fn set_up(&mut self, set_up: &'static SetUp) -> anyhow::Result<f64> {
        let place = Place::new(set_up)?;
        let curve = self.curve(&place)?;
        let peak = curve.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let enough = curve.iter().find(|(_, rate)| *rate >= ENOUGH * peak);
        let enough = enough.context("nothing was measured")?.0;
        self.table += &format!(
            "\n## {}\n\nThe most is {peak:.0} transactions a second; {enough} inside are enough for {ENOUGH} of it.\n\n",
            set_up.name
        );
        self.choice(&place, set_up.name, &curve, enough)?;
        let gain = self.priorities(&place, set_up.name, enough)?;
        place.check()?;
        Ok(gain)
    }

    /// Throughput at each limit, the median of the repetitions.
    fn curve(&mut self, place: &Place) -> anyhow::Result<Vec<(u32, f64)>> {
        let mut rates = LIMITS.map(|_| Vec::new());
        for repetition in 0..self.effort.repetitions {
            for (limit, rates) in LIMITS.into_iter().zip(&mut rates) {
                let report = through(
                    place,
                    Way::Fifo(limit),
                    self.lengths.point,
                    repetition,
                    SHARES[0],
                )?;
                let rate = number(&report, "/throughput_per_sec")?;
                self.record
                    .add(&json!({"part": "curve", "limit_transactions": limit,
                    "repetition": repetition, "transactions_per_sec": rate}))?;
                rates.push(rate);
            }
        }
        self.table += "| inside | transactions a second |\n|---|---|\n";
        for (limit, rates) in LIMITS.into_iter().zip(&rates) {
            self.table += &format!("| {limit} | {} |\n", spread(rates, 0));
        }
        Ok(LIMITS
            .into_iter()
            .zip(rates.map(|rates| median(&rates)))
            .collect())
    }

    /// What the gate finds by itself.
    fn choice(
        &mut self,
        place: &Place,
        name: &str,
        curve: &[(u32, f64)],
        enough: u32,
    ) -> anyhow::Result<()> {
        let (limit, changes) = search(place, self.lengths.search)?;
        self.record
            .add(&json!({"part": "choice", "limit_transactions": limit, "changes": changes}))?;
        let report = through(place, Way::Fifo(limit), self.lengths.run, 0, SHARES[0])?;
        let again = through(
            place,
            Way::Fifo(best(curve)),
            self.lengths.run,
            0,
            SHARES[0],
        )?;
        let share =
            number(&report, "/throughput_per_sec")? / number(&again, "/throughput_per_sec")?;
        self.table += &format!(
            "The gate found {limit} after {} changes, with {share:.3} of the throughput with {} inside, measured after each other.\n\n",
            changes.len(),
            best(curve)
        );
        self.checks.at_least(
            &format!("{name}: throughput at the gate's choice / at the best"),
            share,
            ENOUGH,
        );
        self.checks.at_most(
            &format!("{name}: the gate's choice - the fewest that are enough"),
            f64::from(limit) - f64::from(enough),
            2.0,
        );
        self.checks.at_most(
            &format!("{name}: changes until then"),
            changes.len() as f64,
            10.0,
        );
        Ok(())
    }

    /// Response times of both classes, with the queue outside and inside; how many times faster the high one is.
    fn priorities(&mut self, place: &Place, name: &str, enough: u32) -> anyhow::Result<f64> {
        let ways = [
            Way::Fifo(enough),
            Way::Priority(enough),
            Way::Fifo(100),
            Way::Priority(100),
        ];
        self.table += "| share | way | high, ms | low, ms | all, ms | transactions a second |\n|---|---|---|---|---|---|\n";
        let mut gains = Vec::new();
        for share in SHARES {
            let all = self.by_turns(place, &ways, share)?;
            for (way, figures) in ways.into_iter().zip(&all) {
                let cells = figures.iter().map(|figures| spread(figures, 1));
                self.table += &format!(
                    "| {share} | {} | {} |\n",
                    way.name(),
                    cells.collect::<Vec<_>>().join(" | ")
                );
            }
            let [fifo, priority, _, null] = &all[..] else {
                continue;
            };
            let (high, low, mean) = (0, 1, 2);
            let gain = ratio(&priority[low], &priority[high]);
            if share == SHARES[0] {
                self.checks.at_most(
                    &format!("{name}: low / low without classes"),
                    ratio(&priority[low], &fifo[low]),
                    1.16,
                );
                self.checks.at_most(
                    &format!("{name}: all / all without classes"),
                    ratio(&priority[mean], &fifo[mean]),
                    1.06,
                );
            }
            self.table += &format!(
                "| {share} | low / high: {gain:.1}, with 100 inside {:.2} | | | | |\n",
                ratio(&null[low], &null[high])
            );
            gains.push(gain);
        }
        Ok(gains[0])
    }

    /// For each way the means of high, low and all, and throughput, one of each a repetition.
    fn by_turns(
        &mut self,
        place: &Place,
        ways: &[Way],
        share: &str,
    ) -> anyhow::Result<Vec<[Vec<f64>; 4]>> {
        const FIELDS: [&str; 4] = [
            "/classes/0/mean_response_ms",
            "/classes/1/mean_response_ms",
            "/all/mean_response_ms",
            "/throughput_per_sec",
        ];
        let mut all = vec![[const { Vec::new() }; 4]; ways.len()];
        for repetition in 0..self.effort.repetitions {
            for (way, figures) in ways.iter().zip(&mut all) {
                let report = through(place, *way, self.lengths.run, repetition, share)?;
                self.record.add(&json!({"part": "priorities", "way": way.name(), "share": share, "repetition": repetition, "report": report}))?;
                for (field, figures) in FIELDS.into_iter().zip(figures) {
                    figures.push(number(&report, field)?);
                }
            }
        }
        Ok(all)
    }
}

/// The median of the ratios, repetition by repetition.
fn ratio(one: &[f64], other: &[f64]) -> f64 {
    let pairs = one.iter().zip(other);
    median(&pairs.map(|(one, other)| one / other).collect::<Vec<_>>())
}

/// The limit with the most throughput.
fn best(curve: &[(u32, f64)]) -> u32 {
    let best = curve.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    best.map_or(1, |(limit, _)| *limit)
}

fn load(seconds: u32, repetition: u32, classes: &[String]) -> Load<'_> {
    Load {
        users: USERS,
        seconds,
        seed: repetition + 1,
        classes,
    }
}

/// One run, through a gate of its own.
fn through(
    place: &Place,
    way: Way,
    seconds: u32,
    repetition: u32,
    share: &str,
) -> anyhow::Result<Value> {
    let (limit, classes) = match way {
        Way::Fifo(limit) => (limit, ""),
        Way::Priority(limit) => (limit, PRIORITIES),
    };
    let _gate = place.gate(&format!("[limits]\ntransactions = {limit}\n{classes}"))?;
    place.users(&load(seconds, repetition, &[format!("high={share}")]))
}

/// The limit that a gate finds while there is load, and every change until it had found one.
fn search(place: &Place, seconds: u32) -> anyhow::Result<(u32, Vec<String>)> {
    let gate = place.gate("[limits]\ntransactions = \"auto\"\ntransactions_max = 100\n")?;
    place.users(&load(seconds, 0, &[]))?;
    let now = limit(place)?;
    drop::<Running>(gate);
    let text = fs::read_to_string(place.log())?;
    let words = |line: &str| Some(line.split_once(".s.PGSQL.5432: ")?.1.to_owned());
    let mut changes: Vec<String> = text.lines().filter_map(words).collect();
    let found = changes.iter().position(|line| line.contains("enough"));
    let Some(found) = found else {
        return Ok((now, changes));
    };
    changes.truncate(found + 1);
    let limit = changes[found].split(' ').next().unwrap_or_default();
    Ok((limit.parse()?, changes))
}

/// How many the gate lets in at the moment.
fn limit(place: &Place) -> anyhow::Result<u32> {
    let folder = &place.folder;
    let mut psql = folder.program(PROXY_CORE, &folder.programs.join("psql"));
    psql.arg("-h")
        .arg(folder.path())
        .args(["-p", GATE_PORT, "-U", "postgres"]);
    let output = psql
        .args(["-At", "-d", "sooner", "-c", "SHOW GATES"])
        .output()?;
    let shown = String::from_utf8_lossy(&output.stdout);
    let limit = shown.split('|').nth(1);
    Ok(limit.context("the gate does not show its limit")?.parse()?)
}
