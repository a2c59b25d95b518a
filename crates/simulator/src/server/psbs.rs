//! Practical size-based scheduler (Dell'Amico, Carra and Michiardi 2015), all weights equal: FSP on
//! estimated sizes, which is not fooled by a job that is larger than it seemed.
//!
//! Processor sharing is played on the estimates. Who would be done there first is served; who would
//! be done there already, but is not, is late, and the late share the server among themselves.
//! Every call costs O(log n).

use super::{Incoming, Server};
use sooner_policy::{JobId, VirtualTime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// FSP on estimates, with sharing among those that are late.
#[derive(Default)]
pub struct Psbs {
    /// Sharing as it would be if estimates were right; jobs that are done stay until they would be
    /// done there.
    reference: VirtualTime,
    /// Jobs in time, by the end in the reference: end, name, slot.
    in_time: BinaryHeap<Reverse<(u64, u64, u32)>>,
    late: VirtualTime,
    /// By slot.
    jobs: Vec<Job>,
    /// Names the jobs, because their slots are used again.
    arrivals: u64,
}

#[derive(Clone, Copy)]
struct Job {
    name: u64,
    left: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InTime,
    Late,
    Done,
}

impl Psbs {
    /// The slot to be served alone, if no job is late.
    fn first(&mut self) -> Option<u32> {
        while let Some(&Reverse((_, name, slot))) = self.in_time.peek() {
            let job = &self.jobs[slot as usize];
            // A slot may have another job by now.
            if job.name == name && job.state == State::InTime {
                return Some(slot);
            }
            self.in_time.pop();
        }
        None
    }

    /// Lets the reference do `work`; a job that the reference finishes and that is not done is
    /// late.
    fn advance_reference(&mut self, work: u64) {
        let Self {
            reference,
            jobs,
            late,
            ..
        } = self;
        reference.advance_finishing(work, |job| {
            let (name, slot) = (job.0 >> 32, (job.0 & 0xffff_ffff) as usize);
            let job = &mut jobs[slot];
            if job.name == name && job.state == State::InTime {
                job.state = State::Late;
                late.arrive(JobId(slot as u64), job.left);
            }
        });
    }
}

impl Server for Psbs {
    fn arrive(&mut self, job: Incoming, _now: u64) {
        let name = self.arrivals & 0xffff_ffff;
        self.arrivals += 1;
        let id = JobId(name << 32 | u64::from(job.slot));
        let finish = self.reference.arrive(id, job.expected.max(1));
        self.in_time.push(Reverse((finish, name, job.slot)));
        let present = Job {
            name,
            left: job.size,
            state: State::InTime,
        };
        match self.jobs.get_mut(job.slot as usize) {
            Some(place) => *place = present,
            None => self.jobs.push(present),
        }
    }

    fn until_event(&mut self) -> Option<u64> {
        let end = match self.late.next_finish() {
            Some((work, _)) => work,
            None => {
                let slot = self.first()?;
                self.jobs[slot as usize].left
            }
        };
        // Who becomes late has a claim at once.
        let next = self
            .reference
            .next_finish()
            .map_or(u64::MAX, |(work, _)| work);
        Some(end.min(next).max(1))
    }

    fn advance(&mut self, time: u64, _now: u64, done: &mut impl FnMut(u32)) {
        if self.late.is_empty() {
            if let Some(slot) = self.first() {
                let job = &mut self.jobs[slot as usize];
                job.left = job.left.saturating_sub(time);
                if job.left == 0 {
                    job.state = State::Done;
                    self.in_time.pop();
                    done(slot);
                }
            }
        } else {
            let Self { late, jobs, .. } = self;
            late.advance_finishing(time, |job| {
                jobs[job.0 as usize].state = State::Done;
                done(job.0 as u32);
            });
        }
        self.advance_reference(time);
    }
}
