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

/// Compute response times by formula.
#[derive(Args)]
pub struct SolveArgs {
    #[command(subcommand)]
    command: SolveCommand,
}

#[derive(Subcommand)]
enum SolveCommand {
    /// One server, Poisson arrivals: response time and slowdown under each policy, in the mean and
    /// by size
    Mg1(mg1::Mg1Args),
    /// A closed network: throughput, response and queues by the number of users
    Mva(mva::MvaArgs),
    /// A queue before a processor that at most so many jobs share
    Mpl(mpl::MplArgs),
    /// A load that is above 1 for a while, again and again: sharing and SRPT, approximately
    Overload(overload::OverloadArgs),
    /// A model file or its flags, as `sooner sim` takes them: the exact mean of every policy that
    /// has one
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
