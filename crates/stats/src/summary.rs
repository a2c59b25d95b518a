//! Median and spread over repetitions of the same run.

use serde::{Deserialize, Serialize};

/// Median, smallest and largest of one figure over repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median; of an even number the mean of the middle two.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of repetitions.
    pub n: u64,
}

/// Median and spread of `values` (one a repetition, in any order); none of nothing.
pub fn median_and_spread(values: &[f64]) -> Option<Spread> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (&min, &max) = (sorted.first()?, sorted.last()?);
    let median = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    Some(Spread {
        median,
        min,
        max,
        n: sorted.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        let spread = |median, min, max, n| {
            Some(Spread {
                median,
                min,
                max,
                n,
            })
        };
        assert_eq!(
            median_and_spread(&[3.0, 1.0, 9.0]),
            spread(3.0, 1.0, 9.0, 3)
        );
        assert_eq!(
            median_and_spread(&[4.0, 1.0, 2.0, 9.0]),
            spread(3.0, 1.0, 9.0, 4)
        );
        assert_eq!(median_and_spread(&[5.0]), spread(5.0, 5.0, 5.0, 1));
        assert_eq!(median_and_spread(&[]), None);
    }
}
