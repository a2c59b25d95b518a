//! Least attained service, exactly: equals share.

use super::{Incoming, Server, whole_above};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is left to do after rounding, in units of work.
const ROUNDING: f64 = 1e-3;
/// Levels that are looked through for the next end. Most often it is in the first or second; every
/// level more is an event less.
const LEVELS_AHEAD: usize = 4;

/// Those that have had the least share the server, until they have had as much as the next.
#[derive(Default)]
pub struct Attained {
    /// By what they have had, the most first: the last are being served.
    levels: Vec<Level>,
}

/// Size and slot.
type Sized = (u64, u32);

/// Jobs that have had the same; most often it is one alone, which needs no memory of its own.
struct Level {
    attained: f64,
    smallest: Sized,
    /// The smallest first.
    others: BinaryHeap<Reverse<Sized>>,
}

impl Level {
    fn len(&self) -> f64 {
        (self.others.len() + 1) as f64
    }

    fn add(&mut self, job: Sized) {
        let larger = job.max(self.smallest);
        self.smallest = job.min(self.smallest);
        self.others.push(Reverse(larger));
    }

    /// What its smallest job still lacks.
    fn lacks(&self) -> f64 {
        self.smallest.0 as f64 - self.attained
    }
}

impl Attained {
    /// What the level before the one at `place` has had.
    fn next_attained(&self, place: usize) -> f64 {
        match place.checked_sub(1) {
            Some(before) => self.levels[before].attained,
            None => f64::INFINITY,
        }
    }

    /// Lets the last level join those before it that have had no more.
    fn join_levels(&mut self) {
        while let [.., before, last] = &mut self.levels[..]
            && last.attained >= before.attained - ROUNDING
        {
            before.add(last.smallest);
            before.others.append(&mut last.others);
            self.levels.pop();
        }
    }

    /// Takes the jobs that are done from the last level.
    fn end_jobs(&mut self, done: &mut impl FnMut(u32)) {
        while let Some(level) = self.levels.last_mut()
            && level.lacks() <= ROUNDING
        {
            done(level.smallest.1);
            match level.others.pop() {
                Some(Reverse(next)) => level.smallest = next,
                None => drop(self.levels.pop()),
            }
        }
    }
}

impl Server for Attained {
    fn arrive(&mut self, job: Incoming, _now: u64) {
        self.levels.push(Level {
            attained: 0.0,
            smallest: (job.size, job.slot),
            others: BinaryHeap::new(),
        });
        self.join_levels();
    }

    fn until_event(&mut self) -> Option<u64> {
        let last = self.levels.len().checked_sub(1)?;
        let (mut time, mut serving, mut smallest) = (0.0, 0.0, u64::MAX);
        let mut place = last;
        loop {
            let level = &self.levels[place];
            serving += level.len();
            smallest = smallest.min(level.smallest.0);
            let next = self.next_attained(place);
            let end = smallest as f64;
            time += serving * (end.min(next) - level.attained);
            if end <= next || last - place + 1 == LEVELS_AHEAD {
                return Some(whole_above(time));
            }
            place -= 1;
        }
    }

    fn advance(&mut self, time: u64, _now: u64, done: &mut impl FnMut(u32)) {
        let mut left = time as f64;
        while let Some(last) = self.levels.len().checked_sub(1) {
            let next = self.next_attained(last);
            let level = &mut self.levels[last];
            let serving = level.len();
            let step = level.lacks().min(next - level.attained);
            if step * serving > left {
                level.attained += left / serving;
                left = 0.0;
            } else {
                level.attained += step;
                left -= step * serving;
            }
            self.end_jobs(done);
            self.join_levels();
            if left <= ROUNDING {
                return;
            }
        }
    }
}
