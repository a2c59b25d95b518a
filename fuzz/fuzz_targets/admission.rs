//! The gate in front of a backend under any order of calls: never more inside than the limit, no place empty while a job waits.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sooner_gate::{Admission, JobId, Order, Time};
use std::collections::BTreeSet;

/// One event; few job names, so that events meet.
#[derive(Arbitrary, Debug)]
enum Event {
    Arrive {
        job: u8,
        class: u8,
        expected_ns: Option<u32>,
    },
    Leave {
        job: u8,
    },
    Limit {
        jobs: u8,
    },
}

#[derive(Arbitrary, Debug)]
struct Play {
    is_fcfs: bool,
    limit: u8,
    waiting_max: Option<u8>,
    events: Vec<Event>,
}

fuzz_target!(|play: Play| {
    let order = if play.is_fcfs {
        Order::Fcfs
    } else {
        Order::Expected
    };
    let mut limit = usize::from(play.limit);
    let mut admission = Admission::new(order, limit, play.waiting_max.map(usize::from));
    let mut inside = BTreeSet::new();
    for event in play.events {
        match event {
            Event::Arrive {
                job,
                class,
                expected_ns,
            } => {
                let job = JobId(u64::from(job));
                // A refusal is an answer.
                let _ = admission.arrive(job, class, expected_ns.map(u64::from), Time::ZERO);
            }
            Event::Leave { job } => {
                let job = JobId(u64::from(job));
                inside.remove(&job);
                admission.leave(job, Time::ZERO);
            }
            Event::Limit { jobs } => {
                limit = usize::from(jobs);
                admission.set_limit(limit);
            }
        }
        while let Some(job) = admission.admit(Time::ZERO) {
            assert!(inside.insert(job), "let in twice");
            assert!(inside.len() <= limit, "above the limit");
        }
        assert_eq!(admission.inside(), inside.len());
        assert!(
            admission.waiting() == 0 || inside.len() >= limit,
            "a place is wasted"
        );
    }
});
