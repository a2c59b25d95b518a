//! What must hold for any jobs: work conservation, the optimality of SRPT, the fairness of FSP, the
//! guard's bounds.

mod doubt;
mod whole_guard;

use crate::server::{Change, Play, play, run, run_changing};
use proptest::prelude::*;
use sooner_policy::{ClientId, GuardLimits, JobId, Path, PolicyName, Scheduler, VirtualTime};
use std::collections::BTreeSet;

/// Up to 30 jobs with sizes over four orders of magnitude, sorted by arrival; near and far, on fast
/// and slow connections.
fn jobs() -> impl Strategy<Value = Vec<Play>> {
    let size = prop_oneof![4 => 1..20_u64, 2 => 20..400_u64, 1 => 400..3_000_u64];
    let rtt_ns = proptest::option::of(0..500_000_000_u64);
    let rate_per_sec = proptest::option::of(0..3_000_000_000_u64);
    proptest::collection::vec((0..2_000_u64, size, rtt_ns, rate_per_sec), 1..30).prop_map(
        |mut raw| {
            raw.sort_unstable();
            raw.into_iter()
                .map(|(at, size, rtt_ns, rate_per_sec)| Play {
                    path: Path {
                        rtt_ns,
                        rate_per_sec,
                    },
                    ..play(at, size)
                })
                .collect()
        },
    )
}

/// Up to 40 changes of classes and of what is known of networks, sorted by time.
fn changes() -> impl Strategy<Value = Vec<Change>> {
    let path = proptest::option::of((0..500_000_000_u64, 0..3_000_000_000_u64));
    let change = (0..4_000_u64, 0..30_usize, 0..4_u8, path);
    proptest::collection::vec(change, 0..40).prop_map(|mut raw| {
        raw.sort_unstable();
        raw.into_iter()
            .map(|(at, job, class, path)| Change {
                at,
                job,
                class,
                path: path.map(|(rtt_ns, rate_per_sec)| Path {
                    rtt_ns: Some(rtt_ns),
                    rate_per_sec: Some(rate_per_sec),
                }),
            })
            .collect()
    })
}

/// The client of each job: one of a few, or none that is known.
fn clients() -> impl Strategy<Value = Vec<Option<u64>>> {
    proptest::collection::vec(proptest::option::of(0..3_u64), 30)
}

/// Turns that are all alike, or longer ones of large jobs.
fn turns_max() -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(1..40_u64)
}

/// A policy, and the same among the jobs of each payer.
fn alone_and_by_payer(
    policy: PolicyName,
    guard: Option<GuardLimits>,
) -> [Box<dyn Scheduler + Send>; 2] {
    [
        policy.scheduler(2, guard),
        policy.scheduler_by_payer(2, guard),
    ]
}

fn total_response(policy: PolicyName, jobs: &[Play]) -> u64 {
    let done_at = run(jobs, policy.scheduler(1, None), true).done_at;
    jobs.iter()
        .zip(done_at)
        .map(|(job, done)| done - job.at)
        .sum()
}

/// Completion times under exact processor sharing, from the virtual clock.
fn processor_sharing(jobs: &[Play]) -> Vec<u64> {
    let mut sharing = VirtualTime::default();
    let mut done_at = vec![0; jobs.len()];
    let (mut now, mut arrived) = (0, 0);
    while arrived < jobs.len() || !sharing.is_empty() {
        let until_arrival = jobs.get(arrived).map_or(u64::MAX, |job| job.at - now);
        let until_finish = sharing.next_finish().map_or(u64::MAX, |(work, _)| work);
        let step = until_arrival.min(until_finish);
        now += step;
        sharing.advance_finishing(step, |id| done_at[id.0 as usize] = now);
        while jobs.get(arrived).is_some_and(|job| job.at == now) {
            sharing.arrive(JobId(arrived as u64), jobs[arrived].size);
            arrived += 1;
        }
    }
    done_at
}

/// The oldest gets one unit in four, and silences do not matter.
const OLDEST_FIRST: GuardLimits = GuardLimits {
    oldest_share: 4,
    turn: 1,
    turns_max: None,
    silence_ns_max: u64::MAX,
    trickle: 1,
};

/// The oldest has no turn before the end of the test, and a tenth goes to those who were silent.
const NO_SILENCE: GuardLimits = GuardLimits {
    oldest_share: 10,
    turn: u64::MAX / 1000,
    turns_max: None,
    silence_ns_max: 20,
    trickle: 1,
};

/// Jobs of one client.
fn of_client(client: u64, job: Play) -> Play {
    Play {
        client: Some(ClientId(client)),
        ..job
    }
}

#[test]
fn clients_take_turns_with_what_the_guard_gives() {
    let limits = OLDEST_FIRST;
    let greedy = |job| of_client(1, job);
    // Three large jobs that are older than the only one of another client, and small ones without
    // end.
    let mut jobs: Vec<Play> = (0..3).map(|_| greedy(play(0, 100))).collect();
    jobs.push(of_client(2, play(0, 100)));
    jobs.extend((0..6).map(|i| greedy(play(i * 4, 3))));
    let scheduler = PolicyName::Psjf.scheduler(1, Some(limits));
    let guarded = run(&jobs, scheduler, true).decisions;
    assert!(
        guarded.starts_with("E3 A1 F3 D1 G3 A1 H3 D1 I3 A1 J3 D1"),
        "{guarded}"
    );
    for job in &mut jobs {
        job.client = None;
    }
    let scheduler = PolicyName::Psjf.scheduler(1, Some(limits));
    let as_one = run(&jobs, scheduler, true).decisions;
    assert!(as_one.starts_with("E3 A1 F3 A1 G3 A1 H3 A1"), "{as_one}");
}

#[test]
fn clients_take_turns_with_trickles() {
    let limits = NO_SILENCE;
    let greedy = |job| of_client(1, job);
    let mut jobs: Vec<Play> = (0..3).map(|_| greedy(play(0, 100))).collect();
    jobs.push(of_client(2, play(0, 100)));
    jobs.extend((0..8).map(|i| greedy(play(i * 10, 10))));
    let scheduler = PolicyName::Psjf.scheduler(1, Some(limits));
    let guarded = run(&jobs, scheduler, true).decisions;
    // D is due with A, B and C, and has its trickle second, not last.
    assert!(
        guarded.starts_with("E10 F10 A1 D1 G8 B1 G2 H6 C1 H4"),
        "{guarded}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_is_work_conserving(jobs in jobs(), guarded: bool) {
        let guard = guarded.then(|| GuardLimits::with_turn(3));
        let fcfs = run(&jobs, PolicyName::Fcfs.scheduler(1, None), true);
        let busy_end = fcfs.done_at.into_iter().max();
        for policy in PolicyName::ALL {
            let played = run(&jobs, policy.scheduler(1, guard), true);
            prop_assert_eq!(played.idle_with_work, 0, "{}", policy);
            prop_assert_eq!(played.done_at.iter().copied().max(), busy_end, "{}", policy);
        }
    }

    #[test]
    fn what_changes_loses_no_work(
        mut jobs in jobs(),
        clients in clients(),
        changes in changes(),
        guarded: bool,
    ) {
        for (job, client) in jobs.iter_mut().zip(&clients) {
            job.client = client.map(ClientId);
        }
        let guard = guarded.then(|| GuardLimits::with_turn(3));
        let fcfs = run(&jobs, PolicyName::Fcfs.scheduler(1, None), true);
        let busy_end = fcfs.done_at.into_iter().max();
        for policy in PolicyName::ALL {
            for scheduler in alone_and_by_payer(policy, guard) {
                let played = run_changing(&jobs, &changes, scheduler, true);
                prop_assert_eq!(played.idle_with_work, 0, "{}", policy);
                prop_assert_eq!(played.done_at.iter().copied().max(), busy_end, "{}", policy);
            }
        }
    }

    #[test]
    fn srpt_has_the_least_mean(jobs in jobs()) {
        let best = total_response(PolicyName::Srpt, &jobs);
        for policy in PolicyName::ALL {
            prop_assert!(best <= total_response(policy, &jobs), "{}", policy);
        }
    }

    #[test]
    fn fsp_finishes_no_job_later_than_sharing(jobs in jobs()) {
        let fsp = run(&jobs, PolicyName::Fsp.scheduler(1, None), true).done_at;
        for (job, (fsp, sharing)) in fsp.iter().zip(processor_sharing(&jobs)).enumerate() {
            // The exact sharing time is rounded to whole units, once a completion.
            prop_assert!(*fsp <= sharing + 1, "job {job}: fsp {fsp}, sharing {sharing}");
        }
    }

    #[test]
    fn fair_in_quanta_is_near_exact_sharing(jobs in jobs()) {
        let quanta = run(&jobs, PolicyName::Fair.scheduler(1, None), true).done_at;
        for (quanta, sharing) in quanta.iter().zip(processor_sharing(&jobs)) {
            let off = quanta.abs_diff(sharing);
            prop_assert!(off <= 2 * jobs.len() as u64, "{quanta} against {sharing}");
        }
    }

    #[test]
    fn the_guard_bounds_every_wait(jobs in jobs(), turns_max in turns_max()) {
        let limits = GuardLimits {
            oldest_share: 20,
            turn: 2,
            turns_max,
            silence_ns_max: u64::MAX,
            trickle: 1,
        };
        for policy in PolicyName::ALL {
            let played = run(&jobs, policy.scheduler(2, Some(limits)), true);
            let mut older = 0;
            for (job, done) in jobs.iter().zip(&played.done_at) {
                older += job.size;
                let bound = limits.oldest_share * (older + limits.turn);
                prop_assert!(done - job.at <= bound, "{policy}: {} > {bound}", done - job.at);
            }
        }
    }

    #[test]
    fn the_guard_bounds_every_silence(
        mut jobs in jobs(),
        trickles in proptest::collection::vec(1..6_u64, 30),
    ) {
        for (job, trickle) in jobs.iter_mut().zip(trickles) {
            job.trickle = trickle;
        }
        let limits = GuardLimits {
            oldest_share: 20,
            turn: 2,
            turns_max: None,
            silence_ns_max: 500,
            trickle: 1,
        };
        for policy in PolicyName::ALL {
            let played = run(&jobs, policy.scheduler(2, Some(limits)), true);
            let trickles = jobs.iter().map(|job| job.trickle).sum::<u64>();
            let bound = limits.silence_ns_max + 2 * (limits.turn + limits.oldest_share * trickles);
            prop_assert!(played.silence_max <= bound, "{policy}: {} > {bound}", played.silence_max);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_guard_bounds_every_wait_by_client(
        mut jobs in jobs(),
        clients in clients(),
        turns_max in turns_max(),
    ) {
        for (job, client) in jobs.iter_mut().zip(&clients) {
            job.client = client.map(ClientId);
        }
        let client_count = jobs.iter().map(|job| job.client).collect::<BTreeSet<_>>().len() as u64;
        let limits = GuardLimits {
            oldest_share: 20,
            turn: 2,
            turns_max,
            silence_ns_max: u64::MAX,
            trickle: 1,
        };
        for policy in PolicyName::ALL {
            for scheduler in alone_and_by_payer(policy, Some(limits)) {
                let played = run(&jobs, scheduler, true);
                for (index, job) in jobs.iter().enumerate() {
                    let of_client = jobs[..=index].iter().filter(|older| older.client == job.client);
                    let own_size = of_client.map(|older| older.size).sum::<u64>();
                    let bound = client_count * limits.oldest_share * (own_size + limits.turn);
                    let waited = played.done_at[index] - job.at;
                    prop_assert!(waited <= bound, "{policy}: {waited} > {bound}");
                }
            }
        }
    }

    #[test]
    fn the_only_job_of_a_client_waits_no_longer_for_more_jobs_of_another(
        size in 1..50_u64,
        others in 1..200_usize,
    ) {
        let limits = GuardLimits {
            oldest_share: 20,
            turn: 2,
            turns_max: None,
            silence_ns_max: u64::MAX,
            trickle: 1,
        };
        let of_client = |client, size| Play { client: Some(ClientId(client)), ..play(0, size) };
        let mut jobs = vec![of_client(1, 100); others];
        jobs.push(of_client(2, size));
        for policy in PolicyName::ALL {
            for scheduler in alone_and_by_payer(policy, Some(limits)) {
                let done_at = run(&jobs, scheduler, true).done_at[others];
                let bound = 2 * limits.oldest_share * (size + limits.turn);
                prop_assert!(done_at <= bound, "{policy}: {done_at}");
            }
        }
    }

    #[test]
    fn the_guard_bounds_every_silence_by_client(
        mut jobs in jobs(),
        clients in clients(),
        trickle in 1..6_u64,
    ) {
        for (job, client) in jobs.iter_mut().zip(&clients) {
            job.client = client.map(ClientId);
            job.trickle = trickle;
        }
        let limits = GuardLimits {
            oldest_share: 20,
            turn: 2,
            turns_max: None,
            silence_ns_max: 500,
            trickle: 1,
        };
        for policy in PolicyName::ALL {
            let schedulers = alone_and_by_payer(policy, Some(limits));
            let silences = schedulers.map(|scheduler| run(&jobs, scheduler, true).silence_max);
            let of = |client| jobs.iter().filter(|job| job.client == client).count() as u64;
            let clients: BTreeSet<_> = jobs.iter().map(|job| job.client).collect();
            let most_jobs = clients.iter().map(|&client| of(client)).max().unwrap_or(0);
            let trickles = clients.len() as u64 * most_jobs * trickle;
            let bound = limits.silence_ns_max + 2 * (limits.turn + limits.oldest_share * trickles);
            prop_assert!(silences.iter().all(|&silence| silence <= bound), "{policy}: {silences:?} > {bound}");
        }
    }
}
