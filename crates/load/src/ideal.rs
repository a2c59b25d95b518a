//! The best that any server could have done for the arrivals that really happened.
//!
//! Two servers without overheads play the same requests on the same link: one in the order of shortest remaining work, whose mean no order
//! beats, and one that shares exactly. Sizes are work on the wire; the unit of service is a nanosecond of the link's time.

use sooner_policy::order::Srpt;
use sooner_policy::{Arrival, JobId, Queue, Scheduler, Time, VirtualTime};

/// A request as the link sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// When it arrived, ns since the start of the run.
    pub arrival_ns: u64,
    /// What it costs on the wire, bytes.
    pub work_bytes: u64,
}

/// Response times without overheads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ideal {
    /// Under shortest remaining first, ns.
    pub srpt_ns: u64,
    /// Under processor sharing, ns.
    pub ps_ns: u64,
}

/// The ideal response times of `works`, which are sorted by arrival, on a link of `rate_bits_per_sec`.
pub fn responses(works: &[Work], rate_bits_per_sec: u64) -> Vec<Ideal> {
    let sizes_ns: Vec<u64> = works
        .iter()
        .map(|work| transmission_ns(work.work_bytes, rate_bits_per_sec))
        .collect();
    let mut ideals = vec![Ideal::default(); works.len()];
    play(
        works,
        &sizes_ns,
        &mut Shortest::default(),
        |job, done_ns| ideals[job].srpt_ns = done_ns - works[job].arrival_ns,
    );
    play(works, &sizes_ns, &mut Sharing::default(), |job, done_ns| {
        ideals[job].ps_ns = done_ns - works[job].arrival_ns
    });
    ideals
}

/// The time of `bytes` on the link, ns, at least 1.
fn transmission_ns(bytes: u64, rate_bits_per_sec: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 8_000_000_000 / u128::from(rate_bits_per_sec.max(1)))
        .unwrap_or(u64::MAX)
        .max(1)
}

/// A server of rate 1 that can say when its next job is done.
trait Server {
    fn arrive(&mut self, job: usize, size_ns: u64, now_ns: u64);
    /// Work until the next job is done if nothing arrives; `None` if idle.
    fn until_done_ns(&mut self) -> Option<u64>;
    fn advance(&mut self, work_ns: u64, done: impl FnMut(usize));
}

fn play(
    works: &[Work],
    sizes_ns: &[u64],
    server: &mut impl Server,
    mut done: impl FnMut(usize, u64),
) {
    let (mut now_ns, mut arrived) = (0, 0);
    loop {
        let until_arrival_ns = works
            .get(arrived)
            .map(|work| work.arrival_ns.saturating_sub(now_ns));
        let step_ns = match (until_arrival_ns, server.until_done_ns()) {
            (None, None) => return,
            (arrival, end) => arrival.unwrap_or(u64::MAX).min(end.unwrap_or(u64::MAX)),
        };
        now_ns += step_ns;
        server.advance(step_ns, |job| done(job, now_ns));
        while works
            .get(arrived)
            .is_some_and(|work| work.arrival_ns <= now_ns)
        {
            server.arrive(arrived, sizes_ns[arrived], now_ns);
            arrived += 1;
        }
    }
}

/// Shortest remaining first.
#[derive(Default)]
struct Shortest {
    queue: Queue<Srpt>,
}

impl Server for Shortest {
    fn arrive(&mut self, job: usize, size_ns: u64, now_ns: u64) {
        let arrival = Arrival {
            id: JobId(job as u64),
            class: 0,
            size: Some(size_ns),
            trickle: 0,
        };
        self.queue.arrive(arrival, Time::from_ns(now_ns));
    }

    fn until_done_ns(&mut self) -> Option<u64> {
        let grant = self.queue.next(Time::ZERO)?;
        // Under SRPT the rank is the work that remains.
        self.queue.rank(grant.job)
    }

    fn advance(&mut self, work_ns: u64, mut done: impl FnMut(usize)) {
        let Some(grant) = self.queue.next(Time::ZERO) else {
            return;
        };
        self.queue.progress(grant.job, work_ns, Time::ZERO);
        if self.queue.rank(grant.job) == Some(0) {
            self.queue.depart(grant.job, Time::ZERO);
            done(grant.job.0 as usize);
        }
    }
}

/// Exact processor sharing.
#[derive(Default)]
struct Sharing {
    clock: VirtualTime,
}

impl Server for Sharing {
    fn arrive(&mut self, job: usize, size_ns: u64, _now_ns: u64) {
        self.clock.arrive(JobId(job as u64), size_ns);
    }

    fn until_done_ns(&mut self) -> Option<u64> {
        self.clock.next_finish().map(|(work_ns, _)| work_ns)
    }

    fn advance(&mut self, work_ns: u64, mut done: impl FnMut(usize)) {
        self.clock
            .advance_finishing(work_ns, |job| done(job.0 as usize));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTE_A_NANOSECOND: u64 = 8_000_000_000;

    fn works(list: &[(u64, u64)]) -> Vec<Work> {
        list.iter()
            .map(|&(arrival_ns, work_bytes)| Work {
                arrival_ns,
                work_bytes,
            })
            .collect()
    }

    #[test]
    fn a_lone_request_takes_its_time_on_the_wire() {
        let ideal = responses(&works(&[(50, 100)]), BYTE_A_NANOSECOND);
        assert_eq!(
            ideal,
            [Ideal {
                srpt_ns: 100,
                ps_ns: 100
            }]
        );
    }

    #[test]
    fn a_short_request_overtakes_or_shares() {
        let ideal = responses(&works(&[(0, 100), (10, 20)]), BYTE_A_NANOSECOND);
        assert_eq!(
            ideal,
            [
                Ideal {
                    srpt_ns: 120,
                    ps_ns: 120
                },
                Ideal {
                    srpt_ns: 20,
                    ps_ns: 40
                }
            ]
        );
    }

    #[test]
    fn simultaneous_requests_are_all_counted() {
        let ideal = responses(&works(&[(0, 10), (0, 10), (0, 10)]), BYTE_A_NANOSECOND);
        assert_eq!(
            ideal.iter().map(|ideal| ideal.srpt_ns).collect::<Vec<_>>(),
            [10, 20, 30]
        );
        assert_eq!(
            ideal.iter().map(|ideal| ideal.ps_ns).collect::<Vec<_>>(),
            [30, 30, 30]
        );
    }

    /// M/M/1 at load 0.8, mean size 1: 5 under sharing, 2.352773 under SRPT (exact values, facts on golden values).
    #[test]
    fn the_means_agree_with_queueing_theory() {
        use rand::SeedableRng;
        use rand_distr::{Distribution, Exp};
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let (size, gap) = (
            Exp::new(1e-6).expect("a rate"),
            Exp::new(0.8e-6).expect("a rate"),
        );
        let mut now = 0.0;
        let works: Vec<Work> = (0..400_000)
            .map(|_| {
                now += gap.sample(&mut rng);
                Work {
                    arrival_ns: now as u64,
                    work_bytes: size.sample(&mut rng) as u64,
                }
            })
            .collect();
        let ideal = responses(&works, BYTE_A_NANOSECOND);
        let mean = |of: fn(&Ideal) -> u64| {
            ideal.iter().map(|ideal| of(ideal) as f64).sum::<f64>() / ideal.len() as f64 / 1e6
        };
        let (sharing, srpt) = (mean(|ideal| ideal.ps_ns), mean(|ideal| ideal.srpt_ns));
        assert!((sharing - 5.0).abs() < 0.25, "sharing {sharing}");
        assert!((srpt - 2.352_773).abs() < 0.08, "srpt {srpt}");
    }
}
