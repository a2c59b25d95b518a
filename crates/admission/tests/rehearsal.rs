//! How long jobs would have waited that nothing held.

use proptest::prelude::*;
use sooner_admission::{
    AdmissionSettings, Goal, JobId, Order, Rehearsal, Subject, Time, WouldWait,
};

const MS: u64 = 1_000_000;

fn settings(limit: usize, order: Order) -> AdmissionSettings {
    AdmissionSettings {
        limit,
        order,
        waiting_max: None,
        kind_memory: 64,
    }
}

/// Jobs as they came and left in truth, ms, each of the class beside it.
fn rehearse(rehearsal: &mut Rehearsal, jobs: &[(u64, u64, u8)]) {
    let arrivals = jobs.iter().enumerate().map(|(at, job)| (job.0, 1, at));
    let ends = jobs.iter().enumerate().map(|(at, job)| (job.1, 0, at));
    let mut events: Vec<_> = arrivals.chain(ends).collect();
    events.sort_unstable();
    for (at_ms, comes, at) in events {
        let (job, now) = (JobId(at as u64), Time::from_ns(at_ms * MS));
        if comes == 1 {
            rehearsal.arrive(job, jobs[at].2, Subject::default(), now);
        } else {
            rehearsal.leave(job, true, now);
        }
    }
}

fn would(rehearsal: &Rehearsal, class: u8) -> (u64, u64, u64, u64) {
    let would: WouldWait = rehearsal.by_class()[&class];
    let ms = |ns: u64| ns / MS;
    (
        would.jobs,
        would.waited,
        ms(would.wait_sum_ns as u64),
        ms(would.wait_max_ns),
    )
}

#[test]
fn where_as_few_are_inside_as_may_be_none_would_wait() {
    let mut rehearsal = Rehearsal::new(settings(2, Order::Fcfs), 0);
    rehearse(
        &mut rehearsal,
        &[(0, 10, 0), (1, 30, 0), (11, 20, 0), (30, 40, 0)],
    );
    assert_eq!(would(&rehearsal, 0), (4, 0, 0, 0));
}

/// Two that are inside for 20 ms together take 10 ms each alone: the second would begin when the
/// first is done, and that is known when both have left.
#[test]
fn times_inside_are_those_of_as_many_as_may_be() {
    let mut rehearsal = Rehearsal::new(settings(1, Order::Fcfs), 0);
    rehearse(&mut rehearsal, &[(0, 20, 0), (0, 20, 0)]);
    rehearsal.advance(Time::from_ns(100 * MS));
    assert_eq!(would(&rehearsal, 0), (2, 1, 20, 20));
    let mut alone = Rehearsal::new(settings(1, Order::Fcfs), 0);
    rehearse(&mut alone, &[(0, 10, 0), (5, 15, 0), (12, 22, 0)]);
    alone.advance(Time::from_ns(100 * MS));
    // The second from 10 on for 6, of which it was 4 beside others: at half the speed.
    assert_eq!(would(&alone, 0), (3, 2, 9, 5));
}

#[test]
fn a_class_that_matters_more_would_not_wait_and_one_with_a_cap_would() {
    let mut rehearsal = Rehearsal::new(settings(3, Order::Fcfs), 0);
    let goal = |name: &str, priority, inside_max| Goal {
        name: name.into(),
        priority,
        inside_max,
        weight: 1,
        ..Goal::default()
    };
    let goals = vec![goal("high", 0, None), goal("batch", 9, Some(1))];
    rehearsal.set_goals(Order::Fcfs, goals, Time::ZERO);
    rehearse(&mut rehearsal, &[(0, 10, 1), (1, 11, 1), (2, 12, 0)]);
    rehearsal.advance(Time::from_ns(100 * MS));
    assert_eq!(would(&rehearsal, 0), (1, 0, 0, 0));
    assert_eq!(would(&rehearsal, 1), (2, 1, 9, 9));
}

#[test]
fn who_gives_up_where_it_would_wait_waits_no_more() {
    let mut rehearsal = Rehearsal::new(settings(1, Order::Fcfs), 0);
    let at = |ms: u64| Time::from_ns(ms * MS);
    for job in 0..3 {
        rehearsal.arrive(JobId(job), 0, Subject::default(), at(job));
    }
    rehearsal.leave(JobId(1), false, at(5));
    assert_eq!(rehearsal.by_class()[&0].waiting, 1);
    rehearsal.leave(JobId(0), true, at(10));
    rehearsal.leave(JobId(2), true, at(20));
    rehearsal.advance(at(100));
    assert_eq!(would(&rehearsal, 0), (2, 1, 8, 8));
}

proptest! {
    /// While no more are inside in truth than may be, nothing would wait; and all would go in at
    /// last, none before it came.
    #[test]
    fn what_holding_changes_nothing_of_would_not_wait(
        limit in 1..4usize,
        jobs in prop::collection::vec((0..50u64, 1..20u64, 0..3u8), 1..60),
    ) {
        let jobs: Vec<_> = jobs.into_iter().map(|(came, took, class)| (came, came + took, class)).collect();
        let most = (0..80).map(|at| jobs.iter().filter(|job| job.0 <= at && at < job.1).count()).max();
        let mut rehearsal = Rehearsal::new(settings(limit, Order::Expected), 0);
        rehearse(&mut rehearsal, &jobs);
        rehearsal.advance(Time::from_ns(100_000 * MS));
        let all: Vec<WouldWait> = rehearsal.by_class().values().copied().collect();
        prop_assert_eq!(all.iter().map(|would| would.jobs).sum::<u64>(), jobs.len() as u64);
        prop_assert_eq!(all.iter().map(|would| would.waiting).sum::<u64>(), 0);
        let waited: u64 = all.iter().map(|would| would.waited).sum();
        prop_assert!(most > Some(limit) || waited == 0);
    }

    /// One at a time it is a queue that can be computed by hand, where jobs do not overlap in truth
    /// by more than may be: the wait of each is what the others before it leave.
    #[test]
    fn one_place_is_lindleys_recursion(gaps in prop::collection::vec((0..30u64, 1..20u64), 1..50)) {
        // Jobs that overlap share: what each takes alone is what the rehearsal has to find.
        let mut now_ms = 0;
        let mut jobs = Vec::new();
        for (gap, took) in gaps {
            now_ms += gap;
            jobs.push((now_ms, now_ms + took, 0));
        }
        let mut rehearsal = Rehearsal::new(settings(1, Order::Fcfs), 0);
        rehearse(&mut rehearsal, &jobs);
        rehearsal.advance(Time::from_ns(1_000_000 * MS));
        let counted = |from: u64, to: u64| -> f64 {
            (from..to).map(|at| 1.0 / jobs.iter().filter(|job| job.0 <= at && at < job.1).count() as f64).sum()
        };
        let (mut free_at, mut sum) = (0.0_f64, 0.0);
        for &(came, left, _) in &jobs {
            let begins = free_at.max(came as f64);
            sum += begins - came as f64;
            free_at = (begins + counted(came, left)).max(left as f64);
        }
        let found = rehearsal.by_class()[&0].wait_sum_ns as f64 / MS as f64;
        prop_assert!((found - sum).abs() < 0.01, "{found} {sum}");
    }
}
