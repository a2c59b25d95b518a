//! The gate in front of a backend under any order of calls: never more inside than the limit, no
//! place empty while a job waits.

use arbitrary::Arbitrary;
use sooner_admission::{
    AdmissionQueue, ClientId, JobId, Lateness, Order, Payer, Promise, Request, Time, Within,
};
use std::collections::BTreeSet;

/// One event; few job names, so that events meet.
#[derive(Arbitrary, Debug)]
pub enum Event {
    Arrive {
        job: u8,
        class: u8,
        expected_ns: Option<u32>,
        slack_ns: Option<u32>,
    },
    Pass {
        ns: u32,
    },
    Settle {
        job: u8,
        actual_ns: u32,
    },
    Order {
        order: u8,
        /// What is turned over in the numbers of all.
        classes: u8,
    },
    Weight {
        class: u8,
        weight: u32,
    },
    Leave {
        job: u8,
    },
    Limit {
        jobs: u8,
    },
}

#[derive(Arbitrary, Debug)]
pub struct Play {
    order: u8,
    limit: u8,
    waiting_max: Option<u8>,
    events: Vec<Event>,
}

fn order(number: u8) -> Order {
    match number % 8 {
        0 => Order::Fcfs,
        1 => Order::Longest,
        2 => Order::Targets(Lateness::ByPriority),
        3 => Order::Targets(Lateness::InProportion),
        4 => Order::Shares,
        5 => Order::LeastUsed(Within::Expected),
        6 => Order::LeastUsed(Within::Longest),
        _ => Order::Expected,
    }
}

/// Tries one input.
pub fn run(play: Play) {
    let mut now = Time::ZERO;
    let mut limit = usize::from(play.limit);
    let mut admission = AdmissionQueue::new(order(play.order), limit, play.waiting_max.map(usize::from));
    let mut inside = BTreeSet::new();
    for event in play.events {
        match event {
            Event::Arrive {
                job,
                class,
                expected_ns,
                slack_ns,
            } => {
                let job = JobId(u64::from(job));
                let coming = Request {
                    class,
                    number: class,
                    expected_ns: expected_ns.map(u64::from),
                    promise: slack_ns.map(|slack_ns| Promise {
                        due_at: now.after(u64::from(slack_ns)),
                        target_ns: u64::from(slack_ns),
                        group: class,
                    }),
                    came_ns: 0,
                    payer: Some(Payer {
                        client: ClientId(job.0 % 5),
                        network: job.0.is_multiple_of(2).then_some(ClientId(1)),
                    }),
                    ..Request::default()
                };
                // A refusal is an answer.
                let _ = admission.arrive(job, coming, now);
            }
            Event::Pass { ns } => now = now.after(u64::from(ns)),
            Event::Settle { job, actual_ns } => {
                admission.settle(JobId(u64::from(job)), u64::from(actual_ns));
            }
            Event::Order {
                order: number,
                classes,
            } => {
                let renewed = |_, coming: Request| Request {
                    class: coming.class ^ classes,
                    ..coming
                };
                admission.set_order(order(number), renewed, now);
            }
            Event::Weight { class, weight } => admission.set_weight(class, weight),
            Event::Leave { job } => {
                let job = JobId(u64::from(job));
                inside.remove(&job);
                admission.leave(job, now);
            }
            Event::Limit { jobs } => {
                limit = usize::from(jobs);
                admission.set_limit(limit);
            }
        }
        while let Some(job) = admission.admit(now) {
            assert!(inside.insert(job), "let in twice");
            assert!(inside.len() <= limit, "above the limit");
        }
        assert_eq!(admission.inside(), inside.len());
        assert!(
            admission.waiting() == 0 || inside.len() >= limit,
            "a place is wasted"
        );
    }
}
