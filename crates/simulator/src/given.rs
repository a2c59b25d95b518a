//! Jobs that are given one by one, as a trace or a measurement has them: when each ends under a
//! policy, on one server.

use crate::orders::{Measured, with_order};
use crate::policy::Policy;
use crate::server::{
    Attained, AttainedBySeveral, Hybrid, Incoming, Ranked, Scheduled, Server, Sharing,
};
use sooner_policy::order::{Fair, OrderUser};
use sooner_policy::{Classes, Hrrn, Order};
use sooner_workload::Distribution;

/// A job: when it comes, and what it takes, in the same unit.
pub type Job = (u64, u64);

/// Response times of `jobs`, which are sorted by arrival, under `policy`; kinds are not known, so
/// PESJF is PSJF and PELJF is PLJF. What a policy's parameters follow from is learned of the jobs
/// themselves.
pub fn responses(policy: Policy, jobs: &[Job]) -> Vec<u64> {
    match policy {
        Policy::FAIR => play(Sharing::new(1), jobs, |_| 0),
        Policy::LAS => play(Attained::default(), jobs, |_| 0),
        Policy::Hybrid(share) => play(Hybrid::new(share), jobs, |_| 0),
        Policy::Hrrn => play(Scheduled::new(Hrrn::default()), jobs, |_| 0),
        _ => by_order(policy, jobs),
    }
}

/// The same under LAS on `servers` servers, each of the speed that one has there.
pub fn responses_of_several(servers: u32, jobs: &[Job]) -> Vec<u64> {
    let count = u64::from(servers.max(1));
    // Each has that part of the whole speed there: all takes so many times as long.
    let jobs: Vec<Job> = jobs.iter().map(|(at, size)| (at * count, *size)).collect();
    let responses = play(AttainedBySeveral::new(servers), &jobs, |_| 0);
    responses
        .into_iter()
        .map(|response| response / count)
        .collect()
}

fn by_order(policy: Policy, jobs: &[Job]) -> Vec<u64> {
    let sizes = jobs.iter().map(|job| job.1.max(1) as f64).collect();
    let Ok(sizes) = Distribution::of_values(sizes) else {
        return Vec::new();
    };
    let mean = sizes.mean();
    let span = match (jobs.first(), jobs.last()) {
        (Some(first), Some(last)) => last.0.saturating_sub(first.0),
        _ => 0,
    };
    let measured = Measured {
        sizes: &sizes,
        load: (span > 0).then(|| mean * jobs.len() as f64 / span as f64),
        ticks_per_mean: mean,
    };
    let played = with_order(policy, 1, &measured, Given(jobs));
    played.unwrap_or_default()
}

/// Plays jobs against one server with an order.
struct Given<'a>(&'a [Job]);

impl OrderUser for Given<'_> {
    type Output = Vec<u64>;

    fn with<O: Order + Clone>(self, order: O) -> Vec<u64> {
        play(Ranked::new(order, 1), self.0, |_| 0)
    }
}

/// Response times where jobs up to `cut` go before all others, and equals share in turns of `turn`.
pub fn two_priorities(jobs: &[Job], cut: u64, turn: u64) -> Vec<u64> {
    let server = Scheduled::new(Classes::new(Fair::new(turn)));
    play(server, jobs, |size| u8::from(size > cut))
}

/// Plays `jobs` against `server`.
fn play(mut server: impl Server, jobs: &[Job], class: impl Fn(u64) -> u8) -> Vec<u64> {
    let mut responses = vec![0; jobs.len()];
    // The job in each slot, and slots that no job is in.
    let (mut slots, mut free): (Vec<usize>, Vec<u32>) = (Vec::new(), Vec::new());
    let (mut now, mut next, mut present) = (0, 0, 0_usize);
    while next < jobs.len() || present > 0 {
        let until_arrival = jobs
            .get(next)
            .map_or(u64::MAX, |job| job.0.saturating_sub(now));
        let time = server
            .until_event()
            .map_or(until_arrival, |event| event.min(until_arrival));
        now = now.saturating_add(time);
        server.advance(time, now, &mut |slot| {
            let job = slots[slot as usize];
            responses[job] = now - jobs[job].0;
            free.push(slot);
            present -= 1;
        });
        while let Some(&(at, size)) = jobs.get(next)
            && at <= now
        {
            let slot = free.pop().unwrap_or_else(|| {
                slots.push(next);
                (slots.len() - 1) as u32
            });
            slots[slot as usize] = next;
            let incoming = Incoming {
                slot,
                size: size.max(1),
                expected: size.max(1),
                class: class(size),
            };
            server.arrive(incoming, now);
            present += 1;
            next += 1;
        }
    }
    responses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_job_takes_its_time() {
        for policy in Policy::all() {
            assert_eq!(responses(policy, &[(50, 100)]), [100], "{policy}");
        }
    }

    #[test]
    fn a_short_job_overtakes_or_shares() {
        let jobs = [(0, 100), (10, 20)];
        assert_eq!(responses(Policy::SRPT, &jobs), [120, 20]);
        assert_eq!(responses(Policy::LAS, &jobs), [120, 30]);
        assert_eq!(responses(Policy::FAIR, &jobs), [120, 40]);
        assert_eq!(responses(Policy::FCFS, &jobs), [100, 110]);
        assert_eq!(two_priorities(&jobs, 20, 1), [120, 20]);
    }

    #[test]
    fn two_servers_serve_the_two_that_have_had_least() {
        // At 20 the first has had 20 and the second 10, so the third takes the first one's server.
        // It is done at 30, and the first goes on.
        let jobs = [(0, 30), (10, 40), (20, 10)];
        assert_eq!(responses_of_several(2, &jobs), [40, 40, 10]);
        let alone = [(0, 30), (10, 40)];
        assert_eq!(responses_of_several(2, &alone), [30, 40]);
        let equal = [(0, 10), (0, 10), (0, 10), (0, 10)];
        assert_eq!(responses_of_several(2, &equal), [20, 20, 20, 20]);
    }

    #[test]
    fn simultaneous_jobs_are_all_counted() {
        let jobs = [(0, 10), (0, 10), (0, 10)];
        assert_eq!(responses(Policy::SRPT, &jobs), [10, 20, 30]);
        assert_eq!(responses(Policy::FAIR, &jobs), [30, 30, 30]);
    }

    #[test]
    fn who_has_had_less_goes_first_and_equals_share() {
        // The third is served alone until it has had 10 as well as the second: at 60; both share
        // until it is done at 80. The second catches up with the first, which has had 40, at 100;
        // then they share: it is done at 140, the first at 180.
        let jobs = [(0, 100), (40, 60), (50, 20)];
        assert_eq!(responses(Policy::LAS, &jobs), [180, 100, 30]);
    }
}
