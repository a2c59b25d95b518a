//! A limit on the jobs that share a processor, against exact values and its two ends.

use sooner_theory::mg1::{Mg1, Policy};
use sooner_theory::mpl::solve;
use sooner_workload::Distribution;

fn response(sizes: &str, load: f64, mpl: usize) -> f64 {
    let sizes: Distribution = sizes.parse().unwrap();
    solve(&sizes, load, mpl).unwrap().mean_response
}

fn near(found: f64, expected: f64, what: &str) {
    assert!(
        (found / expected - 1.0).abs() < 1e-6,
        "{what}: {found}, expected {expected}"
    );
}

#[test]
fn known_values() {
    let limits = [1, 2, 4, 8, 16, 32];
    for (c2, expected) in [
        (
            4,
            [11.0, 9.717_269, 7.927_163, 6.135_297, 5.173_693, 5.004_235],
        ),
        (
            16,
            [35.0, 28.342_51, 19.251_542, 10.343_3, 5.763_711, 5.016_316],
        ),
    ] {
        for (mpl, expected) in limits.into_iter().zip(expected) {
            let found = response(&format!("h2:mean=1,c2={c2}"), 0.8, mpl);
            near(found, expected, &format!("c2 {c2}, mpl {mpl}"));
        }
    }
}

#[test]
fn one_inside_is_first_come_first_served_and_very_many_share() {
    for (sizes, load) in [
        ("h2:mean=3,c2=9", 0.5),
        ("exp:mean=0.2", 0.9),
        ("h2:mean=1,c2=2", 0.7),
    ] {
        let law: Distribution = sizes.parse().unwrap();
        let queue = Mg1::new(&law, load).unwrap();
        let mean = |policy| queue.solve(policy).mean_response;
        let one = response(sizes, load, 1);
        assert!((one / mean(Policy::Fcfs) - 1.0).abs() < 1e-6, "{sizes}");
        let many = response(sizes, load, 60);
        assert!(
            (many / mean(Policy::Fair) - 1.0).abs() < 1e-3,
            "{sizes}: {many}"
        );
    }
}

#[test]
fn with_exponential_sizes_the_limit_changes_nothing() {
    for mpl in [1, 3, 10] {
        near(response("exp:mean=1", 0.8, mpl), 5.0, "M/M/1");
    }
}

#[test]
fn who_waits_outside_is_a_part_of_who_waits() {
    let sizes: Distribution = "h2:mean=1,c2=16".parse().unwrap();
    let outside = |mpl| solve(&sizes, 0.8, mpl).unwrap().mean_outside;
    // With one inside all waiting is outside, and less the more are let in.
    near(outside(1), 34.0, "outside");
    assert!(outside(1) > outside(2) && outside(2) > outside(8) && outside(32) < 0.1);
}

#[test]
fn what_cannot_be_solved_is_said() {
    let error = |sizes: &str, load, mpl| {
        let sizes: Distribution = sizes.parse().unwrap();
        solve(&sizes, load, mpl).unwrap_err().to_string()
    };
    assert!(error("exp:mean=1", 1.0, 1).contains("below 1"));
    assert!(error("exp:mean=1", 0.5, 0).contains("1 to 400"));
    assert!(error("det:mean=1", 0.5, 1).contains("exp or h2"));
}
