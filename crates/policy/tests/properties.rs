//! What must hold for any jobs: work conservation, the optimality of SRPT, the fairness of FSP, the guard's bounds.

mod server;

use proptest::prelude::*;
use server::{Change, Play, play, run, run_changing};
use sooner_policy::{GuardLimits, JobId, Path, PolicyName, VirtualTime};

/// Up to 30 jobs with sizes over four orders of magnitude, sorted by arrival; near and far, on fast and slow connections.
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_is_work_conserving(jobs in jobs(), guarded: bool) {
        let guard = guarded.then(|| GuardLimits::with_turn(3));
        let busy_end = run(&jobs, PolicyName::Fcfs.scheduler(1, None), true).done_at.into_iter().max();
        for policy in PolicyName::ALL {
            let played = run(&jobs, policy.scheduler(1, guard), true);
            prop_assert_eq!(played.idle_with_work, 0, "{}", policy);
            prop_assert_eq!(played.done_at.iter().copied().max(), busy_end, "{}", policy);
        }
    }

    #[test]
    fn what_changes_loses_no_work(jobs in jobs(), changes in changes(), guarded: bool) {
        let guard = guarded.then(|| GuardLimits::with_turn(3));
        let busy_end = run(&jobs, PolicyName::Fcfs.scheduler(1, None), true).done_at.into_iter().max();
        for policy in PolicyName::ALL {
            let played = run_changing(&jobs, &changes, policy.scheduler(1, guard), true);
            prop_assert_eq!(played.idle_with_work, 0, "{}", policy);
            prop_assert_eq!(played.done_at.iter().copied().max(), busy_end, "{}", policy);
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
            prop_assert!(quanta.abs_diff(sharing) <= 2 * jobs.len() as u64, "{quanta} against {sharing}");
        }
    }

    #[test]
    fn the_guard_bounds_every_wait(jobs in jobs()) {
        let limits = GuardLimits { oldest_share: 20, turn: 2, silence_ns_max: u64::MAX, trickle: 1 };
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
    fn the_guard_bounds_every_silence(mut jobs in jobs(), trickles in proptest::collection::vec(1..6_u64, 30)) {
        for (job, trickle) in jobs.iter_mut().zip(trickles) {
            job.trickle = trickle;
        }
        let limits = GuardLimits { oldest_share: 20, turn: 2, silence_ns_max: 500, trickle: 1 };
        for policy in PolicyName::ALL {
            let played = run(&jobs, policy.scheduler(2, Some(limits)), true);
            let trickles = jobs.iter().map(|job| job.trickle).sum::<u64>();
            let bound = limits.silence_ns_max + 2 * (limits.turn + limits.oldest_share * trickles);
            prop_assert!(played.silence_max <= bound, "{policy}: {} > {bound}", played.silence_max);
        }
    }
}
