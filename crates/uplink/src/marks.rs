//! Which kernel band a connection's bytes belong in.
//!
//! Bands know only more or less urgent, so only policies whose rank is a number of bytes can be mapped onto them; under any other all
//! responses share one band, and only packets without a mark (SYN-ACKs, resets) go before them.

use sooner_policy::{Cutoffs, PolicyName};

/// What of a job its band is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Remaining,
    Size,
    Attained,
    /// The policy's rank says nothing about bytes.
    Nothing,
}

/// The band for jobs that a policy's rank does not sort: below unmarked packets.
const COMMON_BAND: u8 = 1;

/// Learns cutoffs and sorts jobs into bands.
#[derive(Clone, Debug)]
pub struct Marks {
    measure: Measure,
    cutoffs: Cutoffs,
}

impl Marks {
    /// Bands for `policy`.
    pub fn for_policy(policy: PolicyName) -> Self {
        let measure = match policy {
            PolicyName::Srpt => Measure::Remaining,
            PolicyName::Psjf => Measure::Size,
            PolicyName::Las => Measure::Attained,
            PolicyName::Fair | PolicyName::Fcfs | PolicyName::Fsp | PolicyName::Ljf => {
                Measure::Nothing
            }
        };
        Self {
            measure,
            cutoffs: Cutoffs::default(),
        }
    }

    /// A response of `size_bytes` starts.
    pub fn record(&mut self, size_bytes: u64) {
        self.cutoffs.record(size_bytes);
    }

    /// The band of a job, 0 first; what is not known falls back to what was sent.
    pub fn band(
        &self,
        remaining_bytes: Option<u64>,
        sent_bytes: u64,
        size_bytes: Option<u64>,
    ) -> u8 {
        let bytes = match self.measure {
            Measure::Remaining => remaining_bytes.unwrap_or(sent_bytes),
            Measure::Size => size_bytes.unwrap_or(sent_bytes),
            Measure::Attained => sent_bytes,
            Measure::Nothing => return COMMON_BAND,
        };
        self.cutoffs.band(bytes)
    }
}
