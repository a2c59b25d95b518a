//! How many transactions need to be inside where they come whatever becomes of the others: response times on PostgreSQL at a load of 0.7 and 0.9
//! (thesis 9.3.6, Figure 9.10).
//!
//! What the database can do is measured anew before each round, and the load is a part of that: what the machine does meanwhile concerns all.

use anyhow::Context;
use serde_json::json;

use super::Effort;
use super::check::{Checks, median, spread};
use super::oltp::{Arrivals, Load, Place, number, set_up};
use super::record::Record;

const SET_UPS: [&str; 2] = ["tpcc-10", "tpcw-shopping"];
/// Transactions inside; the last is as many as ever come.
const LIMITS: [u32; 7] = [1, 2, 4, 8, 20, 40, 100];
/// How many give what the database can do.
const CAPACITY_LIMIT: u32 = 6;
/// Load, from how many inside on the number is to make no difference, and what counts as none.
const LOADS: [(f64, u32, f64); 2] = [(0.7, 4, 1.25), (0.9, 20, 1.25)];

/// Both loads of both set-ups.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    for name in SET_UPS {
        let mut bench = Bench {
            place: Place::new(set_up(name)?)?,
            record: Record::open("gate-open", name)?,
            text: "| load | inside | mean response time, ms | of that with 100 | C2 |\n|---|---|---|---|---|\n".into(),
            checks: Checks::default(),
            effort,
            name,
        };
        for (load, from, most) in LOADS {
            bench.load(load, from, most)?;
        }
        bench.place.check()?;
        let text = format!("{}\n{}", bench.text, bench.checks.table());
        bench.record.table(name, &text)?;
        checks.extend(bench.checks);
    }
    Ok(())
}

struct Bench {
    place: Place,
    record: Record,
    text: String,
    checks: Checks,
    effort: Effort,
    name: &'static str,
}

impl Bench {
    fn load(&mut self, load: f64, from: u32, most: f64) -> anyhow::Result<()> {
        let mut all = vec![(Vec::new(), Vec::new()); LIMITS.len()];
        for round in 0..2 * self.effort.repetitions {
            let mut order: Vec<usize> = (0..LIMITS.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let (mean_ms, c2) = self.measure(LIMITS[at], load, round)?;
                all[at].0.push(mean_ms);
                all[at].1.push(c2);
            }
        }
        let last = all.last().context("nothing was measured")?.0.clone();
        let mut worst: f64 = 0.0;
        for (limit, (means_ms, c2)) in LIMITS.into_iter().zip(&all) {
            let pairs = means_ms.iter().zip(&last);
            let ratios: Vec<f64> = pairs.map(|(one, last)| one / last).collect();
            if limit >= from {
                worst = worst.max(median(&ratios));
            }
            self.text += &format!(
                "| {load} | {limit} | {} | {} | {} |\n",
                spread(means_ms, 1),
                spread(&ratios, 2),
                spread(c2, 1)
            );
        }
        let what = format!(
            "{}, load {load}: with {from} inside or more / with 100",
            self.name
        );
        self.checks.at_most(&what, worst, most);
        Ok(())
    }

    /// Mean response time, ms, and its variability, where so much of what the database can do at the moment is wanted.
    fn measure(&mut self, limit: u32, load: f64, round: u32) -> anyhow::Result<(f64, f64)> {
        let (seconds, capacity_seconds) = if self.effort.quick { (2, 1) } else { (12, 4) };
        let users = |limit: u32, load: &Load<'_>| {
            let _gate = self
                .place
                .gate(&format!("[limits]\ntransactions = {limit}\n"))?;
            self.place.users(load)
        };
        let closed = Load {
            warm_up_seconds: 1,
            ..Load::closed(100, capacity_seconds, round + 1)
        };
        let most = number(&users(CAPACITY_LIMIT, &closed)?, "/throughput_per_sec")?;
        let open = Load {
            arrivals: Arrivals::Open(load * most),
            ..Load::closed(0, seconds, round + 1)
        };
        let report = users(limit, &open)?;
        self.record.add(&json!({"load": load, "limit_transactions": limit, "round": round, "most_per_sec": most, "report": report}))?;
        let figures = ["/all/mean_response_ms", "/all/response_c2"].map(|at| number(&report, at));
        let [mean_ms, c2] = figures;
        Ok((mean_ms?, c2?))
    }
}
