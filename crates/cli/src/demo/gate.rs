//! `sooner demo gate`: the same load on a private PostgreSQL, directly, through the gate, and
//! through the gate with a class that goes first.

use crate::output::{self, Undelivered};
use crate::seconds;
use anyhow::{Context, Result, ensure};
use clap::Args;
use sooner_lab::gate_demo::{self, GateDemoOptions};
use sooner_stats::Verdict;
use sooner_testbed::postgres::Installation;
use std::env;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// Fewer leave processors idle that have two.
const LIMIT_MIN: usize = 5;
/// Times the processors: some transactions wait for something else than a processor.
const LIMIT_PER_PROCESSOR: usize = 2;
/// Times the limit, so that there are clients to put in order.
const CLIENTS_PER_PLACE: usize = 10;
/// One client of so many goes first.
const CLIENTS_PER_HIGH: usize = 10;

/// Measure what the gate changes: the same load on a private PostgreSQL, without and with it.
///
/// The load runs directly, then through the gate first come first served, then through the gate
/// with a class that goes first. Needs PostgreSQL installed but nothing configured; creates a
/// database of its own and removes it.
#[derive(Args)]
pub struct GateDemoArgs {
    /// Length of each run including the warm-up, such as 5s or 1min; at least 2 s
    #[arg(long = "for", alias = "seconds", value_name = "TIME", default_value = "5s", value_parser = seconds::whole::<2>)]
    seconds: u64,
    /// Transactions that the gate admits at a time [default: 5, or 2 for each processor if that is
    /// more]
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
    /// Clients of both classes together [default: ten times the limit]
    #[arg(long, value_name = "N")]
    clients: Option<NonZeroUsize>,
    /// Clients in the class that goes first [default: a tenth of all]
    #[arg(long, value_name = "N")]
    high: Option<NonZeroUsize>,
    /// Seed that chooses rows and pauses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Times that each way is measured, in turn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs it. Errors are bad input, or that there is no PostgreSQL; a measurement that failed is
/// reported here and gives exit code 1, and so does an INVALID one.
pub fn run(args: &GateDemoArgs) -> Result<ExitCode> {
    let options = options(args)?;
    match measure(&options, args.json) {
        Ok(Verdict::Valid) => Ok(ExitCode::SUCCESS),
        Ok(Verdict::Invalid) => Ok(ExitCode::FAILURE),
        Err(error) if error.is::<Undelivered>() => Err(error),
        Err(error) => {
            output::say(format_args!("sooner: {error:#}"));
            Ok(ExitCode::FAILURE)
        }
    }
}

fn measure(options: &GateDemoOptions, json: bool) -> Result<Verdict> {
    let report = gate_demo::run(options, &mut |line| {
        // The reader of this output may have left; the measurement goes on.
        output::say(line);
    })?;
    let text = if json {
        format!("{}\n", serde_json::to_string_pretty(&report)?)
    } else {
        format!("\n{}", report.render())
    };
    output::print(&text)?;
    Ok(report.verdict)
}

fn options(args: &GateDemoArgs) -> Result<GateDemoOptions> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let limit = args.limit.map_or(
        LIMIT_MIN.max(LIMIT_PER_PROCESSOR * processors),
        NonZeroUsize::get,
    );
    let clients = args
        .clients
        .map_or(CLIENTS_PER_PLACE * limit, NonZeroUsize::get);
    let high = args
        .high
        .map_or((clients / CLIENTS_PER_HIGH).max(1), NonZeroUsize::get);
    ensure!(
        high < clients,
        "--high {high} of --clients {clients}: give at least one client more, to go after them"
    );
    Ok(GateDemoOptions {
        program: env::current_exe().context("cannot find this program's own file")?,
        installation: Installation::find()?,
        duration: Duration::from_secs(args.seconds),
        limit_transactions: limit,
        clients,
        high_clients: high,
        seed: args.seed,
        repetitions: args.repetitions,
    })
}
