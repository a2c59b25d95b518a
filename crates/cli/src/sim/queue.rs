//! The second table of `sooner sim`: how long jobs wait, and how many are there.

use super::results::{Done, finite_or_not};
use serde_json::{Value, json};
use sooner_report::number::significant;
use sooner_simulator::Estimate;
use sooner_simulator::replicate::CONFIDENCE;
use sooner_theory::little::Queue;

/// A figure of the table: its head, the name of its fields in JSON, and where it comes from.
struct Figure {
    head: &'static str,
    field: &'static str,
    found: fn(&Done<'_>) -> Estimate,
    exact: fn(&Queue) -> f64,
}

const FIGURES: [Figure; 3] = [
    Figure {
        head: "waiting (Wq)",
        field: "mean_waiting",
        found: |done| done.simulated.waiting(CONFIDENCE),
        exact: |queue| queue.waiting,
    },
    Figure {
        head: "in system (L)",
        field: "mean_jobs",
        found: |done| done.simulated.jobs(CONFIDENCE),
        exact: |queue| queue.jobs,
    },
    Figure {
        head: "in queue (Lq)",
        field: "mean_jobs_waiting",
        found: |done| done.simulated.jobs_waiting(CONFIDENCE),
        exact: |queue| queue.jobs_waiting,
    },
];

/// The heads of its columns, those that set a case apart left out.
pub fn heads(has_exact: bool) -> Vec<String> {
    let columns = FIGURES.iter().flat_map(|figure| {
        let exact = has_exact.then_some("exact");
        [figure.head, "± 95 %"].into_iter().chain(exact)
    });
    columns.map(String::from).collect()
}

/// The cells of one case.
pub fn cells(done: &Done<'_>, has_exact: bool) -> Vec<String> {
    let is_finite = done.infinite.is_none();
    let cells = FIGURES.iter().flat_map(|figure| {
        let Estimate { mean, half_width } = (figure.found)(done);
        let found = finite_or_not(if is_finite { mean } else { f64::INFINITY });
        let half_width = half_width.filter(|_| is_finite);
        let half_width = half_width.map_or("-".into(), significant);
        let exact = done.queue.as_ref().map(figure.exact);
        let exact = has_exact.then(|| exact.map_or("-".into(), finite_or_not));
        [found, half_width].into_iter().chain(exact)
    });
    cells.collect()
}

/// Adds its figures to the JSON of a case.
pub fn add_to(run: &mut Value, done: &Done<'_>) {
    for figure in &FIGURES {
        let found = (figure.found)(done);
        let is_finite = done.infinite.is_none();
        let finite = |value: Value| if is_finite { value } else { Value::Null };
        let exact = done.queue.as_ref().map(figure.exact);
        let exact = exact.filter(|exact| exact.is_finite());
        let field = figure.field;
        run[field] = finite(json!(found.mean));
        run[format!("{field}_ci95")] = finite(json!(found.interval()));
        run[format!("exact_{field}")] = json!(exact);
    }
}
