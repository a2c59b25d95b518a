//! The lines of the comparison, and when one of them fits.

use crate::fit::likelihood::Estimate;
use crate::fit::{Test, anderson_darling, ks};
use crate::sizes::Distribution;
use serde::Serialize;

/// Smallest p-value that passes.
const P_MIN: f64 = 0.001;

/// One line of the comparison: a parameter or a test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What was drawn, like `inactive OFF`.
    pub quantity: &'static str,
    /// A parameter (`mu`), or a test (`Kolmogorov-Smirnov`).
    pub what: &'static str,
    /// How many numbers were drawn or counted.
    pub n: u64,
    /// The published parameter; none for a test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// The estimated parameter, or the test's statistic.
    pub found: f64,
    /// What may be found: the 99.9 % interval of the estimate, or a stated bound; none for a test
    /// with a p-value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// How often chance gives such a deviation; none for a parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Whether this agrees with what was published.
    pub fits: bool,
}

/// The lines in the making.
#[derive(Default)]
pub(super) struct Rows(pub(super) Vec<Row>);

impl Rows {
    pub(super) fn parameter(
        &mut self,
        quantity: &'static str,
        what: &'static str,
        n: usize,
        published: f64,
        estimate: Estimate,
    ) {
        self.0.push(Row {
            quantity,
            what,
            n: n as u64,
            published: Some(published),
            found: estimate.value,
            interval: Some(estimate.interval()),
            p_value: None,
            fits: estimate.holds(published),
        });
    }

    pub(super) fn test(
        &mut self,
        quantity: &'static str,
        what: &'static str,
        n: usize,
        test: Test,
    ) {
        self.0.push(Row {
            quantity,
            what,
            n: n as u64,
            published: None,
            found: test.statistic,
            interval: None,
            p_value: Some(test.p_value),
            fits: test.p_value >= P_MIN,
        });
    }

    pub(super) fn bounded(
        &mut self,
        quantity: &'static str,
        what: &'static str,
        n: usize,
        published: Option<f64>,
        found: f64,
        interval: (f64, f64),
    ) {
        self.0.push(Row {
            quantity,
            what,
            n: n as u64,
            published,
            found,
            interval: Some(interval),
            p_value: None,
            fits: (interval.0..=interval.1).contains(&found),
        });
    }

    /// Both tests of a continuous law.
    pub(super) fn law(&mut self, quantity: &'static str, sample: &mut [f64], law: &Distribution) {
        let n = sample.len();
        let cdf = |x: f64| law.cdf(x);
        self.test(quantity, "Kolmogorov-Smirnov", n, ks::test(sample, cdf));
        self.test(
            quantity,
            "Anderson-Darling",
            n,
            anderson_darling::test(sample, cdf),
        );
    }
}
