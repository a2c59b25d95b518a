//! The online bookstore of the thesis (14.2, Figure 14.1): what who triggers requests changes, and what an order gives.
//!
//! TPC-W's browsing mix on PostgreSQL: everything at once as the database serves it by turns (PS), and with as few inside as are enough first come
//! first served (FIFO), what is expected to be short first (SEJF) and what is expected to be long first (LEJF). The thesis ordered inside, by
//! real-time priorities of the database's processes; outside, what is inside is not preempted. FIFO tells what the limit alone gives.
//!
//! Few inside can do much more than all inside, so that there is no load at which both are busy: at one PS is, and hardly anybody waits
//! outside; at the other orders are compared, and PS, which could not bear it, is left out.

use serde_json::{Value, json};

use super::Effort;
use super::check::{Checks, median, spread};
use super::oltp::{Arrivals, Load, Place, number, set_up};
use super::record::Record;

/// As few as are enough.
const FEW: u32 = 3;
/// As many as come.
const ALL: u32 = 100;
/// What makes the load of a closed system: users without a pause.
const USERS: u32 = 50;
/// Load of the others.
const LOAD: f64 = 0.9;
/// Requests of a visit, on average.
const VISIT: f64 = 5.0;

/// How many are inside, and the order of the others.
const ORDERS: [(&str, u32, &str); 4] = [
    ("FIFO", FEW, ""),
    ("SEJF", FEW, "order = \"shortest\"\n"),
    ("LEJF", FEW, "order = \"longest\"\n"),
    ("PS", ALL, ""),
];

/// Where in them.
const FIFO: usize = 0;
const SHORTEST: usize = 1;
const LONGEST: usize = 2;
const PS: usize = 3;

/// Who triggers requests, and of what the load is a part: what the database can do with so many inside.
const SITES: [(&str, u32); 5] = [
    ("closed", ALL),
    ("open", ALL),
    ("open", FEW),
    ("partly-open", ALL),
    ("partly-open", FEW),
];

/// All sites, by all orders that can bear the load.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let place = Place::new(set_up("tpcw-browsing")?)?;
    let mut record = Record::open("bookstore", "bookstore")?;
    let mut all = vec![vec![Vec::new(); ORDERS.len()]; SITES.len()];
    for round in 0..2 * effort.repetitions + 1 {
        for ((model, load_with), orders) in SITES.into_iter().zip(&mut all) {
            for ((name, inside, config), means_ms) in ORDERS.into_iter().zip(orders) {
                if inside > load_with {
                    continue;
                }
                let load_per_sec = match model {
                    "closed" => None,
                    _ => Some(LOAD * most_per_sec(&place, load_with, effort, round)?),
                };
                let arrivals = match load_per_sec {
                    None => Arrivals::Closed(USERS),
                    Some(rate) if model == "open" => Arrivals::Open(rate),
                    Some(rate) => Arrivals::PartlyOpen(rate / VISIT, VISIT),
                };
                let seconds = if effort.quick { 2 } else { 8 };
                let report = through(&place, inside, config, arrivals, seconds, round)?;
                record.add(&json!({"model": model, "load_with": load_with, "order": name, "round": round, "load_per_sec": load_per_sec, "report": report}))?;
                means_ms.push(number(&report, "/all/mean_response_at_least_ms")?);
            }
        }
    }
    place.check()?;
    let (text, own) = judged(&all);
    record.table("bookstore", &format!("{text}\n{}", own.table()))?;
    checks.extend(own);
    Ok(())
}

/// Mean response times of each round, ms, by site and order.
fn judged(all: &[Vec<Vec<f64>>]) -> (String, Checks) {
    let mut text = String::from(
        "| model | 0.9 of what so many inside can do | order | mean response time, ms | of FIFO |\n|---|---|---|---|---|\n",
    );
    let mut of_fifo = Vec::new();
    for ((model, load_with), orders) in SITES.into_iter().zip(all) {
        let mut own = Vec::new();
        for ((name, ..), means_ms) in ORDERS.into_iter().zip(orders) {
            let pairs = means_ms.iter().zip(&orders[FIFO]);
            let ratios: Vec<f64> = pairs.map(|(one, fifo)| one / fifo).collect();
            own.push(median(&ratios));
            if means_ms.is_empty() {
                continue;
            }
            let (means_ms, ratios) = (spread(means_ms, 1), spread(&ratios, 2));
            text += &format!("| {model} | {load_with} | {name} | {means_ms} | {ratios} |\n");
        }
        of_fifo.push(own);
    }
    let mut checks = Checks::default();
    let gap = |of: &[f64]| of[LONGEST] / of[SHORTEST];
    let [closed, open, busy, partly, partly_busy] = [0, 1, 2, 3, 4].map(|at| &of_fifo[at]);
    for (name, of) in [("open", open), ("partly-open", partly)] {
        let what = format!("{name}: shortest first / PS");
        checks.at_most(&what, of[SHORTEST] / of[PS], 0.8);
    }
    for (name, of) in [("open", busy), ("partly-open", partly_busy)] {
        let what = format!("{name}: shortest first / FIFO");
        checks.at_most(&what, of[SHORTEST], 0.8);
    }
    checks.at_least("open: longest first / shortest first", gap(busy), 2.0);
    checks.at_most(
        "longest / shortest: closed, of open",
        gap(closed) / gap(busy),
        1.0,
    );
    (text, checks)
}

/// What the database can do with so many inside at the moment.
fn most_per_sec(place: &Place, inside: u32, effort: Effort, round: u32) -> anyhow::Result<f64> {
    let seconds = if effort.quick { 1 } else { 4 };
    let report = through(place, inside, "", Arrivals::Closed(ALL), seconds, round)?;
    number(&report, "/throughput_per_sec")
}

fn through(
    place: &Place,
    inside: u32,
    config: &str,
    arrivals: Arrivals,
    seconds: u32,
    round: u32,
) -> anyhow::Result<Value> {
    let _gate = place.gate(&format!("{config}[limits]\ntransactions = {inside}\n"))?;
    place.users(&Load {
        arrivals,
        warm_up_seconds: 2,
        ..Load::closed(USERS, seconds, round + 1)
    })
}
