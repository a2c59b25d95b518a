//! `sooner load`: replay a trace, let SURGE's users loose, saturate a server, make a document root.

mod closed;
mod measure;
mod mkroot;
mod model;
mod model_file;
mod no_request;
mod protocol;
mod rate;
mod replay;
mod replay_log;
mod requests;
mod results;
mod surge;
mod surge_fit;
mod tpcc;
mod tpcw;
mod trace;
mod transactions;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use sooner_kernel::signals::EndSignals;
use std::process::ExitCode;

/// Generates HTTP requests or database transactions, and measures response times.
#[derive(Args)]
pub struct LoadArgs {
    #[command(subcommand)]
    command: LoadCommand,
}

#[derive(Subcommand)]
enum LoadCommand {
    /// Send requests at a given rate, without waiting for answers, and measure response times
    Rate(Box<rate::RateArgs>),
    /// Replay a trace at an exact load of a link or for a number of users, and compare with the
    /// ideal for the same arrivals; or replay an access log against your own server
    Replay(Box<replay::ReplayArgs>),
    /// Measure the system that a model file describes, and compare it with the formulas
    Model(Box<model_file::ModelFileArgs>),
    /// Saturate a server with a fixed number of connections: throughput only
    Closed(closed::ClosedArgs),
    /// Convert access logs to a trace
    Trace(trace::TraceArgs),
    /// Write the files of a trace to a directory, so that a server can serve them
    Mkroot(mkroot::MkrootArgs),
    /// Generate the requests of SURGE users: pages with embedded files, and the published pauses
    Surge(Box<surge::SurgeArgs>),
    Tpcc(Box<tpcc::TpccArgs>),
    Tpcw(Box<tpcw::TpcwArgs>),
    /// Draw random values of each SURGE quantity, and compare them with the published ones
    SurgeFit(surge_fit::FitArgs),
}

/// Runs the subcommand; results go to stdout, progress to stderr when that is a terminal.
pub fn run(args: LoadArgs) -> Result<ExitCode> {
    match args.command {
        LoadCommand::Rate(args) => rate::run(&args),
        LoadCommand::Replay(args) => replay::run(&args),
        LoadCommand::Model(args) => model_file::run(*args),
        LoadCommand::Closed(args) => closed::run(args),
        LoadCommand::Trace(args) => trace::run(&args),
        LoadCommand::Mkroot(args) => mkroot::run(args),
        LoadCommand::Surge(args) => surge::run(&args),
        LoadCommand::Tpcc(args) => tpcc::run(*args),
        LoadCommand::Tpcw(args) => tpcw::run(*args),
        LoadCommand::SurgeFit(args) => surge_fit::run(args),
    }
}

/// Of a run that prints its figures: 1 where they may not be believed.
fn exit_code(is_valid: bool) -> ExitCode {
    if is_valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Waits until a signal asks for the end of a run.
async fn stopped() {
    match EndSignals::listen() {
        Ok(mut signals) => {
            signals.next().await;
        }
        // They end the process then, as they do without us.
        Err(_) => std::future::pending().await,
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.context("cannot start the event loop")
}
