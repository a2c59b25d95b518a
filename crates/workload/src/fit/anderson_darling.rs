//! The Anderson-Darling test of a continuous law with known parameters: weighs both tails as much
//! as the middle.

use super::Test;

/// Tests `sample`, which it sorts, against `cdf`. The p-value is the limit law's as Marsaglia and
/// Marsaglia (2004) approximate it, good to 2e-6 and from about ten values up.
pub fn test(sample: &mut [f64], cdf: impl Fn(f64) -> f64) -> Test {
    sample.sort_unstable_by(f64::total_cmp);
    let n = sample.len();
    if n == 0 {
        return Test {
            statistic: 0.0,
            p_value: 1.0,
        };
    }
    // One step of a float away from 0 and 1, so that a value outside the law's range is a large
    // number and not an infinite one.
    let shares: Vec<f64> = sample
        .iter()
        .map(|x| cdf(*x).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0))
        .collect();
    let sum: f64 = (0..n)
        .map(|i| (2 * i + 1) as f64 * (shares[i].ln() + (-shares[n - 1 - i]).ln_1p()))
        .sum();
    let statistic = -(n as f64) - sum / n as f64;
    Test {
        statistic,
        p_value: survival(statistic),
    }
}

/// P\[A² > z\] in the limit of large samples.
fn survival(z: f64) -> f64 {
    if z <= 0.01 {
        return 1.0;
    }
    let horner = |terms: &[f64]| terms.iter().rev().fold(0.0, |sum, term| sum * z + term);
    let below = if z < 2.0 {
        let factor = horner(&[
            2.00012,
            0.247_105,
            -0.064_982_1,
            0.034_796_2,
            -0.011_672,
            0.001_686_91,
        ]);
        (-1.233_714_1 / z).exp() / z.sqrt() * factor
    } else {
        let exponent = horner(&[
            1.0776,
            -2.30695,
            0.43424,
            -0.082_433,
            0.008_056,
            -0.000_314_6,
        ]);
        return (-(-exponent.exp()).exp_m1()).clamp(0.0, 1.0);
    };
    (1.0 - below).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_limit_law_has_its_known_points() {
        for (z, p) in [(1.248, 0.25), (1.9330, 0.1), (2.4920, 0.05), (3.878, 0.01)] {
            assert!((survival(z) - p).abs() < 3e-4, "{z} {}", survival(z));
        }
    }

    #[test]
    fn a_tail_that_is_off_is_found_out_where_the_middle_is_right() {
        let mut rng = Rng::new(3, 0);
        let mut sample: Vec<f64> = (0..10_000).map(|_| rng.uniform()).collect();
        assert!(test(&mut sample, |x| x).p_value > 0.01);
        // The lowest half per cent moved down by a factor of a million.
        for x in sample.iter_mut().filter(|x| **x < 5e-3) {
            *x *= 1e-6;
        }
        assert!(test(&mut sample, |x| x).p_value < 0.05);
        assert!(super::super::ks::test(&mut sample, |x| x).p_value > 0.05);
    }

    #[test]
    fn small_p_values_are_as_rare_as_they_say() {
        super::super::assert_small_p_values_are_rare(4, |sample| test(sample, |x| x));
    }
}
