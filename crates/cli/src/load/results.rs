//! What is expected of a run, and where its figures go: the flags of `rate`, `closed` and a log's
//! replay.

use crate::output::{self, Undelivered};
use crate::whole_file;
use anyhow::Result;
use clap::Args;
use hdrhistogram::Histogram;
use sooner_load::expectation::{Checked, Expectation};
use sooner_load::hgrm;
use sooner_load::rate::recorder::Second;
use sooner_report::number;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// What is expected, and where figures go.
#[derive(Args)]
pub struct ResultArgs {
    /// Expected result, such as 'p99<200ms', 'errors<0.1%' or 'rate>=495/s'; repeatable. The exit
    /// code is 1 if one is not met
    #[arg(long, value_name = "EXPECTATION", value_delimiter = ',')]
    pub expect: Vec<Expectation>,
    /// Write the response times to this file as HdrHistogram's plotters read them.
    #[arg(long, value_name = "FILE")]
    pub hgrm: Option<PathBuf>,
    /// Write a line of JSON a second to this file: rate, errors, in flight, p50, p99, max.
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Tells of each second: on a terminal, and in the file of `--timeline`, which a thread of its own
/// writes.
pub struct Seconds {
    is_shown: bool,
    planned_s: f64,
    timeline: Option<Timeline>,
}

/// A file, what it is told by, and who writes it.
type Timeline = (PathBuf, Sender<String>, JoinHandle<io::Result<()>>);

impl ResultArgs {
    /// Fails where a file cannot be written, before the run.
    pub fn begin(&self, planned_s: f64) -> Result<Seconds> {
        if let Some(path) = &self.hgrm {
            output::check_file("--hgrm", path)?;
        }
        let timeline = self.timeline.as_deref().map(begin_timeline).transpose()?;
        Ok(Seconds {
            is_shown: io::stderr().is_terminal(),
            planned_s,
            timeline,
        })
    }

    /// Writes the file of `--hgrm`.
    pub fn write_hgrm(&self, responses: &Histogram<u64>) -> Result<(), Undelivered> {
        let Some(path) = &self.hgrm else {
            return Ok(());
        };
        whole_file::write(path, hgrm::table(responses))
            .map_err(|error| Undelivered::file("--hgrm", path, error))
    }
}

fn begin_timeline(path: &Path) -> Result<Timeline> {
    output::check_file("--timeline", path)?;
    let (lines, received) = channel::<String>();
    let place = path.to_owned();
    let writer = std::thread::spawn(move || write_lines(&place, &received));
    Ok((path.to_owned(), lines, writer))
}

/// Nothing is changed before the first line: a run that cannot start leaves what was there.
fn write_lines(path: &Path, lines: &Receiver<String>) -> io::Result<()> {
    let Ok(first) = lines.recv() else {
        return Ok(());
    };
    let mut file = whole_file::create(path)?;
    let mut all = std::iter::once(first).chain(lines.iter());
    all.try_for_each(|line| file.write_all(line.as_bytes()))?;
    file.flush()
}

impl Seconds {
    /// A second is over.
    pub fn tell(&self, second: &Second) {
        if let Some((_, lines, _)) = &self.timeline
            && let Ok(line) = serde_json::to_string(second)
        {
            // A disk that is full is told at the end.
            let _ = lines.send(format!("{line}\n"));
        }
        if self.is_shown {
            let line = format!(
                "\r{:>4} s of {:.0} s: {}/s sent, {}/s answered, {} failed, {} open, p99 {}   ",
                second.second,
                self.planned_s,
                second.sent,
                second.answered,
                second.errors,
                second.in_flight,
                second.p99_ms.map_or("-".into(), number::duration),
            );
            let _ = io::stderr().write_all(line.as_bytes());
        }
    }

    /// The run is over: everything is written.
    pub fn end(self) -> Result<(), Undelivered> {
        if self.is_shown {
            output::say("");
        }
        let Some((path, lines, writer)) = self.timeline else {
            return Ok(());
        };
        drop(lines);
        let written = writer
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the writer failed")));
        written.map_err(|error| Undelivered::file("--timeline", &path, error))
    }
}

/// ` (status 404: 3, connection reset: 1)`, or nothing.
pub fn listed<'a, T: Display + 'a>(counts: impl Iterator<Item = (&'a T, &'a u64)>) -> String {
    let counts: Vec<String> = counts.map(|(what, n)| format!("{what}: {n}")).collect();
    match counts.len() {
        0 => String::new(),
        _ => format!(" ({})", counts.join(", ")),
    }
}

/// `, 3 requests sent again`, or nothing.
pub fn sent_again(resent: u64) -> String {
    match resent {
        0 => String::new(),
        1 => ", 1 request sent again".into(),
        _ => format!(", {resent} requests sent again"),
    }
}

/// Prints what was expected beside what came.
pub fn print(expectations: &[Checked]) -> Result<(), Undelivered> {
    for checked in expectations {
        let met = if checked.is_met { "met" } else { "MISSED" };
        output::line(format_args!(
            "expected     {}: {met} ({})",
            checked.expected, checked.shown
        ))?;
    }
    Ok(())
}
