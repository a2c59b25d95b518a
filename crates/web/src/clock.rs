//! Times as the deciding parts take them: from the one clock that everything around them reads.

use sooner_policy::Time;
use std::time::Duration;
use tokio::time::Instant;

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
