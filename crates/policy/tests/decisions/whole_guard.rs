//! What the guard takes where a job that has begun goes on to its end.

use super::*;
use sooner_policy::order::{Fcfs, Pljf, Sjf};
use sooner_policy::{Order, WholeGuard};

/// The oldest gets one part in four.
fn guarded(order: impl Order + Send + 'static, jobs: &[Play]) -> String {
    let limits = GuardLimits {
        oldest_share: 4,
        ..GuardLimits::with_turn(1)
    };
    let guard = WholeGuard::new(Queue::new(order), limits);
    run(jobs, Box::new(guard), true).decisions
}

/// A large job, and small ones that come while others are served.
fn one_large() -> Vec<Play> {
    let mut jobs = vec![play(0, 3), play(0, 4)];
    jobs.extend((0..6).map(|i| play(3 * i, 3)));
    jobs
}

#[test]
fn what_the_oldest_is_owed_is_saved_until_it_covers_the_whole_job() {
    // B has 4, so 12 units of others go first, and D is the fourth of them.
    assert_eq!(guarded(Sjf, &one_large()), "A3 C3 D3 E3 F3 B4 G3 H3");
    let alone = run(&one_large(), Box::new(Queue::new(Sjf)), true).decisions;
    assert_eq!(alone, "A3 C3 D3 E3 F3 G3 H3 B4");
}

#[test]
fn a_job_that_has_begun_is_interrupted_by_no_turn() {
    // While C is served A becomes able to pay, and waits for the end.
    let jobs = [play(0, 2), play(0, 1), play(0, 30)];
    assert_eq!(guarded(Pljf, &jobs), "C30 A2 B1");
    // An order that would interrupt does not.
    let jobs = [play(0, 10), play(1, 20), play(2, 30)];
    assert_eq!(guarded(Pljf, &jobs), "A10 C30 B20");
}

#[test]
fn where_the_order_serves_the_oldest_the_guard_takes_nothing() {
    let jobs = [play(0, 5), play(1, 3), play(2, 1)];
    assert_eq!(guarded(Fcfs, &jobs), "A5 B3 C1");
}

#[test]
fn clients_take_turns_by_size() {
    let of = |client, job| Play {
        client: Some(ClientId(client)),
        ..job
    };
    // Client 1 has turns of 8, client 2 one of 4 and then, having had less, one of 4 again.
    let mut jobs = vec![
        of(1, play(0, 8)),
        of(1, play(0, 8)),
        of(2, play(0, 4)),
        of(2, play(0, 4)),
        of(2, play(0, 4)),
    ];
    jobs.extend((0..40).map(|i| play(3 * i, 3)));
    let decisions = guarded(Sjf, &jobs);
    let owed: Vec<&str> = decisions
        .split(' ')
        .filter(|run| ["A8", "B8", "C4", "D4", "E4"].contains(run))
        .collect();
    assert_eq!(owed[..4], ["A8", "C4", "D4", "B8"], "{decisions}");
}

#[test]
fn a_job_of_unknown_size_is_owed_one_turn() {
    let limits = GuardLimits {
        oldest_share: 4,
        ..GuardLimits::with_turn(5)
    };
    let guard = WholeGuard::new(Queue::new(Pljf), limits);
    // A begins alone; B and C look alike, and C is not before B.
    let jobs = [play(0, 2), play(1, 30), play(1, 3)];
    assert_eq!(run(&jobs, Box::new(guard), false).decisions, "A2 B30 C3");
}
