//! Goodness of fit: do these numbers follow that law, and which parameters do they have?
//!
//! Four questions, four kinds of answer. A test of the law with all parameters given beforehand
//! ([`ks`], and [`anderson_darling`], which sees the tails better); the same for counts
//! ([`chi_square`]); a test of the exponential law with an unknown mean ([`exponential`]); and
//! parameters estimated by maximum likelihood with their intervals ([`likelihood`]).

pub mod anderson_darling;
pub mod chi_square;
pub mod exponential;
pub mod ks;
pub mod likelihood;
pub mod parameters;

/// A statistic and how often chance alone gives one at least as large.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// The statistic.
    pub statistic: f64,
    /// P\[a statistic at least as large\] if the law holds.
    pub p_value: f64,
}

/// Of samples that follow the law, one in twenty has a p-value below 5 %.
#[cfg(test)]
fn assert_small_p_values_are_rare(seed: u64, test: impl Fn(&mut [f64]) -> Test) {
    let mut rng = crate::rng::Rng::new(seed, 0);
    let below_5_percent = (0..2000)
        .filter(|_| {
            let mut sample: Vec<f64> = (0..50).map(|_| rng.uniform()).collect();
            test(&mut sample).p_value < 0.05
        })
        .count();
    assert!(
        (70..=130).contains(&below_5_percent),
        "{below_5_percent} of 2000"
    );
}
