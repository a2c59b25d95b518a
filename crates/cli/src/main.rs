//! The `sooner` binary: one file a subcommand, no logic here.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod advise;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod attach;
mod choice;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod config_file;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod demo;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod emulate;
mod examples;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod feasibility;
mod figures;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod gate;
mod help;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod imported;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod lab;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod linux;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod load;
mod output;
mod package;
mod process;
mod progress;
#[cfg_attr(
    not(all(target_os = "linux", feature = "linux")),
    expect(dead_code, reason = "only commands that need Linux run for a time")
)]
mod seconds;
#[cfg(all(target_os = "linux", feature = "linux"))]
mod serve;
mod sim;
mod solve;
mod system;
mod usage;

use clap::builder::StyledStr;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use output::Undelivered;
use sooner_report::whole_file;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_env = "musl", feature = "linux"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bad input: nothing was done or changed.
const BAD_INPUT: u8 = 2;
/// What a shell shows for a process that SIGPIPE has ended.
const READER_LEFT: u8 = 141;

/// Decides the order in which a server answers, so that short requests do not wait behind long
/// ones.
#[derive(Parser)]
#[command(name = "sooner", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Advise(advise::AdviseArgs),
    Figures(figures::FiguresArgs),
    Sim(Box<sim::SimArgs>),
    /// Compute response times by formula: M/G/1, closed networks, job limits
    Solve(solve::SolveArgs),
    /// Write manual pages and shell completions
    #[command(hide = true)]
    Package(package::PackageArgs),
    #[cfg(all(target_os = "linux", feature = "linux"))]
    #[command(flatten)]
    Linux(Box<linux::LinuxCommand>),
}

fn main() -> ExitCode {
    let words = joined(std::env::args_os());
    if words.len() < 2 {
        return print_help(&command_line().render_help());
    }
    let cli = match parse(&words) {
        Ok(cli) => cli,
        Err(error) if error.exit_code() == 0 => return print_help(&error.render()),
        Err(error) => {
            let mistakes =
                usage::mistakes(&Cli::command(), error, words, |words| parse(words).err());
            return fail(&mistakes.join("\n"));
        }
    };
    let done = match cli.command {
        Command::Advise(args) => advise::run(&args),
        Command::Figures(args) => figures::run(&args),
        Command::Package(args) => package::run(&args, help::described(Cli::command())),
        Command::Sim(args) => sim::run(*args),
        Command::Solve(args) => solve::run(args),
        #[cfg(all(target_os = "linux", feature = "linux"))]
        Command::Linux(command) => linux::run(*command),
    };
    let code = match done {
        Ok(code) => code,
        Err(error) => match error.downcast_ref() {
            Some(undelivered) => give_up(undelivered),
            None => fail(&with_causes(&error)),
        },
    };
    process::finish();
    code
}

/// Flags take values that begin with a minus sign and a digit: what is wrong with them is said by
/// what reads them.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| {
            if arg.is_positional() || !arg.get_action().takes_values() {
                arg
            } else {
                arg.allow_negative_numbers(true)
            }
        })
        .mut_subcommands(with_negative_numbers)
}

/// The words with values such as `-1s` beside their flag, so that what reads them says what is
/// wrong.
fn joined(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    for word in words {
        if is_negative_with_unit(&word) && all.last().is_some_and(|last| is_flag(last)) {
            let flag = all.pop().unwrap_or_default();
            all.push(
                [flag.as_os_str(), "=".as_ref(), &word]
                    .into_iter()
                    .collect(),
            );
        } else {
            all.push(word);
        }
    }
    all
}

fn is_flag(word: &OsStr) -> bool {
    let name = word.to_str().and_then(|text| text.strip_prefix("--"));
    name.is_some_and(|name| !name.is_empty() && !name.contains('='))
}

fn is_negative_with_unit(word: &OsStr) -> bool {
    let text = word.to_str().unwrap_or_default();
    let rest = text.strip_prefix('-').unwrap_or_default();
    rest.starts_with(|first: char| first.is_ascii_digit()) && text.parse::<f64>().is_err()
}

/// All that can be typed, with all that help says of it.
fn command_line() -> clap::Command {
    with_negative_numbers(help::complete(Cli::command()))
}

fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut matches = command_line().try_get_matches_from(words)?;
    Cli::from_arg_matches_mut(&mut matches)
}

fn fail(message: &str) -> ExitCode {
    // A line each, where there are several.
    message.lines().for_each(process::say);
    process::finish();
    ExitCode::from(BAD_INPUT)
}

/// The work is done and its results do not arrive.
fn give_up(undelivered: &Undelivered) -> ExitCode {
    if let Undelivered::ReaderLeft = undelivered {
        process::end_by_closed_pipe();
        return ExitCode::from(READER_LEFT);
    }
    output::say(format_args!("sooner: {undelivered}"));
    ExitCode::FAILURE
}

/// Help and version, which clap gives as errors; help also where there is no word at all.
fn print_help(text: &StyledStr) -> ExitCode {
    let is_styled = io::stdout().is_terminal();
    let printed = if is_styled {
        output::print(&text.ansi().to_string())
    } else {
        output::print(&text.to_string())
    };
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(undelivered) => give_up(&undelivered),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command_line().debug_assert();
    }

    fn said(line: &str) -> String {
        let words = joined(line.split(' ').map(OsString::from));
        let error = parse(&words).err().expect(line);
        usage::mistakes(&Cli::command(), error, words, |words| parse(words).err()).join("\n")
    }

    #[test]
    fn a_mistake_is_one_line_that_says_what_would_be_right() {
        for (line, right) in [
            (
                "sooner",
                "a subcommand is missing: use advise, figures, sim, solve, attach, demo, gate, lab, load or serve; see `sooner --help`",
            ),
            (
                "sooner serv",
                "there is no subcommand `serv`; did you mean `serve`?",
            ),
            (
                "sooner load xyz",
                "there is no subcommand `xyz`; use rate, replay, model, closed, trace, mkroot, surge, tpcc, tpcw or surge-fit; see `sooner load --help`",
            ),
            (
                "sooner solve mg",
                "there is no subcommand `mg`; did you mean `mg1`?",
            ),
            (
                "sooner serve . --polic srpt",
                "there is no flag --polic; did you mean --policy?",
            ),
            (
                "sooner serve . --zzz",
                "there is no flag --zzz; see `sooner serve --help`",
            ),
            (
                "sooner sim a b",
                "`b` is unexpected here; see `sooner sim --help`",
            ),
            (
                "sooner sim --load",
                "--load: its value is missing; write --load LOAD",
            ),
            (
                "sooner sim --csv --json",
                "--csv and --json do not go together; leave one of them out",
            ),
            (
                "sooner sim --seed 1 --seed 2",
                "--seed is given twice; give it once",
            ),
            ("sooner sim --seed x", "--seed: `x` is not a whole number"),
            ("sooner sim --seed -1", "--seed: `-1` is not a whole number"),
            (
                "sooner sim --replications 99999999999",
                "--replications: `99999999999` is out of range; write a whole number from 0 to 4294967295",
            ),
            ("sooner sim --turn x", "--turn: `x` is not a number"),
            (
                "sooner load closed --url x --connections 0 --for 10",
                "--connections: `0` is out of range; write a whole number from 1 to 4294967295",
            ),
            (
                "sooner load tpcc run --url postgres://a@b/c --for 5 --model opn",
                "--model: there is no `opn`; did you mean `open`? It is closed, open or partly-open",
            ),
            (
                "sooner advise log --uplink 100",
                "--uplink: rate `100`: its unit is missing; use bit, kbit, mbit, gbit or MB/s, as in 100mbit",
            ),
            (
                "sooner load replay",
                "--url URL and TRACE are missing; see `sooner load replay --help`",
            ),
        ] {
            assert_eq!(said(line), right, "{line}");
        }
    }

    #[test]
    fn a_password_is_not_told() {
        for (line, right) in [
            (
                "sooner load tpcc check --url postgresql://ann:se/cret@h:54x/db",
                "--url: `postgresql://h:54x/db`: invalid connection string: invalid value for option `port`; write postgresql://user@host:5432/database, or postgresql:///database?host=/run/postgresql&user=name",
            ),
            (
                "sooner load tpcc check --url postgresql:///db?user=a&password=secret&port=x",
                "--url: `postgresql:///db?user=a&password=...`: invalid connection string: invalid value for option `port`; write postgresql://user@host:5432/database, or postgresql:///database?host=/run/postgresql&user=name",
            ),
        ] {
            assert_eq!(said(line), right, "{line}");
        }
    }

    #[test]
    fn one_of_several_flags_is_told_with_the_others() {
        for (line, right) in [
            (
                "sooner attach cpu",
                "--pid PID, --cgroup NAME or --port PORT is missing; see `sooner attach cpu --help`",
            ),
            (
                "sooner attach cpu --port 70000",
                "--port: `70000` is not a port; write a number from 1 to 65535, and a comma between several",
            ),
            (
                "sooner attach cpu --pid 1 --cgroup x",
                "--pid and --cgroup do not go together; leave one of them out",
            ),
        ] {
            assert_eq!(said(line), right, "{line}");
        }
    }

    #[test]
    fn a_value_with_a_minus_sign_is_one() {
        for (line, right) in [
            (
                "sooner load surge --zzz -1s",
                "there is no flag --zzz; see `sooner load surge --help`",
            ),
            (
                "sooner attach cpu --port 80 --explain --for -1s",
                "--for: `-1s` is not a length of time; write for example 120, 2.5s, 500ms, 10m or 1h30m",
            ),
            (
                "sooner attach web --dev a --uplink 1mbit --flows 4294967295",
                "--flows: `4294967295` is out of range; write a whole number from 1 to 4194304",
            ),
        ] {
            assert_eq!(said(line), right, "{line}");
        }
    }

    #[test]
    fn several_mistakes_are_told_at_once() {
        for (line, right) in [
            (
                "sooner load replay epa --uplink 100 --for soon --ur http://a --model opn",
                "--uplink: rate `100`: its unit is missing; use bit, kbit, mbit, gbit or MB/s, as in 100mbit\n\
                 there is no flag --ur; did you mean --url?\n\
                 --for: `soon` is not a length of time; write for example 120, 2.5s, 500ms, 10m or 1h30m\n\
                 --model: there is no `opn`; did you mean `open`? It is open, partly-open or closed",
            ),
            (
                "sooner sim --seed=x --zzz 3 --load 0.5,y --turn x",
                "--seed: `x` is not a whole number\n\
                 there is no flag --zzz; see `sooner sim --help`\n\
                 --load: `y` is not a number\n\
                 --turn: `x` is not a number",
            ),
            (
                "sooner load closed --connections x",
                "--connections: `x` is not a whole number\n\
                 --for TIME and URL are missing; see `sooner load closed --help`",
            ),
        ] {
            assert_eq!(said(line), right, "{line}");
        }
    }
}
