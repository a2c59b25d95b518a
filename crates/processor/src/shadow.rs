//! What the requests that were seen would have taken: with equal shares, as a kernel gives them, by
//! levels without and with what was known of them beforehand, and shortest first. Of processors, or
//! of a link, which is one.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::bounds::LEVEL_COUNT;
use crate::profile::Profile;

/// The last requests count, so many at most.
const KEPT: usize = 4096;
/// Less is nothing, ns: far more than what is lost by rounding in a day of nanoseconds.
const NOTHING_NS: f64 = 1.0;

/// A request that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// When it began, ns.
    pub began_ns: u64,
    /// What it used of a processor, or of the link, ns.
    pub used_ns: u64,
}

/// The last requests.
#[derive(Debug, Clone, Default)]
pub struct Shadow {
    finished: VecDeque<Past>,
}

/// Mean times from beginning to end, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Means {
    /// With equal shares.
    pub equal_ns: f64,
    /// By levels.
    pub levels_ns: f64,
    /// By levels that follow what was known of each beforehand.
    pub history_ns: f64,
    /// By what they lack, were that known.
    pub shortest_ns: f64,
    /// Of so many requests.
    pub requests: usize,
}

/// An order.
#[derive(Debug, Clone)]
enum Played {
    Equal,
    Levels(Profile),
    /// These, or its own.
    History(Profile),
    Shortest,
}

#[derive(Debug, Clone)]
struct Job<'a> {
    began_ns: f64,
    used_ns: f64,
    left_ns: f64,
    own: Option<&'a Profile>,
}

/// A request that is over, with the levels that it was to have.
type Past = (Finished, Option<Arc<Profile>>);

impl Shadow {
    /// One more is over.
    pub fn note(&mut self, finished: Finished) {
        self.note_known(finished, None);
    }

    /// The same, of which these levels were known beforehand.
    pub(crate) fn note_known(&mut self, finished: Finished, known: Option<Arc<Profile>>) {
        if self.finished.len() == KEPT {
            self.finished.pop_front();
        }
        self.finished.push_back((finished, known));
    }

    /// What they would have taken on so many processors, had they had them for themselves, with
    /// these bounds; none before the first.
    pub fn means(&self, processors: f64, bounds_ns: [u64; LEVEL_COUNT - 1]) -> Option<Means> {
        let jobs = self.last(usize::MAX)?;
        let levels = Profile::of_bounds(bounds_ns);
        let mean_of = |played| mean(&jobs, processors, &played);
        Some(Means {
            equal_ns: mean_of(Played::Equal),
            levels_ns: mean_of(Played::Levels(levels.clone())),
            history_ns: mean_of(Played::History(levels)),
            shortest_ns: mean_of(Played::Shortest),
            requests: jobs.len(),
        })
    }

    /// What so many of the last would have taken by levels with what was known of them, and without;
    /// none before the first.
    pub(crate) fn with_and_without(
        &self,
        count: usize,
        processors: f64,
        bounds_ns: [u64; LEVEL_COUNT - 1],
    ) -> Option<(f64, f64)> {
        let jobs = self.last(count)?;
        let levels = Profile::of_bounds(bounds_ns);
        let mean_of = |played| mean(&jobs, processors, &played);
        Some((
            mean_of(Played::History(levels.clone())),
            mean_of(Played::Levels(levels)),
        ))
    }

    /// So many of the last, from the first of them on.
    fn last(&self, count: usize) -> Option<Vec<Past>> {
        let mut jobs: Vec<Past> = self.finished.iter().rev().take(count).cloned().collect();
        jobs.sort_by_key(|(job, _)| job.began_ns);
        let first_ns = jobs.first()?.0.began_ns;
        for (job, _) in &mut jobs {
            job.began_ns -= first_ns;
        }
        Some(jobs)
    }
}

/// No job has more than one processor. Gives the mean time, ns.
fn mean(jobs: &[Past], processors: f64, played: &Played) -> f64 {
    assert!(processors > 0.0);
    let mut coming = jobs.iter().peekable();
    let mut here: Vec<Job<'_>> = Vec::new();
    let mut now_ns = 0.0;
    let mut sum_ns = 0.0;
    while !here.is_empty() || coming.peek().is_some() {
        let next_ns = coming
            .peek()
            .map_or(f64::INFINITY, |(job, _)| job.began_ns as f64);
        let speeds = speeds(&here, processors, played);
        let until = here.iter().zip(&speeds).map(|(job, speed)| {
            let fall_ns = played.left_ns(job);
            now_ns + job.left_ns.min(fall_ns) / speed
        });
        let end_ns = until.fold(next_ns, f64::min);
        for (job, speed) in here.iter_mut().zip(&speeds) {
            let had_ns = (end_ns - now_ns) * speed;
            job.used_ns += had_ns;
            job.left_ns -= had_ns;
        }
        now_ns = end_ns;
        here.retain(|job| {
            let stays = job.left_ns > NOTHING_NS;
            if !stays {
                sum_ns += now_ns - job.began_ns;
            }
            stays
        });
        while let Some((job, own)) = coming.next_if(|(job, _)| job.began_ns as f64 <= now_ns) {
            here.push(Job {
                began_ns: job.began_ns as f64,
                used_ns: 0.0,
                left_ns: (job.used_ns as f64).max(2.0 * NOTHING_NS),
                own: own.as_deref(),
            });
        }
    }
    sum_ns / jobs.len() as f64
}

impl Played {
    /// The levels of a job; none where there are none.
    fn levels<'a>(&'a self, job: &Job<'a>) -> Option<&'a Profile> {
        match self {
            Played::Levels(levels) => Some(levels),
            Played::History(levels) => Some(job.own.unwrap_or(levels)),
            Played::Equal | Played::Shortest => None,
        }
    }

    /// The level of a job.
    fn level(&self, job: &Job<'_>) -> usize {
        let levels = self.levels(job);
        levels.map_or(0, |levels| levels.level(job.passed_ns()).into())
    }

    /// What it may use until its level is another one, ns.
    fn left_ns(&self, job: &Job<'_>) -> f64 {
        let passed_ns = job.passed_ns();
        let left = self
            .levels(job)
            .and_then(|levels| levels.left_ns(passed_ns));
        left.map_or(f64::INFINITY, |left_ns| {
            (passed_ns + left_ns) as f64 - job.used_ns
        })
    }
}

impl Job<'_> {
    /// What it has used; so near to a bound it is behind it.
    fn passed_ns(&self) -> u64 {
        (self.used_ns + NOTHING_NS) as u64
    }
}

/// What each has of a processor, 0 to 1: each level shares equally what those above it leave, or
/// those that lack least have one each.
fn speeds(here: &[Job<'_>], processors: f64, played: &Played) -> Vec<f64> {
    let mut left = processors;
    if let Played::Shortest = played {
        let mut order: Vec<usize> = (0..here.len()).collect();
        order.sort_by(|one, other| here[*one].left_ns.total_cmp(&here[*other].left_ns));
        let mut speeds = vec![0.0; here.len()];
        for at in order {
            speeds[at] = left.clamp(0.0, 1.0);
            left -= speeds[at];
        }
        return speeds;
    }
    let levels: Vec<usize> = here.iter().map(|job| played.level(job)).collect();
    let mut shares = [0.0; LEVEL_COUNT];
    for (at, share) in shares.iter_mut().enumerate() {
        let count = levels.iter().filter(|level| **level == at).count() as f64;
        if count > 0.0 {
            *share = (left / count).min(1.0);
            left = (left - *share * count).max(0.0);
        }
    }
    levels.into_iter().map(|level| shares[level]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn means(jobs: &[(u64, u64)], processors: f64, bounds_ns: [u64; 2]) -> (f64, f64, f64) {
        let mut shadow = Shadow::default();
        for (began_ns, used_ns) in jobs {
            shadow.note(Finished {
                began_ns: *began_ns,
                used_ns: *used_ns,
            });
        }
        let means = shadow.means(processors, bounds_ns).unwrap();
        (
            means.equal_ns.round(),
            means.levels_ns.round(),
            means.shortest_ns.round(),
        )
    }

    #[test]
    fn a_short_one_behind_a_long_one() {
        // Shared: the short one takes 20, the long one 110. By levels 10 and 110.
        assert_eq!(
            means(&[(1000, 100), (1050, 10)], 1.0, [20, 50]),
            (65.0, 60.0, 60.0)
        );
        // Two processors: neither waits.
        assert_eq!(
            means(&[(1000, 100), (1050, 10)], 2.0, [20, 50]),
            (55.0, 55.0, 55.0)
        );
        assert_eq!(Shadow::default().means(1.0, [1, 2]), None);
        // What is left behind a bound is nothing.
        assert_eq!(means(&[(0, 254)], 1.0, [253, 506]), (254.0, 253.0, 254.0));
    }

    #[test]
    fn levels_with_no_bound_in_reach_are_equal_shares() {
        let jobs: Vec<(u64, u64)> = (0..100).map(|at| (at * 37, 10 + at % 90)).collect();
        let (equal, levels, shortest) = means(&jobs, 1.5, [1000, 2000]);
        assert_eq!(equal, levels);
        assert!(shortest < equal);
    }

    proptest! {
        #[test]
        fn no_job_ends_before_it_could(
            jobs in proptest::collection::vec((0_u64..10_000, 2_u64..1000), 1..60),
            processors in 1_u32..4,
            bound in 2_u64..500,
            began_ns in 0_u64..1 << 60,
        ) {
            let jobs: Vec<_> = jobs.iter().map(|job| (began_ns + job.0, job.1)).collect();
            let (equal, levels, shortest) = means(&jobs, processors.into(), [bound, 2 * bound]);
            let least = jobs.iter().map(|job| job.1 as f64).sum::<f64>() / jobs.len() as f64;
            // With no more than this left a job is over: 254 ns with a bound at 253 take 253.
            let least = (least - NOTHING_NS).floor();
            prop_assert!([equal, levels, shortest].iter().all(|mean| *mean >= least));
            // Of one server no order has a lower mean.
            prop_assert!(processors > 1 || shortest <= equal.min(levels) + 2.0);
        }
    }
}
