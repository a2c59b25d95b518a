//! The time of one turn (next, progress, block, unblock) with many jobs waiting, guard and classes
//! on; JSON lines.

#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark is what reads the clock"
)]

use sooner_policy::{Arrival, GuardLimits, JobId, PolicyName, Time};
use std::hint::black_box;
use std::time::Instant;

const TURN_BYTES: u64 = 1_448;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let turns = if quick { 10_000 } else { 300_000 };
    for policy in PolicyName::ALL {
        for jobs in [100_u64, 1_000, 10_000, 100_000, 1_000_000] {
            if quick && jobs > 10_000 {
                continue;
            }
            println!(
                r#"{{"policy": "{policy}", "jobs": {jobs}, "turn_ns": {:.0}}}"#,
                turn_ns(policy, jobs, turns)
            );
        }
    }
}

fn turn_ns(policy: PolicyName, jobs: u64, turns: u64) -> f64 {
    let mut scheduler = policy.scheduler(TURN_BYTES, Some(GuardLimits::with_turn(TURN_BYTES)));
    for id in 0..jobs {
        // Sizes over three orders of magnitude in a scattered order, none of which ends during the
        // measurement.
        let size = Some(1_000_000_000 + id.wrapping_mul(2_654_435_761) % 1_000_000);
        scheduler.arrive(
            Arrival {
                id: JobId(id),
                class: 0,
                size,
                trickle: 0,
                client: None,
            },
            Time::from_ns(id),
        );
    }
    let start = Instant::now();
    for turn in 0..turns {
        let now = Time::from_ns(jobs + turn * 1_000);
        let grant = scheduler.next(now).expect("jobs wait");
        scheduler.progress(grant.job, TURN_BYTES.min(grant.max_amount), now);
        scheduler.block(grant.job, now);
        scheduler.unblock(black_box(grant.job), now);
    }
    start.elapsed().as_nanos() as f64 / turns as f64
}
