//! Runs that look like measured ones: heavy-tailed sizes, Poisson arrivals, both policies simulated
//! exactly on one link, with a fixed delay and a per cent of work on top in place of what a real
//! link adds.

use sooner_stats::{Outcome, Report, Run, RunFacts, Sample, Verdict};

pub const RATE_BITS_PER_SEC: u64 = 10_000_000;

/// One request: arrival and work, both in ns.
#[derive(Clone, Copy)]
struct Job {
    at_ns: f64,
    work_ns: f64,
    size_bytes: u64,
}

/// A FAIR and an SRPT run of the same arrivals at this mean load over `seconds`.
pub fn fair_and_srpt(load: f64, seconds: u64) -> Report {
    let jobs = arrivals(load, seconds);
    let (ps, srpt) = (
        simulate(&jobs, share_equally),
        simulate(&jobs, shortest_first),
    );
    let run = |policy: &str, ideal: &[f64]| {
        let samples = jobs.iter().enumerate().map(|(i, job)| {
            let response_ns = (ideal[i] * 1.02) as u64 + 600_000;
            Sample {
                arrival_ns: job.at_ns as u64,
                size_bytes: job.size_bytes,
                work_bytes: (job.work_ns * RATE_BITS_PER_SEC as f64 / 8e9) as u64,
                response_ns: Some(response_ns),
                first_byte_ns: Some(response_ns / 2),
                longest_silence_ns: Some(response_ns / 2),
                send_lag_ns: 80_000,
                outcome: Outcome::Ok,
                client: 0,
                aborts: 0,
                ideal_srpt_ns: srpt[i] as u64,
                ideal_las_ns: ps[i] as u64,
                ideal_ps_ns: ps[i] as u64,
            }
        });
        Run::new(facts(policy, load, seconds), samples.collect())
    };
    Report::new(vec![run("fair", &ps), run("srpt", &srpt)])
}

fn facts(policy: &str, load: f64, seconds: u64) -> RunFacts {
    RunFacts {
        policy: policy.into(),
        verdict: Verdict::Valid,
        verdict_reason: "the generator kept up".into(),
        seed: 1,
        offered_load: load,
        rate_bits_per_sec: RATE_BITS_PER_SEC,
        measured_ns: seconds * 1_000_000_000,
        syn_drops: None,
        syn_retransmissions: None,
    }
}

/// Bounded Pareto sizes, exponential gaps scaled so that the load is exact; a fixed linear
/// congruential stream.
fn arrivals(load: f64, seconds: u64) -> Vec<Job> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut uniform = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (horizon, mut jobs, mut work, mut at) = (seconds as f64 * 1e9, Vec::new(), 0.0, 0.0);
    while work < load * horizon {
        let size = (700.0 * (1.0 - uniform() * 0.9998).powf(-1.0 / 1.15)).min(2e6);
        let work_ns = (size + 600.0) * 8e9 / RATE_BITS_PER_SEC as f64;
        at -= (1.0 - uniform()).ln();
        work += work_ns;
        jobs.push(Job {
            at_ns: at,
            work_ns,
            size_bytes: size as u64,
        });
    }
    let scale = horizon / at;
    jobs.iter_mut().for_each(|job| job.at_ns *= scale);
    jobs
}

/// Response times in ns when at every moment `serve` says which share of the link each waiting job
/// has.
fn simulate(jobs: &[Job], serve: fn(&[(usize, f64)]) -> Vec<f64>) -> Vec<f64> {
    let mut response = vec![0.0; jobs.len()];
    let mut waiting: Vec<(usize, f64)> = Vec::new();
    let (mut now, mut next) = (0.0, 0);
    while next < jobs.len() || !waiting.is_empty() {
        let shares = serve(&waiting);
        let departure = |((_, left), share): (&(usize, f64), &f64)| now + left / share;
        let first = waiting
            .iter()
            .zip(&shares)
            .map(departure)
            .fold(f64::INFINITY, f64::min);
        let until = first.min(jobs.get(next).map_or(f64::INFINITY, |job| job.at_ns));
        for ((_, left), share) in waiting.iter_mut().zip(&shares) {
            *left -= (until - now) * share;
        }
        now = until;
        waiting.retain(|&(job, left)| {
            let done = left < 1e-3;
            if done {
                response[job] = now - jobs[job].at_ns;
            }
            !done
        });
        if jobs.get(next).is_some_and(|job| job.at_ns <= now) {
            waiting.push((next, jobs[next].work_ns));
            next += 1;
        }
    }
    response
}

fn share_equally(waiting: &[(usize, f64)]) -> Vec<f64> {
    vec![1.0 / waiting.len() as f64; waiting.len()]
}

fn shortest_first(waiting: &[(usize, f64)]) -> Vec<f64> {
    let shortest = waiting
        .iter()
        .enumerate()
        .min_by(|a, b| a.1.1.total_cmp(&b.1.1))
        .map(|(i, _)| i);
    (0..waiting.len())
        .map(|i| if Some(i) == shortest { 1.0 } else { 0.0 })
        .collect()
}
