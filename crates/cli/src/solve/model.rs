//! `sooner solve model`: the systems of `sooner sim`, by formula.

use super::print_json;
use crate::output;
use crate::sim::finite_or_not;
use crate::system::{self, Case, SystemArgs};
use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;
use sooner_report::columns::aligned;
use sooner_theory::little::Queue;

/// Flags of `sooner solve model`.
#[derive(Args)]
pub struct ModelArgs {
    #[command(flatten)]
    system: SystemArgs,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Heads of the table behind what varies.
const HEADS: [&str; 5] = [
    "policy",
    "mean response",
    "waiting (Wq)",
    "in system (L)",
    "in queue (Lq)",
];

fn queue_of(case: &Case, mean_response: Option<f64>) -> Option<Queue> {
    mean_response.and_then(|mean| system::queue(&case.system, mean))
}

/// Every combination that has a formula; those without are named.
pub fn run(args: &ModelArgs) -> Result<()> {
    let cases = system::cases(&args.system, false)?;
    let solved: Vec<Option<f64>> = cases
        .iter()
        .map(|case| system::mean_response(&case.system))
        .collect();
    ensure!(
        solved.iter().any(Option::is_some),
        "there is no formula for any of these systems; `sooner sim` with the same options simulates them"
    );
    if args.json {
        let run = |(case, solved): (&Case, &Option<f64>)| {
            let queue = queue_of(case, *solved);
            let of = |figure: fn(&Queue) -> f64| queue.as_ref().map(figure);
            json!({"policy": case.policy.to_string(), "system": case.described(), "offered_load": case.system.offered_load(),
                "mean_service_s": case.system.mean_service_s(), "all": {"mean_response": solved,
                "mean_waiting": of(|queue| queue.waiting), "mean_jobs": of(|queue| queue.jobs),
                "mean_jobs_waiting": of(|queue| queue.jobs_waiting)}})
        };
        return print_json(&cases.iter().zip(&solved).map(run).collect::<Vec<_>>());
    }
    let Some(first) = cases.first() else {
        return Ok(());
    };
    output::line(format_args!(
        "{}; times in mean sizes{}\n",
        first.in_common(),
        first.in_seconds()
    ))?;
    let names = first.varied.iter().map(|(name, _)| (*name).to_string());
    let mut rows = vec![names.chain(HEADS.map(String::from)).collect()];
    for (case, solved) in cases.iter().zip(&solved) {
        let mut row: Vec<String> = case.varied.iter().map(|(_, value)| value.clone()).collect();
        row.push(case.policy.to_string());
        row.push(solved.map_or("no formula".into(), finite_or_not));
        let queue = queue_of(case, *solved);
        let figures = queue.map(|queue| [queue.waiting, queue.jobs, queue.jobs_waiting]);
        row.extend(figures.map_or(["-"; 3].map(String::from), |all| all.map(finite_or_not)));
        rows.push(row);
    }
    output::print(&aligned(&rows))?;
    Ok(())
}
