//! Lines for the operator, on stderr: written by a thread that loses and counts what the reader
//! does not take, and printable, because clients choose names that stand in them.

use std::cell::Cell;
use std::time::{Duration, Instant};

pub use sooner_operate::finish;

/// One line.
pub fn log(line: &str) {
    sooner_operate::say_as("sooner gate", line);
}

/// The time between two lines of what may happen very often.
const PAUSE: Duration = Duration::from_secs(60);

/// What may happen very often: a line at most once a minute.
#[derive(Default)]
pub struct Seldom {
    said_at: Cell<Option<Instant>>,
    unsaid: Cell<usize>,
}

impl Seldom {
    /// It has happened `times` more; `line` has how often since the last line.
    pub fn log(&self, times: usize, line: impl FnOnce(usize) -> String) {
        self.unsaid.set(self.unsaid.get() + times);
        let is_soon = |at: Instant| at.elapsed() < PAUSE;
        if self.unsaid.get() > 0 && !self.said_at.get().is_some_and(is_soon) {
            log(&line(self.unsaid.take()));
            self.said_at.set(Some(Instant::now()));
        }
    }
}
