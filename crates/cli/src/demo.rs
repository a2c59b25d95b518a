//! `sooner demo`: a real trace against a limited link, FAIR beside SRPT; and `sooner demo gate`.

mod gate;

use crate::choice;
use crate::output::{self, Undelivered};
use crate::seconds;
use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use sooner_lab::demo::{self, DemoOptions, Page};
use sooner_lab::progress::Display;
use sooner_policy::PolicyName;
use sooner_report::{finding, table};
use sooner_stats::Verdict;
use sooner_workload::{Rate, Schedule, Trace};
use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Measure a slow link: shared (FAIR), then shortest first (SRPT).
///
/// FAIR lets all responses share the link; SRPT sends the response with the least remaining bytes
/// first. Both runs replay the same requests of a trace. Needs no privilege and no network. Prints
/// a table and writes an HTML report.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DemoArgs {
    #[command(subcommand)]
    command: Option<DemoCommand>,
    /// Rate of the link, such as 10mbit or 12.5MB/s
    #[arg(long, value_name = "RATE", default_value = "10mbit")]
    uplink: Rate,
    /// Length of each run including the warm-up, such as 35s or 1min; at least 5 s
    #[arg(long = "for", alias = "seconds", value_name = "TIME", default_value = "35s", value_parser = seconds::whole::<5>)]
    seconds: u64,
    /// Load as a share of the link's rate
    #[arg(
        long,
        value_name = "LOAD",
        default_value = "0.9",
        value_parser = Schedule::in_seconds,
        conflicts_with = "schedule"
    )]
    rho: Schedule,
    /// Alternating load: low load, high load, seconds of each, such as 0.2,1.2,10,10
    #[arg(long, value_parser = Schedule::in_seconds)]
    schedule: Option<Schedule>,
    /// Trace to replay: `epa`, `nasa` or the path of a NAME.csv.gz
    #[arg(long, value_name = "TRACE", default_value = "epa", value_parser = choice::recorded_trace())]
    trace: String,
    /// Policies to run, in this order, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "fair,srpt", value_name = "POLICY", value_parser = choice::demo_policy())]
    policies: Vec<PolicyName>,
    /// Seed that chooses where in the trace the runs start, and the gaps between requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// File for the HTML report [default: sooner-demo.html here, or in the temporary directory]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// What else can be shown.
#[derive(Subcommand)]
enum DemoCommand {
    Gate(gate::GateDemoArgs),
}

/// Runs the subcommand. Errors are bad input; a measurement that failed is reported here and gives
/// exit code 1, and so does an INVALID run.
pub fn run(args: DemoArgs) -> Result<ExitCode> {
    if let Some(DemoCommand::Gate(gate)) = &args.command {
        return gate::run(gate);
    }
    let page = match &args.report {
        Some(path) => {
            Page::at(path).with_context(|| format!("cannot write the report {}", path.display()))?
        }
        None => Page::anywhere().context(
            "cannot write a report here or in the temporary directory; give --report FILE",
        )?,
    };
    let (json, options) = (args.json, options(args)?);
    match measure(&options, json, page) {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(error) if error.is::<Undelivered>() => Err(error),
        Err(error) => {
            output::say(format_args!("sooner: {error:#}"));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Makes the runs; whether all of them are VALID.
fn measure(options: &DemoOptions, json: bool, page: Page) -> Result<bool> {
    let mut display = Display::stderr();
    let report = demo::run(options, &mut |step| display.show(step))?;
    let written = page.write(&report, options);
    if json {
        output::json(&report)?;
    } else {
        output::print(&format!(
            "\n{}\n{}\n",
            table::render(&report),
            finding::closing(&report)
        ))?;
    }
    let path = written?;
    output::say(format_args!("report: {}", path.display()));
    Ok(report.runs.iter().all(|run| run.verdict == Verdict::Valid))
}

fn options(args: DemoArgs) -> Result<DemoOptions> {
    let mut policies: Vec<String> = Vec::new();
    for policy in args.policies {
        let name = policy.as_str().to_owned();
        ensure!(
            !policies.contains(&name),
            "--policies names {name} twice; give each policy once"
        );
        policies.push(name);
    }
    Ok(DemoOptions {
        program: env::current_exe().context("cannot find this program's own file")?,
        trace: Trace::open(&args.trace)?,
        trace_name: args.trace,
        uplink: args.uplink,
        policies,
        schedule: args.schedule.unwrap_or(args.rho),
        duration: Duration::from_secs(args.seconds),
        seed: args.seed,
    })
}
