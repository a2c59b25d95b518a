//! `sooner solve mg1`.

use super::{of, print_json};
use crate::choice;
use crate::output;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use sooner_report::columns::aligned;
use sooner_report::number::significant;
use sooner_theory::little::Queue;
use sooner_theory::mg1::{Mg1, Policy};
use sooner_workload::{Distribution, Sizes};

#[derive(Args)]
pub struct Mg1Args {
    /// Distribution of job sizes, such as h2:mean=1,c2=4 or trace:epa
    #[arg(long, value_name = "DISTRIBUTION")]
    sizes: Sizes,
    /// Loads: arriving work as a share of the capacity, above 0 and below 1; several separated by
    /// commas
    #[arg(long, value_name = "LOAD", value_delimiter = ',', required = true)]
    load: Vec<f64>,
    /// Policies to solve, separated by commas [default: all]
    #[arg(long, value_name = "POLICY", value_delimiter = ',', value_parser = choice::solved_policy())]
    policy: Vec<Policy>,
    /// Jobs to report by size, as places in the order of size from 0 to 1
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

/// Every policy at every load, in the mean and by size.
pub fn run(args: &Mg1Args) -> Result<()> {
    for share in &args.shares {
        ensure!(
            (0.0..1.0).contains(share),
            "--shares {share} is out of range; give 0 to below 1, such as 0.99"
        );
    }
    let sizes = args.sizes.open().context("--sizes")?;
    let queues: Result<Vec<Mg1>, _> = args
        .load
        .iter()
        .map(|&load| Mg1::new(&sizes, load))
        .collect();
    let queues = queues?;
    let policies = match &args.policy[..] {
        [] => &Policy::ALL[..],
        some => some,
    };
    let mut all = Vec::new();
    for (queue, &load) in queues.iter().zip(&args.load) {
        let runs: Vec<Value> = policies
            .iter()
            .map(|&policy| solved(queue, load, policy, &sizes, &args.shares))
            .collect();
        if !args.json {
            if !all.is_empty() {
                output::line("")?;
            }
            print_table(&args.sizes, queue.mean_size(), load, &runs)?;
        }
        all.extend(runs);
    }
    if args.json {
        print_json(&all)?;
    }
    Ok(())
}

/// One policy at one load, with times in units of the mean size.
fn solved(queue: &Mg1, load: f64, policy: Policy, sizes: &Distribution, shares: &[f64]) -> Value {
    let mean = queue.mean_size();
    let solved = queue.solve(policy);
    let solved_queue = Queue::new(solved.mean_response / mean, 1.0, load);
    let by_size = queue.by_share(policy, sizes, shares);
    let by_size = by_size.iter().map(|one| {
        json!({"share": one.share, "size": one.size, "mean_response": one.mean_response / mean,
            "mean_slowdown": one.mean_slowdown})
    });
    json!({"policy": policy.name(), "offered_load": load,
        "all": {"mean_response": solved.mean_response / mean, "mean_waiting": solved_queue.waiting,
        "mean_jobs": solved_queue.jobs, "mean_jobs_waiting": solved_queue.jobs_waiting,
        "mean_slowdown": solved.mean_slowdown},
        "by_size": by_size.collect::<Vec<_>>()})
}

fn print_table(sizes: &Sizes, mean: f64, load: f64, runs: &[Value]) -> Result<()> {
    output::line(format_args!(
        "sizes {sizes}, mean {}, load {load}; times in means\n",
        significant(mean),
    ))?;
    let mut rows = vec![
        [
            "policy",
            "mean response",
            "waiting (Wq)",
            "in system (L)",
            "in queue (Lq)",
            "mean slowdown",
            "slowdown by size",
        ]
        .map(String::from),
    ];
    for run in runs {
        let by_size = run["by_size"].as_array().into_iter().flatten();
        let by_size =
            by_size.map(|one| format!("{} at {}", of(one, "/mean_slowdown"), one["share"]));
        rows.push([
            run["policy"].as_str().unwrap_or_default().into(),
            of(run, "/all/mean_response"),
            of(run, "/all/mean_waiting"),
            of(run, "/all/mean_jobs"),
            of(run, "/all/mean_jobs_waiting"),
            of(run, "/all/mean_slowdown"),
            by_size.collect::<Vec<_>>().join(", "),
        ]);
    }
    output::print(&aligned(&rows))?;
    Ok(())
}
