//! The commands that need Linux.

use crate::{attach, demo, emulate, gate, lab, load, serve};
use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;

/// Sockets, processes and devices, and what measures them.
#[derive(Subcommand)]
pub enum LinuxCommand {
    /// Order the work of servers that already run, from outside
    Attach(attach::AttachArgs),
    Demo(demo::DemoArgs),
    Gate(Box<gate::GateArgs>),
    /// Run the published experiments, beside nginx, Apache and Caddy
    Lab(lab::LabArgs),
    /// Carry packets between namespaces with round-trip times and loss
    #[command(hide = true)]
    Emulate(emulate::EmulateArgs),
    /// Measure whether `emulate` does what it says
    #[command(hide = true)]
    EmulateCheck(emulate::EmulateCheckArgs),
    /// Generate HTTP requests or transactions, and measure response times
    Load(load::LoadArgs),
    /// Serve files and proxy backends, with short responses before long ones
    Serve(Box<serve::ServeArgs>),
}

/// Runs one.
pub fn run(command: LinuxCommand) -> Result<ExitCode> {
    match command {
        LinuxCommand::Attach(args) => attach::run(args),
        LinuxCommand::Demo(args) => demo::run(args),
        LinuxCommand::Gate(args) => gate::run(*args),
        LinuxCommand::Lab(args) => lab::run(args),
        LinuxCommand::Emulate(args) => emulate::run(args),
        LinuxCommand::EmulateCheck(args) => emulate::run_check(args),
        LinuxCommand::Load(args) => load::run(args),
        LinuxCommand::Serve(args) => serve::run(*args),
    }
}
