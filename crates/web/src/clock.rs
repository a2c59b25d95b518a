//! Times as the deciding parts take them: from the one clock that everything around them reads.

use sooner_policy::Time;
use std::ops::Add;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// When a request is answered, by both clocks: one to measure time with, one that says the date.
/// Read where the request comes in.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// By the clock that never goes back.
    pub instant: std::time::Instant,
    /// By the clock that people set.
    pub date: SystemTime,
}

impl Moment {
    /// Reads both clocks.
    pub fn now() -> Self {
        Self {
            instant: std::time::Instant::now(),
            date: SystemTime::now(),
        }
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self {
            instant: self.instant + later,
            date: self.date + later,
        }
    }
}

/// Counts from when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// It is 0 now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time.
    pub fn now(self) -> Time {
        Time::from_ns(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// When it will be `time`, for a timer.
    pub fn at(self, time: Time) -> Instant {
        self.0 + Duration::from_nanos(time.as_ns())
    }
}
