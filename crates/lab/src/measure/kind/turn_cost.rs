//! `turn-cost`: the time of one turn of a policy (next, progress, block, unblock) with many jobs
//! waiting, guard and classes on.

use super::{Keys, Kind, NoKeys};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result};
use serde_json::{Map, json};
use sooner_policy::{Arrival, GuardLimits, JobId, PolicyName, Time};
use std::hint::black_box;
use std::time::{Duration, Instant};

const TURN_BYTES: u64 = 1_448;
const JOBS: [u64; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
const JOBS_QUICK: [u64; 2] = [100, 1_000];

/// `turn-cost`.
#[derive(Debug)]
pub struct TurnCost;

impl TurnCost {
    /// Its keys: none.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        keys.own::<NoKeys>()?;
        Ok(Box::new(TurnCost))
    }
}

impl Kind for TurnCost {
    fn run(&self, bench: &Bench<'_>, _: &Measure, record: &mut Record) -> Result<()> {
        let turns = if bench.is_quick { 10_000 } else { 300_000 };
        let counts = if bench.is_quick {
            &JOBS_QUICK[..]
        } else {
            &JOBS
        };
        for policy in PolicyName::ALL {
            for &jobs in counts {
                bench.tell(&format!("{policy}, {jobs} jobs wait"));
                bench.pause(Duration::ZERO)?;
                record.add(Map::from_iter([
                    ("policy".to_owned(), policy.as_str().into()),
                    ("jobs".to_owned(), jobs.into()),
                    ("turn_ns".to_owned(), json!(turn_ns(policy, jobs, turns)?)),
                ]))?;
            }
        }
        Ok(())
    }
}

fn turn_ns(policy: PolicyName, jobs: u64, turns: u64) -> Result<f64> {
    let mut scheduler = policy.scheduler(TURN_BYTES, Some(GuardLimits::with_turn(TURN_BYTES)));
    for id in 0..jobs {
        // Sizes over three orders of magnitude in a scattered order, none of which ends during the
        // measurement.
        let size = Some(1_000_000_000 + id.wrapping_mul(2_654_435_761) % 1_000_000);
        let arrival = Arrival {
            id: JobId(id),
            class: 0,
            size,
            trickle: 0,
            client: None,
            payer: None,
        };
        scheduler.arrive(arrival, Time::from_ns(id));
    }
    let start = Instant::now();
    for turn in 0..turns {
        let now = Time::from_ns(jobs + turn * 1_000);
        let grant = scheduler.next(now).context("no job is ready")?;
        scheduler.progress(grant.job, TURN_BYTES.min(grant.max_amount), now);
        scheduler.block(grant.job, now);
        scheduler.unblock(black_box(grant.job), now);
    }
    Ok((start.elapsed().as_nanos() as f64 / turns as f64).round())
}
