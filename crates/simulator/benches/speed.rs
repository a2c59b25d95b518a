//! Simulated jobs a second on one core, by policy and load; JSON lines.

use sooner_simulator::system::Options;
use sooner_simulator::{Effort, Policy, System, simulate};
use sooner_workload::Schedule;
use sooner_workload::model::{Arrivals, Users};
use std::time::Instant;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let jobs = if quick { 20_000 } else { 2_000_000 };
    let only = std::env::args()
        .nth(1)
        .filter(|argument| !argument.starts_with("--"));
    for load in [0.9, 0.99] {
        for policy in ["fcfs", "srpt", "psjf", "fair", "las", "fsp"] {
            if only.as_ref().is_some_and(|only| only != policy) {
                continue;
            }
            let speed = jobs_per_second(policy, load, jobs);
            println!(r#"{{"policy": "{policy}", "load": {load}, "jobs_per_second": {speed:.0}}}"#);
        }
    }
}

fn jobs_per_second(policy: &str, load: f64, jobs: u64) -> f64 {
    let users = Users::Open {
        schedule: Schedule::constant(load).expect("a load"),
        arrivals: Arrivals::Poisson,
    };
    let policy: Policy = policy.parse().expect("a policy");
    let sizes = "exp:mean=1".parse().expect("a law");
    let system = System::new(sizes, users, policy, Options::default()).expect("a system");
    let effort = Effort {
        jobs,
        replications: 1,
        seed: 1,
        threads: 1,
        by_size: false,
    };
    let start = Instant::now();
    let simulated = simulate(&system, &effort, &|_| {}).expect("a run");
    // With those of the warm-up.
    (simulated.tally.sums().0 as f64 * 1.1) / start.elapsed().as_secs_f64()
}
