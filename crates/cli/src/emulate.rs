//! `sooner emulate` and `sooner emulate-check`: wide-area paths for the lab, and the proof of them.
//! Hidden: the lab starts them.

use crate::output;
use anyhow::{Context, Result};
use clap::Args;
use sooner_lab::emulator::check::{self, CheckOptions};
use sooner_lab::emulator::path::Client;
use sooner_lab::emulator::run::{self, DeviceGone, EmulateOptions};
use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

/// Carries packets between two network namespaces, each client's with its own round-trip time and
/// loss.
///
/// Needs root. Prints `ready` when the device exists in both namespaces, carries packets until
/// SIGTERM or SIGINT, and then prints what each client's packets met.
#[derive(Args)]
pub struct EmulateArgs {
    /// Namespace where packets to clients come from.
    #[arg(long, value_name = "NAME")]
    router_namespace: String,
    /// Namespace of the clients.
    #[arg(long, value_name = "NAME")]
    client_namespace: String,
    /// Name of the TUN device, in both namespaces.
    #[arg(long, value_name = "NAME", default_value = "wan0")]
    device: String,
    /// A client and its path, like 10.0.0.2,rtt_ms=100,loss=0.05; packets of other addresses are
    /// dropped. Repeatable.
    #[arg(
        long = "client",
        value_name = "ADDRESS,rtt_ms=N,loss=N",
        required = true
    )]
    clients: Vec<Client>,
    /// Chooses which packets are lost.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// End with standard input as well, so that it does not outlive a parent that holds the other
    /// end of a pipe.
    #[arg(long)]
    end_with_stdin: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Measures whether the emulator's round-trip times, loss rates and throughput are the requested
/// ones.
///
/// Needs root. Makes network namespaces of its own and removes them. Exit code 1 when a figure did
/// not pass.
#[derive(Args)]
pub struct EmulateCheckArgs {
    /// A tenth of the packets, in about ten seconds.
    #[arg(long)]
    quick: bool,
    /// Chooses which packets are lost.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs the emulator. Errors are of the beginning, when nothing was done; a later one is reported
/// here and gives exit code 1.
pub fn run(args: EmulateArgs) -> Result<ExitCode> {
    let options = EmulateOptions {
        router_namespace: args.router_namespace,
        client_namespace: args.client_namespace,
        device: args.device,
        clients: args.clients,
        seed: args.seed,
        ends_with_stdin: args.end_with_stdin,
    };
    let report = match run::run(&options, say_ready) {
        Err(error) if error.is::<DeviceGone>() => return Ok(failed(&error)),
        report => report?,
    };
    if args.json {
        output::line(serde_json::to_string(&report)?)?
    } else {
        output::print(&report.text())?
    }
    Ok(ExitCode::SUCCESS)
}

fn say_ready() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "ready")?;
    stdout.flush()
}

fn failed(error: &anyhow::Error) -> ExitCode {
    output::say(format_args!("sooner: {error:#}"));
    ExitCode::FAILURE
}

/// Runs the check. A measurement that could not be made is reported here and gives exit code 1.
pub fn run_check(args: EmulateCheckArgs) -> Result<ExitCode> {
    run::ensure_allowed()?;
    let program = env::current_exe().context("cannot find this program's own file")?;
    let options = CheckOptions {
        quick: args.quick,
        seed: args.seed,
    };
    let figures = match check::run(program, options) {
        Ok(figures) => figures,
        Err(error) => return Ok(failed(&error)),
    };
    if args.json {
        output::json(&figures)?
    } else {
        output::print(&figures.table())?
    }
    Ok(if figures.passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
