//! Whatever `sooner serve` runs: a policy with its classes, its turns and its guard, asked as a
//! link asks it.

use super::{Incoming, Server};
use sooner_policy::{Arrival, Grant, JobId, Scheduler, Time};

/// One server that serves whom a scheduler says.
pub struct Scheduled<S> {
    scheduler: S,
    /// What is left of each job, by slot.
    left: Vec<u64>,
    now: u64,
    grant: Option<Grant>,
}

impl<S: Scheduler> Scheduled<S> {
    /// Asks `scheduler`.
    pub fn new(scheduler: S) -> Self {
        Self {
            scheduler,
            left: Vec::new(),
            now: 0,
            grant: None,
        }
    }
}

impl<S: Scheduler> Server for Scheduled<S> {
    fn arrive(&mut self, job: Incoming, now: u64) {
        let arrival = Arrival {
            id: JobId(u64::from(job.slot)),
            class: job.class,
            size: Some(job.expected),
            trickle: 0,
            client: None,
            payer: None,
        };
        self.scheduler.arrive(arrival, Time::from_ns(now));
        match self.left.get_mut(job.slot as usize) {
            Some(place) => *place = job.size,
            None => self.left.push(job.size),
        }
        self.grant = None;
        self.now = now;
    }

    fn until_event(&mut self) -> Option<u64> {
        if self.grant.is_none() {
            self.grant = self.scheduler.next(Time::from_ns(self.now));
        }
        let grant = self.grant?;
        let turn = grant.max_amount.min(self.left[grant.job.0 as usize]);
        let wake = self.scheduler.wake_at();
        let wake = wake.map_or(u64::MAX, |at| at.since(Time::from_ns(self.now)));
        // The next turn asks again for what is due already and cannot be had.
        Some(turn.min(if wake == 0 { u64::MAX } else { wake }))
    }

    fn advance(&mut self, time: u64, now: u64, done: &mut impl FnMut(u32)) {
        self.now = now;
        let Some(Grant { job, .. }) = self.grant.take() else {
            return;
        };
        let left = &mut self.left[job.0 as usize];
        *left -= time;
        let is_done = *left == 0;
        self.scheduler.progress(job, time, Time::from_ns(now));
        if is_done {
            self.scheduler.depart(job, Time::from_ns(now));
            done(job.0 as u32);
        }
    }
}
