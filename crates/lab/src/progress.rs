//! How far a measurement is, on stderr: a bar on a terminal, plain lines elsewhere.

use crate::said::say;
use indicatif::{ProgressBar, ProgressStyle};
use sooner_report::number::{bytes, count, duration};
use sooner_stats::Run;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// What a measurement is doing.
#[derive(Debug)]
pub enum Step<'a> {
    /// It writes the files that will be served.
    Root {
        /// How many bytes.
        size_bytes: u64,
    },
    /// It replays the trace against one policy.
    Replay {
        /// The policy.
        policy: &'a str,
        /// How long it has been at it.
        elapsed: Duration,
        /// How long requests arrive; after that it waits for the last responses.
        total: Duration,
    },
    /// It is done with one policy.
    Done {
        /// What was measured.
        run: &'a Run,
    },
}

/// Shows steps on stderr.
pub struct Display {
    bar: Option<ProgressBar>,
    terminal: bool,
}

impl Display {
    /// A bar if stderr is a terminal, else plain lines.
    pub fn stderr() -> Self {
        Self {
            bar: None,
            terminal: io::stderr().is_terminal(),
        }
    }

    /// Shows `step`.
    pub fn show(&mut self, step: Step<'_>) {
        match step {
            Step::Root { size_bytes } => {
                say(format_args!(
                    "writing the trace's files, {}, to a temporary directory",
                    bytes(size_bytes as f64)
                ));
            }
            Step::Replay {
                policy,
                elapsed,
                total,
            } => self.show_replay(policy, elapsed, total),
            Step::Done { run } => {
                if let Some(bar) = self.bar.take() {
                    bar.finish_and_clear();
                }
                say(done_line(run));
            }
        }
    }

    fn show_replay(&mut self, policy: &str, elapsed: Duration, total: Duration) {
        let is_new = self.bar.is_none();
        let bar = self.bar.get_or_insert_with(|| bar(self.terminal, total));
        if is_new && !self.terminal {
            let seconds = total.as_secs();
            say(format_args!("{policy}: replaying for {seconds} s"));
        }
        let draining = elapsed > total;
        bar.set_message(if draining {
            format!("{policy}: last responses")
        } else {
            policy.to_owned()
        });
        bar.set_position(elapsed.min(total).as_secs());
    }
}

fn bar(terminal: bool, total: Duration) -> ProgressBar {
    if !terminal {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:<22} {bar:50} {pos:>3} of {len} s");
    let style = style.expect("the template is constant and well-formed");
    ProgressBar::new(total.as_secs()).with_style(style)
}

fn done_line(run: &Run) -> String {
    let mean = run.all.mean_response_ms.map_or("-".to_owned(), duration);
    format!(
        "{}: {} requests, mean response {mean}",
        run.policy,
        count(run.all.n)
    )
}
