//! The one source of randomness: a seeded PCG with the same stream on every machine and in every
//! version.
//!
//! Only the raw 64-bit output of the generator is used, because how a library turns it into floats
//! or ranges may change.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng as _, SeedableRng};

/// Seeded random numbers.
#[derive(Debug, Clone)]
pub struct Rng(Pcg64);

impl Rng {
    /// The stream named by `seed` and `purpose`: one seed gives independent streams for different
    /// purposes.
    pub fn new(seed: u64, purpose: u64) -> Self {
        Self(Pcg64::seed_from_u64(
            seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..n; n above 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }
}
