//! The log's own requests before servers with a limit: who goes in when, by the very queue that
//! Sooner has, and how long each takes.
//!
//! Those inside share equally: with n inside each takes `stretch[n]` times as long as alone. Or so
//! many servers take one after the other, in the order in which they went in.

use super::inside::Visit;
use sooner_admission::{
    AdmissionQueue, JobId, KIND_MEMORY, Order, Outcome, Predictor, Request, Time, Within, tuning_of,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What the queue knows of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing: first come, first served.
    Nothing,
    /// What is expected from those that have left, by kind, tokens and client: shortest first.
    Likes,
    /// What it will take: shortest first.
    Everything,
}

/// What is played.
pub struct Played<'a> {
    /// In the order of arrival.
    pub visits: &'a [Visit],
    /// What each would take alone, ns.
    pub alone_ns: &'a [f64],
    /// Times as long with 0, 1, 2 and so on inside.
    pub stretch: &'a [f64],
    /// So many servers take one after the other; none where those inside share.
    pub servers_in_turn: Option<usize>,
    /// Names of kinds.
    pub kinds: &'a [String],
}

/// Who is inside, and how far they are.
struct Server<'a> {
    stretch: &'a [f64],
    now: f64,
    /// What one who was always inside would have had done, ns; the time where they do not share.
    done: f64,
    /// The bits of what must be done when it leaves, and who: positive numbers sort as their bits.
    inside: BinaryHeap<Reverse<(u64, usize)>>,
    /// Where one is taken after the other: the bits of when each server is free.
    free: Option<BinaryHeap<Reverse<u64>>>,
}

impl<'a> Server<'a> {
    fn new(played: &Played<'a>) -> Self {
        let now = played
            .visits
            .first()
            .map_or(0.0, |first| first.at_ns as f64);
        let free = |servers| std::iter::repeat_n(Reverse(now.to_bits()), servers).collect();
        let free: Option<BinaryHeap<_>> = played.servers_in_turn.map(free);
        Self {
            stretch: played.stretch,
            now,
            done: if free.is_some() { now } else { 0.0 },
            inside: BinaryHeap::new(),
            free,
        }
    }

    fn pace(&self) -> f64 {
        match self.free {
            Some(_) => 1.0,
            None => self.stretch[self.inside.len().min(self.stretch.len() - 1)],
        }
    }

    /// When the next one leaves.
    fn next_leave(&self) -> Option<f64> {
        let Reverse((bits, _)) = self.inside.peek()?;
        let left = (f64::from_bits(*bits) - self.done).max(0.0);
        Some(self.now + left * self.pace())
    }

    fn pass(&mut self, until: f64) {
        if self.free.is_some() {
            self.done = self.done.max(until);
        } else if !self.inside.is_empty() {
            self.done += (until - self.now).max(0.0) / self.pace();
        }
        self.now = self.now.max(until);
    }

    fn enter(&mut self, visit: usize, alone_ns: f64) {
        let mut begin = self.done;
        if let Some(free) = &mut self.free
            && let Some(Reverse(bits)) = free.pop()
        {
            begin = begin.max(f64::from_bits(bits));
            free.push(Reverse((begin + alone_ns.max(1.0)).to_bits()));
        }
        let bits = (begin + alone_ns.max(1.0)).to_bits();
        self.inside.push(Reverse((bits, visit)));
    }

    fn leave(&mut self) -> Option<usize> {
        let Reverse((bits, visit)) = self.inside.pop()?;
        self.done = self.done.max(f64::from_bits(bits));
        Some(visit)
    }
}

impl Played<'_> {
    /// When each comes, and how long it takes where so many are inside.
    fn outcomes(&self, limit: usize) -> Vec<Outcome> {
        let stretch = self.stretch[limit.min(self.stretch.len() - 1)];
        let outcome = |(visit, alone_ns): (&Visit, &f64)| {
            let service_ns = (alone_ns * stretch) as u64;
            Outcome {
                came_ns: i64::try_from(visit.at_ns).unwrap_or(i64::MAX),
                expected_ns: service_ns,
                kind_ns: service_ns,
                service_ns,
            }
        };
        self.visits.iter().zip(self.alone_ns).map(outcome).collect()
    }

    /// From arrival to departure of each where at most `limit` are inside, ns.
    pub fn responses(&self, limit: usize, known: Known) -> Vec<f64> {
        let within = match known {
            Known::Nothing => Within::Fcfs,
            Known::Likes | Known::Everything => Within::Expected,
        };
        self.responses_in(within, limit, known)
    }

    /// The same in any order; what it has to learn of the law of all times is taken from all.
    pub fn responses_in(&self, within: Within, limit: usize, known: Known) -> Vec<f64> {
        let mut queue = AdmissionQueue::new(Order::from(within), limit, None);
        if let Some(tuning) = tuning_of(&self.outcomes(limit), limit) {
            queue.set_tuning(tuning);
        }
        let mut predictor = Predictor::new(KIND_MEMORY);
        let mut server = Server::new(self);
        let mut entered = vec![0.0; self.visits.len()];
        let mut responses = vec![0.0; self.visits.len()];
        let mut next = 0;
        loop {
            let arrival = self.visits.get(next).map(|visit| visit.at_ns as f64);
            let leave = server.next_leave();
            let Some(at) = [arrival, leave]
                .into_iter()
                .flatten()
                .min_by(f64::total_cmp)
            else {
                return responses;
            };
            server.pass(at);
            let now = Time::from_ns(at as u64);
            if leave == Some(at) {
                if let Some(visit) = server.leave() {
                    responses[visit] = at - self.visits[visit].at_ns as f64;
                    let subject = self.visits[visit].subject(self.kinds);
                    let took_ns = (at - entered[visit]) as u64;
                    predictor.observe(&subject, took_ns);
                    queue.settle(JobId(visit as u64), took_ns);
                    queue.leave(JobId(visit as u64), now);
                }
            } else {
                let expected_ns = match known {
                    Known::Nothing => None,
                    Known::Likes => {
                        let prediction = predictor.predict(&self.visits[next].subject(self.kinds));
                        prediction.map(|prediction| prediction.expected_ns as f64)
                    }
                    Known::Everything => Some(self.alone_ns[next]),
                };
                let request = Request {
                    expected_ns: expected_ns.map(|ns| ns as u64),
                    ..Request::default()
                };
                // Nothing bounds how many wait.
                let _ = queue.arrive(JobId(next as u64), request, now);
                next += 1;
            }
            while let Some(JobId(visit)) = queue.admit(now) {
                let visit = visit as usize;
                entered[visit] = at;
                server.enter(visit, self.alone_ns[visit]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(jobs: &[(u64, f64, u32)], limit: usize, known: Known) -> Vec<f64> {
        let visit = |(at_ns, _, kind): &(u64, f64, u32)| Visit {
            at_ns: *at_ns,
            enter_ns: *at_ns,
            leave_ns: at_ns + 1,
            kind: *kind,
            amount: None,
            client: None,
        };
        let visits: Vec<Visit> = jobs.iter().map(visit).collect();
        let alone_ns: Vec<f64> = jobs.iter().map(|job| job.1).collect();
        let played = Played {
            visits: &visits,
            alone_ns: &alone_ns,
            stretch: &[1.0, 1.0, 2.0, 3.0],
            servers_in_turn: None,
            kinds: &["long".into(), "short".into()],
        };
        played.responses(limit, known)
    }

    #[test]
    fn who_waits_goes_in_by_what_is_known() {
        let jobs = [(0, 10.0, 0), (1, 8.0, 0), (2, 2.0, 1)];
        assert_eq!(played(&jobs, 1, Known::Nothing), [10.0, 17.0, 18.0]);
        assert_eq!(played(&jobs, 1, Known::Everything), [10.0, 19.0, 10.0]);
        // Of no kind anything is known yet.
        assert_eq!(played(&jobs, 1, Known::Likes), [10.0, 17.0, 18.0]);
        let later = [
            (0, 10.0, 0),
            (20, 2.0, 1),
            (40, 3.0, 1),
            (41, 10.0, 0),
            (42, 2.0, 1),
        ];
        assert_eq!(played(&later, 1, Known::Likes), [10.0, 2.0, 3.0, 14.0, 3.0]);
    }

    #[test]
    fn a_short_one_passes_by_a_boost_who_came_a_little_earlier() {
        let in_order = |within, last_at: u64| {
            let jobs = [(0, 10e3), (1000, 8e3), (last_at, 2e3)];
            let visits = jobs.map(|(at_ns, _): (u64, f64)| Visit {
                at_ns,
                enter_ns: at_ns,
                leave_ns: at_ns + 1,
                kind: 0,
                amount: None,
                client: None,
            });
            let played = Played {
                visits: &visits,
                alone_ns: &jobs.map(|(_, alone_ns)| alone_ns),
                stretch: &[1.0, 1.0],
                servers_in_turn: None,
                kinds: &["a".into()],
            };
            let responses = played.responses_in(within, 1, Known::Everything);
            responses.iter().map(|ns| ns / 1e3).collect::<Vec<_>>()
        };
        assert_eq!(in_order(Within::Fcfs, 2000), [10.0, 17.0, 18.0]);
        for within in [Within::Boost, Within::Hrrn, Within::Nudge] {
            assert_eq!(in_order(within, 2000), [10.0, 19.0, 10.0], "{within:?}");
        }
        // By 10 the other one has waited for 9 of 8, and it for 1 of 2.
        assert_eq!(in_order(Within::Hrrn, 9000), [10.0, 17.0, 11.0]);
    }

    #[test]
    fn those_inside_share() {
        // Alone until 1, then each at half speed: 1 + 2 x 4 for the first, which has 5 in all.
        let jobs = [(0, 5.0, 0), (1, 6.0, 0)];
        assert_eq!(played(&jobs, 2, Known::Nothing), [9.0, 10.0]);
        assert_eq!(played(&[(7, 3.0, 0)], 2, Known::Likes), [3.0]);
        assert_eq!(played(&[], 2, Known::Likes), [0.0; 0]);
    }
}
