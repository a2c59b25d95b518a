//! The online bookstore of the thesis (14.2, Figure 14.1): what who triggers requests changes, and what an order gives.
//!
//! TPC-W's browsing mix on PostgreSQL: everything at once as the database serves it by turns (PS), and with as few inside as are enough first come
//! first served (FIFO), what is expected to be short first (SEJF) and what is expected to be long first (LEJF). The thesis ordered inside, by
//! real-time priorities of the database's processes; outside, what is inside is not preempted. FIFO tells what the limit alone gives.

use serde_json::{Value, json};

use super::Effort;
use super::check::{Checks, median, spread};
use super::oltp::{Arrivals, Load, Place, number, set_up};
use super::record::Record;

const INSIDE: u32 = 4;
/// What makes the load of a closed system: users without a pause.
const USERS: u32 = 50;
/// Load of the others.
const LOAD: f64 = 0.9;
/// Requests of a visit, on average.
const VISIT: f64 = 5.0;

const ORDERS: [(&str, u32, &str); 4] = [
    ("PS", 100, ""),
    ("FIFO", INSIDE, ""),
    ("SEJF", INSIDE, "order = \"shortest\"\n"),
    ("LEJF", INSIDE, "order = \"longest\"\n"),
];

/// Where in them.
const PS: usize = 0;
const FIFO: usize = 1;
const SHORTEST: usize = 2;
const LONGEST: usize = 3;

/// Closed, open and partly-open, by all orders.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let place = Place::new(set_up("tpcw-browsing")?)?;
    let mut record = Record::open("bookstore", "bookstore")?;
    let models = ["closed", "open", "partly-open"];
    let mut all = vec![vec![Vec::new(); ORDERS.len()]; models.len()];
    for round in 0..effort.repetitions + 1 {
        for (model, orders) in models.into_iter().zip(&mut all) {
            for (order, means_ms) in ORDERS.into_iter().zip(orders) {
                let most = most_per_sec(&place, effort, round)?;
                let arrivals = match model {
                    "open" => Arrivals::Open(LOAD * most),
                    "partly-open" => Arrivals::PartlyOpen(LOAD * most / VISIT, VISIT),
                    _ => Arrivals::Closed(USERS),
                };
                let seconds = if effort.quick { 2 } else { 15 };
                let (name, inside, config) = order;
                let report = through(&place, inside, config, arrivals, seconds, round)?;
                record.add(&json!({"model": model, "order": name, "round": round, "most_per_sec": most, "report": report}))?;
                means_ms.push(number(&report, "/all/mean_response_ms")?);
            }
        }
    }
    place.check()?;
    let mut text =
        String::from("| model | order | mean response time, ms | of FIFO |\n|---|---|---|---|\n");
    let mut ratios = Vec::new();
    for (model, orders) in models.into_iter().zip(&all) {
        let mut of_fifo = Vec::new();
        for ((name, _, _), means_ms) in ORDERS.into_iter().zip(orders) {
            let pairs = means_ms.iter().zip(&orders[FIFO]);
            let own: Vec<f64> = pairs.map(|(one, fifo)| one / fifo).collect();
            text += &format!(
                "| {model} | {name} | {} | {} |\n",
                spread(means_ms, 1),
                spread(&own, 2)
            );
            of_fifo.push(median(&own));
        }
        ratios.push(of_fifo);
    }
    let own = judged(&ratios);
    record.table("bookstore", &format!("{text}\n{}", own.table()))?;
    checks.extend(own);
    Ok(())
}

/// By model and order, of FIFO.
fn judged(ratios: &[Vec<f64>]) -> Checks {
    let mut checks = Checks::default();
    let [closed, open, partly] = [&ratios[0], &ratios[1], &ratios[2]];
    let gap = |of: &[f64]| of[LONGEST] / of[SHORTEST];
    for (name, of) in [("open", open), ("partly-open", partly)] {
        checks.at_most(&format!("{name}: shortest first / FIFO"), of[SHORTEST], 0.8);
        checks.at_most(
            &format!("{name}: shortest first / PS"),
            of[SHORTEST] / of[PS],
            0.8,
        );
    }
    checks.at_least("open: longest first / shortest first", gap(open), 2.0);
    checks.at_most(
        "longest / shortest: closed, of open",
        gap(closed) / gap(open),
        1.0,
    );
    checks
}

/// What the database alone can do at the moment.
fn most_per_sec(place: &Place, effort: Effort, round: u32) -> anyhow::Result<f64> {
    let seconds = if effort.quick { 1 } else { 5 };
    let all = Arrivals::Closed(ORDERS[PS].1);
    let report = through(place, ORDERS[PS].1, "", all, seconds, round)?;
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
