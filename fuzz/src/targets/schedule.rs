//! A schedule that was read is written so that it reads the same, and its phases fill a run.

use sooner_workload::Schedule;

const RUN_S: f64 = 100.0;

/// Tries one input.
pub fn run(text: &str) {
    let Ok(schedule) = text.parse::<Schedule>() else {
        return;
    };
    assert_eq!(
        schedule.to_string().parse::<Schedule>(),
        Ok(schedule.clone())
    );
    let phases = schedule.over(RUN_S);
    let filled_s: f64 = phases.iter().map(|phase| phase.duration_s).sum();
    assert!((filled_s - RUN_S).abs() < 1e-6, "{filled_s} s of {RUN_S}");
}
