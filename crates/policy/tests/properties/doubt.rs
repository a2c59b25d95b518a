//! What holds of the orders that bear doubt, whatever the jobs.

use super::jobs;
use crate::server::{Play, Played, play, run};
use proptest::prelude::*;
use sooner_policy::order::{Boost, ByAge, Fcfs, Fsp, Index, Nudge, Psbs, Sjf};
use sooner_policy::{GuardLimits, Hrrn, Order, Queue, Scheduler, WholeGuard};

fn by(order: impl Order + Send + 'static, jobs: &[Play]) -> Played {
    run(jobs, Box::new(Queue::new(order)), true)
}

/// All that goes on to the end with what has begun.
fn whole() -> Vec<(&'static str, Box<dyn Scheduler + Send>)> {
    vec![
        ("boost 0", Box::new(Queue::new(Boost::new(0)))),
        ("boost 100", Box::new(Queue::new(Boost::new(100)))),
        ("boost 2^63", Box::new(Queue::new(Boost::new(1 << 63)))),
        ("nudge 5", Box::new(Queue::new(Nudge::new(50, 5)))),
        ("nudge", Box::new(Queue::new(Nudge::new(50, u64::MAX)))),
        ("hrrn", Box::new(Hrrn::default())),
    ]
}

/// All that waits when one that is larger than all begins.
fn all_at_once(jobs: &[Play]) -> Vec<Play> {
    let waiting = jobs.iter().map(|job| play(job.at + 1, job.size));
    [play(0, 10_000)].into_iter().chain(waiting).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn doubting_orders_are_work_conserving(jobs in jobs()) {
        let busy_end = by(Fcfs, &jobs).done_at.into_iter().max();
        let others: [(&str, Box<dyn Scheduler + Send>); 4] = [
            ("psbs", Box::new(Queue::new(Psbs::new(3)))),
            ("gittins", Box::new(Queue::new(ByAge::new(Index::Gittins)))),
            ("serpt", Box::new(Queue::new(ByAge::new(Index::Remaining)))),
            ("interrupting", Box::new(Queue::new(Boost::interrupting(100)))),
        ];
        for (name, scheduler) in whole().into_iter().chain(others) {
            let played = run(&jobs, scheduler, true);
            prop_assert_eq!(played.idle_with_work, 0, "{}", name);
            prop_assert_eq!(played.done_at.iter().copied().max(), busy_end, "{}", name);
        }
    }

    #[test]
    fn what_has_begun_goes_on_to_its_end(jobs in jobs()) {
        for (name, scheduler) in whole() {
            let decisions = run(&jobs, scheduler, true).decisions;
            prop_assert_eq!(decisions.split(' ').count(), jobs.len(), "{}: {}", name, decisions);
        }
    }

    #[test]
    fn under_the_guard_none_starves(jobs in jobs()) {
        let limits = GuardLimits::with_turn(1);
        let largest = jobs.iter().map(|job| job.size).max().unwrap_or(0);
        for (name, scheduler) in whole() {
            let guard = WholeGuard::new(scheduler, limits);
            let played = run(&jobs, Box::new(guard), true);
            let mut older = 0;
            for (job, done) in jobs.iter().zip(&played.done_at) {
                older += job.size;
                let bound = limits.oldest_share * (older + largest);
                prop_assert!(done - job.at <= bound, "{name}: {} > {bound}", done - job.at);
            }
        }
    }

    #[test]
    fn boost_without_a_scale_and_nudge_without_places_are_first_come(jobs in jobs()) {
        let fcfs = by(Fcfs, &jobs).decisions;
        prop_assert_eq!(by(Boost::new(0), &jobs).decisions, fcfs.clone());
        prop_assert_eq!(by(Boost::interrupting(0), &jobs).decisions, fcfs.clone());
        prop_assert_eq!(by(Nudge::new(50, 0), &jobs).decisions, fcfs);
    }

    #[test]
    fn boost_with_a_huge_scale_is_shortest_first(jobs in jobs()) {
        let jobs = all_at_once(&jobs);
        let sjf = by(Sjf, &jobs).decisions;
        prop_assert_eq!(by(Boost::new(1 << 40), &jobs).decisions, sjf.clone());
        prop_assert_eq!(by(Boost::new(u64::MAX), &jobs).decisions, sjf);
    }

    /// However large it is: the boost of the smallest job bounds how much later the others came.
    #[test]
    fn boost_lets_none_pass_that_came_too_late(jobs in jobs(), scale in 1..3_000_u64) {
        let played = by(Boost::new(scale), &jobs);
        let most = (scale as f64 * -(-(-1.0 / scale as f64).exp_m1()).ln()) as u64 + 1;
        for (index, job) in jobs.iter().enumerate() {
            // Of those that came later than that, none began before it had ended.
            let later = jobs.iter().zip(&played.done_at).skip(index + 1);
            for (other, done) in later.filter(|(other, _)| other.at > job.at + most) {
                prop_assert!(*done >= played.done_at[index], "{} before {}", other.at, job.at);
            }
        }
    }

    #[test]
    fn nudge_lets_a_large_job_be_passed_by_so_many_at_most(jobs in jobs(), places in 0..10_u64) {
        let played = by(Nudge::new(50, places), &jobs);
        for index in 0..jobs.len() {
            let later = index + 1 + places as usize..jobs.len();
            for other in later {
                prop_assert!(played.done_at[other] > played.done_at[index], "{other} before {index}");
            }
        }
    }

    #[test]
    fn psbs_is_fsp_where_sizes_are_known(jobs in jobs()) {
        let fsp = by(Fsp::default(), &jobs);
        let psbs = by(Psbs::new(1), &jobs);
        for (psbs, fsp) in psbs.done_at.iter().zip(&fsp.done_at) {
            prop_assert!(psbs.abs_diff(*fsp) <= jobs.len() as u64, "{psbs} and {fsp}");
        }
    }
}
