//! `sooner solve`: what should happen, by formula. Times are in units of the mean size, so that systems of any speed stand in one table.

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sooner_report::columns::aligned;
use sooner_report::number::significant;
use sooner_theory::closed::{self, Station};
use sooner_theory::mg1::{Mg1, Policy};
use sooner_theory::mpl;
use sooner_workload::{Distribution, Sizes};
use std::process::ExitCode;

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// Compute response times exactly.
#[derive(Args)]
pub struct SolveArgs {
    #[command(subcommand)]
    command: SolveCommand,
}

#[derive(Subcommand)]
enum SolveCommand {
    /// One server, Poisson arrivals: response time and slowdown under each policy, in the mean and by size
    Mg1(Mg1Args),
    /// A closed network: throughput, response and queues by the number of users
    Mva(MvaArgs),
    /// A queue before a processor that at most so many jobs share
    Mpl(MplArgs),
}

#[derive(Args)]
struct Mg1Args {
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

#[derive(Args)]
struct MvaArgs {
    /// Work of one job at each station, in seconds: one number a station
    #[arg(long, value_name = "SECONDS", value_delimiter = ',', required = true)]
    demands: Vec<f64>,
    /// Time a user thinks between two jobs, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    think: f64,
    /// Numbers of users
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 5, 10, 20, 50, 100])]
    users: Vec<usize>,
    /// The fewest users with this share of the highest throughput
    #[arg(long, value_name = "SHARE")]
    share: Option<f64>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct MplArgs {
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

/// Runs it.
pub fn run(args: SolveArgs) -> Result<ExitCode> {
    match args.command {
        SolveCommand::Mg1(args) => mg1(&args)?,
        SolveCommand::Mva(args) => mva(&args)?,
        SolveCommand::Mpl(args) => limited(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn mg1(args: &Mg1Args) -> Result<()> {
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
    println!(
        "sizes {}, mean {}, load {}; times in means\n",
        args.sizes,
        significant(mean),
        args.load
    );
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
    print!("{}", aligned(&rows));
    Ok(())
}

fn mva(args: &MvaArgs) -> Result<()> {
    let queue = |&demand: &f64| Station::Queue { demand };
    let mut stations: Vec<Station> = args.demands.iter().map(queue).collect();
    stations.push(Station::Delay { time: args.think });
    let solved = args
        .users
        .iter()
        .map(|&users| closed::solve(&stations, users));
    let solved = solved.collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<Value> = solved
        .iter()
        .map(|one| {
            let waiting = &one.mean_jobs[..args.demands.len()];
            json!({"users": one.users, "throughput_per_sec": one.throughput, "mean_response_s": one.mean_response,
                "mean_jobs": waiting})
        })
        .collect();
    let needed = match args.share {
        None => None,
        Some(share) => {
            ensure!(
                share > 0.0 && share < 1.0,
                "--share {share}: above 0 and below 1, like 0.95"
            );
            Some(closed::users_for_share(&stations, share)?)
        }
    };
    if args.json {
        let mut document = json!({"schema": SCHEMA, "time_unit": "s", "runs": runs});
        if let Some(needed) = needed {
            document["users_for_share"] = json!(needed);
        }
        println!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(());
    }
    let mut rows = vec![
        [
            "users",
            "throughput, 1/s",
            "mean response, s",
            "jobs at each station",
        ]
        .map(String::from),
    ];
    for one in &solved {
        let jobs = one.mean_jobs[..args.demands.len()].iter();
        rows.push([
            one.users.to_string(),
            significant(one.throughput),
            significant(one.mean_response),
            jobs.map(|&jobs| significant(jobs))
                .collect::<Vec<_>>()
                .join(", "),
        ]);
    }
    print!("{}", aligned(&rows));
    match (args.share, needed.flatten()) {
        (Some(share), Some(users)) => {
            println!("\n{users} users reach {share} of the highest throughput")
        }
        (Some(share), None) => println!(
            "\nno {} users reach {share} of the highest throughput",
            closed::USERS_MAX
        ),
        _ => {}
    }
    Ok(())
}

fn limited(args: &MplArgs) -> Result<()> {
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
    println!("sizes {}, load {}; times in means\n", args.sizes, args.load);
    print!("{}", aligned(&rows));
    Ok(())
}

fn print_json(runs: &[Value]) -> Result<()> {
    let document = json!({"schema": SCHEMA, "time_unit": "mean_service", "runs": runs});
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(())
}

/// A figure of a run; what is infinite is `null` in JSON.
fn of(run: &Value, pointer: &str) -> String {
    let figure = run.pointer(pointer).and_then(Value::as_f64);
    figure.map_or("infinite".into(), significant)
}
