//! Are these gaps exponential? The Kolmogorov-Smirnov test with the mean estimated from the sample
//! (Lilliefors 1969).
//!
//! A Poisson schedule that a load generator could not follow shows here even when its send lag
//! looks small: gaps pile up at the generator's own grain. Gaps are given relative to the mean gap
//! of their phase, so that a run with alternating load can be tested as one sample.

use super::ks;

/// Modified statistic above which about one exponential sample in a thousand lies; found by
/// simulation, see the test.
pub const CRITICAL_MODIFIED: f64 = 1.57;
/// Distance that is too small to matter whatever the sample's size: at high rates there are always
/// gaps shorter than the generator's grain.
pub const NEGLIGIBLE_DISTANCE: f64 = 0.05;
/// Fewer gaps than this say nothing.
pub const GAPS_MIN: usize = 20;

/// Largest distance between the gaps' empirical distribution and the exponential one with the same
/// mean; `None` below [`GAPS_MIN`] gaps.
pub fn distance(gaps: &mut [f64]) -> Option<f64> {
    if gaps.len() < GAPS_MIN {
        return None;
    }
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    if mean <= 0.0 {
        return Some(1.0);
    }
    gaps.sort_unstable_by(f64::total_cmp);
    Some(ks::distance(gaps, |gap| 1.0 - (-gap / mean).exp()))
}

/// Largest distance accepted for `gap_count` gaps: Stephens' small-sample form (1974) of the
/// critical value, or what is negligible.
pub fn distance_max(gap_count: usize) -> f64 {
    let n = gap_count as f64;
    (CRITICAL_MODIFIED / (n.sqrt() + 0.26 + 0.5 / n.sqrt()) + 0.2 / n).max(NEGLIGIBLE_DISTANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn exponential(rng: &mut Rng, count: usize) -> Vec<f64> {
        (0..count).map(|_| rng.exponential()).collect()
    }

    fn modified(gaps: &mut [f64]) -> f64 {
        let n = gaps.len() as f64;
        (distance(gaps).unwrap() - 0.2 / n) * (n.sqrt() + 0.26 + 0.5 / n.sqrt())
    }

    #[test]
    fn exponential_gaps_exceed_the_critical_value_about_once_in_a_thousand() {
        let mut rng = Rng::new(1, 0);
        let exceeded = |critical: f64, samples: &[f64]| {
            samples.iter().filter(|value| **value > critical).count()
        };
        let samples: Vec<f64> = (0..10_000)
            .map(|_| modified(&mut exponential(&mut rng, 100)))
            .collect();
        let tail = exceeded(CRITICAL_MODIFIED, &samples);
        assert!(
            (2..=25).contains(&tail),
            "{tail} of 10000 above {CRITICAL_MODIFIED}"
        );
        let five_percent = exceeded(1.094, &samples);
        assert!(
            (400..=600).contains(&five_percent),
            "Stephens' 5 % point: {five_percent} of 10000"
        );
    }

    #[test]
    fn constant_and_uniform_gaps_are_found_out() {
        let mut rng = Rng::new(2, 0);
        let mut constant = vec![1.0; 500];
        assert!(distance(&mut constant).unwrap() > distance_max(500));
        let mut flat: Vec<f64> = (0..500).map(|_| rng.uniform()).collect();
        assert!(distance(&mut flat).unwrap() > distance_max(500));
    }

    #[test]
    fn gaps_rounded_to_a_coarse_clock_are_found_out() {
        let mut rounded: Vec<f64> = exponential(&mut Rng::new(3, 0), 5000)
            .into_iter()
            .map(|gap| gap.round())
            .collect();
        assert!(distance(&mut rounded).unwrap() > distance_max(5000));
    }

    #[test]
    fn few_gaps_say_nothing() {
        assert_eq!(distance(&mut [1.0; GAPS_MIN - 1]), None);
    }
}
