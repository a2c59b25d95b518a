//! `sooner attach`: scheduling for servers that already run.

mod explanation;
mod postgres;
mod web;
mod web_table;

use anyhow::Result;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Schedule for servers that already run, without their knowing.
#[derive(Args)]
pub struct AttachArgs {
    #[command(subcommand)]
    command: AttachCommand,
}

#[derive(Subcommand)]
enum AttachCommand {
    /// Order the responses of a web server on a device, in the kernel, until stopped
    Web(web::WebArgs),
    /// Tell where the transactions of a PostgreSQL server spend their time, and what could be
    /// gained
    Postgres(postgres::PostgresArgs),
    /// Say what is attached in this network namespace
    Status(web::StatusArgs),
    /// Watch responses by band and by size, beside what FAIR would have given
    Top(web::TopArgs),
    /// End what is attached, and take away what a killed one left
    Remove(web::RemoveArgs),
}

/// Runs it.
pub fn run(args: AttachArgs) -> Result<ExitCode> {
    match args.command {
        AttachCommand::Web(args) => web::web(args),
        AttachCommand::Postgres(args) => postgres::run(&args),
        AttachCommand::Status(args) => web::status(&args),
        AttachCommand::Top(args) => web::top(&args),
        AttachCommand::Remove(args) => web::remove(&args),
    }
}
