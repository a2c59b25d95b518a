//! What each policy decides, as a string of runs of service.

mod doubt;
mod guard;
mod whole_guard;

use crate::server::{Change, Play, play, run, run_changing};
use sooner_policy::order::{Swift, SwiftLevels};
use sooner_policy::{
    Arrival, ClientId, GuardLimits, JobId, Path, PolicyName, Queue, Scheduler, Shares, Time,
};

fn decisions(policy: PolicyName, jobs: &[Play]) -> String {
    run(jobs, policy.scheduler(1, None), true).decisions
}

/// A large job, then a middle and a small one while it runs, then one as small when the middle one
/// runs.
fn mixed() -> Vec<Play> {
    vec![play(0, 10), play(2, 4), play(3, 1), play(5, 2)]
}

#[test]
fn fcfs_serves_in_the_order_of_arrival() {
    assert_eq!(decisions(PolicyName::Fcfs, &mixed()), "A10 B4 C1 D2");
}

#[test]
fn srpt_serves_what_is_nearest_to_its_end() {
    assert_eq!(decisions(PolicyName::Srpt, &mixed()), "A2 B1 C1 B3 D2 A8");
}

#[test]
fn srpt_and_psjf_differ_when_a_large_job_is_almost_done() {
    let jobs = [play(0, 10), play(8, 5)];
    assert_eq!(decisions(PolicyName::Srpt, &jobs), "A10 B5");
    assert_eq!(decisions(PolicyName::Psjf, &jobs), "A8 B5 A2");
}

#[test]
fn las_serves_newcomers_first_and_then_shares() {
    assert_eq!(
        decisions(PolicyName::Las, &[play(0, 4), play(2, 3)]),
        "A2 B2 A1 B1 A1"
    );
}

#[test]
fn fair_takes_turns() {
    assert_eq!(
        decisions(PolicyName::Fair, &[play(0, 3), play(0, 3), play(0, 2)]),
        "A1 B1 C1 A1 B1 C1 A1 B1"
    );
}

#[test]
fn fsp_serves_in_the_order_in_which_sharing_finishes() {
    // Sharing finishes C (at 6), then B, then A.
    assert_eq!(
        decisions(PolicyName::Fsp, &[play(0, 10), play(0, 6), play(0, 2)]),
        "C2 B6 A10"
    );
    // When B arrives A would be done at 10 + 3 under sharing, B (4) at 6 + 8: A keeps the server.
    assert_eq!(
        decisions(PolicyName::Fsp, &[play(0, 10), play(6, 5)]),
        "A10 B5"
    );
}

fn to(rtt_ms: u64, rate_per_sec: u64, job: Play) -> Play {
    let path = Path {
        rtt_ns: Some(rtt_ms * 1_000_000),
        rate_per_sec: Some(rate_per_sec),
    };
    Play { path, ..job }
}

/// SWIFT with sizes cut at 1, 2, 4 ... 16384.
fn swift(jobs: &[Play]) -> String {
    let cutoffs: Vec<u64> = (0..15).map(|step| 1 << step).collect();
    let order = Swift::new(SwiftLevels::with_sizes(&cutoffs));
    run(jobs, Box::new(Queue::new(order)), true).decisions
}

#[test]
fn swift_serves_the_distant_before_the_near() {
    // Sizes 8 and 16 have levels 3 and 4. Near: 0.8 x 3 + 3 = 5.4, far: 0.8 x 4 = 3.2.
    let jobs = [to(1, 1, play(0, 8)), to(400, 1, play(0, 16))];
    assert_eq!(swift(&jobs), "B16 A8");
    // Equally far, or not known how far: the least that remains.
    let equal = jobs.map(|job| to(50, 1, job));
    assert_eq!(swift(&equal), "A8 B16");
    let unknown = jobs.map(|job| play(job.at, job.size));
    assert_eq!(swift(&unknown), "A8 B16");
}

#[test]
fn swift_lets_size_count_more_than_distance_while_responses_are_small() {
    // 0.8 x 3 + 3 = 5.4 against 0.8 x 8 = 6.4.
    let jobs = [to(1, 1, play(0, 8)), to(400, 1, play(0, 256))];
    assert_eq!(swift(&jobs), "A8 B256");
}

#[test]
fn swift_orders_a_level_by_what_remains_then_by_age() {
    let jobs = [
        to(50, 1, play(0, 8)),
        to(50, 1, play(0, 6)),
        to(50, 1, play(0, 6)),
        to(50, 1, play(3, 5)),
    ];
    assert_eq!(swift(&jobs), "B6 D5 C6 A8", "B has 3 left when D comes");
}

#[test]
fn swift_weighs_again_after_every_8_kib() {
    let near = |job| to(1, 1, job);
    // A's level is 0.6 x 15 + 0.4 x 15 = 15 until it is weighed again. B's is 0.8 x 14 + 0.2 x 15 =
    // 14.2, so B goes first although A has less left by then. Weighed again, A has 14.2 as well,
    // and goes on.
    let before = [near(play(0, 24_000)), near(play(8_191, 16_000))];
    assert_eq!(swift(&before), "A8191 B16000 A15809");
    let after = [near(play(0, 24_000)), near(play(8_192, 16_000))];
    assert_eq!(swift(&after), "A24000 B16000");
}

#[test]
fn fcf_serves_what_the_client_can_take_soonest() {
    // 8 at 10 a second take longer than 16 at 100.
    let jobs = [to(1, 10, play(0, 8)), to(1, 100, play(0, 16))];
    assert_eq!(decisions(PolicyName::Fcf, &jobs), "B16 A8");
    assert_eq!(decisions(PolicyName::Srpt, &jobs), "A8 B16");
    // What remains counts: when C comes, A needs 4 / 10 s, C 5 / 10 s.
    let jobs = [to(1, 10, play(0, 8)), to(1, 10, play(4, 5))];
    assert_eq!(decisions(PolicyName::Fcf, &jobs), "A8 B5");
}

#[test]
fn fcf_is_srpt_where_no_connection_is_known() {
    let fcf = decisions(PolicyName::Fcf, &mixed());
    assert_eq!(fcf, decisions(PolicyName::Srpt, &mixed()));
}

#[test]
fn what_is_learned_of_a_path_moves_its_job_alone() {
    let mut scheduler = PolicyName::Fcf.scheduler(1, None);
    let now = Time::ZERO;
    for (id, size) in [(0, 8), (1, 16), (2, 32)] {
        scheduler.arrive(
            Arrival {
                id: JobId(id),
                class: 0,
                size: Some(size),
                trickle: 0,
                client: None,
                payer: None,
            },
            now,
        );
    }
    let before = scheduler.rank(JobId(1));
    let fast = Path {
        rtt_ns: None,
        rate_per_sec: Some(1_000_000_000),
    };
    scheduler.block(JobId(2), now);
    scheduler.observe(JobId(2), fast, now);
    let next = scheduler.next(now).map(|grant| grant.job);
    assert_eq!(next, Some(JobId(0)), "a blocked job stays out");
    scheduler.unblock(JobId(2), now);
    let next = scheduler.next(now).map(|grant| grant.job);
    assert_eq!(next, Some(JobId(2)));
    assert_eq!(scheduler.rank(JobId(1)), before);
}

#[test]
fn only_what_asks_for_paths_is_moved_by_them() {
    let jobs = mixed();
    let mut far = jobs.clone();
    for (index, job) in far.iter_mut().enumerate() {
        *job = to(400 - 100 * index as u64, 1 << (20 * index), *job);
    }
    for policy in PolicyName::ALL {
        let moved = decisions(policy, &jobs) != decisions(policy, &far);
        assert!(policy.asks_for_path() || !moved, "{policy}");
    }
}

#[test]
fn ljf_is_as_wrong_as_can_be() {
    assert_eq!(
        decisions(PolicyName::Ljf, &[play(0, 3), play(1, 9), play(2, 1)]),
        "A1 B9 A2 C1"
    );
}

#[test]
fn a_class_goes_before_the_next_and_keeps_its_own_order() {
    let low = |at, size| Play {
        class: 1,
        ..play(at, size)
    };
    let jobs = [low(0, 5), low(1, 2), play(2, 3), play(3, 1)];
    assert_eq!(decisions(PolicyName::Srpt, &jobs), "A1 B1 C1 D1 C2 B1 A4");
}

fn decisions_changing(policy: PolicyName, jobs: &[Play], changes: &[Change]) -> String {
    run_changing(jobs, changes, policy.scheduler(1, None), true).decisions
}

/// The job played at place `job` is of `class` from `at` on.
fn change(at: u64, job: usize, class: u8) -> Change {
    Change {
        at,
        job,
        class,
        path: None,
    }
}

#[test]
fn a_job_whose_class_changes_waits_in_the_other_class() {
    let low = |at, size| Play {
        class: 1,
        ..play(at, size)
    };
    let jobs = [low(0, 5), low(0, 3), play(0, 4)];
    assert_eq!(decisions(PolicyName::Srpt, &jobs), "C4 B3 A5");
    let raised = decisions_changing(PolicyName::Srpt, &jobs, &[change(1, 0, 0)]);
    assert_eq!(raised, "C4 A5 B3");
    let lowered = decisions_changing(PolicyName::Srpt, &jobs, &[change(1, 2, 2)]);
    assert_eq!(lowered, "C1 B3 A5 C3");
}

#[test]
fn a_change_of_class_keeps_what_a_job_has_had() {
    // A has 3 of 6 left when it comes to B's class, so it goes before B under SRPT and after it
    // under LAS.
    let jobs = [
        play(0, 6),
        Play {
            class: 1,
            ..play(0, 4)
        },
    ];
    let changes = [change(3, 0, 1)];
    assert_eq!(
        decisions_changing(PolicyName::Srpt, &jobs, &changes),
        "A6 B4"
    );
    assert_eq!(
        decisions_changing(PolicyName::Las, &jobs, &changes),
        "A3 B3 A1 B1 A2"
    );
}

#[test]
fn a_change_of_class_keeps_the_order_of_arrival() {
    let jobs = [
        Play {
            class: 1,
            ..play(0, 4)
        },
        play(0, 3),
        play(1, 2),
    ];
    let changed = decisions_changing(PolicyName::Fcfs, &jobs, &[change(2, 0, 0)]);
    assert_eq!(changed, "B2 A4 B1 C2");
}

#[test]
fn unknown_sizes_rank_by_attained_service() {
    let jobs = [play(0, 6), play(2, 3)];
    let blind = run(&jobs, PolicyName::Srpt.scheduler(1, None), false);
    assert_eq!(
        blind.decisions, "A2 B3 A4",
        "the newcomer has had less until its end"
    );
}

#[test]
fn blocked_jobs_let_others_go_and_come_back() {
    for policy in PolicyName::ALL {
        let mut scheduler = policy.scheduler(1, Some(GuardLimits::with_turn(1)));
        let now = Time::ZERO;
        for (id, size) in [(0, 5), (1, 9)] {
            scheduler.arrive(
                Arrival {
                    id: JobId(id),
                    class: 0,
                    size: Some(size),
                    trickle: 0,
                    client: None,
                    payer: None,
                },
                now,
            );
        }
        let first = scheduler.next(now).expect("two jobs are ready").job;
        scheduler.block(first, now);
        scheduler.block(first, now);
        let second = scheduler.next(now).expect("one job is ready").job;
        assert_ne!(first, second, "{policy}");
        scheduler.block(second, now);
        assert_eq!(scheduler.next(now), None, "{policy}");
        scheduler.unblock(first, now);
        assert_eq!(
            scheduler.next(now).map(|grant| grant.job),
            Some(first),
            "{policy}"
        );
    }
}

#[test]
fn amounts_without_measure_overflow_nothing() {
    for policy in PolicyName::ALL {
        let mut scheduler = policy.scheduler(u64::MAX, Some(GuardLimits::with_turn(u64::MAX)));
        for id in 0..3 {
            let size = (id > 0).then_some(u64::MAX);
            scheduler.arrive(
                Arrival {
                    id: JobId(id),
                    class: 0,
                    size,
                    trickle: 0,
                    client: None,
                    payer: None,
                },
                Time::ZERO,
            );
        }
        for id in [0, 1, 2, 0, 1, 2] {
            scheduler.progress(JobId(id), u64::MAX, Time::from_ns(u64::MAX));
            scheduler.enlarge(JobId(id), u64::MAX, Time::from_ns(u64::MAX));
            let path = Path {
                rtt_ns: Some(u64::MAX),
                rate_per_sec: Some(id),
            };
            scheduler.observe(JobId(id), path, Time::from_ns(u64::MAX));
        }
        assert!(
            scheduler.next(Time::from_ns(u64::MAX)).is_some(),
            "{policy}"
        );
    }
}

#[test]
fn calls_about_unknown_jobs_change_nothing() {
    for policy in PolicyName::ALL {
        let mut scheduler = policy.scheduler(1, Some(GuardLimits::with_turn(1)));
        let (now, nobody) = (Time::ZERO, JobId(7));
        scheduler.progress(nobody, 1, now);
        scheduler.block(nobody, now);
        scheduler.unblock(nobody, now);
        scheduler.enlarge(nobody, 1, now);
        scheduler.reclassify(nobody, 1, now);
        scheduler.observe(nobody, Path::default(), now);
        scheduler.depart(nobody, now);
        assert_eq!(scheduler.next(now), None, "{policy}");
        assert_eq!(scheduler.rank(nobody), None, "{policy}");
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for policy in PolicyName::ALL {
        assert_eq!(policy.as_str().parse(), Ok(policy));
    }
    for (text, policy) in [
        ("ps", PolicyName::Fair),
        ("PS", PolicyName::Fair),
        ("fifo", PolicyName::Fcfs),
        ("fb", PolicyName::Las),
        ("srtf", PolicyName::Srpt),
        ("SRPT", PolicyName::Srpt),
    ] {
        assert_eq!(text.parse(), Ok(policy), "{text}");
    }
    let unknown = "shortest"
        .parse::<PolicyName>()
        .expect_err("no such policy");
    let names = PolicyName::ALL.map(PolicyName::as_str).join(" ");
    assert!(names.starts_with("fair fcfs srpt "), "{names}");
    assert_eq!(
        unknown.to_string(),
        format!("unknown policy; one of {names}")
    );
}

#[test]
fn a_class_that_comes_anew_begins_where_those_are_who_wait() {
    let mut shares = Shares::default();
    let now = Time::from_ns(0);
    let arrival = |id, class| Arrival {
        id: JobId(id),
        class,
        size: None,
        trickle: 0,
        client: None,
        payer: None,
    };
    for (id, class) in [(1, 0), (2, 1), (3, 1)] {
        shares.arrive(arrival(id, class), now);
    }
    shares.settle(&arrival(1, 0), 1001, now);
    // As a guard does it, for the oldest of all: the class has had more than all others.
    shares.progress(JobId(1), 1, now);
    shares.arrive(arrival(4, 2), now);
    let mut order = String::new();
    for _ in 0..4 {
        let job = shares.next(now).unwrap().job;
        order += &job.0.to_string();
        shares.progress(job, 10, now);
        shares.depart(job, now);
    }
    assert_eq!(order, "2431");
}

#[test]
fn what_classes_were_charged_goes_with_their_numbers() {
    let now = Time::from_ns(0);
    let arrival = |id, class| Arrival {
        id: JobId(id),
        class,
        size: None,
        trickle: 0,
        client: None,
        payer: None,
    };
    let mut before = Shares::default();
    before.settle(&arrival(1, 1), 1001, now);
    before.settle(&arrival(2, 2), 1501, now);
    // The second is the first now, the first comes behind it, and the third is gone.
    before.renumber(|class| {
        [Some(1), Some(0)]
            .get(usize::from(class))
            .copied()
            .flatten()
    });
    let mut shares = Shares::default();
    shares.take_accounts(before);
    for (id, class) in [(1, 0), (2, 1), (3, 2)] {
        shares.arrive(arrival(id, class), now);
    }
    let mut order = String::new();
    for _ in 0..3 {
        let job = shares.next(now).unwrap().job;
        order += &job.0.to_string();
        shares.progress(job, 10, now);
        shares.depart(job, now);
    }
    assert_eq!(order, "231");
}
