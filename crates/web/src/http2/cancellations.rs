//! How many requests a client may take back.
//!
//! A request that is taken back at once costs the client a few bytes and the server its work, and it does not count among the open streams
//! ("rapid reset", CVE-2023-44487). A browser takes back what a page that was left had asked for, in one go, and then asks again for what
//! the next page needs. So there is a supply that refills with time, and who uses it up is told to calm down.

use std::time::Duration;
use tokio::time::Instant;

/// A page that is left takes back its requests, twice in a row.
const SUPPLY_PER_STREAM: u32 = 2;
/// Somebody who drags the position of a film around takes back several requests a second.
const REFILL_PERIOD: Duration = Duration::from_millis(50);

/// The supply of one connection; malformed requests use it too.
#[derive(Debug)]
pub struct Cancellations {
    left: u32,
    left_max: u32,
    refilled_at: Instant,
}

impl Cancellations {
    /// A full supply for a connection with at most `streams_max` open streams.
    pub fn new(streams_max: u32, now: Instant) -> Self {
        let left_max = streams_max.saturating_mul(SUPPLY_PER_STREAM);
        Self {
            left: left_max,
            left_max,
            refilled_at: now,
        }
    }

    /// One request was taken back; false when that was one too many.
    pub fn spend(&mut self, now: Instant) -> bool {
        let periods = now.duration_since(self.refilled_at).as_millis() / REFILL_PERIOD.as_millis();
        let refill = u32::try_from(periods).unwrap_or(u32::MAX);
        self.refilled_at += REFILL_PERIOD.saturating_mul(refill);
        self.left = self.left.saturating_add(refill).min(self.left_max);
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_may_be_left_and_a_flood_is_noticed() {
        let start = Instant::now();
        let mut cancellations = Cancellations::new(100, start);
        assert!((0..200).all(|_| cancellations.spend(start)));
        assert!(!cancellations.spend(start));
        let later = start + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| cancellations.spend(later)).count(), 20);
    }

    #[test]
    fn a_steady_client_is_never_refused() {
        let start = Instant::now();
        let mut cancellations = Cancellations::new(1, start);
        let times = (0..10_000_u32).map(|count| start + count * Duration::from_millis(60));
        assert!(times.into_iter().all(|now| cancellations.spend(now)));
    }
}
