//! What counts as a request where programs tell of beginnings.

use crate::imagined::{fixed, settings};
use sooner_processor::{Doing, Ended, Order, Reading, Rule, Settings};

const MS: u64 = 1_000_000;
const REACTOR: u32 = 0;
const WORKER: u32 = 1;

fn order(has_programs: bool) -> Order {
    Order::new(Settings {
        has_programs,
        ..settings(Rule::Used, fixed())
    })
}

/// A thread that has used so much and sleeps, or wants a processor.
fn reading(run_ns: u64, requests: u64, doing: Doing) -> Reading {
    Reading {
        doing,
        run_ns,
        sleeps: 0,
        requests,
        begin_run_ns: 0,
        begin_at_ns: 0,
        has_answered: requests > 0,
        kind: None,
        hands_on: false,
        said_ns: None,
    }
}

/// A thread uses so much and then sleeps for long, so many times, one after another.
fn wake(order: &mut Order, thread: u32, used_ns: u64, times: u64, from_ns: u64) -> u64 {
    for at in 0..=times {
        let since_ns = from_ns + at * 1_000 * MS;
        order.begin_look();
        let reading = reading(at * used_ns, 0, Doing::Asleep { since_ns });
        order.look(thread, &reading, since_ns + 20 * MS);
        order.end_look(since_ns + 20 * MS);
    }
    from_ns + times * 1_000 * MS
}

#[test]
fn a_thread_without_a_request_counts_none_where_beginnings_are_seen() {
    let mut order = order(true);
    let now_ns = wake(&mut order, REACTOR, 60_000, 9, MS);
    assert_eq!(order.requests(), 0, "before the first one");
    order.finish(&Ended {
        kind: None,
        began_ns: now_ns,
        used_ns: 20 * MS,
    });
    wake(&mut order, REACTOR, 3 * MS, 60, now_ns);
    assert_eq!((order.requests(), order.counts_sleeps()), (1, false));
    let p50_ns = order.bounds().quantile_ns(0.5).unwrap();
    assert!((20 * MS..25 * MS).contains(&p50_ns), "{p50_ns}");
}

#[test]
fn an_idle_server_stays_one_of_which_nothing_is_known() {
    let mut order = order(true);
    wake(&mut order, REACTOR, 60_000, 5_000, MS);
    assert_eq!((order.requests(), order.counts_sleeps()), (0, false));
}

#[test]
fn sleeps_count_where_programs_see_no_request_of_a_server_that_works() {
    let mut order = order(true);
    let now_ns = wake(&mut order, WORKER, 20 * MS, 60, MS);
    assert!(order.counts_sleeps());
    assert!(
        (40..=50).contains(&order.requests()),
        "{}",
        order.requests()
    );
    // What is seen to begin after all is the first one.
    order.finish(&Ended {
        kind: None,
        began_ns: now_ns,
        used_ns: 300 * MS,
    });
    assert_eq!((order.requests(), order.counts_sleeps()), (1, false));
    assert!(order.bounds().quantile_ns(0.5).unwrap() >= 300 * MS);
    assert_eq!(order.bounds().bounds_ns(), fixed().bounds_ns());
}

#[test]
fn a_worker_that_is_new_suspends_no_order_where_beginnings_are_seen() {
    for (has_programs, is_suspended) in [(true, false), (false, true)] {
        let mut order = order(has_programs);
        for now_ns in [MS, 2 * MS] {
            order.begin_look();
            if has_programs {
                let known = reading(50 * MS, 7, Doing::Idle { since_ns: 0 });
                order.look(WORKER, &known, now_ns);
            }
            order.look(REACTOR, &reading(now_ns, 0, Doing::Runs), now_ns);
            order.end_look(now_ns);
        }
        assert_eq!(order.is_suspended(), is_suspended);
    }
}
