//! What the kernel's figures of a connection say about its network, and what they say only about
//! our own order.
//!
//! The round trip that TCP smooths includes the wait in our own queue: a connection that others are
//! served before has one of seconds. The least round trip does not, once a single packet found the
//! queue empty, and the handshake's nearly always does. The rate of delivery is what the client's
//! network carries only while nothing else holds the connection back; of a starved one it is a few
//! kilobits a second. So it is believed when, for two round trips, the connection hardly waited for
//! others or had most of the link itself: that is how long ago what is acknowledged now was sent
//! and measured from. What was measured while there was too little to send, as between two turns,
//! is only the least it can be. Until something is believed a connection counts as fast as its
//! initial window a round trip.
//!
//! No connection counts as faster than the link: beyond it the client's network makes no
//! difference.

use sooner_policy::{Path, Time};

/// Segments that TCP sends before the first acknowledgement (RFC 6928).
const INITIAL_WINDOW_SEGMENTS: u64 = 10;
const NS_PER_SEC: u128 = 1_000_000_000;

/// What the kernel and the scheduler know of a connection at one time.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathSample {
    /// The least round trip, ns, if there was one yet.
    pub rtt_ns: Option<u64>,
    /// Payload of a full segment.
    pub segment_bytes: u64,
    /// What was delivered lately.
    pub delivery_bytes_per_sec: u64,
    /// Whether there was not enough to send: the client could have been delivered more.
    pub is_least: bool,
    /// Written for this connection so far.
    pub own_bytes: u64,
    /// Written for all.
    pub all_bytes: u64,
    /// For how long it waited for its turns so far, ns; `None` where it takes none.
    pub waited_ns: Option<u64>,
    /// When it was asked.
    pub at: Time,
}

impl PathSample {
    /// Whether the connection was not held back by others since `before`: it waited for less than a
    /// quarter of the time, or three quarters of what was written were its own.
    fn is_served_since(&self, before: &Self) -> bool {
        let others_bytes =
            (self.all_bytes - before.all_bytes).saturating_sub(self.own_bytes - before.own_bytes);
        let had_most = others_bytes.saturating_mul(3) <= self.own_bytes - before.own_bytes;
        let waited_little = self
            .waited_ns
            .zip(before.waited_ns)
            .is_some_and(|(now, then)| {
                now.saturating_sub(then).saturating_mul(4) < self.at.since(before.at)
            });
        had_most || waited_little
    }

    fn first_window_bytes_per_sec(&self) -> Option<u64> {
        let window_bytes = INITIAL_WINDOW_SEGMENTS * self.segment_bytes;
        per_sec(window_bytes, self.rtt_ns?)
    }
}

/// What is known of one connection's network.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathEstimate {
    last: Option<PathSample>,
    /// Since when others have not held it back.
    served_since: Option<Time>,
    /// What it was delivered when that could be believed.
    believed_bytes_per_sec: Option<u64>,
}

impl PathEstimate {
    /// Adds a sample of a connection on a link that carries `link_bytes_per_sec`; what is known
    /// with it.
    pub fn add(&mut self, sample: PathSample, link_bytes_per_sec: u64) -> Path {
        let last = self.last.replace(sample);
        self.served_since = last
            .filter(|last| sample.is_served_since(last))
            .map(|last| self.served_since.unwrap_or(last.at));
        let first = sample.first_window_bytes_per_sec();
        if self.is_believable(&sample) {
            let known = self.believed_bytes_per_sec.or(first);
            let at_least = known.filter(|_| sample.is_least).unwrap_or(0);
            self.believed_bytes_per_sec = Some(sample.delivery_bytes_per_sec.max(at_least));
        }
        let bytes_per_sec = self.believed_bytes_per_sec.or(first);
        Path {
            rtt_ns: sample.rtt_ns,
            rate_per_sec: bytes_per_sec.map(|rate| rate.clamp(1, link_bytes_per_sec.max(1))),
        }
    }

    fn is_believable(&self, sample: &PathSample) -> bool {
        let (Some(since), Some(rtt_ns)) = (self.served_since, sample.rtt_ns) else {
            return false;
        };
        sample.delivery_bytes_per_sec > 0 && sample.at.since(since) >= rtt_ns.saturating_mul(2)
    }
}

fn per_sec(bytes: u64, ns: u64) -> Option<u64> {
    let rate = u128::from(bytes) * NS_PER_SEC / u128::from(ns.max(1));
    Some(u64::try_from(rate).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LINK: u64 = 1_250_000;

    /// A connection over 50 ms that had `own_bytes` of `all_bytes` and waited `waited_ms` by
    /// `at_ms`.
    fn sample(at_ms: u64, own_bytes: u64, all_bytes: u64, waited_ms: Option<u64>) -> PathSample {
        PathSample {
            rtt_ns: Some(50 * MS),
            segment_bytes: 1_448,
            delivery_bytes_per_sec: 100_000,
            is_least: false,
            own_bytes,
            all_bytes,
            waited_ns: waited_ms.map(|ms| ms * MS),
            at: Time::from_ns(at_ms * MS),
        }
    }

    fn rate_after(samples: &[PathSample]) -> Option<u64> {
        let mut estimate = PathEstimate::default();
        let paths = samples.iter().map(|sample| estimate.add(*sample, LINK));
        paths.last().and_then(|path| path.rate_per_sec)
    }

    /// Ten segments in 50 ms.
    const AT_FIRST: Option<u64> = Some(289_600);

    #[test]
    fn a_new_connection_has_its_initial_window_a_round_trip() {
        assert_eq!(rate_after(&[sample(0, 0, 0, Some(0))]), AT_FIRST);
    }

    #[test]
    fn delivery_is_believed_after_two_round_trips_of_service() {
        let mostly_own = |at_ms| sample(at_ms, at_ms * 900, at_ms * 1_000, Some(at_ms));
        let samples = [0, 40, 80].map(mostly_own);
        assert_eq!(
            rate_after(&samples),
            AT_FIRST,
            "80 ms are not two round trips"
        );
        let samples = [0, 40, 80, 120].map(mostly_own);
        assert_eq!(rate_after(&samples), Some(100_000));
    }

    #[test]
    fn a_slow_client_that_does_not_wait_is_believed_beside_others() {
        let beside_others =
            |waited| [0, 60, 120].map(|ms| sample(ms, ms * 100, ms * 1_000, waited));
        assert_eq!(rate_after(&beside_others(Some(3))), Some(100_000));
        // Without turns it is not known whether it waits.
        assert_eq!(rate_after(&beside_others(None)), AT_FIRST);
    }

    #[test]
    fn a_starved_connection_is_not_believed_and_keeps_what_it_showed_before() {
        let starved = [0, 60, 120, 180].map(|ms| sample(ms, ms, ms * 1_000, Some(ms)));
        assert_eq!(rate_after(&starved), AT_FIRST);
        let mut estimate = PathEstimate::default();
        for ms in [0, 60, 120] {
            estimate.add(sample(ms, ms * 1_000, ms * 1_000, Some(ms)), LINK);
        }
        let mut later = sample(1_000, 121_000, 2_000_000, Some(1_000));
        later.delivery_bytes_per_sec = 1_000;
        assert_eq!(estimate.add(later, LINK).rate_per_sec, Some(100_000));
    }

    #[test]
    fn what_ran_out_of_data_was_at_least_as_fast() {
        let mut estimate = PathEstimate::default();
        let mut rate_at = |ms: u64, delivery_bytes_per_sec| {
            let sample = PathSample {
                delivery_bytes_per_sec,
                is_least: true,
                ..sample(ms, ms * 1_000, ms * 1_000, Some(0))
            };
            estimate.add(sample, LINK).rate_per_sec
        };
        assert_eq!(rate_at(0, 1), AT_FIRST);
        assert_eq!(rate_at(200, 5_000), AT_FIRST, "slower than a first window");
        assert_eq!(rate_at(400, 400_000), Some(400_000));
        assert_eq!(rate_at(600, 300_000), Some(400_000));
    }

    #[test]
    fn no_connection_is_faster_than_the_link_or_stands_still() {
        let near = PathSample {
            rtt_ns: Some(10_000),
            segment_bytes: 1_448,
            ..PathSample::default()
        };
        assert_eq!(rate_after(&[near]), Some(LINK));
        let broken = PathSample {
            rtt_ns: Some(MS),
            ..PathSample::default()
        };
        assert_eq!(rate_after(&[broken]), Some(1));
    }
}
