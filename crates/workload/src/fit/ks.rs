//! The Kolmogorov-Smirnov test of a continuous law with known parameters.

use super::Test;

/// Largest distance between the empirical distribution of `sorted` (ascending) and `cdf`; 0 of
/// nothing.
pub fn distance(sorted: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let n = sorted.len() as f64;
    let at = |(index, x): (usize, &f64)| {
        let expected = cdf(*x);
        (expected - index as f64 / n).max((index + 1) as f64 / n - expected)
    };
    sorted.iter().enumerate().map(at).fold(0.0, f64::max)
}

/// Tests `sample`, which it sorts, against `cdf`. The p-value is the limit law's with Stephens'
/// correction (1970), good from about five values up.
pub fn test(sample: &mut [f64], cdf: impl Fn(f64) -> f64) -> Test {
    sample.sort_unstable_by(f64::total_cmp);
    let statistic = distance(sample, cdf);
    let root = (sample.len() as f64).sqrt();
    let p_value = if sample.is_empty() {
        1.0
    } else {
        survival((root + 0.12 + 0.11 / root) * statistic)
    };
    Test { statistic, p_value }
}

/// P\[K > x\] of Kolmogorov's limit law.
fn survival(x: f64) -> f64 {
    if x < 0.2 {
        return 1.0; // Below, the probability is within 1e-12 of 1 and the series no longer converges.
    }
    let term = |j: i32| {
        let sign = if j % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * f64::from(j * j) * x * x).exp()
    };
    (1..=100).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_limit_law_has_its_known_points() {
        for (x, p) in [
            (1.2238, 0.1),
            (1.3581, 0.05),
            (1.6276, 0.01),
            (1.9495, 0.001),
        ] {
            assert!(
                (survival(x) - p).abs() < 1e-4 * (1.0 + p),
                "{x} {}",
                survival(x)
            );
        }
        assert_eq!((survival(0.0), survival(50.0)), (1.0, 0.0));
        assert!((survival(0.2) - survival(0.201)).abs() < 1e-3);
    }

    #[test]
    fn distances_are_the_largest_step() {
        assert_eq!(distance(&[0.5], |x| x), 0.5);
        assert!((distance(&[0.1, 0.2, 0.9], |x| x) - (2.0 / 3.0 - 0.2)).abs() < 1e-12);
        assert_eq!(distance(&[], |x| x), 0.0);
    }

    #[test]
    fn small_p_values_are_as_rare_as_they_say() {
        super::super::assert_small_p_values_are_rare(1, |sample| test(sample, |x| x));
    }

    #[test]
    fn a_law_that_is_slightly_off_is_found_out() {
        let mut rng = Rng::new(2, 0);
        let mut sample: Vec<f64> = (0..100_000).map(|_| rng.uniform().powf(1.02)).collect();
        assert!(test(&mut sample, |x| x).p_value < 0.001);
    }
}
