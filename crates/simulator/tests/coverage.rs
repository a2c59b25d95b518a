//! Of intervals at 95 %, as many have the exact mean in them: counted over many seeds.

use sooner_simulator::system::Options;
use sooner_simulator::{Effort, System, simulate};
use sooner_workload::Schedule;
use sooner_workload::model::{Arrivals, Users};

/// Seeds of a system.
const SEEDS: u64 = 400;

fn system(sizes: &str, load: f64) -> System {
    let users = Users::Open {
        schedule: Schedule::constant(load).expect("a load"),
        arrivals: Arrivals::Poisson,
    };
    let policy = "fcfs".parse().expect("a policy");
    let sizes = sizes.parse().expect("a law");
    System::new(sizes, users, policy, Options::default()).expect("a system")
}

fn effort(jobs: u64, seed: u64) -> Effort {
    Effort {
        jobs,
        replications: 20,
        seed,
        threads: 2,
        by_size: false,
    }
}

/// The share of intervals with `exact` in them, and the mean of their middles.
fn covered(sizes: &str, load: f64, jobs: u64, exact: f64) -> (f64, f64) {
    let system = system(sizes, load);
    let (mut covered, mut sum) = (0, 0.0);
    for seed in 1..=SEEDS {
        let found = simulate(&system, &effort(jobs, seed), &|_| {}).expect("a run");
        let estimate = found.controlled(0.95);
        let [low, high] = estimate.interval().expect("replications");
        covered += u32::from((low..=high).contains(&exact));
        sum += estimate.mean;
    }
    (f64::from(covered) / SEEDS as f64, sum / SEEDS as f64)
}

/// Four hundred draws are 1.1 % off in the deviation: this sees what misses too often. Cheap runs,
/// none longer than its queue needs to forget its beginning a few times.
#[test]
fn intervals_have_the_exact_mean_as_often_as_they_say() {
    for (sizes, load, jobs, exact) in [
        ("exp:mean=1", 0.5, 10_000, 2.0),
        ("det:mean=1", 0.8, 20_000, 3.0),
        ("exp:mean=1", 0.9, 30_000, 10.0),
    ] {
        let (share, mean) = covered(sizes, load, jobs, exact);
        println!("{sizes}, load {load}: {share} of the intervals, mean {mean}");
        assert!((0.925..=0.985).contains(&share), "{sizes}, {load}: {share}");
        let off = (mean / exact - 1.0).abs();
        assert!(off < 0.01, "{sizes}, {load}: {mean}, truly {exact}");
    }
}

#[test]
fn equal_sizes_have_one_mean_for_response_and_slowdown() {
    let found = simulate(&system("det:mean=1", 0.95), &effort(20_000, 3), &|_| {});
    let found = found.expect("a run");
    let (response, slowdown) = (found.controlled(0.95), found.slowdown(0.95));
    assert!((response.mean - slowdown.mean).abs() < 1e-6 * response.mean);
}

#[test]
fn a_run_that_is_too_short_for_its_load_says_so() {
    let of = |load: f64, jobs: u64| {
        let found = simulate(&system("det:mean=1", load), &effort(jobs, 1), &|_| {});
        found.expect("a run").warnings.join("\n")
    };
    let said = of(0.99, 100_000);
    assert!(
        said.contains("5000 jobs a replication are too few"),
        "{said}"
    );
    assert!(said.contains("simulate 2400000 jobs or more"), "{said}");
    assert!(!of(0.95, 100_000).contains("too few for load"));
}
