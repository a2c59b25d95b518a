//! How many transactions need to be inside where they come whatever becomes of the others: response times on PostgreSQL in an open system
//! (thesis 9.3.6, Figure 9.10).
//!
//! All inside can do much less than few. So two loads are parts of what all inside can do: every limit that is compared can bear them, and what is
//! seen is what a queue outside adds. The third is a part of what few can do, which all inside may not bear. What the database can do is measured
//! anew before each run, so that what the machine does meanwhile concerns all.

use anyhow::Context;
use serde_json::json;

use super::Effort;
use super::check::{Checks, median, spread};
use super::oltp::{Arrivals, Load, Place, number, set_up};
use super::record::Record;

/// With the number that is enough for 0.95 of the most throughput without a pause, as `gate-priorities` found.
const SET_UPS: [(&str, u32); 2] = [("tpcc-10", 4), ("tpcw-shopping", 3)];
/// As many as ever come.
const ALL: u32 = 100;
/// Transactions inside.
const LIMITS: [u32; 8] = [1, 2, 3, 4, 8, 20, 40, ALL];
/// How many give about the most.
const FEW: u32 = 6;

/// A load: a part of what the database can do with so many inside.
struct Case {
    part: f64,
    with: u32,
    /// The limits that are compared with all inside.
    compared: std::ops::RangeInclusive<u32>,
    /// The longest of their means, of that with all inside.
    most: f64,
}

const CASES: [Case; 3] = [
    Case {
        part: 0.7,
        with: ALL,
        compared: 4..=ALL,
        most: 1.25,
    },
    Case {
        part: 0.9,
        with: ALL,
        compared: 20..=ALL,
        most: 1.25,
    },
    Case {
        part: 0.9,
        with: FEW,
        compared: 8..=8,
        most: 0.5,
    },
];
/// The mean with the number that is enough, of the shortest of all limits, where all can bear the load.
const ENOUGH_MOST: f64 = 1.25;

/// All loads of both set-ups.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    for (name, enough) in SET_UPS {
        let mut bench = Bench {
            place: Place::new(set_up(name)?)?,
            record: Record::open("gate-open", name)?,
            text: "| load | of what so many inside can do | inside | mean response time, ms | of that with 100 | C2 |\n|---|---|---|---|---|---|\n".into(),
            checks: Checks::default(),
            effort,
            name,
            enough,
        };
        for case in &CASES {
            bench.case(case)?;
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
    enough: u32,
}

impl Bench {
    fn case(&mut self, case: &Case) -> anyhow::Result<()> {
        let mut all = vec![(Vec::new(), Vec::new()); LIMITS.len()];
        for round in 0..2 * self.effort.repetitions {
            let mut order: Vec<usize> = (0..LIMITS.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let (mean_ms, c2) = self.measure(LIMITS[at], case, round)?;
                all[at].0.push(mean_ms);
                all[at].1.push(c2);
            }
        }
        let with_all = all.last().context("nothing was measured")?.0.clone();
        let Case { part, with, .. } = case;
        let mut of_all = Vec::new();
        for (limit, (means_ms, c2)) in LIMITS.into_iter().zip(&all) {
            let pairs = means_ms.iter().zip(&with_all);
            let ratios: Vec<f64> = pairs.map(|(one, all)| one / all).collect();
            of_all.push((limit, median(&ratios)));
            self.text += &format!(
                "| {part} | {with} | {limit} | {} | {} | {} |\n",
                spread(means_ms, 1),
                spread(&ratios, 2),
                spread(c2, 1)
            );
        }
        self.judge(case, &of_all);
        Ok(())
    }

    /// Mean response times by limit, of those with all inside.
    fn judge(&mut self, case: &Case, of_all: &[(u32, f64)]) {
        let what = format!("{}, {} of what {} can do", self.name, case.part, case.with);
        let (from, to) = (case.compared.start(), case.compared.end());
        let compared = of_all.iter();
        let compared = compared.filter(|(limit, _)| case.compared.contains(limit));
        let longest = compared.map(|(_, ratio)| *ratio).fold(0.0, f64::max);
        let text = format!("{what}: with {from} to {to} inside / with all");
        self.checks.at_most(&text, longest, case.most);
        if case.with == ALL {
            let of = |wanted: u32| of_all.iter().find(|(limit, _)| *limit == wanted);
            let enough = of(self.enough).map_or(f64::NAN, |(_, ratio)| *ratio);
            let ratios = of_all.iter().map(|(_, ratio)| *ratio);
            let shortest = ratios.fold(f64::INFINITY, f64::min);
            let text = format!("{what}: with {} inside / the shortest", self.enough);
            self.checks.at_most(&text, enough / shortest, ENOUGH_MOST);
        }
    }

    /// Mean response time, ms, and its variability, where so much of what the database can do at the moment is wanted.
    fn measure(&mut self, limit: u32, case: &Case, round: u32) -> anyhow::Result<(f64, f64)> {
        let (seconds, capacity_seconds) = if self.effort.quick { (2, 1) } else { (8, 3) };
        let users = |limit: u32, load: &Load<'_>| {
            let _gate = self
                .place
                .gate(&format!("[limits]\ntransactions = {limit}\n"))?;
            self.place.users(load)
        };
        let closed = Load {
            warm_up_seconds: 1,
            ..Load::closed(ALL, capacity_seconds, round + 1)
        };
        let most = number(&users(case.with, &closed)?, "/throughput_per_sec")?;
        let open = Load {
            arrivals: Arrivals::Open(case.part * most),
            warm_up_seconds: 2,
            ..Load::closed(0, seconds, round + 1)
        };
        let report = users(limit, &open)?;
        self.record.add(&json!({"load": case.part, "of_what_with": case.with, "limit_transactions": limit, "round": round, "most_per_sec": most, "report": report}))?;
        let figures =
            ["/all/mean_response_at_least_ms", "/all/response_c2"].map(|at| number(&report, at));
        let [mean_ms, c2] = figures;
        Ok((mean_ms?, c2?))
    }
}
