//! `sooner solve mg1`.

use super::{of, print_json};
use crate::output;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use sooner_report::columns::aligned;
use sooner_report::number::significant;
use sooner_theory::mg1::{Mg1, Policy};
use sooner_workload::Sizes;

#[derive(Args)]
pub struct Mg1Args {
    /// Sizes, like h2:mean=1,c2=4 or trace:epa
    #[arg(long, value_name = "DISTRIBUTION")]
    sizes: Sizes,
    /// Work that comes, as a share of what can be done
    #[arg(long, value_name = "LOAD")]
    load: f64,
    /// Only these policies: fcfs, fair, sjf, srpt, psjf, las
    #[arg(long, value_name = "POLICY", value_delimiter = ',')]
    policy: Vec<Policy>,
    /// Jobs of these places in the order of size, as shares of all
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_values_t = [0.5, 0.9, 0.99, 0.999])]
    shares: Vec<f64>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Every policy in the mean and by size.
pub fn run(args: &Mg1Args) -> Result<()> {
    for share in &args.shares {
        ensure!(
            (0.0..1.0).contains(share),
            "--shares {share}: from 0 to below 1, like 0.99"
        );
    }
    let sizes = args.sizes.open().context("--sizes")?;
    let queue = Mg1::new(&sizes, args.load)?;
    let mean = queue.mean_size();
    let policies = match &args.policy[..] {
        [] => &Policy::ALL[..],
        some => some,
    };
    let runs: Vec<Value> = policies
        .iter()
        .map(|&policy| {
            let solved = queue.solve(policy);
            let by_size = queue.by_share(policy, &sizes, &args.shares);
            let by_size = by_size.iter().map(|one| {
                json!({"share": one.share, "size": one.size, "mean_response": one.mean_response / mean,
                    "mean_slowdown": one.mean_slowdown})
            });
            json!({"policy": policy.name(), "offered_load": args.load,
                "all": {"mean_response": solved.mean_response / mean, "mean_slowdown": solved.mean_slowdown},
                "by_size": by_size.collect::<Vec<_>>()})
        })
        .collect();
    if args.json {
        return print_json(&runs);
    }
    output::line(format_args!(
        "sizes {}, mean {}, load {}; times in means\n",
        args.sizes,
        significant(mean),
        args.load
    ))?;
    let mut rows = vec![
        [
            "policy",
            "mean response",
            "mean slowdown",
            "slowdown by size",
        ]
        .map(String::from),
    ];
    for run in &runs {
        let by_size = run["by_size"].as_array().into_iter().flatten();
        let by_size =
            by_size.map(|one| format!("{} at {}", of(one, "/mean_slowdown"), one["share"]));
        rows.push([
            run["policy"].as_str().unwrap_or_default().into(),
            of(run, "/all/mean_response"),
            of(run, "/all/mean_slowdown"),
            by_size.collect::<Vec<_>>().join(", "),
        ]);
    }
    output::print(&aligned(&rows))?;
    Ok(())
}
