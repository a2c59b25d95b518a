//! What the guard takes from each policy's decisions, and gives to whom.

use super::*;

/// The oldest gets one unit in `oldest_share`, and silences do not matter.
fn oldest_first_in(oldest_share: u64) -> GuardLimits {
    GuardLimits {
        oldest_share,
        turn: 1,
        turns_max: None,
        silence_ns_max: u64::MAX,
        trickle: 1,
    }
}

/// The oldest has no turn before the end of the test, and a tenth goes to who was silent.
fn no_silence_beyond(silence_ns_max: u64) -> GuardLimits {
    GuardLimits {
        oldest_share: 10,
        turn: u64::MAX / 1000,
        turns_max: None,
        silence_ns_max,
        trickle: 1,
    }
}

#[test]
fn the_guard_knows_the_age_of_a_job_whose_class_changes() {
    let limits = oldest_first_in(4);
    let mut jobs = vec![play(0, 100)];
    jobs.extend((0..4).map(|i| play(i * 4, 3)));
    let scheduler = PolicyName::Psjf.scheduler(1, Some(limits));
    let lowered = run_changing(&jobs, &[change(1, 0, 7)], scheduler, true).decisions;
    assert!(lowered.starts_with("B3 A1 C3 A1 D3 A1 E3 A"), "{lowered}");
}

#[test]
fn the_guard_gives_the_oldest_one_part_in_its_share() {
    let limits = oldest_first_in(4);
    let mut jobs = vec![play(0, 100)];
    jobs.extend((0..4).map(|i| play(i * 4, 3)));
    let guarded = run(&jobs, PolicyName::Psjf.scheduler(1, Some(limits)), true).decisions;
    assert!(guarded.starts_with("B3 A1 C3 A1 D3 A1 E3 A"), "{guarded}");
}

#[test]
fn a_large_job_takes_few_turns_and_the_last_is_what_it_lacks() {
    let limits = GuardLimits {
        turns_max: Some(2),
        ..oldest_first_in(4)
    };
    // Others have three times four before a turn of four, and three times three before the last.
    let mut jobs = vec![play(0, 7)];
    jobs.extend([play(0, 3); 9]);
    let guarded = run(&jobs, PolicyName::Psjf.scheduler(1, Some(limits)), true).decisions;
    assert_eq!(guarded, "B3 C3 D3 E3 A4 F3 G3 H3 A3 I3 J3");
    // Clients have turns alike.
    jobs[0].client = Some(ClientId(1));
    let guarded = run(&jobs, PolicyName::Psjf.scheduler(1, Some(limits)), true).decisions;
    assert!(guarded.starts_with("B3 A1 C3 A1 D3 A1"), "{guarded}");
}

#[test]
fn a_job_that_grows_has_turns_as_long_as_it_needs() {
    let limits = GuardLimits {
        turns_max: Some(2),
        ..oldest_first_in(4)
    };
    let mut guarded = PolicyName::Psjf.scheduler(1, Some(limits));
    let come = |id, size| Arrival {
        id: JobId(id),
        class: 0,
        size: Some(size),
        trickle: 0,
        client: None,
        payer: None,
    };
    let now = Time::ZERO;
    guarded.arrive(come(0, 100), now);
    guarded.arrive(come(1, 50), now);
    let most = |guarded: &mut dyn Scheduler| guarded.next(now).map(|it| (it.job.0, it.max_amount));
    assert_eq!(most(&mut *guarded), Some((1, 3 * 50)));
    guarded.enlarge(JobId(0), 100, now);
    assert_eq!(most(&mut *guarded), Some((1, 3 * 100)));
    guarded.progress(JobId(1), 300, now);
    assert_eq!(most(&mut *guarded), Some((0, 100)));
    guarded.progress(JobId(0), 100, now);
    assert_eq!(most(&mut *guarded), Some((1, 3 * 100)));
}

#[test]
fn the_guard_ends_a_silence() {
    let limits = no_silence_beyond(20);
    let mut jobs = vec![play(0, 50)];
    jobs.extend((0..10).map(|i| play(i * 10, 10)));
    let guarded = run(&jobs, PolicyName::Psjf.scheduler(1, Some(limits)), true);
    assert!(
        guarded.decisions.starts_with("B10 C10 A1 D"),
        "{}",
        guarded.decisions
    );
}

#[test]
fn a_silence_ends_with_what_the_client_notices() {
    let limits = no_silence_beyond(20);
    // A record of two is due after half the time, and paid for after 18 units of others.
    let mut jobs = vec![Play {
        trickle: 2,
        ..play(0, 50)
    }];
    jobs.extend((0..10).map(|i| play(i * 10, 10)));
    let scheduler = PolicyName::Psjf.scheduler(1, Some(limits));
    let whole = run(&jobs, scheduler, true).decisions;
    assert!(whole.starts_with("B10 C8 A2 C2 D"), "{whole}");
}

#[test]
fn a_silence_does_not_go_on_because_records_begin_in_the_middle_of_a_turn() {
    let limits = no_silence_beyond(200);
    // Of its records of four the first has two left when it comes; it has three units before others
    // come.
    let mut jobs = vec![Play {
        trickle: 4,
        ..play(0, 50)
    }];
    jobs.extend((0..100).map(|i| play(3 + i * 10, 10)));
    let scheduler = PolicyName::Psjf.scheduler(1, Some(limits));
    let silence = run(&jobs, scheduler, true).silence_max;
    assert!(silence <= limits.silence_ns_max + 10, "{silence}");
}

#[test]
fn what_the_policy_gives_another_job_takes_no_turn_from_a_silent_one() {
    let limits = GuardLimits {
        oldest_share: 20,
        turn: 1000,
        turns_max: None,
        silence_ns_max: 100,
        trickle: 1,
    };
    let mut guarded = PolicyName::Fcfs.scheduler(1, Some(limits));
    let come = |id, client| Arrival {
        id: JobId(id),
        class: 0,
        size: Some(1000),
        trickle: 0,
        client: Some(ClientId(client)),
        payer: None,
    };
    let at = Time::from_ns;
    for (id, client) in [(1, 1), (2, 1), (3, 2)] {
        guarded.arrive(come(id, client), at(0));
    }
    guarded.arrive(come(4, 3), at(90));
    // Others have had enough for two trickles; all but the last job are silent for too long.
    guarded.progress(JobId(4), 40, at(120));
    assert_eq!(guarded.next(at(140)).map(|grant| grant.job), Some(JobId(1)));
    guarded.progress(JobId(2), 1, at(150));
    assert_eq!(guarded.next(at(160)).map(|grant| grant.job), Some(JobId(1)));
    guarded.progress(JobId(1), 1, at(170));
    assert_eq!(guarded.next(at(180)).map(|grant| grant.job), Some(JobId(3)));
}
