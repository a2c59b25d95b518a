//! What leaves and what arrives in a second, over the last moments.

use std::collections::VecDeque;

/// For how long totals are kept, ns.
const KEPT_NS: u64 = 3_000_000_000;

/// What has been counted since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// When, ns of the monotonic clock.
    pub at_ns: u64,
    /// What has left the device, with all headers, bytes.
    pub sent_bytes: u64,
    /// What of the measured connections has left, with all headers.
    pub measured_bytes: u64,
    /// Its payload.
    pub measured_payload_bytes: u64,
    /// Payload of them that has arrived.
    pub delivered_payload_bytes: u64,
    /// What was sent again, about.
    pub resent_bytes: u64,
}

/// Totals of the last seconds.
#[derive(Debug, Default)]
pub struct Rates(VecDeque<Totals>);

impl Rates {
    /// Adds the totals of now.
    pub fn note(&mut self, totals: Totals) {
        self.0.push_back(totals);
        // One that is older stays, so that there is a difference after a pause.
        let is_old = |second: &Totals| second.at_ns + KEPT_NS < totals.at_ns;
        while self.0.get(1).is_some_and(is_old) {
            self.0.pop_front();
        }
    }

    /// What has left in a second, bits.
    pub fn sent(&self, over_ns: u64) -> f64 {
        self.rate(over_ns, |totals| totals.sent_bytes)
    }

    /// What has arrived in a second, bits: of the measured connections by what is acknowledged, of
    /// all else, which says nothing, all that has left.
    pub fn delivered(&self, over_ns: u64) -> f64 {
        let measured = self.rate(over_ns, |totals| totals.measured_bytes);
        let else_sent = (self.sent(over_ns) - measured).max(0.0);
        // Headers are counted over a longer time: packets have all sizes.
        let long_ns = over_ns.max(1_000_000_000);
        let payload = self.rate(long_ns, |totals| totals.measured_payload_bytes);
        let with_headers = self.rate(long_ns, |totals| totals.measured_bytes);
        let headers = if payload > 1e4 {
            with_headers / payload
        } else {
            1.05
        };
        self.rate(over_ns, |totals| totals.delivered_payload_bytes) * headers + else_sent
    }

    /// The share that was sent again.
    pub fn resent(&self, over_ns: u64) -> f64 {
        let sent = self.rate(over_ns, |totals| totals.measured_bytes);
        self.rate(over_ns, |totals| totals.resent_bytes) / sent.max(1.0)
    }

    fn rate(&self, over_ns: u64, of: fn(&Totals) -> u64) -> f64 {
        let Some(last) = self.0.back() else {
            return 0.0;
        };
        // A step that came late makes the time longer and never shorter.
        let is_old = |totals: &&Totals| totals.at_ns + over_ns <= last.at_ns + over_ns / 100;
        let first = self.0.iter().rev().find(is_old).or(self.0.front());
        let Some(first) = first.filter(|first| first.at_ns < last.at_ns) else {
            return 0.0;
        };
        let bytes = of(last).saturating_sub(of(first));
        bytes as f64 * 8e9 / (last.at_ns - first.at_ns) as f64
    }
}
