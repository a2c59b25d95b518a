//! Least attained service, exactly: equals share.

use super::{Incoming, Server, whole_above};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is left to do after rounding, in units of work.
const ROUNDING: f64 = 1e-3;

/// Those that have had the least share the server, until they have had as much as the next.
#[derive(Default)]
pub struct Attained {
    /// By what they have had, the most first: the last are being served.
    levels: Vec<Level>,
    /// Empty ones, whose memory is used again.
    spare: Vec<Smallest>,
}

/// Sizes and slots, the smallest first.
type Smallest = BinaryHeap<Reverse<(u64, u32)>>;

/// Jobs that have had the same.
struct Level {
    attained: f64,
    jobs: Smallest,
}

impl Level {
    /// What its smallest job still lacks.
    fn lacks(&self) -> f64 {
        let smallest = self.jobs.peek();
        smallest.map_or(f64::INFINITY, |Reverse((size, _))| {
            *size as f64 - self.attained
        })
    }
}

impl Attained {
    /// What the jobs of the last level may have, each, until one is done or all have had as much as the next level.
    fn step(&self) -> Option<f64> {
        let last = self.levels.last()?;
        let next = match self.levels.len().checked_sub(2) {
            Some(next) => self.levels[next].attained,
            None => f64::INFINITY,
        };
        Some(last.lacks().min(next - last.attained))
    }

    /// Takes away the last level, which is empty.
    fn end_level(&mut self) {
        self.spare.extend(self.levels.pop().map(|level| level.jobs));
    }

    fn join_levels(&mut self) {
        while let [.., before, last] = &mut self.levels[..]
            && last.attained >= before.attained - ROUNDING
        {
            before.jobs.append(&mut last.jobs);
            self.end_level();
        }
    }
}

impl Server for Attained {
    fn arrive(&mut self, job: Incoming, _now: u64) {
        let mut jobs = self.spare.pop().unwrap_or_default();
        jobs.push(Reverse((job.size, job.slot)));
        self.levels.push(Level {
            attained: 0.0,
            jobs,
        });
        self.join_levels();
    }

    fn until_event(&mut self) -> Option<u64> {
        let step = self.step()?;
        let serving = self.levels.last()?.jobs.len() as f64;
        Some(whole_above(step * serving))
    }

    fn advance(&mut self, time: u64, _now: u64, done: &mut impl FnMut(u32)) {
        let mut left = time as f64;
        while let Some(step) = self.step() {
            let Some(level) = self.levels.last_mut() else {
                return;
            };
            let serving = level.jobs.len() as f64;
            let step = step.min(left / serving).max(0.0);
            left -= step * serving;
            level.attained += step;
            while level.lacks() <= ROUNDING {
                if let Some(Reverse((_, slot))) = level.jobs.pop() {
                    done(slot);
                }
            }
            if level.jobs.is_empty() {
                self.end_level();
            }
            self.join_levels();
            if left <= ROUNDING {
                return;
            }
        }
    }
}
