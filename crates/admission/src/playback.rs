//! What each order would have given the last jobs: the same arrivals, each inside for as long as it
//! was in truth, before as many places as there are now, by the very queue that holds jobs back,
//! guard and all. There are no classes in it, and no job gives up.
//!
//! It is played a little at a time, so that it is in the way of none.

use crate::order::{Order, Tuning, Within};
use crate::predict::{Outcome, tuning_of};
use crate::queue::{AdmissionQueue, Request};
use sooner_policy::{JobId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The orders that are played; at the end the shortest first with perfect knowledge.
const PLAYED: [Option<Within>; 6] = [
    Some(Within::Fcfs),
    Some(Within::Expected),
    Some(Within::Boost),
    Some(Within::Hrrn),
    Some(Within::Nudge),
    None,
];

/// What an order would have given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderFigures {
    /// Which; `None`: the shortest first with perfect knowledge.
    pub order: Option<Within>,
    /// From arrival to departure in the mean, ns.
    pub mean_ns: u64,
    /// The 99th percentile of that, ns.
    pub p99_ns: u64,
}

impl OrderFigures {
    /// What the order is called.
    pub fn name(&self) -> &'static str {
        self.order.map_or("perfect", Within::name)
    }
}

/// What all orders would have given the same jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayedOrders {
    /// How many jobs.
    pub jobs: usize,
    /// From the first arrival to the last, ns.
    pub span_ns: u64,
    /// Each of them: `fifo`, `shortest`, `boost`, `hrrn`, `nudge` and `perfect`.
    pub figures: Vec<OrderFigures>,
}

impl PlayedOrders {
    /// Those of one order.
    pub fn of(&self, order: Within) -> Option<&OrderFigures> {
        self.figures.iter().find(|one| one.order == Some(order))
    }
}

/// The same jobs under one order after another.
pub(crate) struct Playback {
    /// In the order of arrival.
    jobs: Vec<Outcome>,
    places: usize,
    tuning: Tuning,
    figures: Vec<OrderFigures>,
    run: Run,
}

/// The jobs under one order.
struct Run {
    queue: AdmissionQueue,
    /// The job that comes next.
    next: usize,
    /// When those inside leave, and which.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    responses_ns: Vec<u64>,
}

impl Run {
    fn new(order: Option<Within>, places: usize, tuning: Tuning) -> Self {
        let order = order.map_or(Order::Expected, Order::from);
        let mut queue = AdmissionQueue::new(order, places, None);
        queue.set_tuning(tuning);
        Self {
            queue,
            next: 0,
            ends: BinaryHeap::new(),
            responses_ns: Vec::new(),
        }
    }
}

impl Playback {
    /// Nothing is played yet; `None` where there is nothing to play: no jobs, no places, no limit.
    pub(crate) fn new(mut jobs: Vec<Outcome>, places: usize) -> Option<Self> {
        if places == 0 || places == usize::MAX {
            return None;
        }
        let tuning = tuning_of(&jobs, places)?;
        jobs.sort_by_key(|job| job.came_ns);
        Some(Self {
            run: Run::new(PLAYED[0], places, tuning),
            jobs,
            places,
            tuning,
            figures: Vec::new(),
        })
    }

    /// Plays on for about as many steps as said, of which an arrival, a departure and a grant of the
    /// imagined server are one each; gives the figures when all are there.
    pub(crate) fn play(&mut self, steps: u64) -> Option<PlayedOrders> {
        let mut left = steps;
        while self.figures.len() < PLAYED.len() {
            let order = PLAYED[self.figures.len()];
            let before = self.run.queue.grants();
            let is_over = !self.event(order.is_none());
            // A ratio is compared for each size.
            let weight = if order == Some(Within::Hrrn) { 4 } else { 1 };
            left = left.saturating_sub(1 + weight * (self.run.queue.grants() - before));
            if is_over {
                self.end_run(order);
            }
            if left == 0 && self.figures.len() < PLAYED.len() {
                return None;
            }
        }
        let span_ns = match (self.jobs.first(), self.jobs.last()) {
            (Some(first), Some(last)) => last.came_ns.abs_diff(first.came_ns),
            _ => 0,
        };
        Some(PlayedOrders {
            jobs: self.jobs.len(),
            span_ns,
            figures: std::mem::take(&mut self.figures),
        })
    }

    /// One comes or leaves; whether there was one.
    fn event(&mut self, knows_all: bool) -> bool {
        let first_ns = self.jobs.first().map_or(0, |job| job.came_ns);
        let came_ns = |job: &Outcome| job.came_ns.abs_diff(first_ns);
        let run = &mut self.run;
        let arrival = self.jobs.get(run.next).map(came_ns);
        let end = run.ends.peek().map(|&Reverse((at_ns, _))| at_ns);
        let now = match (end, arrival) {
            (None, None) => return false,
            (Some(at_ns), arrival) if arrival.is_none_or(|arrival| at_ns <= arrival) => {
                let left = run.ends.pop();
                let job = left.map_or(0, |Reverse((_, job))| job as u64);
                let now = Time::from_ns(at_ns);
                run.queue
                    .settle(JobId(job), self.jobs[job as usize].service_ns);
                run.queue.leave(JobId(job), now);
                now
            }
            (_, arrival) => {
                let now = Time::from_ns(arrival.unwrap_or_default());
                let job = &self.jobs[run.next];
                let request = Request {
                    expected_ns: Some(match knows_all {
                        true => job.service_ns,
                        false => job.expected_ns,
                    }),
                    ..Request::default()
                };
                let arrived = run.queue.arrive(JobId(run.next as u64), request, now);
                assert!(arrived.is_ok(), "nothing bounds how many wait");
                run.next += 1;
                now
            }
        };
        while let Some(JobId(job)) = run.queue.admit(now) {
            let one = &self.jobs[job as usize];
            let end = now.after(one.service_ns);
            run.ends.push(Reverse((end.as_ns(), job as usize)));
            run.responses_ns.push(end.as_ns() - came_ns(one));
        }
        true
    }

    /// All have left under this order; the next one begins.
    fn end_run(&mut self, order: Option<Within>) {
        let responses = &mut self.run.responses_ns;
        assert_eq!(responses.len(), self.jobs.len(), "all that come leave");
        let sum: u128 = responses.iter().map(|&ns| u128::from(ns)).sum();
        let at = (99 * responses.len()).div_ceil(100).saturating_sub(1);
        let (_, p99_ns, _) = responses.select_nth_unstable(at);
        self.figures.push(OrderFigures {
            order,
            p99_ns: *p99_ns,
            mean_ns: (sum / self.jobs.len() as u128) as u64,
        });
        if let Some(&next) = PLAYED.get(self.figures.len()) {
            self.run = Run::new(next, self.places, self.tuning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// When each came, what was expected, and what it took.
    fn played(jobs: &[(i64, u64, u64)], places: usize, steps: u64) -> Option<PlayedOrders> {
        let outcome = |&(came_ns, expected_ns, service_ns)| Outcome {
            came_ns,
            expected_ns,
            kind_ns: 1,
            service_ns,
        };
        let mut playback = Playback::new(jobs.iter().map(outcome).collect(), places)?;
        loop {
            if let Some(played) = playback.play(steps) {
                return Some(played);
            }
        }
    }

    /// Means, ns.
    fn said(played: &PlayedOrders) -> String {
        let said = played.figures.iter();
        let said = said.map(|one| format!("{} {} {}", one.name(), one.mean_ns, one.p99_ns));
        said.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn each_order_gives_the_same_jobs_what_it_would_have() {
        // A long one comes alone; behind it a long one, and a short one of which is expected that
        // it is long; and one the other way round.
        let ms = 1_000_000;
        let jobs = [(-5, 10, 10), (1, 9, 9), (2, 8, 1), (3, 1, 4)];
        let jobs = jobs.map(|(came, expected, takes)| {
            (came * ms, (expected * ms) as u64, (takes * ms) as u64)
        });
        // From arrivals at 0, 6, 7, 8: fifo 10, 13, 13, 16.
        let all = played(&jobs, 1, u64::MAX).unwrap();
        assert_eq!((all.jobs, all.span_ns), (4, 8 * ms as u64));
        let means = |name: &str| {
            let one = all.figures.iter().find(|one| one.name() == name).unwrap();
            (one.mean_ns as f64 / ms as f64, one.p99_ns / ms as u64)
        };
        assert_eq!(means("fifo"), (13.0, 16));
        // The one of 4 first, then that of 1, then 9: 10, 6, 8, 18.
        assert_eq!(means("shortest"), (10.5, 18));
        // That of 1, that of 4, that of 9: 10, 4, 7, 18.
        assert_eq!(means("perfect"), (9.75, 18));
        assert_eq!(all.figures.len(), PLAYED.len());
        assert_eq!(played(&jobs, usize::MAX, 1), None);
        assert_eq!(played(&[], 3, 1), None);
    }

    proptest! {
        /// Whatever is played, all orders do the same work; and it does not matter in how many steps.
        #[test]
        fn steps_change_nothing_and_knowledge_of_equals_is_none(
            jobs in prop::collection::vec((-50_i64..50, 0_u64..20), 1..60),
            places in 1_usize..5,
            steps in 1_u64..50,
        ) {
            let ms = |ns: u64| ns * 1_000_000;
            let jobs: Vec<_> = jobs.iter().map(|&(came, takes)| (came * 1_000_000, ms(takes), ms(takes))).collect();
            let all = played(&jobs, places, u64::MAX).unwrap();
            prop_assert_eq!(&all, &played(&jobs, places, steps).unwrap());
            let mean_of = |order: Option<Within>| all.figures.iter().find(|one| one.order == order).unwrap().mean_ns;
            prop_assert_eq!(mean_of(Some(Within::Expected)), mean_of(None), "{}", said(&all));
            // As each finds the place that is free first (Kiefer and Wolfowitz).
            let mut coming = jobs.clone();
            coming.sort_by_key(|(came, ..)| *came);
            let mut free = vec![i64::MIN; places];
            let mut sum = 0;
            for (came, takes, _) in coming {
                let first = (0..places).min_by_key(|place| free[*place]).unwrap();
                let end = free[first].max(came) + takes as i64;
                sum += end - came;
                free[first] = end;
            }
            prop_assert_eq!(mean_of(Some(Within::Fcfs)), sum as u64 / jobs.len() as u64);
            let alike: Vec<_> = jobs.iter().map(|&(came, _, _)| (came, ms(7), ms(7))).collect();
            let alike = played(&alike, places, u64::MAX).unwrap();
            let first = (alike.figures[0].mean_ns, alike.figures[0].p99_ns);
            for one in &alike.figures {
                prop_assert_eq!((one.mean_ns, one.p99_ns), first, "{}", one.name());
            }
        }
    }
}
