//! `sooner solve mpl`.

use super::print_json;
use crate::output;
use crate::progress;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use sooner_report::columns::aligned;
use sooner_report::number::significant;
use sooner_theory::little::Queue;
use sooner_theory::mpl;
use sooner_workload::Distribution;

#[derive(Args)]
pub struct MplArgs {
    /// Distribution of job sizes: exp or h2, such as h2:mean=1,c2=16
    #[arg(long, value_name = "DISTRIBUTION")]
    sizes: Distribution,
    /// Load: arriving work as a share of the capacity, above 0 and below 1
    #[arg(long, value_name = "LOAD")]
    load: f64,
    /// Limits to solve, one row each, separated by commas, 1 to 400
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,2,4,8,16,32"
    )]
    mpl: Vec<usize>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Response times by the limit.
pub fn run(args: &MplArgs) -> Result<()> {
    let mean = args.sizes.mean();
    let mut rows = vec![
        [
            "mpl",
            "mean response",
            "outside (before admission)",
            "waiting (Wq)",
            "in system (L)",
            "in queue (Lq)",
        ]
        .map(String::from),
    ];
    let mut runs = Vec::new();
    let spinner = progress::spinner("solving");
    for &limit in &args.mpl {
        let solved = mpl::solve(&args.sizes, args.load, limit)?;
        let (response, outside) = (solved.mean_response / mean, solved.mean_outside / mean);
        let queue = Queue::new(response, 1.0, args.load);
        rows.push([
            limit.to_string(),
            significant(response),
            significant(outside),
            significant(queue.waiting),
            significant(queue.jobs),
            significant(queue.jobs_waiting),
        ]);
        runs.push(
            json!({"policy": "fcfs", "mpl": limit, "offered_load": args.load,
            "all": {"mean_response": response, "mean_outside": outside, "mean_waiting": queue.waiting,
                "mean_jobs": queue.jobs, "mean_jobs_waiting": queue.jobs_waiting}}),
        );
    }
    spinner.finish_and_clear();
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
