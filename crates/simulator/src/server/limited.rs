//! Processor sharing among at most so many jobs; the others wait outside, in the order of a policy.

use super::{Incoming, Server, Sharing};
use sooner_policy::Order;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A backend with a limit on the jobs inside (its MPL), and a queue before it.
pub struct Limited<O> {
    order: O,
    inside: Sharing,
    inside_count: usize,
    mpl: usize,
    /// Rank, order of arrival, slot.
    outside: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// By slot.
    jobs: Vec<Incoming>,
    arrivals: u64,
}

impl<O: Order> Limited<O> {
    /// At most `mpl` jobs share `servers` servers; outside they wait in the order of what is known
    /// on arrival.
    pub fn new(order: O, mpl: u32, servers: u32) -> Self {
        Self {
            order,
            inside: Sharing::new(servers),
            inside_count: 0,
            mpl: mpl.max(1) as usize,
            outside: BinaryHeap::new(),
            jobs: Vec::new(),
            arrivals: 0,
        }
    }

    fn rank(&mut self, incoming: Incoming, now: u64) -> (u64, u64, u32) {
        let mut job = incoming.job(self.arrivals, incoming.expected, now);
        self.arrivals += 1;
        self.order.arrived(&mut job);
        (self.order.rank(&job), job.sequence, incoming.slot)
    }
}

impl<O: Order> Server for Limited<O> {
    fn arrive(&mut self, job: Incoming, now: u64) {
        if self.inside_count < self.mpl {
            self.inside_count += 1;
            self.inside.arrive(job, now);
            return;
        }
        let key = self.rank(job, now);
        self.outside.push(Reverse(key));
        let slot = job.slot as usize;
        if self.jobs.len() <= slot {
            self.jobs.resize(slot + 1, job);
        }
        self.jobs[slot] = job;
    }

    fn until_event(&mut self) -> Option<u64> {
        self.inside.until_event()
    }

    fn advance(&mut self, time: u64, now: u64, done: &mut impl FnMut(u32)) {
        let mut left = 0;
        self.inside.advance(time, now, &mut |slot| {
            left += 1;
            done(slot);
        });
        for _ in 0..left {
            match self.outside.pop() {
                Some(Reverse((_, _, slot))) => self.inside.arrive(self.jobs[slot as usize], now),
                None => self.inside_count -= 1,
            }
        }
    }
}
