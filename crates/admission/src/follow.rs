//! `order = "auto"`: takes the order under which the last jobs would have done best.
//!
//! Of first come, first served, shortest first and boost that with the lowest mean goes, among those
//! under which the 99th percentile is at most 1.1 times that of first come, first served. It has to
//! be better by 5 % than what is taken, unless that is above the bound itself, of at least 500 jobs,
//! and a minute after the last change.

use crate::order::Within;
use crate::playback::{OrderFigures, PlayedOrders};
use sooner_policy::Time;
use std::fmt;

/// What may be taken.
const CANDIDATES: [Within; 3] = [Within::Fcfs, Within::Expected, Within::Boost];
/// Fewer jobs tell too little of a 99th percentile.
const JOBS_MIN: usize = 500;
/// A 99th percentile may be so many hundredths of that of first come, first served.
const P99_PERCENT_MAX: u128 = 110;
/// A mean has to be at most so many hundredths of what it was.
const MEAN_PERCENT_MAX: u128 = 95;
/// From one change to the next, ns (a minute).
const CHANGE_EVERY_NS: u64 = 60_000_000_000;

/// Another order is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// What would have come of it.
    pub now: OrderFigures,
    /// And of what was taken until then.
    pub before: OrderFigures,
    /// Of how many jobs.
    pub jobs: usize,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        write!(
            f,
            "order {} instead of {} (the last {} would have taken {:.1} ms in the mean instead of {:.1}, p99 {:.1} instead of {:.1})",
            self.now.name(),
            self.before.name(),
            self.jobs,
            ms(self.now.mean_ns),
            ms(self.before.mean_ns),
            ms(self.now.p99_ns),
            ms(self.before.p99_ns),
        )
    }
}

/// The order that is taken.
#[derive(Clone, Copy, Debug)]
pub struct Follower {
    taken: Within,
    not_before: Time,
}

impl Default for Follower {
    /// First come, first served, until something is known.
    fn default() -> Self {
        Self {
            taken: Within::Fcfs,
            not_before: Time::ZERO,
        }
    }
}

impl Follower {
    /// Which it is.
    pub fn taken(&self) -> Within {
        self.taken
    }

    /// Looks at what was played; gives another order if one is taken.
    pub fn look(&mut self, played: &PlayedOrders, now: Time) -> Option<Taken> {
        if played.jobs < JOBS_MIN || now < self.not_before {
            return None;
        }
        let before = *played.of(self.taken)?;
        let p99_max = P99_PERCENT_MAX * u128::from(played.of(Within::Fcfs)?.p99_ns);
        let is_allowed = |one: &OrderFigures| 100 * u128::from(one.p99_ns) <= p99_max;
        let allowed = CANDIDATES.iter().filter_map(|&order| played.of(order));
        let best = allowed
            .filter(|one| is_allowed(one))
            .min_by_key(|one| one.mean_ns)?;
        let mean_max = MEAN_PERCENT_MAX * u128::from(before.mean_ns);
        let is_better = 100 * u128::from(best.mean_ns) <= mean_max;
        if best.order == before.order || (is_allowed(&before) && !is_better) {
            return None;
        }
        self.taken = best.order?;
        self.not_before = now.after(CHANGE_EVERY_NS);
        Some(Taken {
            now: *best,
            before,
            jobs: played.jobs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds, jobs, and mean and p99 under fifo, shortest and boost.
    type Seen = (u64, usize, [(u64, u64); 3]);

    /// What is taken after each look.
    fn looks(looks: &[Seen]) -> String {
        let mut follower = Follower::default();
        let taken = looks.iter().map(|&(seconds, jobs, figures)| {
            let figures = CANDIDATES.iter().zip(figures);
            let figures = figures.map(|(&order, (mean_ns, p99_ns))| OrderFigures {
                order: Some(order),
                mean_ns,
                p99_ns,
            });
            let played = PlayedOrders {
                jobs,
                span_ns: 1,
                figures: figures.collect(),
            };
            let now = Time::from_ns(seconds * 1_000_000_000);
            let change = follower.look(&played, now);
            let name = follower.taken().name();
            match change {
                Some(change) => {
                    assert_eq!(change.now.name(), name);
                    name.to_uppercase()
                }
                None => name.to_owned(),
            }
        });
        taken.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_lowest_mean_is_taken_of_those_with_a_bounded_p99() {
        // The bound is 1100; shortest is the best in the mean.
        let both = [(100, 1000), (50, 1100), (60, 1000)];
        let one = [(100, 1000), (50, 1101), (60, 1100)];
        let none = [(100, 1000), (50, 1500), (60, 1200)];
        assert_eq!(looks(&[(0, 500, both)]), "SHORTEST");
        assert_eq!(looks(&[(0, 500, one)]), "BOOST");
        assert_eq!(looks(&[(0, 500, none)]), "fifo");
    }

    #[test]
    fn a_twentieth_of_enough_jobs_is_what_it_takes() {
        let by = |mean| [(1000, 9), (mean, 9), (mean + 1, 9)];
        assert_eq!(
            looks(&[(0, 500, by(951)), (1, 500, by(950))]),
            "fifo SHORTEST"
        );
        assert_eq!(looks(&[(0, 499, by(10))]), "fifo");
    }

    #[test]
    fn a_change_is_a_minute_after_the_last_at_least() {
        let shortest = [(100, 9), (50, 9), (90, 9)];
        let boost = [(100, 9), (80, 9), (50, 9)];
        let all = [
            (5, 500, shortest),
            (64, 500, boost),
            (65, 500, boost),
            (100, 500, shortest),
            (125, 500, shortest),
        ];
        assert_eq!(looks(&all), "SHORTEST shortest BOOST boost SHORTEST");
    }

    #[test]
    fn what_harms_those_who_wait_longest_is_given_up_for_what_is_worse_in_the_mean() {
        let good = [(100, 10), (50, 11), (80, 11)];
        let bad = [(100, 10), (50, 12), (80, 11)];
        let worse = [(100, 10), (50, 12), (80, 12)];
        assert_eq!(
            looks(&[(0, 500, good), (60, 500, bad), (120, 500, worse)]),
            "SHORTEST BOOST FIFO"
        );
    }
}
