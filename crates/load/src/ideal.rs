//! The best that any server could have done for the arrivals that really happened.
//!
//! Three servers without overheads play the same requests on the same link: one in the order of shortest remaining work, whose mean no order
//! beats, one in the order of least attained work, the best that can be had without knowing sizes (where they are heavy-tailed), and one that
//! shares exactly. Sizes are work on the wire; the unit of service is a nanosecond of the link's time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

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
    /// Under least attained first, ns.
    pub las_ns: u64,
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
    play(works, &sizes_ns, &mut Least::default(), |job, done_ns| {
        ideals[job].las_ns = done_ns - works[job].arrival_ns
    });
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

/// Least attained first: those that have had the least share among themselves, until they have had as much as the next.
#[derive(Default)]
struct Least {
    /// By what they have had, the most first: the last are being served.
    levels: Vec<Level>,
}

/// Jobs that have had the same.
struct Level {
    attained_ns: f64,
    /// The smallest size first.
    jobs: BinaryHeap<Reverse<(u64, usize)>>,
}

/// What is left to do after rounding, ns.
const ROUNDING_NS: f64 = 1e-3;

impl Level {
    /// What its smallest job still lacks.
    fn lacks_ns(&self) -> f64 {
        let smallest = self.jobs.peek();
        smallest.map_or(f64::INFINITY, |Reverse((size_ns, _))| {
            *size_ns as f64 - self.attained_ns
        })
    }
}

impl Least {
    /// Lets the last level join the one before it, once both have had the same.
    fn join_levels(&mut self) {
        while let [.., before, last] = &self.levels[..]
            && last.attained_ns >= before.attained_ns - ROUNDING_NS
        {
            let mut last = self
                .levels
                .pop()
                .map(|level| level.jobs)
                .unwrap_or_default();
            if let Some(before) = self.levels.last_mut() {
                before.jobs.append(&mut last);
            }
        }
    }
}

impl Server for Least {
    fn arrive(&mut self, job: usize, size_ns: u64, _now_ns: u64) {
        self.levels.push(Level {
            attained_ns: 0.0,
            jobs: BinaryHeap::from([Reverse((size_ns, job))]),
        });
        self.join_levels();
    }

    fn until_done_ns(&mut self) -> Option<u64> {
        let (mut time_ns, mut serving) = (0.0, 0.0);
        let mut smallest_ns = f64::INFINITY;
        for (index, level) in self.levels.iter().enumerate().rev() {
            serving += level.jobs.len() as f64;
            smallest_ns = smallest_ns.min(level.attained_ns + level.lacks_ns());
            let next_ns = match index.checked_sub(1) {
                Some(next) => self.levels[next].attained_ns,
                None => f64::INFINITY,
            };
            if smallest_ns <= next_ns {
                time_ns += serving * (smallest_ns - level.attained_ns);
                return Some((time_ns.ceil() as u64).max(1));
            }
            time_ns += serving * (next_ns - level.attained_ns);
        }
        None
    }

    fn advance(&mut self, work_ns: u64, mut done: impl FnMut(usize)) {
        let mut left_ns = work_ns as f64;
        while let Some(level) = self.levels.last() {
            let serving = level.jobs.len() as f64;
            let next_ns = match self.levels.len().checked_sub(2) {
                Some(next) => self.levels[next].attained_ns,
                None => f64::INFINITY,
            };
            let step_ns = level.lacks_ns().min(next_ns - level.attained_ns);
            let step_ns = step_ns.min(left_ns / serving).max(0.0);
            left_ns -= step_ns * serving;
            if let Some(level) = self.levels.last_mut() {
                level.attained_ns += step_ns;
                while level.lacks_ns() <= ROUNDING_NS {
                    done(level.jobs.pop().map_or(0, |Reverse((_, job))| job));
                }
                if level.jobs.is_empty() {
                    self.levels.pop();
                }
            }
            self.join_levels();
            if left_ns <= ROUNDING_NS {
                return;
            }
        }
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
                las_ns: 100,
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
                    las_ns: 120,
                    ps_ns: 120
                },
                Ideal {
                    srpt_ns: 20,
                    las_ns: 30,
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

    #[test]
    fn who_has_had_less_goes_first_and_equals_share() {
        let ideal = responses(&works(&[(0, 100), (40, 60), (50, 20)]), BYTE_A_NANOSECOND);
        // The third is served alone until it has had 10 as well as the second: at 60; both share until it is done at 80. The second
        // catches up with the first, which has had 40, at 100; then they share: it is done at 140, the first at 180.
        let las: Vec<u64> = ideal.iter().map(|ideal| ideal.las_ns).collect();
        assert_eq!(las, [180, 100, 30]);
    }

    /// M/M/1 at load 0.8, mean size 1: 5 under sharing and under LAS (exponential sizes have no memory), 2.352773 under SRPT (exact values,
    /// facts on golden values).
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
        let las = mean(|ideal| ideal.las_ns);
        assert!(
            (las / sharing - 1.0).abs() < 0.03,
            "las {las} sharing {sharing}"
        );
        assert!((srpt - 2.352_773).abs() < 0.08, "srpt {srpt}");
    }
}
