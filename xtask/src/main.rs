//! Development tasks: `cargo xtask test | tidy | book | fuzz | package | bpf | instructions |
//! h2spec | suites`. CONTRIBUTING.md says when to use which.

mod book;
mod bpf;
mod extension;
mod fuzz;
mod h2spec;
mod instructions;
mod package;
mod packages;
mod portable;
mod postgres;
mod process;
mod programs;
mod record;
mod runner;
mod suites;
mod tally;
mod test;
mod tidy;

use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: cargo xtask TASK
  test [--quick | STEP]     everything that must hold, or one of its steps; --quick leaves fuzzing out
  tidy                      architecture and style, without a build
  book                      the documents as a book, with mdbook, in target/book
  fuzz [SECONDS] [TARGET]   each fuzz target for 15 s or longer; all targets or one
  package [--profile NAME]  archive, .deb, image, bill of materials and checksums, in target/package
  bpf                       compiles the BPF programs, with clang, into the object that is committed
  instructions              counts what a simulated job takes, with valgrind, and writes what `test` compares with
  h2spec                    builds the program that tests HTTP/2, as `test` does, with Go
  suites [SUITE]... [--only CASE,...] [--sooner PROGRAM]
                            other projects' tests without and through Sooner, compared; kept under experiments/suites";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => Ok(test::run(false)),
        ["test", "--quick"] => Ok(test::run(true)),
        ["test", step] => test::run_step(step),
        ["tidy"] => tidy::run(),
        ["book"] => book::run(),
        ["package", rest @ ..] => package::run(rest),
        ["bpf"] => bpf::build(),
        ["instructions"] => instructions::write(),
        ["h2spec"] => h2spec::run(),
        ["suites", rest @ ..] => suites::run(rest),
        ["fuzz", rest @ ..] if rest.len() <= 2 => run_fuzz(rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// `[SECONDS] [TARGET]`, either of them left out.
fn run_fuzz(words: &[&str]) -> anyhow::Result<bool> {
    let (seconds, target) = match words {
        [] => (15, None),
        [one] => one
            .parse()
            .map_or((15, Some(*one)), |seconds| (seconds, None)),
        [seconds, target, ..] => (seconds.parse()?, Some(*target)),
    };
    let mut tally = tally::Tally::default();
    fuzz::run(Duration::from_secs(seconds), target, &mut tally)?;
    tally.print();
    Ok(tally.is_good())
}
