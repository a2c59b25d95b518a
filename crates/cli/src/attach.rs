//! `sooner attach`: scheduling for servers that already run.

mod chosen;
mod cpu;
mod cpu_table;
mod explanation;
mod left;
mod look;
mod postgres;
mod postgres_table;
mod processes;
mod web;
mod web_table;

use anyhow::Result;
use clap::{Args, Subcommand};
use sooner_attach::web::ports;
use std::process::ExitCode;

/// What was found or done, and what could not be, a line each.
type Partly<T> = (Vec<T>, Vec<String>);

/// What the supervisor is told when an attachment ends.
const STOPPING: &str = "putting back what was changed";

/// Orders the work of servers that already run, from outside.
#[derive(Args)]
pub struct AttachArgs {
    #[command(subcommand)]
    command: AttachCommand,
}

#[derive(Subcommand)]
enum AttachCommand {
    Web(web::WebArgs),
    Postgres(postgres::PostgresArgs),
    Cpu(cpu::CpuArgs),
    #[command(hide = true)]
    Compete(cpu::CompeteArgs),
    /// Show what is attached in this network namespace
    Status(look::StatusArgs),
    /// Watch what is attached: responses by band and by size beside FAIR, or sessions and workers
    /// that go first
    Top(look::TopArgs),
    /// Detach everything, and restore what a killed process left changed
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

/// That no process listens on some of the ports that were named; none where each has one.
fn silent_ports(ports: &[u16]) -> Option<String> {
    let silent: Vec<String> = ports::silent(ports)
        .ok()?
        .iter()
        .map(ToString::to_string)
        .collect();
    let (last, others) = silent.split_last()?;
    let others = others.join(", ");
    let and = if others.is_empty() { "" } else { " and " };
    Some(format!(
        "nothing listens on port {others}{and}{last} now; a server that begins there later is ordered as well"
    ))
}

/// A port of a server.
fn port(text: &str) -> Result<u16, String> {
    match text.trim().parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!(
            "`{text}` is not a port; write a number from 1 to 65535, and a comma between several"
        )),
    }
}
