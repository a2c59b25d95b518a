//! Whether a request body comes fast enough.
//!
//! Pure. Counts only the time in which the server waits for the client: a body that is not taken
//! (its backend is busy, its request waits for its turn) costs the client nothing. What came
//! quickly is not saved up: a client may be silent for as long as its patience, whatever it sent
//! before. It counts until the response begins: then both sides may speak in turns, and the pauses
//! of the response are bounded.

use sooner_policy::Time;

/// How long a client may be silent, ns: 30 s, in which TCP tries a lost packet seven times.
const PATIENCE_NS: u64 = 30_000_000_000;

/// The account of one request body.
#[derive(Debug, Clone)]
pub struct ReceiveMeter {
    bytes_per_sec: u64,
    patience_ns: u64,
    /// What is left of the patience.
    left_ns: u64,
    waits_since: Option<Time>,
}

impl ReceiveMeter {
    /// At least `bytes_per_sec` on the long run, 30 s of silence at most; 0 allows any rate and any
    /// silence.
    pub fn new(bytes_per_sec: u64) -> Self {
        Self::with_patience(bytes_per_sec, PATIENCE_NS)
    }

    /// The same with another patience, ns.
    pub fn with_patience(bytes_per_sec: u64, patience_ns: u64) -> Self {
        Self {
            bytes_per_sec,
            patience_ns,
            left_ns: patience_ns,
            waits_since: None,
        }
    }

    /// The slowest rate that is allowed on the long run.
    pub fn bytes_per_sec(&self) -> u64 {
        self.bytes_per_sec
    }

    /// The server would take more, and there is nothing.
    pub fn wait(&mut self, now: Time) {
        self.waits_since.get_or_insert(now);
    }

    /// `bytes` were taken; the server does not wait any more until it says so.
    pub fn received(&mut self, bytes: usize, now: Time) {
        let waited_ns = self.waits_since.take().map_or(0, |since| now.since(since));
        let earned_ns = (bytes as u64)
            .saturating_mul(1_000_000_000)
            .checked_div(self.bytes_per_sec)
            .unwrap_or(u64::MAX);
        self.left_ns = self
            .left_ns
            .saturating_sub(waited_ns)
            .saturating_add(earned_ns)
            .min(self.patience_ns);
    }

    /// When the client is too slow if nothing more has come; `None` while the server does not wait
    /// for it.
    pub fn deadline(&self) -> Option<Time> {
        if self.bytes_per_sec == 0 {
            return None;
        }
        self.waits_since.map(|since| since.after(self.left_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Time {
        Time::from_ns(seconds * 1_000_000_000)
    }

    #[test]
    fn silence_is_bounded() {
        let mut meter = ReceiveMeter::new(500);
        assert_eq!(meter.deadline(), None);
        meter.wait(at(10));
        assert_eq!(meter.deadline(), Some(at(40)));
        meter.wait(at(20));
        assert_eq!(meter.deadline(), Some(at(40)));
        meter.received(1_000_000, at(39));
        meter.wait(at(50));
        assert_eq!(meter.deadline(), Some(at(80)));
    }

    #[test]
    fn a_trickle_uses_the_patience_up() {
        let mut meter = ReceiveMeter::new(500);
        let mut now = 0;
        loop {
            meter.wait(at(now));
            if meter.deadline().unwrap() <= at(now + 2) {
                break;
            }
            now += 2;
            // 250 bytes a second.
            meter.received(500, at(now));
        }
        assert_eq!(now, 56);
    }

    #[test]
    fn time_in_which_nobody_waits_is_free() {
        let mut meter = ReceiveMeter::new(500);
        for hour in 0..10 {
            meter.received(1, at(3600 * hour));
            assert_eq!(meter.deadline(), None);
        }
        meter.wait(at(36_000));
        assert_eq!(meter.deadline(), Some(at(36_030)));
    }

    #[test]
    fn no_rate_no_deadline() {
        let mut meter = ReceiveMeter::new(0);
        meter.wait(at(0));
        assert_eq!(meter.deadline(), None);
        meter.received(0, at(1000));
    }

    proptest! {
        /// A client that sends at least as fast as required, in pieces that come within the
        /// patience, is never too slow.
        #[test]
        fn the_fast_are_never_cut_off(pieces in prop::collection::vec(1_u64..30, 1..50), rate in 1_u64..100_000) {
            let mut meter = ReceiveMeter::new(rate);
            let mut now = 0;
            for seconds in pieces {
                meter.wait(at(now));
                now += seconds;
                prop_assert!(meter.deadline().unwrap() >= at(now));
                meter.received((rate * seconds) as usize, at(now));
            }
        }
    }
}
