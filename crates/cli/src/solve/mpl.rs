//! `sooner solve mpl`.

use super::print_json;
use crate::output;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use sooner_report::columns::aligned;
use sooner_report::number::significant;
use sooner_theory::mpl;
use sooner_workload::Distribution;

#[derive(Args)]
pub struct MplArgs {
    /// Sizes: exp or h2, like h2:mean=1,c2=16
    #[arg(long, value_name = "DISTRIBUTION")]
    sizes: Distribution,
    /// Work that comes, as a share of what can be done
    #[arg(long, value_name = "LOAD")]
    load: f64,
    /// Most jobs inside at a time, one number a row
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32])]
    mpl: Vec<usize>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Response times by the limit.
pub fn run(args: &MplArgs) -> Result<()> {
    let mean = args.sizes.mean();
    let mut rows = vec![["mpl", "mean response", "before it was let in"].map(String::from)];
    let mut runs = Vec::new();
    for &limit in &args.mpl {
        let solved = mpl::solve(&args.sizes, args.load, limit)?;
        let (response, outside) = (solved.mean_response / mean, solved.mean_outside / mean);
        rows.push([
            limit.to_string(),
            significant(response),
            significant(outside),
        ]);
        runs.push(
            json!({"policy": "fcfs", "mpl": limit, "offered_load": args.load,
            "all": {"mean_response": response, "mean_outside": outside}}),
        );
    }
    if args.json {
        return print_json(&runs);
    }
    output::line(format_args!(
        "sizes {}, load {}; times in means\n",
        args.sizes, args.load
    ))?;
    output::print(&aligned(&rows))?;
    Ok(())
}
