//! Lines on standard error and on standard output.

use crate::outlet::Outlet;
use sooner_config::printable;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

/// Lines that may wait to be written.
const WAITING_LINES_MAX: usize = 1024;
/// How long the end of a process waits for each stream to take its last lines.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);

static ERRORS: OnceLock<Option<Outlet<Line>>> = OnceLock::new();
static RESULTS: OnceLock<Option<Outlet<Line>>> = OnceLock::new();

struct Line {
    program: &'static str,
    text: String,
}

fn write_error(Line { program, text }: Line, lost: u64) -> io::Result<()> {
    let mut stderr = io::stderr();
    if lost > 0 {
        let lost = format!(
            "{program}: {lost} lines before this one were lost: standard error did not take them\n"
        );
        stderr.write_all(lost.as_bytes())?;
    }
    // In one piece, so that lines of several processes do not mix.
    stderr.write_all(format!("{program}: {text}\n").as_bytes())
}

fn write_result(line: Line, _: u64) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(format!("{}\n", line.text).as_bytes())?;
    stdout.flush()
}

fn errors() -> Option<&'static Outlet<Line>> {
    let begin = || Outlet::start("stderr", WAITING_LINES_MAX, write_error).ok();
    ERRORS.get_or_init(begin).as_ref()
}

fn results() -> Option<&'static Outlet<Line>> {
    let begin = || Outlet::start("stdout", WAITING_LINES_MAX, write_result).ok();
    RESULTS.get_or_init(begin).as_ref()
}

/// Writes `sooner: LINE` to standard error, printable, without waiting for it.
pub fn say(line: impl Display) {
    say_as("sooner", line);
}

/// Writes `PROGRAM: LINE` to standard error, printable, without waiting for it.
pub fn say_as(program: &'static str, line: impl Display) {
    let text = printable(&line.to_string()).into_owned();
    let line = Line { program, text };
    match errors() {
        Some(errors) => errors.give(line),
        // No thread may begin: the line that says so is worth waiting for.
        None => drop(write_error(line, 0)),
    }
}

/// Writes a line to standard output, printable, without waiting for it.
pub fn print(line: impl Display) {
    let text = printable(&line.to_string()).into_owned();
    let line = Line { program: "", text };
    match results() {
        Some(results) => results.give(line),
        None => drop(write_result(line, 0)),
    }
}

/// Lines for standard error that were lost so far.
pub fn lost_lines() -> u64 {
    ERRORS
        .get()
        .and_then(Option::as_ref)
        .map_or(0, Outlet::lost)
}

/// Waits until what was said has been written, for a second at most. For the end of a process.
pub fn finish() {
    for stream in [&ERRORS, &RESULTS] {
        if let Some(outlet) = stream.get().and_then(Option::as_ref) {
            outlet.finish(LAST_LINES_WITHIN);
        }
    }
}
