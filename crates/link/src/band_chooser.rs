//! Which kernel band a connection's bytes belong in.
//!
//! Bands know only more or less urgent, so only a policy with a rank that can be cut into bands
//! can be mapped onto them: bytes (SRPT, PSJF, LAS), the time they take (FCF), a level
//! (SWIFT). Under any other all responses share one band, and only packets without a mark
//! (SYN-ACKs, resets) go before them.
//!
//! Cutoffs are learned from responses as they start. SWIFT's 16 levels share the bands in order:
//! two a band where there are eight.

use sooner_policy::order::{BandMeasure, Fcf, SwiftLevels};
use sooner_policy::{BAND_COUNT, Cutoffs, Path, PolicyName};

/// What of a job its band is made from.
#[derive(Clone, Debug)]
enum Measure {
    Remaining(Cutoffs),
    Size(Cutoffs),
    Attained(Cutoffs),
    /// In microseconds: at a megabyte a second one is a byte, so that the first cutoffs, which are
    /// a guess, fit.
    ExpectedTime(Cutoffs),
    Level(SwiftLevels),
    /// The policy's rank cannot be cut.
    Nothing,
}

/// The band for jobs that a policy's rank does not sort: below unmarked packets.
const COMMON_BAND: u8 = 1;
const NS_PER_US: u64 = 1_000;

/// A job as far as its band depends on it, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BandInput {
    /// The whole of it, if known.
    pub size_bytes: Option<u64>,
    /// What was sent of it.
    pub sent_bytes: u64,
    /// The network to its client.
    pub path: Path,
}

impl BandInput {
    /// What remains, or what was sent where that is not known.
    fn remaining_bytes(&self) -> u64 {
        self.size_bytes.map_or(self.sent_bytes, |size_bytes| {
            size_bytes.saturating_sub(self.sent_bytes)
        })
    }
}

/// Learns cutoffs and sorts jobs into bands.
#[derive(Clone, Debug)]
pub struct BandChooser {
    measure: Measure,
    bands: u8,
}

impl BandChooser {
    /// Bands for `policy`, all that there can be.
    pub fn for_policy(policy: PolicyName) -> Self {
        Self::into_bands(policy, BAND_COUNT as u8)
    }

    /// So many bands for `policy`, at least two; with two the median is the cut.
    pub fn into_bands(policy: PolicyName, bands: u8) -> Self {
        let cutoffs = Cutoffs::into_bands(bands);
        let measure = match policy.bands() {
            BandMeasure::Remaining => Measure::Remaining(cutoffs),
            BandMeasure::Size => Measure::Size(cutoffs),
            BandMeasure::Attained => Measure::Attained(cutoffs),
            BandMeasure::ExpectedTime => Measure::ExpectedTime(cutoffs),
            BandMeasure::Level => Measure::Level(SwiftLevels::default()),
            BandMeasure::Nothing => Measure::Nothing,
        };
        Self { measure, bands }
    }

    /// So many bands, of which all responses share one: what orders them cannot be cut.
    pub fn shared(bands: u8) -> Self {
        let measure = Measure::Nothing;
        Self { measure, bands }
    }

    /// How many bands there are.
    pub fn count(&self) -> u8 {
        self.bands
    }

    /// The bytes that say how long a job is for the bands; none where jobs of one band share.
    pub(crate) fn length_bytes(&self, job: BandInput) -> Option<u64> {
        match &self.measure {
            Measure::Remaining(_) | Measure::ExpectedTime(_) | Measure::Level(_) => {
                Some(job.remaining_bytes())
            }
            Measure::Size(_) => Some(job.size_bytes.unwrap_or(job.sent_bytes)),
            Measure::Attained(_) | Measure::Nothing => None,
        }
    }

    /// A response of `size_bytes` starts, to a client at the end of `path`.
    pub fn record(&mut self, size_bytes: u64, path: Path) {
        match &mut self.measure {
            Measure::Remaining(cutoffs) | Measure::Size(cutoffs) | Measure::Attained(cutoffs) => {
                cutoffs.record(size_bytes);
            }
            Measure::ExpectedTime(cutoffs) => cutoffs.record(expected_us(size_bytes, path)),
            Measure::Level(levels) => levels.record(size_bytes),
            Measure::Nothing => {}
        }
    }

    /// The band of a job, 0 first; what is not known falls back to what was sent.
    pub(crate) fn band(&self, job: BandInput) -> u8 {
        match &self.measure {
            Measure::Remaining(cutoffs) => cutoffs.band(job.remaining_bytes()),
            Measure::Size(cutoffs) => cutoffs.band(job.size_bytes.unwrap_or(job.sent_bytes)),
            Measure::Attained(cutoffs) => cutoffs.band(job.sent_bytes),
            Measure::ExpectedTime(cutoffs) => {
                cutoffs.band(expected_us(job.remaining_bytes(), job.path))
            }
            Measure::Level(levels) => {
                let level = levels.level(job.size_bytes, job.sent_bytes, job.path);
                let band = u16::from(level) * u16::from(self.bands) / u16::from(SwiftLevels::COUNT);
                band as u8
            }
            Measure::Nothing => COMMON_BAND,
        }
    }
}

fn expected_us(bytes: u64, path: Path) -> u64 {
    Fcf::expected_ns(bytes, path) / NS_PER_US
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(size_bytes: u64, rtt_ms: u64, rate_per_sec: u64) -> BandInput {
        BandInput {
            size_bytes: Some(size_bytes),
            sent_bytes: 0,
            path: Path {
                rtt_ns: Some(rtt_ms * 1_000_000),
                rate_per_sec: Some(rate_per_sec),
            },
        }
    }

    #[test]
    fn every_band_of_any_number_is_used_and_no_other() {
        for policy in [PolicyName::Srpt, PolicyName::Swift, PolicyName::Fcf] {
            for bands in 2..=BAND_COUNT as u8 {
                let chooser = BandChooser::into_bands(policy, bands);
                let mut used: Vec<u8> = (0..400_u64)
                    .map(|step| chooser.band(input(step * step * 16, 5, 1_000_000)))
                    .collect();
                used.dedup();
                used.sort_unstable();
                used.dedup();
                let from = if policy == PolicyName::Swift {
                    used[0]
                } else {
                    0
                };
                let all: Vec<u8> = (from..bands).collect();
                assert_eq!(used, all, "{policy} {bands}");
            }
        }
    }

    #[test]
    fn swift_puts_the_distant_before_the_near() {
        let bands = BandChooser::for_policy(PolicyName::Swift);
        let [near, far] = [1, 400].map(|rtt_ms| bands.band(input(100_000, rtt_ms, 1)));
        assert!(far < near, "{far} {near}");
    }

    #[test]
    fn swift_weighs_what_remains_in_steps_of_8_kib() {
        let bands = BandChooser::for_policy(PolicyName::Swift);
        let band = |sent_bytes| {
            bands.band(BandInput {
                sent_bytes,
                ..input(4_000_000, 100, 1)
            })
        };
        assert_eq!(band(0), band(8_191));
        assert!(band(3_999_000) < band(0));
    }

    #[test]
    fn fcf_puts_the_fast_before_the_slow() {
        let bands = BandChooser::for_policy(PolicyName::Fcf);
        let [slow, fast] = [10_000, 10_000_000].map(|rate| bands.band(input(50_000, 50, rate)));
        assert!(fast < slow, "{fast} {slow}");
    }

    #[test]
    fn an_order_that_cannot_be_cut_has_one_band() {
        for policy in [PolicyName::Fair, PolicyName::Fcfs, PolicyName::Fsp] {
            let bands = BandChooser::into_bands(policy, 2);
            assert_eq!(bands.band(input(1, 1, 1)), bands.band(input(1 << 40, 1, 1)));
        }
    }
}
