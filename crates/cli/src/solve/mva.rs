//! `sooner solve mva`.

use super::SCHEMA;
use crate::output;
use crate::progress;
use crate::seconds;
use anyhow::{Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use sooner_report::columns::aligned;
use sooner_report::number::significant;
use sooner_theory::closed::{self, Station};

#[derive(Args)]
pub struct MvaArgs {
    /// Work of one job at each station, separated by commas, such as 20ms,5ms
    #[arg(long, value_name = "TIME", value_parser = seconds::number, value_delimiter = ',', required = true)]
    demands: Vec<f64>,
    /// Time that a user thinks between two jobs, such as 1s or 500ms
    #[arg(long, value_name = "TIME", value_parser = seconds::number, default_value_t = 0.0)]
    think: f64,
    /// Numbers of users to solve, separated by commas, 1 to 5000
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,2,5,10,20,50,100"
    )]
    users: Vec<usize>,
    /// Also find the fewest users that reach this share of the highest throughput, such as 0.95
    #[arg(long, value_name = "SHARE")]
    share: Option<f64>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// A closed network, by the number of users.
pub fn run(args: &MvaArgs) -> Result<()> {
    let queue = |&demand: &f64| Station::Queue { demand };
    let mut stations: Vec<Station> = args.demands.iter().map(queue).collect();
    stations.push(Station::Delay { time: args.think });
    let solved = args
        .users
        .iter()
        .map(|&users| closed::solve(&stations, users));
    let spinner = progress::spinner("solving");
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
                "--share {share} is out of range; give a number above 0 and below 1, such as 0.95"
            );
            Some(closed::users_for_share(&stations, share)?)
        }
    };
    spinner.finish_and_clear();
    if args.json {
        let mut document = json!({"schema": SCHEMA, "time_unit": "s", "runs": runs});
        if let Some(needed) = needed {
            document["users_for_share"] = json!(needed);
        }
        output::json(&document)?;
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
    output::print(&aligned(&rows))?;
    match (args.share, needed.flatten()) {
        (Some(share), Some(users)) => output::line(format_args!(
            "\n{users} users reach {share} of the highest throughput"
        ))?,
        (Some(share), None) => output::line(format_args!(
            "\nno {} users reach {share} of the highest throughput",
            closed::USERS_MAX
        ))?,
        _ => {}
    }
    Ok(())
}
