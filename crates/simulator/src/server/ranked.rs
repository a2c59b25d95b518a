//! One job at a time on each server, by the rank of a policy's own order.
//!
//! A rank changes only while its job is served, so the waiting ones stand in a heap, and only the
//! job in service gets a new rank.

use super::{Incoming, Server};
use sooner_policy::{Job, Order};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rank, then order of arrival, then slot.
type Key = (u64, u64, u32);

/// As many jobs as there are servers, the lowest ranks; a lower rank may interrupt a job in
/// service.
pub struct Ranked<O> {
    order: O,
    servers: usize,
    /// By slot.
    jobs: Vec<Present>,
    waiting: BinaryHeap<Reverse<Key>>,
    served: Vec<Served>,
    arrivals: u64,
}

/// What the order knows, and what is really left, in the time of one server.
#[derive(Clone, Copy)]
struct Present {
    job: Job,
    left: u64,
}

#[derive(Clone, Copy)]
struct Served {
    key: Key,
    left: u64,
    /// Until the order wants to be asked again.
    turn: u64,
}

impl<O: Order> Ranked<O> {
    /// `servers` servers, each of that part of the whole speed, ordered by `order`.
    pub fn new(order: O, servers: u32) -> Self {
        Self {
            order,
            servers: servers.max(1) as usize,
            jobs: Vec::new(),
            waiting: BinaryHeap::new(),
            served: Vec::new(),
            arrivals: 0,
        }
    }

    fn key(&self, slot: u32) -> Key {
        let job = &self.jobs[slot as usize].job;
        (self.order.rank(job), job.sequence, slot)
    }

    fn serve(&mut self, key: Key) {
        let present = &self.jobs[key.2 as usize];
        self.served.push(Served {
            key,
            left: present.left,
            turn: self.order.max_amount(&present.job),
        });
    }

    /// Takes the job at `place` off its server, back among those that wait.
    fn interrupt(&mut self, place: usize) {
        let Served { key, left, .. } = self.served.swap_remove(place);
        self.jobs[key.2 as usize].left = left;
        self.waiting.push(Reverse(key));
    }

    fn worst(&self) -> Option<(usize, Key)> {
        let keys = self.served.iter().map(|served| served.key).enumerate();
        keys.max_by_key(|&(_, key)| key)
    }

    /// Asks again, as a link does whenever something comes: of those in a turn, one that waits may
    /// be lower by now.
    fn ask_again(&mut self) {
        while let Some((place, worst)) = self.worst()
            && let Some(&Reverse(best)) = self.waiting.peek()
            && best < worst
        {
            self.interrupt(place);
            self.fill();
        }
        for served in &mut self.served {
            let job = &self.jobs[served.key.2 as usize].job;
            served.turn = self.order.max_amount(job);
        }
    }

    fn fill(&mut self) {
        while self.served.len() < self.servers
            && let Some(Reverse(key)) = self.waiting.pop()
        {
            self.serve(key);
        }
    }
}

impl<O: Order> Server for Ranked<O> {
    fn arrive(&mut self, incoming: Incoming, now: u64) {
        let servers = self.servers as u64;
        let expected = incoming.expected.saturating_mul(servers);
        let mut job = incoming.job(self.arrivals, expected, now);
        self.arrivals += 1;
        self.order.arrived(&mut job);
        let left = incoming.size.saturating_mul(servers);
        let slot = incoming.slot as usize;
        match self.jobs.get_mut(slot) {
            Some(place) => *place = Present { job, left },
            None => self.jobs.push(Present { job, left }),
        }
        let key = self.key(incoming.slot);
        match self.worst() {
            Some((place, worst)) if self.served.len() >= self.servers => {
                if key < worst {
                    self.interrupt(place);
                    self.serve(key);
                } else {
                    self.waiting.push(Reverse(key));
                }
            }
            _ => self.serve(key),
        }
        if self.served[0].turn != u64::MAX {
            self.ask_again();
        }
    }

    fn until_event(&mut self) -> Option<u64> {
        let turns = self
            .served
            .iter()
            .map(|served| served.left.min(served.turn));
        turns.min()
    }

    fn advance(&mut self, time: u64, _now: u64, done: &mut impl FnMut(u32)) {
        let mut place = 0;
        let mut is_over = false;
        while let Some(served) = self.served.get_mut(place) {
            let slot = served.key.2;
            served.left -= time;
            served.turn -= time;
            let job = &mut self.jobs[slot as usize].job;
            self.order.progressed(job, time);
            job.attained += time;
            served.key.0 = self.order.rank(job);
            if served.left == 0 {
                self.order.departed(job);
                self.served.swap_remove(place);
                done(slot);
                is_over = true;
                continue;
            }
            is_over |= served.turn == 0;
            place += 1;
        }
        if is_over {
            while let Some(place) = self.served.iter().position(|served| served.turn == 0) {
                self.interrupt(place);
            }
            self.fill();
        }
    }
}
