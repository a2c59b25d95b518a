//! `sooner load surge-fit`: are SURGE's users those that were published?

use super::surge::PauseArgs;
use crate::output;
use anyhow::Result;
use clap::Args;
use sooner_workload::Distribution;
use sooner_workload::surge::SurgeModel;
use sooner_workload::surge::check::{Row, check};
use std::process::ExitCode;

/// Version of the JSON form of the comparison.
const FIT_SCHEMA: u32 = 1;

#[derive(Args)]
pub struct FitArgs {
    #[command(flatten)]
    pauses: PauseArgs,
    /// Sizes of the files, in bytes [default: surge]
    #[arg(long, value_name = "DISTRIBUTION")]
    sizes: Option<Distribution>,
    /// Numbers to draw of each quantity
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    draws: u64,
    /// Seed of the numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Draws, compares and prints; fails when something differs.
pub fn run(args: FitArgs) -> Result<ExitCode> {
    let published = args.pauses.model();
    let model = SurgeModel {
        sizes: args.sizes.unwrap_or(published.sizes.clone()),
        ..published
    };
    let rows = check(&model, args.seed, args.draws)?;
    let fits = rows.iter().all(|row| row.fits);
    if args.json {
        output::json(
            &serde_json::json!({ "schema": FIT_SCHEMA, "seed": args.seed, "fits": fits, "rows": rows }),
        )?;
    } else {
        print_fit(&rows)?;
    }
    Ok(if fits {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_fit(rows: &[Row]) -> Result<()> {
    let line = |cells: [&str; 7]| {
        let [quantity, what, n, published, found, may_be, verdict] = cells;
        output::line(format_args!(
            "{quantity:<16} {what:<20} {n:>8} {published:>11} {found:>13}  {may_be:<23} {verdict}"
        ))
    };
    line([
        "quantity",
        "what",
        "n",
        "published",
        "found",
        "99.9 %, bound or p",
        "verdict",
    ])?;
    for row in rows {
        let may_be = match (row.p_value, row.interval) {
            (Some(p_value), _) => format!("p = {p_value:.4}"),
            (None, Some((low, high))) => format!("{} to {}", figure(low), figure(high)),
            (None, None) => String::new(),
        };
        line([
            row.quantity,
            row.what,
            &row.n.to_string(),
            &row.published.map_or("-".into(), figure),
            &figure(row.found),
            &may_be,
            if row.fits { "fits" } else { "DIFFERS" },
        ])?;
    }
    let misfits = rows.iter().filter(|row| !row.fits).count();
    match misfits {
        0 => output::line(format_args!(
            "\nall {} lines agree with what was published",
            rows.len()
        ))?,
        misfits => output::line(format_args!(
            "\n{misfits} of {} lines DIFFER from what was published",
            rows.len()
        ))?,
    }
    Ok(())
}

/// A number with up to six decimals, without those that say nothing.
fn figure(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}
