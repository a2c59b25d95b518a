//! The requests of the busiest hours, kept for the simulation in bounded memory, and when exactly
//! each came. Busy is an hour by the work in it, whatever that is: bytes for a link, time for a
//! server.
//!
//! A log of whole seconds does not say when within its second a request came: the n requests of a
//! second are given n sorted places in it, uniform, from a generator that the second seeds, so that
//! their order stays and the same log gives the same times. Where the time of a line is that of the
//! end, the time taken is taken off after that.

use sooner_simulator::given::Job;
use sooner_workload::Rng;
use std::collections::{BTreeMap, HashSet};

/// Requests that are kept.
pub const KEPT_MAX: usize = 2_000_000;
/// What is kept or let go as a whole, while hours are few enough.
const PERIOD_S: u64 = 3600;
/// It is halved down to this where so many requests come in an hour that hardly one could be kept.
const PERIOD_MIN_S: u64 = 60;
/// With fewer periods than this it is halved before one is let go.
const PERIODS_MIN: usize = 4;
/// Names the random stream of places within seconds.
const PURPOSE: u64 = 0x61;
/// Longest time on the link, ns, some ten hours: sums of what a damaged log asks for stay numbers.
const SIZE_NS_MAX: u64 = 1 << 45;
/// Time taken is kept in this unit.
const TOOK_UNIT_NS: u64 = 100_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A request.
#[derive(Clone, Copy, Debug)]
struct Request<T> {
    /// The time of its line; where that is finer than a second, with the time taken off.
    stamp_ns: u64,
    work: u64,
    with: T,
    /// What is still to be taken off.
    before: u32,
    resolution_ns: u32,
}

struct Period<T> {
    requests: Vec<Request<T>>,
    work: u64,
}

impl<T> Default for Period<T> {
    fn default() -> Self {
        Self {
            requests: Vec::new(),
            work: 0,
        }
    }
}

/// A request that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept<T> {
    /// When it came, ns since the first period; periods that are not there leave no gap, because no
    /// queue outlasts one.
    pub at_ns: u64,
    /// Its work.
    pub work: u64,
    /// What was kept with it.
    pub with: T,
}

/// Keeps requests, each with something.
pub struct Busiest<T = ()> {
    kept_max: usize,
    period_s: u64,
    /// By number since 1970.
    periods: BTreeMap<u64, Period<T>>,
    /// Numbers of those that were let go.
    quiet: HashSet<u64>,
    /// Number of the one that the last request came in, which may become the busiest yet.
    last: u64,
    kept: usize,
    let_go: u64,
}

impl<T: Copy> Busiest<T> {
    /// Keeps at most `kept_max`.
    pub fn new(kept_max: usize) -> Self {
        Self {
            kept_max: kept_max.max(1),
            period_s: PERIOD_S,
            periods: BTreeMap::new(),
            quiet: HashSet::new(),
            last: 0,
            kept: 0,
            let_go: 0,
        }
    }

    /// Keeps a request: its line has the time `stamp_ns`, cut to `resolution_ns`, and it came
    /// `before_ns` earlier.
    pub fn add_with(
        &mut self,
        stamp_ns: u64,
        resolution_ns: u64,
        before_ns: u64,
        work: u64,
        with: T,
    ) {
        let arrival_ns = stamp_ns.saturating_sub(before_ns);
        let number = arrival_ns / SECOND_NS / self.period_s;
        if self.quiet.contains(&number) {
            self.let_go += 1;
            return;
        }
        let is_whole = resolution_ns >= SECOND_NS;
        let before = before_ns.div_euclid(TOOK_UNIT_NS);
        let period = self.periods.entry(number).or_default();
        period.work = period.work.saturating_add(work);
        period.requests.push(Request {
            stamp_ns: if is_whole { stamp_ns } else { arrival_ns },
            work,
            with,
            before: if is_whole {
                u32::try_from(before).unwrap_or(u32::MAX)
            } else {
                0
            },
            resolution_ns: u32::try_from(resolution_ns).unwrap_or(u32::MAX),
        });
        self.last = number;
        self.kept += 1;
        while self.kept > self.kept_max {
            if self.periods.len() < PERIODS_MIN && self.period_s / 2 >= PERIOD_MIN_S {
                self.halve();
            } else {
                self.let_go_of_the_quietest();
            }
        }
    }

    fn let_go_of_the_quietest(&mut self) {
        let others = self
            .periods
            .iter()
            .filter(|(number, _)| **number != self.last);
        let quietest = others
            .min_by_key(|(_, period)| period.work)
            .map_or(self.last, |(number, _)| *number);
        if let Some(period) = self.periods.remove(&quietest) {
            self.quiet.insert(quietest);
            self.kept -= period.requests.len();
            self.let_go += period.requests.len() as u64;
        }
    }

    fn halve(&mut self) {
        self.period_s /= 2;
        let period_s = self.period_s;
        let number = |request: &Request<T>| request.arrival_ns(0) / SECOND_NS / period_s;
        for (_, period) in std::mem::take(&mut self.periods) {
            for request in period.requests {
                let half = self.periods.entry(number(&request)).or_default();
                half.work = half.work.saturating_add(request.work);
                half.requests.push(request);
            }
        }
        let quiet = std::mem::take(&mut self.quiet);
        self.quiet = quiet
            .into_iter()
            .flat_map(|number| [2 * number, 2 * number + 1])
            .collect();
        self.last = self
            .periods
            .keys()
            .copied()
            .rfind(|half| half / 2 == self.last)
            .unwrap_or(2 * self.last);
    }

    /// Requests that are kept.
    pub fn kept(&self) -> u64 {
        self.kept as u64
    }

    /// Requests of quieter periods, which are not.
    pub fn let_go(&self) -> u64 {
        self.let_go
    }

    /// Seconds of a period.
    pub fn period_s(&self) -> u64 {
        self.period_s
    }

    /// All that were kept, in the order of arrival.
    pub fn into_kept(self) -> Vec<Kept<T>> {
        let period_ns = self.period_s * SECOND_NS;
        let mut all = Vec::with_capacity(self.kept);
        let mut offsets = Vec::new();
        for (place, (number, mut period)) in (0_u64..).zip(self.periods) {
            let begin_ns = number * period_ns;
            period.requests.sort_by_key(|request| request.stamp_ns);
            for same in period
                .requests
                .chunk_by(|left, right| left.stamp_ns == right.stamp_ns)
            {
                let mut rng = Rng::new(same[0].stamp_ns / SECOND_NS, PURPOSE);
                offsets.clear();
                offsets.extend(same.iter().map(|_| rng.uniform()));
                offsets.sort_by(f64::total_cmp);
                for (request, offset) in same.iter().zip(&offsets) {
                    let within = (offset * f64::from(request.resolution_ns)) as u64;
                    let arrival_ns = request.arrival_ns(within).saturating_sub(begin_ns);
                    all.push(Kept {
                        at_ns: place * period_ns + arrival_ns,
                        work: request.work,
                        with: request.with,
                    });
                }
            }
        }
        all.sort_by_key(|kept| kept.at_ns);
        all
    }
}

impl Busiest {
    /// Keeps a request with nothing.
    pub fn add(&mut self, stamp_ns: u64, resolution_ns: u64, before_ns: u64, work_bytes: u64) {
        self.add_with(stamp_ns, resolution_ns, before_ns, work_bytes, ());
    }

    /// Arrival and time on the link, ns, in the order of arrival.
    pub fn jobs(self, rate_bits_per_sec: u64) -> Vec<Job> {
        let job = |kept: Kept<()>| {
            let size_ns =
                u128::from(kept.work) * 8_000_000_000 / u128::from(rate_bits_per_sec.max(1));
            let size_ns = u64::try_from(size_ns).unwrap_or(SIZE_NS_MAX);
            (kept.at_ns, size_ns.min(SIZE_NS_MAX))
        };
        let mut jobs: Vec<Job> = self.into_kept().into_iter().map(job).collect();
        jobs.sort_unstable();
        jobs
    }
}

impl<T> Request<T> {
    /// When it came, if it was logged so long after the beginning of its second.
    fn arrival_ns(&self, within_ns: u64) -> u64 {
        (self.stamp_ns + within_ns).saturating_sub(u64::from(self.before) * TOOK_UNIT_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3600 * SECOND_NS;

    #[test]
    fn the_busiest_hours_are_kept_wherever_they_are() {
        for busy in [0, 3, 9] {
            let mut busiest = Busiest::new(1000);
            for hour in 0..10 {
                // As many requests each, but of one hour they are larger.
                let work = if hour == busy { 1000 } else { 100 };
                for request in 0..200 {
                    busiest.add(hour * HOUR_NS + request * SECOND_NS, 1, 0, work);
                }
            }
            assert_eq!((busiest.kept(), busiest.let_go()), (1000, 1000));
            let jobs = busiest.jobs(8_000_000_000);
            assert_eq!(
                jobs.iter().filter(|job| job.1 == 1000).count(),
                200,
                "hour {busy}"
            );
        }
    }

    #[test]
    fn of_one_hour_that_is_too_large_the_busiest_part_is_kept() {
        let mut busiest = Busiest::new(1000);
        for second in 0..3600 {
            let work = if (1800..2100).contains(&second) {
                1000
            } else {
                100
            };
            busiest.add(second * SECOND_NS, 1, 0, work);
        }
        assert_eq!(busiest.kept() + busiest.let_go(), 3600);
        assert!((500..=1000).contains(&busiest.kept()), "{}", busiest.kept());
        let busy = busiest
            .jobs(8_000_000_000)
            .iter()
            .filter(|job| job.1 == 1000)
            .count();
        assert_eq!(busy, 300);
    }

    #[test]
    fn seconds_are_spread_and_the_time_taken_comes_off() {
        let mut busiest = Busiest::new(1000);
        let second = 7200 * SECOND_NS + 5 * SECOND_NS;
        for request in 0..100 {
            busiest.add(second, SECOND_NS, 2_500_000_000, 100 + request);
        }
        let jobs = busiest.jobs(8_000_000_000);
        let low = 2_500_000_000;
        assert!(
            jobs.iter()
                .all(|job| (low..low + SECOND_NS).contains(&job.0))
        );
        assert!(jobs.is_sorted_by(|left, right| left.0 < right.0 && left.1 < right.1));
        let mean = jobs.iter().map(|job| job.0 as f64).sum::<f64>() / 100.0;
        assert!((mean - 3e9).abs() < 1e8, "{mean}");
    }

    #[test]
    fn fine_times_stay_to_the_nanosecond() {
        let mut busiest = Busiest::new(1000);
        busiest.add(3599 * SECOND_NS + 123_456_789, 1, 789, 1);
        assert_eq!(
            busiest.jobs(8_000_000_000)[0].0,
            3599 * SECOND_NS + 123_456_000
        );
    }
}
