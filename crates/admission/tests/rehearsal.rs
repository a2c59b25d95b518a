//! How long jobs would have waited that nothing held.

use proptest::prelude::*;
use sooner_admission::{
    AdmissionSettings, Ending, Goal, JobId, Lateness, Order, Rehearsal, ResponseTarget, Subject,
    Time, WouldWait,
};
use std::collections::HashMap;

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
            rehearsal.arrive(job, jobs[at].2, Subject::default(), 0, now);
        } else {
            rehearsal.leave(job, Ending::Done, now);
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
    let batch = Goal {
        inside_max: Some(1),
        ..goal("batch", 9)
    };
    let goals = vec![goal("high", 0), batch];
    rehearsal.set_goals(Order::Fcfs, goals, &HashMap::new(), Time::ZERO);
    rehearse(&mut rehearsal, &[(0, 10, 1), (1, 11, 1), (2, 12, 0)]);
    rehearsal.advance(Time::from_ns(100 * MS));
    assert_eq!(would(&rehearsal, 0), (1, 0, 0, 0));
    assert_eq!(would(&rehearsal, 1), (2, 1, 9, 9));
}

fn goal(name: &str, priority: u8) -> Goal {
    Goal {
        name: name.into(),
        priority,
        weight: 1,
        ..Goal::default()
    }
}

fn at(ms: u64) -> Time {
    Time::from_ns(ms * MS)
}

fn waiting(rehearsal: &Rehearsal) -> Vec<(u8, u64)> {
    let by_class = rehearsal.by_class().iter();
    by_class.map(|(&class, it)| (class, it.waiting)).collect()
}

/// What an error took says nothing of jobs like it, and neither does one that was given up.
#[test]
fn only_what_is_done_tells_what_to_expect() {
    for ending in [Ending::Failed, Ending::GivenUp] {
        let mut rehearsal = Rehearsal::new(settings(1, Order::Expected), 0);
        let goals = vec![goal("good", 0), goal("bad", 0)];
        rehearsal.set_goals(Order::Expected, goals, &HashMap::new(), Time::ZERO);
        rehearsal.arrive(JobId(0), 0, "good".into(), 0, at(0));
        rehearsal.leave(JobId(0), Ending::Done, at(10));
        for job in 1..4 {
            rehearsal.arrive(JobId(job), 1, "bad".into(), 0, at(20 * job));
            rehearsal.leave(JobId(job), ending, at(20 * job + 1));
        }
        rehearsal.arrive(JobId(4), 0, "good".into(), 0, at(100));
        rehearsal.arrive(JobId(5), 0, "good".into(), 0, at(101));
        rehearsal.arrive(JobId(6), 1, "bad".into(), 0, at(102));
        rehearsal.leave(JobId(4), Ending::Failed, at(110));
        // All are expected to take the same, so the one that came first has gone in.
        assert_eq!(waiting(&rehearsal), [(0, 0), (1, 1)], "{ending:?}");
    }
}

#[test]
fn a_job_that_comes_back_counts_once() {
    let mut rehearsal = Rehearsal::new(settings(1, Order::Fcfs), 0);
    let arrive = |rehearsal: &mut Rehearsal, job, ms| {
        rehearsal.arrive(JobId(job), 0, Subject::default(), 0, at(ms));
    };
    arrive(&mut rehearsal, 0, 0);
    arrive(&mut rehearsal, 1, 0);
    rehearsal.leave(JobId(0), Ending::Done, at(10));
    assert_eq!(would(&rehearsal, 0), (2, 1, 10, 10));
    // It makes room, and comes when there is a place.
    rehearsal.leave(JobId(1), Ending::Yielded, at(12));
    assert_eq!(would(&rehearsal, 0), (1, 0, 0, 10));
    arrive(&mut rehearsal, 2, 20);
    assert_eq!(would(&rehearsal, 0), (2, 0, 0, 10));
    // It goes on as another one.
    rehearsal.go_on_as(JobId(2), JobId(3), at(21));
    rehearsal.leave(JobId(2), Ending::Yielded, at(21));
    rehearsal.leave(JobId(3), Ending::Done, at(30));
    rehearsal.advance(at(100));
    assert_eq!(would(&rehearsal, 0), (2, 0, 0, 10));
    arrive(&mut rehearsal, 4, 101);
    assert_eq!(waiting(&rehearsal), [(0, 0)], "the place is free");
}

#[test]
fn what_is_learnt_is_for_as_many_places_as_there_are() {
    let mut rehearsal = Rehearsal::new(settings(0, Order::Boost), 0);
    rehearsal.set_limit(4, Time::ZERO);
    assert_eq!(rehearsal.places(), 4);
    // A server that is tried with one job takes four when it is well.
    rehearsal.set_limit(1, Time::ZERO);
    rehearsal.set_places(4);
    assert_eq!((rehearsal.limit(), rehearsal.places()), (1, 4));
}

#[test]
fn classes_without_names_are_those_that_they_were() {
    let mut rehearsal = Rehearsal::new(settings(1, Order::Fcfs), 0);
    for (job, class) in [(0, 3), (1, 7), (2, 1)] {
        rehearsal.arrive(JobId(job), class, Subject::default(), 0, at(job));
    }
    rehearsal.set_goals(Order::Expected, Vec::new(), &HashMap::new(), at(3));
    assert_eq!(waiting(&rehearsal), [(1, 1), (7, 1)]);
}

/// Of the true backend's jobs, by their numbers there.
#[test]
fn a_job_is_in_the_class_that_is_told_of_it() {
    let mut rehearsal = Rehearsal::new(settings(1, Order::Fcfs), 0);
    let goals = || vec![goal("a", 0), goal("b", 0)];
    rehearsal.set_goals(Order::Fcfs, goals(), &HashMap::new(), at(0));
    for job in [70, 80, 90] {
        rehearsal.arrive(JobId(job), 0, Subject::default(), 0, at(job));
    }
    let known = HashMap::from([(JobId(90), 1_u8.into()), (JobId(1), 1_u8.into())]);
    rehearsal.set_goals(Order::Fcfs, goals(), &known, at(100));
    assert_eq!(waiting(&rehearsal), [(0, 1), (1, 1)]);
    assert_eq!(would(&rehearsal, 0).0, 1, "what was counted stays");
}

#[test]
fn a_target_counts_from_when_a_job_came_elsewhere() {
    let order = Order::Targets(Lateness::ByPriority);
    let mut rehearsal = Rehearsal::new(settings(1, order), 0);
    let target = |name| Goal {
        response_targets: vec![ResponseTarget::Mean(1000 * MS)],
        ..goal(name, 0)
    };
    let goals = vec![target("here"), target("elsewhere")];
    rehearsal.set_goals(order, goals, &HashMap::new(), at(0));
    for (job, class, waited_ms) in [(0, 0, 0), (1, 0, 0), (2, 1, 500)] {
        let waited_ns = waited_ms * MS;
        rehearsal.arrive(JobId(job), class, Subject::default(), waited_ns, at(job));
    }
    rehearsal.leave(JobId(0), Ending::Done, at(10));
    assert_eq!(waiting(&rehearsal), [(0, 1), (1, 0)]);
}

#[test]
fn who_gives_up_where_it_would_wait_waits_no_more() {
    let mut rehearsal = Rehearsal::new(settings(1, Order::Fcfs), 0);
    for job in 0..3 {
        rehearsal.arrive(JobId(job), 0, Subject::default(), 0, at(job));
    }
    rehearsal.leave(JobId(1), Ending::GivenUp, at(5));
    assert_eq!(rehearsal.by_class()[&0].waiting, 1);
    rehearsal.leave(JobId(0), Ending::Done, at(10));
    rehearsal.leave(JobId(2), Ending::Done, at(20));
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
