//! The queue before the servers: how many requests were inside at a time, what their times are
//! like, and what a limit and an order would have given them.
//!
//! Counted in one pass: the law of the times, time inside by minute, kinds, tokens. The requests of
//! the busiest hours are kept, so that it is known who was inside together; from that follow what
//! the servers do with so many inside (`curve`), whether they share or take one after the other
//! (`discipline`), what each request would have taken alone, and what happens when the same requests
//! wait outside (`play`).

mod advice;
mod caveats;
mod collected;
mod curve;
mod discipline;
mod figures;
mod inside;
mod kinds;
mod law;
mod minutes;
pub mod page;
mod plateau;
mod play;
mod text;
mod tokens;

pub use advice::advice;
pub use curve::{Curve, Level};
pub use discipline::Discipline;
pub use figures::{Inside, KindFigures, KindOutcome, Limit, Order, QueueFigures, Timed};
pub use law::LawFigures;
pub use text::text;
pub use tokens::TokenFigures;

use crate::line::Entry;
use crate::taken::Source;
use collected::Collected;
use kinds::Kinds;

/// Requests that are kept.
const KEPT_MAX: usize = 500_000;
/// Where at least this part of the lines has the time at a server, the others did not come to one.
const AT_SERVER_PART: u64 = 100;

/// Collects what a log says of the servers behind it.
pub struct QueueSurvey {
    kept_max: usize,
    kinds: Kinds,
    /// Lines without a time taken.
    untimed: u64,
    /// By the time at the server.
    at_server: Option<Box<Collected>>,
    /// By the time that the request took.
    total: Option<Box<Collected>>,
    /// Likewise, where its unit is only guessed.
    guessed: Option<Box<Collected>>,
}

impl QueueSurvey {
    /// Keeps at most `kept_max` requests.
    pub fn keeping(kept_max: usize) -> Self {
        Self {
            kept_max: kept_max.min(KEPT_MAX),
            kinds: Kinds::default(),
            untimed: 0,
            at_server: None,
            total: None,
            guessed: None,
        }
    }

    /// Counts a request.
    pub fn add(&mut self, entry: &Entry) {
        let (slot, took_ns) = match (entry.at_server.took_ns, entry.took_ns) {
            (Some(ns), _) => (&mut self.at_server, ns),
            (None, Some(ns)) if !entry.at_server.is_link_time => {
                let is_guessed = entry.took_from.is_some_and(Source::is_guess);
                let slot = if is_guessed {
                    &mut self.guessed
                } else {
                    &mut self.total
                };
                (slot, ns)
            }
            _ => {
                self.untimed += 1;
                return;
            }
        };
        let kind = self.kinds.number(entry.kind.as_deref());
        let kept_max = self.kept_max;
        slot.get_or_insert_with(|| Box::new(Collected::keeping(kept_max)))
            .add(entry, took_ns, kind);
    }

    /// What follows; none where no time can be believed.
    pub fn finish(self, is_guess_believed: bool) -> Option<QueueFigures> {
        let guessed = self.guessed.filter(|_| is_guess_believed);
        let count = |of: &Option<Box<Collected>>| of.as_ref().map_or(0, |of| of.requests());
        let (servers, totals, guesses) =
            (count(&self.at_server), count(&self.total), count(&guessed));
        let all = servers + totals + guesses;
        let timed = if servers > 0 && servers >= all / AT_SERVER_PART {
            (self.at_server, Timed::AtServer)
        } else if totals >= guesses {
            (self.total, Timed::Whole)
        } else {
            (guessed, Timed::Whole)
        };
        let (Some(collected), timed) = timed else {
            return None;
        };
        let others = all + self.untimed - collected.requests();
        figures::figures(*collected, timed, others, &self.kinds)
    }
}
