//! What classes cost beside first come, first served at its best: throughput, the class that waits, and the mean of all.
//!
//! By turns in slices under one load, since a machine that others share does now a fifth more and now a fifth less for half a minute. The gate tells the
//! times, users' own are in the runs beside.

use std::time::Duration;

use serde_json::json;

use super::check::Checks;
use super::gate_limits::{Found, Lengths, USERS, users};
use super::oltp::Place;
use super::record::Record;
use super::slices::{Seen, Slices, ratio};

/// What may be lost of the throughput, the name of that, and how much longer the class that waits and all may take (thesis 9.4).
const CLAIMS: [(&str, f64, f64, f64); 2] =
    [("at 5 %", 0.95, 1.16, 1.06), ("at 20 %", 0.8, 1.37, 1.25)];
/// What such slices cannot tell.
const ERROR: f64 = 0.02;

/// The configuration's classes: `high` goes first, or nobody does.
pub fn classes(goes_first: bool) -> String {
    let rest = if goes_first { 2 } else { 1 };
    format!(
        "[[class]]\nname = \"high\"\npriority = 1\napplication_name = [\"high\"]\n\
         [[class]]\nname = \"rest\"\npriority = {rest}\napplication_name = [\"rest\"]\n"
    )
}

/// The costs at what the gate chose and where a fifth of the throughput may be lost.
pub fn measure(
    place: &Place,
    name: &str,
    lengths: &Lengths,
    found: &Found,
    record: &mut Record,
    text: &mut String,
    checks: &mut Checks,
) -> anyhow::Result<()> {
    let ways = [
        (found.best, classes(false)),
        (found.choice, classes(true)),
        (found.enough_at_a_fifth, classes(true)),
    ];
    let limits = ways.each_ref().map(|(limit, _)| *limit);
    let mut slices = Slices::start(place, &users(3000, 4))?;
    // Little's law.
    let response = Duration::from_secs_f64(f64::from(USERS) / slices.rate(found.best)?.max(1.0));
    let mut all: [Vec<Seen>; 3] = Default::default();
    for round in 0..lengths.pairs {
        let mut order = [0, 1, 2];
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let (limit, classes) = &ways[at];
            all[at].push(slices.seen(*limit, classes, response)?);
        }
    }
    let each = |figure: fn(&Seen) -> f64| {
        all.each_ref()
            .map(|seen| seen.iter().map(figure).collect::<Vec<f64>>())
    };
    let (rates, low, mean) = (
        each(|seen| seen.transactions_per_sec),
        each(|seen| seen.low_ms),
        each(|seen| seen.all_ms),
    );
    record.add(&json!({"part": "costs by turns", "limits_transactions": limits, "transactions_per_sec": rates, "low_ms": low, "all_ms": mean}))?;
    *text += "| of FIFO at its best, by turns | throughput | low | all |\n|---|---|---|---|\n";
    for (at, (loss, rate_share, low_most, all_most)) in (1..).zip(CLAIMS) {
        let of_fifo = [&rates, &low, &mean].map(|figures| ratio(&figures[at], &figures[0]));
        let cells = of_fifo.map(|(share, half)| format!("{share:.3} (± {half:.3})"));
        *text += &format!(
            "| priority, {} inside | {} |\n",
            limits[at],
            cells.join(" | ")
        );
        let what = |what: &str| format!("{name}, {loss}: {what} / FIFO at its best");
        checks.at_least(&what("throughput"), of_fifo[0].0, rate_share - ERROR);
        checks.at_most(&what("low"), of_fifo[1].0, low_most);
        checks.at_most(&what("all"), of_fifo[2].0, all_most);
    }
    *text += "\n";
    Ok(())
}
