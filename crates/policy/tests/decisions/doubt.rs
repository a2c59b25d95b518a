//! Orders that bear doubt: what is known of sizes is an estimate, or the law of all of them.

use super::*;
use sooner_policy::order::{Boost, ByAge, Fcfs, Fsp, Index, Nudge, Psbs, Sjf};
use sooner_policy::{Hrrn, Order};

fn by(order: impl Order + Send + 'static, jobs: &[Play]) -> String {
    run(jobs, Box::new(Queue::new(order)), true).decisions
}

/// While A is served come a large one, then a small one, then another small one much later.
fn one_large() -> Vec<Play> {
    vec![play(0, 300), play(100, 200), play(150, 20), play(290, 20)]
}

#[test]
fn boost_counts_a_small_job_as_if_it_had_come_earlier() {
    // With a scale of 100 a job of 200 has a boost of 15, one of 20 of 171: C passes B (150 - 171
    // is before 100 - 15), and D does not (290 - 171 is after).
    assert_eq!(by(Boost::new(100), &one_large()), "A300 C20 B200 D20");
    // A boost of 1 and 51 at a scale of 40: none passes.
    assert_eq!(by(Boost::new(40), &one_large()), "A300 B200 C20 D20");
    // 1610 and 3912 at 1000.
    assert_eq!(by(Boost::new(1_000), &one_large()), "A300 C20 D20 B200");
}

#[test]
fn boost_interrupts_where_it_may() {
    let interrupting = by(Boost::interrupting(1_000), &one_large());
    assert_eq!(interrupting, "A100 B50 C20 B120 D20 B30 A200");
}

#[test]
fn nudge_passes_large_jobs_among_the_last_few() {
    // B and C are large; D is small and came third after A, E fourth.
    let jobs = [
        play(0, 300),
        play(10, 200),
        play(20, 200),
        play(30, 20),
        play(40, 20),
    ];
    assert_eq!(by(Nudge::new(20, 0), &jobs), "A300 B200 C200 D20 E20");
    assert_eq!(by(Nudge::new(20, 1), &jobs), "A300 B200 D20 C200 E20");
    assert_eq!(by(Nudge::new(20, 2), &jobs), "A300 D20 B200 E20 C200");
    assert_eq!(by(Nudge::new(20, 3), &jobs), "A300 D20 E20 B200 C200");
    assert_eq!(by(Nudge::new(10, 3), &jobs), by(Fcfs, &jobs));
}

#[test]
fn a_small_job_passes_no_small_one() {
    let jobs = [play(0, 300), play(10, 20), play(20, 200), play(30, 10)];
    assert_eq!(by(Nudge::new(20, 5), &jobs), "A300 B20 D10 C200");
}

#[test]
fn hrrn_weighs_the_wait_by_the_size() {
    let decisions = |jobs: &[Play]| run(jobs, Box::new(Hrrn::default()), true).decisions;
    // At 300 B has waited 200 for 200, C 150 for 20, D 10 for 20: C. At 320 B 220, D 30 for 20.
    assert_eq!(decisions(&one_large()), "A300 C20 D20 B200");
    // A large one that has waited for thrice its size goes before a small one that has not.
    let jobs = [play(0, 300), play(1, 100), play(290, 10)];
    assert_eq!(decisions(&jobs), "A300 B100 C10");
    assert_eq!(by(Sjf, &jobs), "A300 C10 B100");
}

#[test]
fn hrrn_keeps_to_classes_and_interrupts_for_them_alone() {
    let low = |at, size| Play {
        class: 1,
        ..play(at, size)
    };
    let decisions = |jobs: &[Play]| run(jobs, Box::new(Hrrn::default()), true).decisions;
    assert_eq!(
        decisions(&[low(0, 50), low(5, 10), play(10, 20)]),
        "A10 C20 A40 B10"
    );
}

#[test]
fn those_who_are_late_take_turns_under_psbs_and_hold_others_up_under_fsp() {
    // A seems to take 2 and takes 40, B seems to take 2 and takes 6; C takes the 4 it seems to.
    let guessed = |mut scheduler: Box<dyn Scheduler + Send>| {
        let mut decisions = String::new();
        let mut left = [40_u64, 6, 4];
        for (id, size) in [(0, 2), (1, 2), (2, 4)] {
            let arrival = Arrival {
                id: JobId(id),
                class: 0,
                size: Some(size),
                trickle: 0,
                client: None,
                payer: None,
            };
            scheduler.arrive(arrival, Time::ZERO);
        }
        while let Some(grant) = scheduler.next(Time::ZERO) {
            let id = grant.job.0 as usize;
            let amount = grant.max_amount.min(left[id]).min(2);
            left[id] -= amount;
            decisions.push((b'A' + grant.job.0 as u8) as char);
            scheduler.progress(grant.job, amount, Time::ZERO);
            if left[id] == 0 {
                scheduler.depart(grant.job, Time::ZERO);
            }
        }
        decisions
    };
    let fsp = guessed(Box::new(Queue::new(Fsp::default())));
    assert_eq!(fsp, format!("{}BBBCC", "A".repeat(20)));
    // Sharing has finished A and B after six units, C after eight; from then on they take turns.
    let psbs = guessed(Box::new(Queue::new(Psbs::new(2))));
    assert_eq!(psbs, format!("AAAABCABCAB{}", "A".repeat(14)));
}

#[test]
fn gittins_and_serpt_go_by_the_law_that_was_learned() {
    let learned = |index| {
        let mut scheduler = Queue::new(ByAge::new(index));
        // Nine of ten take 15, one 1023.
        for id in 0..1_024_u64 {
            let size = if id % 10 == 0 { 1_023 } else { 15 };
            let arrival = Arrival {
                id: JobId(id),
                class: 0,
                size: None,
                trickle: 0,
                client: None,
                payer: None,
            };
            scheduler.arrive(arrival, Time::ZERO);
            scheduler.progress(JobId(id), size, Time::ZERO);
            scheduler.depart(JobId(id), Time::ZERO);
        }
        scheduler
    };
    for index in [Index::Gittins, Index::Remaining] {
        // B comes when A has had 10, and is served when A has outlived the small ones.
        let jobs = [play(0, 100), play(10, 15), play(20, 40)];
        let played = run(&jobs, Box::new(learned(index)), false);
        assert_eq!(played.decisions, "A15 B15 C15 A85 C25", "{index:?}");
        // Nothing is learned yet.
        let blind = Queue::new(ByAge::new(index));
        assert_eq!(run(&jobs, Box::new(blind), false).decisions, "A100 B15 C40");
    }
}
