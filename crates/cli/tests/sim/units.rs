//! Schedules in the unit of sizes, and sizes that are far apart.

use super::json;

/// The shape that the help shows, of sizes in another unit.
#[test]
fn a_schedule_is_in_the_unit_of_the_sizes() {
    let mean = |sizes: &str, schedule: &str| {
        let words = ["--sizes", sizes, "--schedule", schedule, "--jobs", "2e4"];
        let document = json(&[&words[..], &["--policy", "fcfs"]].concat());
        let mean = &document["runs"][0]["all"]["mean_response"];
        mean.as_f64().unwrap()
    };
    let (small, usual) = (
        mean("exp:mean=0.001", "0.4,1.4,0.05,0.05"),
        mean("exp:mean=1", "0.4,1.4,50,50"),
    );
    assert!((small / usual - 1.0).abs() < 1e-3, "{small} and {usual}");
}

/// Small jobs pass large ones however much these vary.
#[test]
fn nudge_is_no_first_come_first_served_where_sizes_have_no_variance() {
    let system = "--sizes pareto:k=1,alpha=1.5 --load 0.7 --policy fcfs,nudge --jobs 2e4";
    let document = json(&system.split(' ').collect::<Vec<_>>());
    let [fcfs, nudge] = [0, 1].map(|at: usize| {
        let run = &document["runs"][at]["all"]["p50_response"];
        run.as_f64().unwrap()
    });
    assert!(nudge < fcfs, "{nudge}, first come {fcfs}");
}
