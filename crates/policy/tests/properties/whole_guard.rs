//! The bound of the guard that gives whole jobs, whatever the order inside it.

use super::{clients, jobs};
use crate::server::{Play, Played, play, run};
use proptest::prelude::*;
use sooner_policy::order::{Fcfs, Ljf, Pljf, Sjf, Srpt};
use sooner_policy::{ClientId, GuardLimits, Order, Queue, WholeGuard};
use std::collections::BTreeSet;

const SHARE: u64 = 20;

fn guarded(jobs: &[Play], order: impl Order + Send + 'static, sizes_known: bool) -> Played {
    let limits = GuardLimits {
        oldest_share: SHARE,
        ..GuardLimits::with_turn(2)
    };
    let guard = WholeGuard::new(Queue::new(order), limits);
    run(jobs, Box::new(guard), sizes_known)
}

/// Under every order that there is a word for.
fn all(jobs: &[Play], sizes_known: bool) -> Vec<(&'static str, Played)> {
    vec![
        ("fcfs", guarded(jobs, Fcfs, sizes_known)),
        ("sjf", guarded(jobs, Sjf, sizes_known)),
        ("ljf", guarded(jobs, Ljf, sizes_known)),
        ("pljf", guarded(jobs, Pljf, sizes_known)),
        ("srpt", guarded(jobs, Srpt, sizes_known)),
    ]
}

/// Runs of service in the decisions: each job has one where none is interrupted.
fn runs_of_service(played: &Played) -> usize {
    played.decisions.split(' ').count()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whole_turns_bound_every_wait_and_interrupt_no_job(jobs in jobs(), sizes_known: bool) {
        let largest = jobs.iter().map(|job| job.size).max().unwrap_or(0);
        for (order, played) in all(&jobs, sizes_known) {
            prop_assert_eq!(played.idle_with_work, 0, "{}", order);
            prop_assert_eq!(runs_of_service(&played), jobs.len(), "{}: {}", order, played.decisions);
            let mut older = 0;
            for (job, done) in jobs.iter().zip(&played.done_at) {
                // A job of unknown size is owed one turn.
                let owed = if sizes_known { job.size } else { 2 };
                older += (SHARE - 1) * owed + job.size;
                let bound = older + SHARE * largest;
                prop_assert!(done - job.at <= bound, "{order}: {} > {bound}", done - job.at);
            }
        }
    }

    #[test]
    fn whole_turns_bound_every_wait_by_client(mut jobs in jobs(), clients in clients()) {
        for (job, client) in jobs.iter_mut().zip(&clients) {
            job.client = client.map(ClientId);
        }
        let largest = jobs.iter().map(|job| job.size).max().unwrap_or(0);
        let client_count = jobs.iter().map(|job| job.client).collect::<BTreeSet<_>>().len() as u64;
        for (order, played) in all(&jobs, true) {
            for (index, job) in jobs.iter().enumerate() {
                let of_client = jobs[..=index].iter().filter(|older| older.client == job.client);
                let own_size = of_client.map(|older| older.size).sum::<u64>();
                let bound = client_count * SHARE * (own_size + largest);
                let waited = played.done_at[index] - job.at;
                prop_assert!(waited <= bound, "{order}: {waited} > {bound}");
            }
        }
    }

    /// Small jobs that never end, and one large one, the only one of its client, among many of
    /// another.
    #[test]
    fn a_stream_of_small_jobs_starves_none(size in 2..40_u64, others in 1..30_usize) {
        let of = |client, job| Play { client: Some(ClientId(client)), ..job };
        let mut jobs = vec![of(1, play(0, 41)); others];
        jobs.push(of(2, play(0, size)));
        jobs.extend((0..4_000).map(|i| of(3, play(i, 1))));
        let played = guarded(&jobs, Sjf, true);
        let bound = 3 * SHARE * (size + 41);
        prop_assert!(played.done_at[others] <= bound, "{}", played.done_at[others]);
    }
}

/// Of a long run, what is taken from the order is one part in twenty.
#[test]
fn whole_turns_take_their_share_and_no_more() {
    let mut jobs = vec![play(0, 10); 100];
    jobs.extend((0..4_000).map(|i| play(i, 1)));
    let played = guarded(&jobs, Sjf, true);
    let large_done = played.done_at[..100].iter().filter(|done| **done <= 4_000);
    // 4000 / 20 are 200 units, which are 20 of the large.
    assert_eq!(large_done.count(), 20);
}
