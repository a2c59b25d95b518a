//! Choices that are the same for the same seed (SplitMix64).

use std::time::Duration;

/// A stream of choices.
pub struct Random(u64);

impl Random {
    /// The stream number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True in so many of 1000 cases.
    pub fn in_1000(&mut self, cases: u64) -> bool {
        self.below(1000) < cases
    }

    /// Any time below this.
    pub fn pause(&mut self, below: Duration) -> Duration {
        Duration::from_micros(self.below(below.as_micros().max(1) as u64))
    }
}
