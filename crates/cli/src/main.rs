//! The `sooner` binary: one file a subcommand, no logic here.

mod advise;
mod attach;
mod config_file;
mod demo;
mod emulate;
mod figures;
mod gate;
mod lab;
mod load;
mod notify;
mod package;
mod serve;
mod sim;
mod solve;
mod system;
mod system_user;
mod whole_file;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Bad input: nothing was done or changed.
const BAD_INPUT: u8 = 2;

/// Makes servers answer sooner on the hardware they have, by deciding who goes first.
#[derive(Parser)]
#[command(name = "sooner", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tell from access logs what ordering would do for this traffic, and for whom.
    Advise(advise::AdviseArgs),
    /// Schedule for servers that already run, without their knowing.
    Attach(attach::AttachArgs),
    /// Show what the order is worth: the same requests, first FAIR, then SRPT.
    Demo(demo::DemoArgs),
    /// Draw the papers' figures that are computed, and check what they show.
    Figures(figures::FiguresArgs),
    /// Let a bounded number of transactions into a PostgreSQL at a time.
    Gate(Box<gate::GateArgs>),
    /// Run the papers' experiments on links made for them, beside nginx, Apache and Caddy.
    Lab(lab::LabArgs),
    /// Carry packets between namespaces with round-trip times and loss.
    #[command(hide = true)]
    Emulate(emulate::EmulateArgs),
    /// Measure whether `emulate` does what it says.
    #[command(hide = true)]
    EmulateCheck(emulate::EmulateCheckArgs),
    /// Generate load, requests or transactions, and measure response times.
    Load(load::LoadArgs),
    /// Write manual pages and shell completions.
    #[command(hide = true)]
    Package(package::PackageArgs),
    /// Serve files and backends, small responses not behind large ones.
    Serve(Box<serve::ServeArgs>),
    /// Simulate users and sizes under any policy, beside exact values where there are any.
    Sim(Box<sim::SimArgs>),
    /// Compute response times by formula: one server, closed networks, a limit on jobs.
    Solve(solve::SolveArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.exit_code() == 0 => error.exit(),
        Err(error) => return fail(&usage_error(&error)),
    };
    let done = match cli.command {
        Command::Advise(args) => advise::run(&args),
        Command::Attach(args) => attach::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Figures(args) => figures::run(&args),
        Command::Gate(args) => gate::run(*args),
        Command::Lab(args) => lab::run(args),
        Command::Emulate(args) => emulate::run(args),
        Command::EmulateCheck(args) => emulate::run_check(args),
        Command::Load(args) => load::run(args),
        Command::Package(args) => package::run(&args, Cli::command()),
        Command::Serve(args) => serve::run(*args),
        Command::Sim(args) => sim::run(*args),
        Command::Solve(args) => solve::run(args),
    };
    let code = match done {
        Ok(code) => code,
        Err(error) => fail(&with_causes(&error)),
    };
    sooner_operate::finish();
    code
}

fn fail(message: &str) -> ExitCode {
    // A line each, where there are several.
    message.lines().for_each(sooner_operate::say);
    sooner_operate::finish();
    ExitCode::from(BAD_INPUT)
}

/// The error and its causes, those left out that the text names already.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// What clap has to say, in one line.
fn usage_error(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let end = text
        .find("\n\nUsage")
        .or(text.find("\n\nFor more"))
        .unwrap_or(text.len());
    let words: Vec<_> = text[..end].split_whitespace().collect();
    format!(
        "{}; see --help",
        words.join(" ").trim_start_matches("error: ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_wrong_command_line_is_one_line() {
        for args in [
            &["sooner"][..],
            &["sooner", "serv"],
            &["sooner", "serve"],
            &["sooner", "serve", ".", "--polic", "x"],
        ] {
            let Err(error) = Cli::try_parse_from(args) else {
                panic!("{args:?} was accepted")
            };
            assert!(!usage_error(&error).contains('\n'));
        }
    }
}
