//! The shadow as an observer of the uplink beside which it is played.

use crate::observer::Observer;
use sooner_link::JobReport;
use sooner_link::shadow::{Compared, JOBS_MAX, Shadow};
use sooner_link::wire::payload_cost_bytes;
use sooner_policy::Time;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    /// What FAIR gave the response that this thread reported last, if FAIR was done first. The
    /// response's owner hears of it next on this thread, whatever others report meanwhile.
    static FAIR_NS_OF_LAST: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A shadow that watches an uplink: every response that the uplink reports starts and ends here
/// too.
#[derive(Debug)]
pub struct FairShadow(Mutex<Watched>);

#[derive(Debug)]
struct Watched {
    shadow: Shadow,
    /// The latest time that was heard: threads are heard out of order by a moment, and the shadow's
    /// time does not go back.
    now: Time,
    /// Whether the link's rate is known; what begins meanwhile is not compared.
    has_rate: bool,
}

impl FairShadow {
    /// Beside an uplink of `rate_bits_per_sec`, following at most [`JOBS_MAX`] at once.
    pub fn new(rate_bits_per_sec: u64) -> Self {
        Self(Mutex::new(Watched {
            shadow: Shadow::new(rate_bits_per_sec, JOBS_MAX),
            now: Time::ZERO,
            has_rate: true,
        }))
    }

    /// What FAIR gave the response that this thread reported last, ns; `None` while FAIR would
    /// still be sending it.
    pub fn fair_response_ns_of_last(&self) -> Option<u64> {
        FAIR_NS_OF_LAST.get()
    }

    /// Lets the shadow work on until `now` and takes the figures that are there, oldest first.
    pub fn take_figures(&self, now: Time) -> VecDeque<Compared> {
        let (mut watched, now) = self.lock_at(now);
        watched.shadow.advance_to(now);
        watched.shadow.take_figures()
    }

    /// Jobs that FAIR would still be serving.
    pub fn present(&self) -> usize {
        self.lock().shadow.present()
    }

    /// Jobs that were left out because too many were followed.
    pub fn missed(&self) -> u64 {
        self.lock().shadow.missed()
    }

    /// Figures that were not taken in time.
    pub fn dropped_figures(&self) -> u64 {
        self.lock().shadow.dropped_figures()
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is watched, and the time there: `now`, or later where another thread was heard before.
    fn lock_at(&self, now: Time) -> (MutexGuard<'_, Watched>, Time) {
        let mut watched = self.lock();
        watched.now = watched.now.max(now);
        let now = watched.now;
        (watched, now)
    }
}

impl Observer for FairShadow {
    fn rate_changed(&self, rate_bits_per_sec: Option<u64>) {
        let mut watched = self.lock();
        watched.has_rate = rate_bits_per_sec.is_some();
        if let Some(rate_bits_per_sec) = rate_bits_per_sec {
            watched.shadow.set_rate(rate_bits_per_sec);
        }
    }

    fn started(&self, job: u64, wire_bytes: Option<u64>, now: Time) {
        let (mut watched, now) = self.lock_at(now);
        let wire_bytes = wire_bytes.filter(|_| watched.has_rate);
        watched.shadow.started(job, wire_bytes, now);
    }

    fn ended(&self, job: u64, now: Time, report: &JobReport) {
        let (mut watched, now) = self.lock_at(now);
        let shadow = &mut watched.shadow;
        FAIR_NS_OF_LAST.set(if report.completed {
            let sent_wire_bytes = payload_cost_bytes(report.sent_bytes);
            let response_ns = report.wait_ns + report.service_ns;
            shadow.completed(job, sent_wire_bytes, response_ns, now)
        } else {
            shadow.abandoned(job, now);
            None
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// A byte a nanosecond.
    const RATE_BITS_PER_SEC: u64 = 8_000_000_000;

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn an_observer_hears_what_fair_gave() {
        let fair = FairShadow::new(RATE_BITS_PER_SEC);
        let report = JobReport {
            wait_ns: 100,
            service_ns: 1000,
            sent_bytes: 1000,
            completed: true,
            ..JobReport::never_sent("srpt")
        };
        fair.started(1, Some(1000), at(0));
        fair.started(2, Some(1000), at(0));
        fair.ended(1, at(1100), &report);
        assert_eq!(fair.fair_response_ns_of_last(), None);
        assert_eq!((fair.present(), fair.take_figures(at(1100)).len()), (2, 0));
        fair.ended(2, at(2100), &report);
        assert_eq!(fair.fair_response_ns_of_last(), Some(2000));
        fair.started(3, Some(9000), at(3000));
        fair.ended(3, at(3100), &JobReport::never_sent("srpt"));
        assert_eq!(fair.take_figures(at(3100)).len(), 2);
        assert_eq!(
            (fair.present(), fair.missed(), fair.dropped_figures()),
            (0, 0, 0)
        );
    }

    #[test]
    fn a_thread_hears_of_its_own_response_whatever_others_report_meanwhile() {
        let fair = FairShadow::new(RATE_BITS_PER_SEC);
        let report = JobReport {
            sent_bytes: 1000,
            completed: true,
            ..JobReport::never_sent("srpt")
        };
        fair.started(1, Some(1000), at(0));
        fair.ended(1, at(1000), &report);
        let of_other = thread::scope(|scope| {
            let other = scope.spawn(|| {
                fair.started(2, Some(500), at(1000));
                fair.ended(2, at(1500), &report);
                fair.fair_response_ns_of_last()
            });
            other.join().unwrap()
        });
        let figures = (fair.fair_response_ns_of_last(), of_other);
        assert_eq!(figures, (Some(1000), Some(500)));
    }

    #[test]
    fn what_is_heard_late_begins_when_it_is_heard() {
        let fair = FairShadow::new(RATE_BITS_PER_SEC);
        let report = JobReport {
            sent_bytes: 1000,
            completed: true,
            ..JobReport::never_sent("srpt")
        };
        fair.started(1, Some(1000), at(100));
        fair.started(2, Some(1000), at(50));
        fair.ended(2, at(2100), &report);
        assert_eq!(fair.fair_response_ns_of_last(), Some(2000));
    }
}
