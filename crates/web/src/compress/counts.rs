//! What compression has taken in and given out.

use crate::metrics::Count;
use sooner_http::negotiation::Coding;

/// Counters of every coding; one thread counts.
#[derive(Debug, Default)]
pub struct CompressionCounts {
    by_coding: [CodingCounts; Coding::ALL.len()],
    left: Count,
}

#[derive(Debug, Default)]
struct CodingCounts {
    in_bytes: Count,
    out_bytes: Count,
}

/// What one coding has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressionReading {
    /// The coding.
    pub coding: Coding,
    /// Bytes that were compressed.
    pub in_bytes: u64,
    /// Bytes that they became.
    pub out_bytes: u64,
}

impl CompressionCounts {
    /// `in_bytes` became `out_bytes`.
    pub fn compressed(&self, coding: Coding, in_bytes: u64, out_bytes: u64) {
        let counts = &self.by_coding[coding as usize];
        counts.in_bytes.add(in_bytes);
        counts.out_bytes.add(out_bytes);
    }

    /// A response was sent as it is because there was no memory for its compression.
    pub fn was_left(&self) {
        self.left.add(1);
    }

    /// Adds what `other` has counted.
    pub fn add_all(&self, other: &Self) {
        for reading in other.read() {
            self.compressed(reading.coding, reading.in_bytes, reading.out_bytes);
        }
        self.left.add(other.left());
    }

    /// How many were left as they are.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// What every coding has done.
    pub fn read(&self) -> [CompressionReading; Coding::ALL.len()] {
        Coding::ALL.map(|coding| {
            let counts = &self.by_coding[coding as usize];
            CompressionReading {
                coding,
                in_bytes: counts.in_bytes.get(),
                out_bytes: counts.out_bytes.get(),
            }
        })
    }
}
