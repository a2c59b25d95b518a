//! What bounds a class: how many of its jobs may be inside, and for how long they keep their
//! places.

use super::target::time_ns;
use crate::{Misconfigured, Spanned};
use serde::Deserialize;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The shortest and the longest time after which a job has run for long enough, ns: 10 ms to a day.
const LONGEST_NS: RangeInclusive<u64> = 10_000_000..=86_400_000_000_000;

/// What becomes of a job that has run for long enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LongestAction {
    /// It goes on, and another one may go in beside it.
    #[default]
    Yield,
    /// It is cancelled.
    Cancel,
}

/// For how long a job keeps its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    /// For so long.
    pub time: Duration,
    /// What becomes of it then.
    pub action: LongestAction,
}

/// What one class says.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassBounds<'a> {
    /// The most of its jobs inside at a time.
    pub inside_max: Option<&'a Spanned<NonZeroUsize>>,
    /// How long one may run, as it is written.
    pub longest: Option<&'a Spanned<String>>,
    /// What becomes of it then.
    pub longest_action: Option<&'a Spanned<LongestAction>>,
}

impl ClassBounds<'_> {
    /// The first mistake in what it says by itself.
    pub fn check(&self) -> Result<(), Misconfigured> {
        match (self.longest, self.longest_action) {
            (Some(longest), _) => longest_time(longest).map(drop),
            (None, Some(action)) => {
                let words =
                    "has no effect without a time; write longest = \"2s\" as well, or leave it out";
                Err(Misconfigured::at(action, "class.longest_action", words))
            }
            (None, None) => Ok(()),
        }
    }

    /// For how long its jobs keep their places, if that is bounded.
    pub fn longest(&self) -> Option<Longest> {
        // It was read before.
        let time = longest_time(self.longest?).ok()?;
        let action = self.longest_action.map(|action| *action.get_ref());
        Some(Longest {
            time,
            action: action.unwrap_or_default(),
        })
    }

    /// That its cap, which the file calls `key`, may be reached where `limit` jobs may be inside:
    /// that of `limit_key`.
    pub fn check_cap(&self, key: &str, limit: usize, limit_key: &str) -> Result<(), Misconfigured> {
        match self.inside_max {
            Some(cap) if cap.get_ref().get() > limit => {
                let words =
                    format!("more than {limit_key} allows; write at most {limit}, or leave it out");
                Err(Misconfigured::at(cap, key, words))
            }
            _ => Ok(()),
        }
    }

    /// That there is something to give up where nothing but `has_limit` bounds what is inside.
    pub fn check_longest(&self, has_limit: bool) -> Result<(), Misconfigured> {
        match (self.longest, self.longest()) {
            (Some(place), Some(longest))
                if longest.action == LongestAction::Yield && !has_limit =>
            {
                let words = "there is no limit, so no place to give up; give the upstream a limit, or write longest_action = \"cancel\"";
                Err(Misconfigured::at(place, "class.longest", words))
            }
            _ => Ok(()),
        }
    }
}

fn longest_time(longest: &Spanned<String>) -> Result<Duration, Misconfigured> {
    let wrong = |words: String| Misconfigured::at(longest, "class.longest", words);
    let ns = time_ns(longest.get_ref()).map_err(wrong)?;
    if !LONGEST_NS.contains(&ns) {
        return Err(wrong("out of range; write 10ms to 1440min".into()));
    }
    Ok(Duration::from_nanos(ns))
}
