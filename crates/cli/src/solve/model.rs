//! `sooner solve model`: the systems of `sooner sim`, by formula.

use super::print_json;
use crate::output;
use crate::sim::finite_or_not;
use crate::system::{self, Case, SystemArgs};
use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;
use sooner_report::columns::aligned;

/// Flags of `sooner solve model`.
#[derive(Args)]
pub struct ModelArgs {
    #[command(flatten)]
    system: SystemArgs,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
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
        "no formula of ours has any of these systems; `sooner sim` with the same words simulates them"
    );
    if args.json {
        let run = |(case, solved): (&Case, &Option<f64>)| {
            json!({"policy": case.policy.to_string(), "system": case.described(), "offered_load": case.system.offered_load(),
                "mean_service_s": case.system.mean_service_s(), "all": {"mean_response": solved}})
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
    let mut rows = vec![
        names
            .chain(["policy", "mean response"].map(String::from))
            .collect(),
    ];
    for (case, solved) in cases.iter().zip(&solved) {
        let mut row: Vec<String> = case.varied.iter().map(|(_, value)| value.clone()).collect();
        row.push(case.policy.to_string());
        row.push(solved.map_or("no formula".into(), finite_or_not));
        rows.push(row);
    }
    output::print(&aligned(&rows))?;
    Ok(())
}
