//! What the guard costs, on the same arrivals.

use sooner_simulator::replicate::CONFIDENCE;
use sooner_simulator::system::{Options, Turns};
use sooner_simulator::{Effort, System, simulate};
use sooner_workload::Schedule;
use sooner_workload::model::{Arrivals, Users};

/// The mean at load 0.9 with exponential sizes.
fn mean(policy: &str, is_guarded: bool) -> f64 {
    let users = Users::Open {
        schedule: Schedule::constant(0.9).expect("a load"),
        arrivals: Arrivals::Poisson,
    };
    let turns = is_guarded.then_some(Turns {
        turn: 0.01,
        is_guarded,
    });
    let options = Options {
        turns,
        ..Options::default()
    };
    let sizes = "exp:mean=1".parse().expect("a law");
    let system = System::new(sizes, users, policy.parse().expect("a policy"), options);
    let effort = Effort {
        jobs: 500_000,
        replications: 20,
        seed: 1,
        threads: 2,
        by_size: false,
    };
    let simulated = simulate(&system.expect("a system"), &effort, &|_| {}).expect("a run");
    simulated.controlled(CONFIDENCE).mean
}

#[test]
fn the_guard_costs_its_share_where_no_job_is_interrupted() {
    let (free, guarded) = (mean("sjf", false), mean("sjf", true));
    println!("sjf {free}, under the guard {guarded}");
    assert!(guarded / free <= 1.05, "{guarded} and {free}");
    // And it does take something.
    assert!(guarded > free);
}
