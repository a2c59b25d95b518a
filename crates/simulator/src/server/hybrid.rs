//! Between SRPT and processor sharing: a share of the server goes to the shortest remaining job,
//! the rest to all in equal parts (thesis 6.5 leaves such hybrids open). No job gets less than that
//! part of processor sharing's rate.

use super::{Incoming, Server, whole_above};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is left to do after rounding, in units of work.
const ROUNDING: f64 = 1e-3;

/// SRPT with a share of the server, processor sharing with the rest.
pub struct Hybrid {
    /// Of the server, for the shortest remaining job alone.
    share: f64,
    shortest: Option<Shortest>,
    /// What every job that is present all the time has had of the shared part.
    shared: f64,
    /// The others, by what `shared` will be when that part alone finishes them.
    others: BinaryHeap<Reverse<Other>>,
}

struct Shortest {
    slot: u32,
    left: f64,
}

#[derive(PartialEq)]
struct Other {
    finish: f64,
    slot: u32,
}

impl Eq for Other {}

impl PartialOrd for Other {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Other {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_finish = self.finish.total_cmp(&other.finish);
        by_finish.then(self.slot.cmp(&other.slot))
    }
}

impl Hybrid {
    /// `share` of the server, from 0 (processor sharing) to 1 (SRPT), goes to the shortest
    /// remaining job.
    pub fn new(share: f64) -> Self {
        Self {
            share: share.clamp(0.0, 1.0),
            shortest: None,
            shared: 0.0,
            others: BinaryHeap::new(),
        }
    }

    /// Speed at which each job has its part of what is shared.
    fn each(&self) -> f64 {
        (1.0 - self.share) / (self.others.len() + 1) as f64
    }

    fn put_back(&mut self, job: Shortest) {
        self.others.push(Reverse(Other {
            finish: job.left + self.shared,
            slot: job.slot,
        }));
    }
}

impl Server for Hybrid {
    fn arrive(&mut self, job: Incoming, _now: u64) {
        let new = Shortest {
            slot: job.slot,
            left: job.size as f64,
        };
        match self.shortest.take() {
            Some(shortest) if shortest.left <= new.left => {
                self.shortest = Some(shortest);
                self.put_back(new);
            }
            Some(shortest) => {
                self.put_back(shortest);
                self.shortest = Some(new);
            }
            None => self.shortest = Some(new),
        }
    }

    fn until_event(&mut self) -> Option<u64> {
        // No job overtakes the shortest: it has less left, and is served faster.
        let shortest = self.shortest.as_ref()?;
        let time = shortest.left / (self.share + self.each());
        Some(whole_above(time))
    }

    fn advance(&mut self, time: u64, _now: u64, done: &mut impl FnMut(u32)) {
        let mut time = time as f64;
        while let Some(mut shortest) = self.shortest.take() {
            let each = self.each();
            let needed = shortest.left / (self.share + each);
            if needed > time + ROUNDING {
                shortest.left -= time * (self.share + each);
                self.shared += time * each;
                self.shortest = Some(shortest);
                return;
            }
            time = (time - needed).max(0.0);
            self.shared += needed * each;
            done(shortest.slot);
            self.shortest = self.others.pop().map(|Reverse(next)| Shortest {
                slot: next.slot,
                left: (next.finish - self.shared).max(0.0),
            });
        }
        self.shared = 0.0;
    }
}
