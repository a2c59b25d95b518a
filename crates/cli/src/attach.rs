//! `sooner attach`: scheduling for servers that already run.

mod cpu;
mod cpu_table;
mod explanation;
mod look;
mod postgres;
mod postgres_table;
mod processes;
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
    /// Give the processor first to some sessions of a PostgreSQL server; or tell where its
    /// transactions spend their time
    Postgres(postgres::PostgresArgs),
    /// Give the processor first to short requests of a server with a worker a request
    Cpu(cpu::CpuArgs),
    #[command(hide = true)]
    Compete(cpu::CompeteArgs),
    /// Say what is attached in this network namespace
    Status(look::StatusArgs),
    /// Watch what is attached: responses by band and by size, beside what FAIR would have given; or
    /// sessions and workers that go first
    Top(look::TopArgs),
    /// End what is attached, and take away what a killed one left
    Remove(look::RemoveArgs),
}

/// Runs it.
pub fn run(args: AttachArgs) -> Result<ExitCode> {
    match args.command {
        AttachCommand::Web(args) => web::web(args),
        AttachCommand::Postgres(args) => postgres::run(&args),
        AttachCommand::Cpu(args) => cpu::run(&args),
        AttachCommand::Compete(args) => cpu::compete(&args),
        AttachCommand::Status(args) => look::status(&args),
        AttachCommand::Top(args) => look::top(&args),
        AttachCommand::Remove(args) => look::remove(&args),
    }
}
