//! Plays so many jobs under a policy at load 0.9, one replication on one thread, and prints the mean: for profilers and for counting instructions.
//!
//!     cargo run --release -p sooner-simulator --example play -- srpt 1000000

use sooner_simulator::replicate::CONFIDENCE;
use sooner_simulator::system::Options;
use sooner_simulator::{Effort, Policy, System, simulate};
use sooner_workload::Schedule;
use sooner_workload::model::{Arrivals, Users};

fn main() {
    let mut words = std::env::args().skip(1);
    let policy: Policy = words.next().expect("a policy").parse().expect("a policy");
    let jobs: u64 = words.next().expect("jobs").parse().expect("jobs");
    let users = Users::Open {
        schedule: Schedule::constant(0.9).expect("a load"),
        arrivals: Arrivals::Poisson,
    };
    let sizes = "exp:mean=1".parse().expect("a law");
    let system = System::new(sizes, users, policy, Options::default()).expect("a system");
    let effort = Effort {
        jobs,
        replications: 1,
        seed: 1,
        threads: 1,
        by_size: false,
    };
    let simulated = simulate(&system, &effort, &|_| {}).expect("a run");
    println!("{policy} {}", simulated.mean_response(CONFIDENCE).mean);
}
