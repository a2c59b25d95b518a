//! Two runs of the same arrivals, side by side.

use crate::groups::{self, ideal_mean_ms};
use sooner_stats::{Group, Report, Run};

/// Ratios closer to 1 than this are called "about the same".
const SAME: f64 = 0.05;

/// The run everything is compared with, and the one compared.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// FAIR where there is one, else the first run.
    pub base: &'a Run,
    /// SRPT where there is one, else the last run.
    pub other: &'a Run,
}

/// A figure of both runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Both {
    /// The base's.
    pub base: f64,
    /// The other's.
    pub other: f64,
}

/// Which way a figure went from base to other, beyond the tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smaller.
    Shorter,
    /// Within the tolerance.
    Same,
    /// Larger.
    Longer,
}

impl<'a> Pair<'a> {
    /// The pair a report is about, none if it has fewer than two runs.
    pub fn of(report: &'a Report) -> Option<Pair<'a>> {
        let named = |name: &str| report.runs.iter().find(|run| run.policy == name);
        let base = named("fair").or(report.runs.first())?;
        let others = || report.runs.iter().filter(|run| !std::ptr::eq(*run, base));
        let other = others()
            .find(|run| run.policy == "srpt")
            .or(others().next_back())?;
        Some(Pair { base, other })
    }

    /// A figure of a group in both runs, where both have it.
    pub fn both(
        &self,
        group: fn(&Run) -> &Group,
        figure: fn(&Group) -> Option<f64>,
    ) -> Option<Both> {
        Both::new(figure(group(self.base))?, figure(group(self.other))?)
    }

    /// The means perfect schedulers of both policies would reach, where both are known.
    pub fn both_ideal(&self, group: fn(&Run) -> &Group) -> Option<Both> {
        let ideal = |run: &Run| ideal_mean_ms(&run.policy, group(run));
        Both::new(ideal(self.base)?, ideal(self.other)?)
    }

    /// Base and other as people write them.
    pub fn names(&self) -> (String, String) {
        (
            groups::policy_name(self.base),
            groups::policy_name(self.other),
        )
    }
}

impl Both {
    /// Both figures, if a ratio can be made of them.
    pub fn new(base: f64, other: f64) -> Option<Both> {
        let usable = |v: f64| v.is_finite() && v > 0.0;
        (usable(base) && usable(other)).then_some(Both { base, other })
    }

    /// How many times the base's figure is the other's: above 1 where the other is shorter.
    pub fn gain(&self) -> f64 {
        self.base / self.other
    }

    /// Which way the figure went.
    pub fn direction(&self) -> Direction {
        let ratio = self.other / self.base;
        match ratio {
            _ if ratio > 1.0 + SAME => Direction::Longer,
            _ if ratio < 1.0 - SAME => Direction::Shorter,
            _ => Direction::Same,
        }
    }

    /// `5.3 times shorter`, `12 % longer`, `about the same`.
    pub fn words(&self) -> String {
        self.with_times(" times")
    }

    /// `5.3× shorter`, `12 % longer`, `about the same`.
    pub fn short_words(&self) -> String {
        self.with_times("×")
    }

    fn with_times(&self, sign: &str) -> String {
        let (factor, word) = match self.direction() {
            Direction::Same => return "about the same".to_owned(),
            Direction::Shorter => (self.gain(), "shorter"),
            Direction::Longer => (1.0 / self.gain(), "longer"),
        };
        if factor >= 1.5 {
            return format!("{}{sign} {word}", times(factor));
        }
        let percent = (self.other / self.base - 1.0).abs() * 100.0;
        format!("{percent:.0} % {word}")
    }
}

/// A factor in two digits: `1.6`, `5.3`, `32`.
pub fn times(factor: f64) -> String {
    if factor < 9.95 {
        format!("{factor:.1}")
    } else {
        format!("{factor:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_the_direction() {
        let words = |base, other| Both::new(base, other).expect("positive").words();
        assert_eq!(words(200.0, 38.0), "5.3 times shorter");
        assert_eq!(words(93.0, 2.9), "32 times shorter");
        assert_eq!(words(100.0, 88.0), "12 % shorter");
        assert_eq!(words(100.0, 103.0), "about the same");
        assert_eq!(words(100.0, 120.0), "20 % longer");
        assert_eq!(words(100.0, 310.0), "3.1 times longer");
    }

    #[test]
    fn no_ratio_of_nothing() {
        assert_eq!(Both::new(0.0, 1.0), None);
        assert_eq!(Both::new(1.0, f64::NAN), None);
    }

    #[test]
    fn factors_have_two_digits_or_are_whole() {
        assert_eq!(
            [1.55, 9.9, 9.97, 32.4, 412.3].map(times),
            ["1.6", "9.9", "10", "32", "412"]
        );
    }
}
