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
    free_at_ps: u128,
    charged_bytes: u64,
}

impl Bucket {
    /// A free link of `rate_bits_per_sec` (at least 1).
    pub fn new(rate_bits_per_sec: u64) -> Self {
        Self {
            rate_bits_per_sec: rate_bits_per_sec.max(1),
            free_at_ps: 0,
            charged_bytes: 0,
        }
    }

    /// The link has another rate from now on; what was charged stays charged.
    pub fn set_rate(&mut self, rate_bits_per_sec: u64) {
        self.rate_bits_per_sec = rate_bits_per_sec.max(1);
    }

    /// Puts `bytes` on the link. At most `credit_ns` of unused time are made up for: of bytes that
    /// could have been sent before, what a late wake-up left unsent; an idle link has nothing to
    /// make up.
    pub fn charge(&mut self, bytes: u64, credit_ns: u64, now: Time) {
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

/// One link as the bytes of each kernel band find it: those of the bands behind do not hold them up.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    /// One a band, the first first; each is charged what goes in its band and in those before.
    buckets: Vec<Bucket>,
}

impl Lanes {
    /// A free link with so many bands, at least one: without bands all bytes are in the same.
    pub fn new(rate_bits_per_sec: u64, bands: u8) -> Self {
        Self {
            buckets: vec![Bucket::new(rate_bits_per_sec); usize::from(bands.max(1))],
        }
    }

    /// As [`Bucket::set_rate`].
    pub fn set_rate(&mut self, rate_bits_per_sec: u64) {
        let buckets = self.buckets.iter_mut();
        buckets.for_each(|bucket| bucket.set_rate(rate_bits_per_sec));
    }

    /// As [`Bucket::charge`], for bytes in `band`. Time is lost only while nothing goes in any band.
    pub fn charge(&mut self, band: u8, bytes: u64, credit_ns: u64, now: Time) {
        let place = self.place(band);
        let all_sent_at = self.free_at(u8::MAX);
        let credit_ns = credit_ns.min(now.since(all_sent_at));
        for bucket in &mut self.buckets[place..] {
            bucket.charge(bytes, credit_ns, now);
        }
        let are_in_order = self.buckets.is_sorted_by_key(Bucket::free_at);
        assert!(are_in_order, "a band waits for all before it");
    }

    /// As [`Bucket::busy_until`], for bytes in `band` and in those behind.
    pub fn busy_until(&mut self, band: u8, until: Time) {
        let place = self.place(band);
        for bucket in &mut self.buckets[place..] {
            bucket.busy_until(until);
        }
    }

    /// When the link has sent everything charged in `band` and in those before.
    pub fn free_at(&self, band: u8) -> Time {
        self.buckets[self.place(band)].free_at()
    }

    /// Everything charged so far, bytes.
    pub fn charged_bytes(&self) -> u64 {
        self.buckets.last().map_or(0, Bucket::charged_bytes)
    }

    fn place(&self, band: u8) -> usize {
        usize::from(band).min(self.buckets.len() - 1)
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
        let mut bucket = Bucket::new(7 * MEGABIT);
        (0..7_000).for_each(|_| bucket.charge(1, 0, Time::ZERO));
        assert!(
            bucket.free_at().as_ns().abs_diff(8_000_000) <= 7,
            "{:?}",
            bucket.free_at()
        );
    }

    #[test]
    fn unused_time_is_made_up_for_within_the_credit_only() {
        let mut bucket = Bucket::new(8 * MEGABIT);
        bucket.charge(1, 2_000, Time::from_ns(1_000_000));
        assert_eq!(bucket.free_at(), Time::from_ns(1_000_000 - 2_000 + 1_000));
        bucket.charge(1, 0, Time::from_ns(2_000_000));
        assert_eq!(bucket.free_at(), Time::from_ns(2_000_000 + 1_000));
    }

    #[test]
    fn a_link_seen_busy_has_no_time_to_make_up_for() {
        let mut bucket = Bucket::new(8 * MEGABIT);
        bucket.busy_until(Time::from_ns(1_000_000));
        bucket.charge(1, 2_000, Time::from_ns(1_000_000));
        assert_eq!(bucket.free_at(), Time::from_ns(1_001_000));
        bucket.busy_until(Time::from_ns(500_000));
        assert_eq!(bucket.free_at(), Time::from_ns(1_001_000));
    }

    #[test]
    fn another_rate_holds_for_what_comes() {
        let mut bucket = Bucket::new(8 * MEGABIT);
        bucket.charge(1_000, 0, Time::ZERO);
        bucket.set_rate(80 * MEGABIT);
        assert_eq!(bucket.free_at(), Time::from_ns(1_000_000));
        bucket.charge(1_000, 0, Time::ZERO);
        assert_eq!(bucket.free_at(), Time::from_ns(1_100_000));
    }

    #[test]
    fn debt_is_kept() {
        let mut bucket = Bucket::new(8 * MEGABIT);
        bucket.charge(1_000, 2_000, Time::ZERO);
        bucket.charge(1_000, 0, Time::from_ns(10));
        assert_eq!(bucket.free_at(), Time::from_ns(2_000_000));
    }

    #[test]
    fn bytes_wait_for_their_band_and_those_before_only() {
        let mut lanes = Lanes::new(8 * MEGABIT, 3);
        let free = |lanes: &Lanes| [0, 1, 2].map(|band| lanes.free_at(band).as_ns() / 1_000_000);
        lanes.charge(2, 5_000, 0, Time::ZERO);
        assert_eq!(free(&lanes), [0, 0, 5]);
        lanes.charge(0, 1_000, 0, Time::ZERO);
        lanes.charge(1, 2_000, 0, Time::ZERO);
        assert_eq!(free(&lanes), [1, 3, 8]);
        lanes.busy_until(1, Time::from_ns(6_000_000));
        assert_eq!(free(&lanes), [1, 6, 8]);
        assert_eq!(lanes.charged_bytes(), 8_000);
    }

    #[test]
    fn without_bands_all_bytes_wait_for_all() {
        let mut lanes = Lanes::new(8 * MEGABIT, 0);
        lanes.charge(5, 1_000, 0, Time::ZERO);
        assert_eq!(lanes.free_at(0), Time::from_ns(1_000_000));
    }
}
