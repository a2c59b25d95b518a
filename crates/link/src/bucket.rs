//! A link as a clock: the instant at which everything charged so far will have been sent.
//!
//! This is a token bucket turned round (the virtual scheduling form of GCRA, ITU-T I.371): instead
//! of counting tokens it keeps the time the link becomes free, so that nothing has to be refilled
//! and the next opportunity is simply a point in time.

use sooner_policy::Time;

const PS_PER_NS: u128 = 1_000;
const PS_PER_BYTE_AT_1_BIT_PER_SEC: u128 = 8 * 1_000_000_000_000;

/// Meters bytes at a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    rate_bits_per_sec: u64,
    /// Unused time that may be made up for, ns: what a late wake-up left unsent.
    credit_ns: u64,
    free_at_ps: u128,
    charged_bytes: u64,
}

impl Bucket {
    /// A free link of `rate_bits_per_sec` (at least 1) that makes up for at most `credit_ns` of
    /// unused time.
    pub fn new(rate_bits_per_sec: u64, credit_ns: u64) -> Self {
        Self {
            rate_bits_per_sec: rate_bits_per_sec.max(1),
            credit_ns,
            free_at_ps: 0,
            charged_bytes: 0,
        }
    }

    /// The link has another rate from now on; what was charged stays charged.
    pub fn set_rate(&mut self, rate_bits_per_sec: u64, credit_ns: u64) {
        self.rate_bits_per_sec = rate_bits_per_sec.max(1);
        self.credit_ns = credit_ns;
    }

    /// Puts `bytes` on the link. `late`: they could have been sent before, so unused time is made
    /// up for; an idle link has nothing to make up.
    pub fn charge(&mut self, bytes: u64, late: bool, now: Time) {
        let credit_ns = if late { self.credit_ns } else { 0 };
        let earliest = u128::from(now.as_ns().saturating_sub(credit_ns)) * PS_PER_NS;
        let duration =
            u128::from(bytes) * PS_PER_BYTE_AT_1_BIT_PER_SEC / u128::from(self.rate_bits_per_sec);
        let free_at_ps = self.free_at_ps.max(earliest) + duration;
        assert!(
            free_at_ps >= self.free_at_ps,
            "the time of the link never goes back"
        );
        let unused_ps = (u128::from(now.as_ns()) * PS_PER_NS).saturating_sub(free_at_ps);
        assert!(
            unused_ps <= u128::from(credit_ns) * PS_PER_NS,
            "credit is bounded"
        );
        self.free_at_ps = free_at_ps;
        self.charged_bytes = self.charged_bytes.saturating_add(bytes);
    }

    /// The link was seen to be busy until `until`: what it had not sent by then is not made up for,
    /// because it could not have been.
    pub fn busy_until(&mut self, until: Time) {
        self.free_at_ps = self.free_at_ps.max(u128::from(until.as_ns()) * PS_PER_NS);
    }

    /// Everything charged so far, bytes.
    pub fn charged_bytes(&self) -> u64 {
        self.charged_bytes
    }

    /// When the link has sent everything charged, rounded up to a nanosecond.
    pub fn free_at(&self) -> Time {
        Time::from_ns(u64::try_from(self.free_at_ps.div_ceil(PS_PER_NS)).unwrap_or(u64::MAX))
    }
}

/// The time to send `bytes` at `rate_bits_per_sec`, ns.
pub fn transmission_ns(bytes: u64, rate_bits_per_sec: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 8_000_000_000 / u128::from(rate_bits_per_sec.max(1)))
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABIT: u64 = 1_000_000;

    #[test]
    fn a_byte_at_a_time_takes_as_long_as_all_at_once() {
        let mut bucket = Bucket::new(7 * MEGABIT, 0);
        (0..7_000).for_each(|_| bucket.charge(1, false, Time::ZERO));
        assert!(
            bucket.free_at().as_ns().abs_diff(8_000_000) <= 7,
            "{:?}",
            bucket.free_at()
        );
    }

    #[test]
    fn unused_time_is_made_up_for_within_the_credit_only() {
        let mut bucket = Bucket::new(8 * MEGABIT, 2_000);
        bucket.charge(1, true, Time::from_ns(1_000_000));
        assert_eq!(bucket.free_at(), Time::from_ns(1_000_000 - 2_000 + 1_000));
        bucket.charge(1, false, Time::from_ns(2_000_000));
        assert_eq!(bucket.free_at(), Time::from_ns(2_000_000 + 1_000));
    }

    #[test]
    fn a_link_seen_busy_has_no_time_to_make_up_for() {
        let mut bucket = Bucket::new(8 * MEGABIT, 2_000);
        bucket.busy_until(Time::from_ns(1_000_000));
        bucket.charge(1, true, Time::from_ns(1_000_000));
        assert_eq!(bucket.free_at(), Time::from_ns(1_001_000));
        bucket.busy_until(Time::from_ns(500_000));
        assert_eq!(bucket.free_at(), Time::from_ns(1_001_000));
    }

    #[test]
    fn another_rate_holds_for_what_comes() {
        let mut bucket = Bucket::new(8 * MEGABIT, 0);
        bucket.charge(1_000, false, Time::ZERO);
        bucket.set_rate(80 * MEGABIT, 0);
        assert_eq!(bucket.free_at(), Time::from_ns(1_000_000));
        bucket.charge(1_000, false, Time::ZERO);
        assert_eq!(bucket.free_at(), Time::from_ns(1_100_000));
    }

    #[test]
    fn debt_is_kept() {
        let mut bucket = Bucket::new(8 * MEGABIT, 2_000);
        bucket.charge(1_000, true, Time::ZERO);
        bucket.charge(1_000, false, Time::from_ns(10));
        assert_eq!(bucket.free_at(), Time::from_ns(2_000_000));
    }
}
