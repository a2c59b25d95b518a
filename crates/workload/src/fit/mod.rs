//! Goodness of fit: do these numbers follow that law, and which parameters do they have?
//!
//! Four questions, four kinds of answer. A test of the law with all parameters given beforehand ([`ks`], and
//! [`anderson_darling`], which sees the tails better); the same for counts ([`chi_square`]); a test of the exponential law
//! whose mean is not known ([`exponential`]); and parameters estimated by maximum likelihood with their intervals
//! ([`likelihood`]).

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
