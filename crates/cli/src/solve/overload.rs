//! `sooner solve overload`.

use super::{of, print_json};
use crate::output;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use sooner_report::columns::aligned;
use sooner_report::number::significant;
use sooner_theory::overload::{Alternating, Policy};
use sooner_workload::{Schedule, Sizes};

/// Flags of `sooner solve overload`.
#[derive(Args)]
pub struct OverloadArgs {
    /// Distribution of job sizes, such as bpareto:k=1,p=1e6,alpha=1.1 or trace:epa
    #[arg(long, value_name = "DISTRIBUTION")]
    sizes: Sizes,
    /// Alternating load: a load below 1, a load above 1, length of each in the unit of the sizes,
    /// such as 0.4,1.3,10000,5000
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Schedule,
    /// Jobs to report, as places in the order of size from 0 to 1
    #[arg(
        long,
        value_name = "SHARE",
        value_delimiter = ',',
        default_value = "0.5,0.9,0.99,0.999"
    )]
    shares: Vec<f64>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Sharing and SRPT side by side.
pub fn run(args: &OverloadArgs) -> Result<()> {
    for share in &args.shares {
        ensure!(
            (0.0..1.0).contains(share),
            "--shares {share} is out of range; give 0 to below 1, such as 0.99"
        );
    }
    let sizes = args.sizes.open().context("--sizes")?;
    let system = Alternating::new(&sizes, args.schedule.phases()).context("--schedule")?;
    let mean = sizes.mean();
    let of_policy = |&policy: &Policy| {
        let by_size = args.shares.iter().map(|&share| {
            let size = sizes.upper_quantile(1.0 - share);
            let response = system.response(policy, size);
            json!({"share": share, "size": size, "mean_response": response / mean, "mean_slowdown": response / size})
        });
        json!({"policy": policy.name(), "schedule": args.schedule.to_string(),
            "all": {"mean_response": system.mean_response(policy) / mean},
            "present_at_end": system.present_at_end(policy), "recovery": system.recovery() / mean,
            "by_size": by_size.collect::<Vec<_>>()})
    };
    let runs: Vec<Value> = Policy::ALL.iter().map(of_policy).collect();
    if args.json {
        return print_json(&runs);
    }
    output::line(format_args!(
        "sizes {}, mean {}, schedule {}; times in means, approximately; all done {} after the overload\n",
        args.sizes,
        significant(mean),
        args.schedule,
        significant(system.recovery() / mean)
    ))?;
    let head = [
        "policy",
        "mean response",
        "jobs at its end",
        "response by size",
    ];
    let mut rows = vec![head.map(String::from)];
    for run in &runs {
        let by_size = run["by_size"].as_array().into_iter().flatten();
        let by_size =
            by_size.map(|one| format!("{} at {}", of(one, "/mean_response"), one["share"]));
        rows.push([
            run["policy"].as_str().unwrap_or_default().into(),
            of(run, "/all/mean_response"),
            of(run, "/present_at_end"),
            by_size.collect::<Vec<_>>().join(", "),
        ]);
    }
    output::print(&aligned(&rows))?;
    Ok(())
}
