//! What is found out where nothing is held.

use crate::futures::{Task, goals};
use sooner_admission::{
    AdmissionSettings, Goal, KIND_MEMORY, Lateness, Order, ResponseTarget, WouldWait,
};
use sooner_limiter::{Acquire, Limiter, Permit};
use std::collections::HashMap;
use std::thread;
use std::time::Duration;

/// Nothing is held, and one at a time would go in.
fn rehearsing(order: Order) -> Limiter {
    let limiter = Limiter::new(AdmissionSettings {
        limit: 9,
        order,
        waiting_max: None,
        kind_memory: KIND_MEMORY,
    });
    limiter.rehearse(true);
    limiter.set_rehearsed_limit(1);
    limiter
}

fn admitted(acquire: Acquire) -> Permit {
    let mut task = Task::new(acquire);
    task.run();
    task.permit.take().expect("nothing is held")
}

fn would(limiter: &Limiter, class: u8) -> WouldWait {
    let (_, by_class) = limiter.rehearsed().expect("it rehearses");
    by_class.get(&class).copied().unwrap_or_default()
}

/// Two classes of which neither goes first.
fn two_classes(limiter: &Limiter, order: Order, of_each: &Goal) {
    let goals = goals(&["one", "two"]);
    let goals = goals.into_iter().map(|goal| Goal {
        name: goal.name,
        ..of_each.clone()
    });
    limiter.set_goals(order, goals.collect(), &HashMap::new());
}

#[test]
fn what_an_error_took_tells_nothing_of_its_kind() {
    let limiter = rehearsing(Order::Expected);
    two_classes(&limiter, Order::Expected, &Goal::default());
    let good = admitted(limiter.acquire(0, "good".into()));
    thread::sleep(Duration::from_millis(20));
    good.complete();
    for _ in 0..3 {
        admitted(limiter.acquire(1, "bad".into())).fail();
    }
    let mut first = admitted(limiter.acquire(0, "good".into()));
    let _later = [(0, "good"), (1, "bad")].map(|(class, kind)| {
        let acquire = limiter.acquire(class, kind.into());
        admitted(acquire)
    });
    first.fail();
    drop(first);
    // The same is expected of both, so the one that came first has gone in.
    assert_eq!([0, 1].map(|class| would(&limiter, class).waiting), [0, 1]);
}

#[test]
fn who_comes_back_is_one_job() {
    let limiter = rehearsing(Order::Fcfs);
    let permit = admitted(limiter.acquire(0, "k".into()));
    let permit = admitted(permit.come_again());
    assert_eq!(would(&limiter, 0).jobs, 1);
    permit.yield_place();
    assert_eq!(would(&limiter, 0).jobs, 0);
    admitted(limiter.acquire_again(0, "k".into(), 0)).complete();
    let would = would(&limiter, 0);
    assert_eq!((would.jobs, would.waited, would.waiting), (1, 0, 0));
}

/// Three at a time, each of which would have had the place alone.
#[test]
fn expectations_are_judged_before_as_many_places_as_there_would_be() {
    let limiter = rehearsing(Order::Fcfs);
    for _ in 0..2 {
        let three = [0; 3].map(|class| admitted(limiter.acquire(class, "k".into())));
        thread::sleep(Duration::from_millis(5));
        three.into_iter().for_each(Permit::complete);
    }
    let fcfs_ns = || limiter.quality().shadows.map(|shadows| shadows.fcfs_ns);
    assert!(fcfs_ns() > Some(0));
    limiter.set_rehearsed_limit(3);
    assert_eq!(fcfs_ns(), Some(0));
    // One of three servers is tried with one job: that says nothing of what three do.
    limiter.set_rehearsed_limit(1);
    limiter.set_places(3);
    assert_eq!(fcfs_ns(), Some(0));
}

#[test]
fn what_a_job_waited_elsewhere_counts() {
    let order = Order::Targets(Lateness::ByPriority);
    let limiter = rehearsing(order);
    let minute = Goal {
        response_targets: vec![ResponseTarget::Mean(60_000_000_000)],
        ..Goal::default()
    };
    two_classes(&limiter, order, &minute);
    let first = admitted(limiter.acquire(0, "k".into()));
    let _here = admitted(limiter.acquire(0, "k".into()));
    let _elsewhere = admitted(limiter.acquire_after(1, "k".into(), 30_000_000_000));
    first.complete();
    assert_eq!([0, 1].map(|class| would(&limiter, class).waiting), [1, 0]);
}
