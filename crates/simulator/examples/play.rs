//! Plays so many jobs under a policy, one replication on one thread, and prints how fast, as a line
//! of JSON: for profilers, and for counting instructions.
//!
//!     cargo run --release -p sooner-simulator --example play -- srpt 1000000 0.9

#![expect(
    clippy::disallowed_methods,
    reason = "what is measured is the time it takes"
)]

use sooner_simulator::system::Options;
use sooner_simulator::{Effort, Policy, System, simulate};
use sooner_workload::Schedule;
use sooner_workload::model::{Arrivals, Users};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [policy, jobs, load] = &words[..] else {
        eprintln!("play POLICY JOBS LOAD, like play srpt 1000000 0.9");
        return ExitCode::from(2);
    };
    let policy: Policy = policy.parse().expect("a policy");
    let load: f64 = load.parse().expect("a load");
    let users = Users::Open {
        schedule: Schedule::constant(load).expect("a load"),
        arrivals: Arrivals::Poisson,
    };
    let sizes = "exp:mean=1".parse().expect("a law");
    let system = System::new(sizes, users, policy, Options::default()).expect("a system");
    let effort = Effort {
        jobs: jobs.parse().expect("jobs"),
        replications: 1,
        seed: 1,
        threads: 1,
        by_size: false,
    };
    let start = Instant::now();
    let simulated = simulate(&system, &effort, &|_| {}).expect("a run");
    // With those of the warm-up.
    let played = simulated.tally.sums().0 as f64 * 1.1;
    let speed = played / start.elapsed().as_secs_f64();
    println!(r#"{{"policy": "{policy}", "load": {load}, "jobs_per_second": {speed:.0}}}"#);
    ExitCode::SUCCESS
}
