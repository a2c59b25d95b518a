//! Priorities before PostgreSQL: how many transactions it needs inside, what the gate finds by itself, and what a class that goes first gains and costs.
//!
//! With a large pool the queue is in the database, where nobody orders it: that is measured beside, and PgBouncer with the same pool.

use serde_json::{Value, json};

use super::Effort;
use super::check::{Checks, spread};
use super::gate_costs;
use super::gate_limits::{self, Found, Lengths};
use super::oltp::{Load, Place, SET_UPS, SetUp, number, set_up};
use super::postgres::GATE_PORT;
use super::record::Record;
use super::slices::ratio;

const PGBOUNCER_PORT: &str = "6433";
/// Short runs, so that one way meets the same machine as the next.
const RUN_SECONDS: u32 = 6;
/// Turns of all ways, a repetition.
const TURNS: u32 = 3;

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

/// The curve, the controller's choice and the priorities of each set-up.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut gains = Vec::new();
    for set_up in &SET_UPS {
        gains.push(measure(set_up, effort, checks)?);
    }
    let mean = gains.iter().sum::<f64>() / gains.len() as f64;
    let what = "a tenth goes first: low / high, mean of all set-ups";
    checks.at_least(what, mean, 12.0);
    Ok(())
}

/// Those of one set-up.
pub fn only(name: &str, effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    measure(set_up(name)?, effort, checks).map(drop)
}

/// How many times faster the high class is than the low one.
fn measure(set_up: &'static SetUp, effort: Effort, checks: &mut Checks) -> anyhow::Result<f64> {
    let place = Place::new(set_up)?;
    let mut record = Record::open("gate-priorities", set_up.name)?;
    let (mut text, mut own) = (String::new(), Checks::default());
    let lengths = Lengths::new(effort);
    let found = gate_limits::measure(
        &place,
        set_up.name,
        &lengths,
        &mut record,
        &mut text,
        &mut own,
    )?;
    gate_costs::measure(
        &place,
        set_up.name,
        &lengths,
        &found,
        &mut record,
        &mut text,
        &mut own,
    )?;
    let mut bench = Bench {
        place: &place,
        name: set_up.name,
        effort,
        record,
        text,
        checks: own,
    };
    let gain = bench.priorities(&found)?;
    place.check()?;
    let text = format!("{}\n{}", bench.text, bench.checks.table());
    bench.record.table(set_up.name, &text)?;
    checks.extend(bench.checks);
    Ok(gain)
}

struct Bench<'a> {
    place: &'a Place,
    name: &'static str,
    effort: Effort,
    record: Record,
    text: String,
    checks: Checks,
}

/// Means of high, low and all, ms, and throughput, one of each a run.
type Figures = [Vec<f64>; 4];

const FIELDS: [&str; 4] = [
    "/classes/0/mean_response_ms",
    "/classes/1/mean_response_ms",
    "/all/mean_response_ms",
    "/throughput_per_sec",
];
/// Where in them.
const HIGH_MS: usize = 0;
const LOW_MS: usize = 1;

impl Bench<'_> {
    /// Response times of both classes, with the queue outside and inside.
    fn priorities(&mut self, found: &Found) -> anyhow::Result<f64> {
        let ways = [
            Way::Fifo(found.best),
            Way::Priority(found.choice),
            Way::Priority(found.enough_at_a_fifth),
            Way::Fifo(100),
            Way::Priority(100),
            Way::Pgbouncer(found.choice),
        ];
        let all = self.by_turns(&ways)?;
        self.text += "| way | high, ms | low, ms | all, ms | transactions a second |\n|---|---|---|---|---|\n";
        for (way, figures) in ways.into_iter().zip(&all) {
            let cells: Vec<String> = figures.iter().map(|figures| spread(figures, 1)).collect();
            self.text += &format!("| {} | {} |\n", way.name(), cells.join(" | "));
        }
        let [_, priority, fifth, large_fifo, large, pgbouncer] = &all[..] else {
            anyhow::bail!("a way was not measured");
        };
        let (gain, half) = ratio(&priority[LOW_MS], &priority[HIGH_MS]);
        let name = self.name;
        self.text += &format!(
            "\nLow / high: {gain:.1} (± {half:.1}) at 5 %, {:.1} at 20 %; with 100 inside {:.2}, and without classes {:.2}.\n",
            ratio(&fifth[LOW_MS], &fifth[HIGH_MS]).0,
            ratio(&large[LOW_MS], &large[HIGH_MS]).0,
            ratio(&large_fifo[LOW_MS], &large_fifo[HIGH_MS]).0,
        );
        self.text += &format!(
            "PgBouncer's high class / the gate's: {:.1}.\n",
            ratio(&pgbouncer[HIGH_MS], &priority[HIGH_MS]).0
        );
        let least = if self.effort.quick { 0.0 } else { 4.2 };
        self.checks
            .at_least(&format!("{name}: low / high"), gain, least);
        Ok(gain)
    }

    /// For each way its figures, one of each a turn.
    fn by_turns(&mut self, ways: &[Way]) -> anyhow::Result<Vec<Figures>> {
        let mut all = vec![[const { Vec::new() }; 4]; ways.len()];
        let turns = if self.effort.quick { 1 } else { TURNS };
        for turn in 0..turns * self.effort.repetitions {
            // Who comes behind whom is another each turn.
            let mut order: Vec<_> = ways.iter().zip(&mut all).collect();
            order.rotate_left(turn as usize % ways.len());
            for (way, figures) in order {
                let report = self.through(*way, turn)?;
                self.record.add(&json!({"part": "priorities", "way": way.name(), "turn": turn, "report": report}))?;
                for (field, figures) in FIELDS.into_iter().zip(figures) {
                    figures.push(number(&report, field)?);
                }
            }
        }
        Ok(all)
    }

    /// One run, through a gate or a PgBouncer of its own.
    fn through(&self, way: Way, turn: u32) -> anyhow::Result<Value> {
        let place = self.place;
        let seconds = if self.effort.quick { 2 } else { RUN_SECONDS };
        let (limit, goes_first, port) = match way {
            Way::Fifo(limit) => (limit, false, GATE_PORT),
            Way::Priority(limit) => (limit, true, GATE_PORT),
            Way::Pgbouncer(pool) => (pool, false, PGBOUNCER_PORT),
        };
        let classes = gate_costs::classes(goes_first);
        let _proxy = match way {
            Way::Pgbouncer(_) => place
                .folder
                .pgbouncer(port, "transaction", &limit.to_string())?,
            _ => place.gate(&format!("[limits]\ntransactions = {limit}\n{classes}"))?,
        };
        place.users(&Load {
            port,
            is_unnamed: matches!(way, Way::Pgbouncer(_)),
            warm_up_seconds: 2,
            ..gate_limits::users(seconds, turn + 1)
        })
    }
}
