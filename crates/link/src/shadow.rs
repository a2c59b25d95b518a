//! What FAIR would have given: the very same arrivals, played beside the real ones on a link that
//! is shared equally.
//!
//! Pure: times and jobs come in, figures go out. The shadow is a server of the uplink's rate under
//! exact processor sharing ([`VirtualTime`]); every job of the real uplink also enters the shadow,
//! and when it is done in both worlds the two response times stand side by side as a [`Compared`].
//! The unit of service is a nanosecond of the link, so nothing is rounded between time and work.
//!
//! Where the comparison cannot be exact it leans to FAIR's side:
//! - The shadow's link carries responses only (no retransmissions, no acknowledgements), and its
//!   clients take what they are given. A slow client slows the real response and not FAIR's.
//! - At most so many jobs are followed at once; what comes on top is not in the shadow and slows no
//!   job there ([`Shadow::missed`]).
//! - A response to a client that left is taken out of the shadow at that moment: FAIR's client
//!   would have left as well.
//! - A job of unknown size is not in the shadow until it really ends; then it comes in with what it
//!   sent, so that the work is right, if late. It has no figure of its own: that would count from
//!   too late a start.

use crate::bucket::transmission_ns;
use sooner_policy::{JobId, Time, VirtualTime};
use std::collections::{BTreeMap, VecDeque};

/// Jobs followed at once, if nothing else is said: some 12 MB.
pub const JOBS_MAX: usize = 100_000;
/// Figures that wait to be taken; the oldest give way.
const FIGURES_MAX: usize = 100_000;
/// No job is longer than this, ns of the link: a hundred days, and far from where the clock wraps.
const SIZE_NS_MAX: u64 = 1 << 53;

/// A response that is over, in both worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Its size on the wire, bytes.
    pub wire_bytes: u64,
    /// What it really took, from its start to its last byte, ns.
    pub response_ns: u64,
    /// What it would have taken under equal sharing, ns.
    pub fair_response_ns: u64,
}

/// Processor sharing beside the real uplink.
#[derive(Debug)]
pub struct Shadow {
    rate_bits_per_sec: u64,
    jobs_max: usize,
    sharing: VirtualTime,
    now: Time,
    jobs: BTreeMap<u64, Followed>,
    figures: VecDeque<Compared>,
    missed: u64,
    dropped_figures: u64,
}

/// A job that is not done in both worlds yet.
#[derive(Clone, Copy, Debug)]
enum Followed {
    /// Its size is not known, so it is not shared with yet.
    Unsized,
    /// In the shadow, without a figure: its size was not known in time.
    Late,
    /// In the shadow.
    Sized(Progress),
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    started_at: Time,
    wire_bytes: u64,
    /// On the clock of the sharing.
    finish: u64,
    /// What sharing gave it, once it is done there, ns.
    fair_response_ns: Option<u64>,
    /// What it really took, once it is done, ns.
    response_ns: Option<u64>,
}

impl Shadow {
    /// The link has another rate for jobs that come from now on.
    pub fn set_rate(&mut self, rate_bits_per_sec: u64) {
        self.rate_bits_per_sec = rate_bits_per_sec;
    }

    /// A link of `rate_bits_per_sec` without jobs, that follows at most `jobs_max` at once.
    pub fn new(rate_bits_per_sec: u64, jobs_max: usize) -> Self {
        Self {
            rate_bits_per_sec,
            jobs_max,
            sharing: VirtualTime::default(),
            now: Time::ZERO,
            jobs: BTreeMap::new(),
            figures: VecDeque::new(),
            missed: 0,
            dropped_figures: 0,
        }
    }

    /// A response of `wire_bytes` (`None` if unknown) starts. A name that is taken is not followed.
    pub fn started(&mut self, job: u64, wire_bytes: Option<u64>, now: Time) {
        self.advance_to(now);
        if self.jobs.len() >= self.jobs_max || self.jobs.contains_key(&job) {
            self.missed += 1;
            return;
        }
        let followed = match wire_bytes {
            None => Followed::Unsized,
            Some(wire_bytes) => Followed::Sized(Progress {
                started_at: now,
                wire_bytes,
                finish: self.share(job, wire_bytes),
                fair_response_ns: None,
                response_ns: None,
            }),
        };
        self.jobs.insert(job, followed);
    }

    /// A response was really done, `response_ns` after its start, with `sent_wire_bytes`. Returns
    /// what FAIR gave it, if that is known by now, ns.
    pub fn completed(
        &mut self,
        job: u64,
        sent_wire_bytes: u64,
        response_ns: u64,
        now: Time,
    ) -> Option<u64> {
        self.advance_to(now);
        match *self.jobs.get(&job)? {
            Followed::Late => None,
            Followed::Unsized => {
                self.share(job, sent_wire_bytes);
                self.jobs.insert(job, Followed::Late);
                None
            }
            Followed::Sized(mut progress) => {
                progress.response_ns = Some(response_ns);
                self.update(job, progress);
                progress.fair_response_ns
            }
        }
    }

    /// A response was given up before its end.
    pub fn abandoned(&mut self, job: u64, now: Time) {
        self.advance_to(now);
        if let Some(Followed::Sized(progress)) = self.jobs.get(&job) {
            self.sharing.remove(JobId(job), progress.finish);
        }
        if !matches!(self.jobs.get(&job), Some(Followed::Late)) {
            self.jobs.remove(&job);
        }
    }

    /// The shared link works on until `now`.
    pub fn advance_to(&mut self, now: Time) {
        let mut left_ns = now.since(self.now);
        while let Some((work_ns, _)) = self.sharing.next_finish()
            && work_ns <= left_ns
        {
            left_ns -= work_ns;
            self.now = self.now.after(work_ns);
            self.finish_after(work_ns);
        }
        if left_ns > 0 {
            self.sharing.advance(left_ns);
            self.now = now;
        }
    }

    /// Takes the figures of the responses that are over, oldest first.
    pub fn take_figures(&mut self) -> VecDeque<Compared> {
        std::mem::take(&mut self.figures)
    }

    /// Jobs that FAIR would still be serving.
    pub fn present(&self) -> usize {
        self.sharing.len()
    }

    /// Jobs that came when as many as are followed at once were there already, and were left out.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Figures that were not taken in time.
    pub fn dropped_figures(&self) -> u64 {
        self.dropped_figures
    }

    /// Lets a job share the link from now on; returns its finish on the sharing's clock.
    fn share(&mut self, job: u64, wire_bytes: u64) -> u64 {
        if self.sharing.is_empty() {
            // An idle server owes nothing, and a clock that starts anew never wraps.
            self.sharing = VirtualTime::default();
        }
        let size_ns = transmission_ns(wire_bytes, self.rate_bits_per_sec).clamp(1, SIZE_NS_MAX);
        self.sharing.arrive(JobId(job), size_ns)
    }

    /// The link has done `work_ns` by now, and at least one job.
    fn finish_after(&mut self, work_ns: u64) {
        let mut done = Vec::new();
        self.sharing
            .advance_finishing(work_ns, |job| done.push(job.0));
        for job in done {
            match self.jobs.get(&job).copied() {
                Some(Followed::Sized(mut progress)) => {
                    progress.fair_response_ns = Some(self.now.since(progress.started_at));
                    self.update(job, progress);
                }
                _ => {
                    self.jobs.remove(&job);
                }
            }
        }
    }

    /// Keeps what is known of a job, or makes a figure of it when it is done in both worlds.
    fn update(&mut self, job: u64, progress: Progress) {
        let (Some(response_ns), Some(fair_response_ns)) =
            (progress.response_ns, progress.fair_response_ns)
        else {
            self.jobs.insert(job, Followed::Sized(progress));
            return;
        };
        self.jobs.remove(&job);
        if self.figures.len() >= FIGURES_MAX {
            self.figures.pop_front();
            self.dropped_figures += 1;
        }
        self.figures.push_back(Compared {
            wire_bytes: progress.wire_bytes,
            response_ns,
            fair_response_ns,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A byte a nanosecond.
    const RATE_BITS_PER_SEC: u64 = 8_000_000_000;
    const FOREVER: Time = Time::from_ns(1 << 50);

    fn shadow() -> Shadow {
        Shadow::new(RATE_BITS_PER_SEC, JOBS_MAX)
    }

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    /// Processor sharing the slow way: who is present gets an equal part of the time to the next
    /// event.
    fn brute_force(jobs: &[(u64, u64)]) -> Vec<f64> {
        let mut left: Vec<f64> = jobs.iter().map(|&(_, size)| size as f64).collect();
        let mut done = vec![f64::NAN; jobs.len()];
        let mut now = 0.0;
        loop {
            let present: Vec<usize> = (0..jobs.len())
                .filter(|&job| jobs[job].0 as f64 <= now && done[job].is_nan())
                .collect();
            let next_arrival = jobs.iter().map(|&(arrival, _)| arrival as f64);
            let next_arrival = next_arrival
                .filter(|&a| a > now)
                .fold(f64::INFINITY, f64::min);
            let next_end = present.iter().map(|&job| left[job] * present.len() as f64);
            let next = next_arrival.min(now + next_end.fold(f64::INFINITY, f64::min));
            if next.is_infinite() {
                return done;
            }
            for &job in &present {
                left[job] -= (next - now) / present.len() as f64;
                if left[job] < 1e-6 {
                    done[job] = next - jobs[job].0 as f64;
                }
            }
            now = next;
        }
    }

    /// Arrival and size of each job, in the order of arrival.
    fn arrivals() -> impl Strategy<Value = Vec<(u64, u64)>> {
        proptest::collection::vec((0_u64..400, 1_u64..2000), 1..40).prop_map(|gaps| {
            let arrival = |now: &mut u64, (gap, size)| {
                *now += gap;
                Some((*now, size))
            };
            gaps.into_iter().scan(0, arrival).collect()
        })
    }

    #[test]
    fn two_equal_jobs_take_twice_as_long() {
        let mut shadow = shadow();
        shadow.started(1, Some(1000), at(0));
        shadow.started(2, Some(1000), at(0));
        assert_eq!(shadow.completed(1, 1000, 1000, at(1000)), None);
        assert_eq!(shadow.completed(2, 1000, 2000, at(2000)), Some(2000));
        let expected = |response_ns| Compared {
            wire_bytes: 1000,
            response_ns,
            fair_response_ns: 2000,
        };
        assert_eq!(shadow.take_figures(), [expected(1000), expected(2000)]);
        assert!(shadow.take_figures().is_empty() && shadow.jobs.is_empty());
    }

    #[test]
    fn a_client_that_left_shares_no_longer() {
        let mut shadow = shadow();
        shadow.started(1, Some(1000), at(0));
        shadow.started(2, Some(1000), at(0));
        shadow.abandoned(1, at(500));
        shadow.abandoned(1, at(500));
        assert_eq!(shadow.completed(2, 1000, 9, at(5000)), Some(1250));
        assert_eq!(shadow.take_figures().len(), 1);
    }

    #[test]
    fn as_many_as_allowed_are_followed_and_the_rest_is_counted() {
        let mut shadow = Shadow::new(RATE_BITS_PER_SEC, 2);
        (1..=3).for_each(|job| shadow.started(job, Some(10), at(0)));
        assert_eq!((shadow.present(), shadow.missed()), (2, 1));
        assert_eq!(shadow.completed(3, 10, 10, at(100)), None);
        assert_eq!(shadow.completed(2, 10, 10, at(100)), Some(20));
    }

    #[test]
    fn figures_that_are_not_taken_do_not_pile_up() {
        let mut shadow = shadow();
        for job in 0..FIGURES_MAX as u64 + 10 {
            shadow.started(job, Some(1), at(job * 2));
            shadow.completed(job, 1, 1, at(job * 2 + 1));
        }
        assert_eq!(
            (shadow.figures.len(), shadow.dropped_figures()),
            (FIGURES_MAX, 10)
        );
    }

    #[test]
    fn a_job_of_unknown_size_is_work_without_a_figure() {
        let mut shadow = shadow();
        shadow.started(1, None, at(0));
        shadow.started(2, Some(1000), at(0));
        assert_eq!(shadow.completed(1, 100, 500, at(500)), None);
        assert_eq!(shadow.completed(2, 1000, 1, at(2000)), Some(1100));
        assert_eq!(shadow.take_figures().len(), 1);
        assert!(shadow.jobs.is_empty());
    }

    proptest! {
        #[test]
        fn equals_processor_sharing_the_slow_way(jobs in arrivals(), really_at_once: bool) {
            let mut shadow = shadow();
            for (job, &(arrival, size)) in jobs.iter().enumerate() {
                shadow.started(job as u64, Some(size), at(arrival));
                if really_at_once {
                    shadow.completed(job as u64, size, job as u64, at(arrival));
                }
            }
            shadow.advance_to(FOREVER);
            for (job, &(_, size)) in jobs.iter().enumerate() {
                shadow.completed(job as u64, size, job as u64, FOREVER);
            }
            let figures = shadow.take_figures();
            prop_assert_eq!(figures.len(), jobs.len());
            let expected = brute_force(&jobs);
            for figure in figures {
                let job = figure.response_ns as usize;
                prop_assert_eq!(figure.wire_bytes, jobs[job].1);
                let off = (figure.fair_response_ns as f64 - expected[job]).abs();
                prop_assert!(
                    off <= 2.0 + jobs.len() as f64 / 64.0,
                    "job {}: {} is not {}",
                    job,
                    figure.fair_response_ns,
                    expected[job]
                );
            }
            prop_assert!(shadow.jobs.is_empty() && shadow.present() == 0);
        }

        #[test]
        fn work_is_conserved(
            jobs in arrivals(),
            is_sized in proptest::collection::vec(any::<bool>(), 40),
        ) {
            let mut shadow = shadow();
            // The link is busy for as long in any order that wastes nothing.
            let mut busy_until = 0;
            for (job, &(arrival, size)) in jobs.iter().enumerate() {
                busy_until = arrival.max(busy_until) + size;
                shadow.started(job as u64, is_sized[job].then_some(size), at(arrival));
                shadow.completed(job as u64, size, 1, at(arrival));
            }
            shadow.advance_to(at(busy_until.saturating_sub(2)));
            prop_assert!(shadow.present() > 0);
            shadow.advance_to(at(busy_until + jobs.len() as u64));
            prop_assert!(shadow.present() == 0 && shadow.jobs.is_empty());
            let sized = is_sized[..jobs.len()].iter().filter(|&&is_sized| is_sized).count();
            prop_assert_eq!(shadow.take_figures().len(), sized);
        }

        #[test]
        fn any_sequence_of_calls_is_survived(
            calls in proptest::collection::vec(
                (0_u8..4, 0_u64..6, proptest::option::of(0_u64..5000), 0_u64..3000),
                0..200,
            ),
        ) {
            let mut shadow = Shadow::new(RATE_BITS_PER_SEC, 4);
            let mut now = 0;
            for (call, job, size, gap) in calls {
                now += gap;
                match call {
                    0 => shadow.started(job, size, at(now)),
                    1 => {
                        shadow.completed(job, size.unwrap_or(1), 1, at(now));
                    }
                    2 => shadow.abandoned(job, at(now)),
                    _ => shadow.advance_to(at(now)),
                }
                prop_assert!(shadow.jobs.len() <= 4 && shadow.present() <= 4);
            }
        }
    }
}
