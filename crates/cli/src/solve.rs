//! `sooner solve`: what should happen, by formula. Times are in units of the mean size, so that
//! systems of any speed stand in one table.

mod mg1;
mod model;
mod mpl;
mod mva;
mod overload;

use crate::output;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sooner_report::number::significant;
use std::process::ExitCode;

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// Computes response times by formula.
#[derive(Args)]
pub struct SolveArgs {
    #[command(subcommand)]
    command: SolveCommand,
}

#[derive(Subcommand)]
enum SolveCommand {
    /// Solve one server with Poisson arrivals (M/G/1): response time, waiting time, numbers of jobs
    /// and slowdown under each policy
    Mg1(mg1::Mg1Args),
    /// Solve a closed network: throughput, response time and queues by the number of users
    Mva(mva::MvaArgs),
    /// Solve a queue before a processor that a limited number of jobs share
    Mpl(mpl::MplArgs),
    /// Approximate a load that alternates between below and above 1, under sharing and under SRPT
    Overload(overload::OverloadArgs),
    /// Solve the systems of `sooner sim`, from a model file or flags, for every policy that has a
    /// formula
    Model(Box<model::ModelArgs>),
}

/// Runs it.
pub fn run(args: SolveArgs) -> Result<ExitCode> {
    match args.command {
        SolveCommand::Mg1(args) => mg1::run(&args)?,
        SolveCommand::Mva(args) => mva::run(&args)?,
        SolveCommand::Mpl(args) => mpl::run(&args)?,
        SolveCommand::Overload(args) => overload::run(&args)?,
        SolveCommand::Model(args) => model::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_json(runs: &[Value]) -> Result<()> {
    let document = json!({"schema": SCHEMA, "time_unit": "mean_service", "runs": runs});
    output::json(&document)?;
    Ok(())
}

/// A figure of a run; what is infinite is `null` in JSON.
fn of(run: &Value, pointer: &str) -> String {
    let figure = run.pointer(pointer).and_then(Value::as_f64);
    figure.map_or("infinite".into(), significant)
}
