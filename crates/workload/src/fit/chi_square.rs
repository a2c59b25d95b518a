//! Pearson's chi-square test of counts against the shares they should have.

use super::Test;

/// Fewest expected counts of a cell; cells with fewer are joined with the next ones.
const EXPECTED_MIN: f64 = 5.0;

/// Tests `counts` against `shares`, which need not sum up to 1 exactly. Neighbouring cells are
/// joined until at least five counts are expected in each. Both have the same length.
pub fn test(counts: &[u64], shares: &[f64]) -> Test {
    let total = counts.iter().sum::<u64>() as f64;
    let whole: f64 = shares.iter().sum();
    let mut cells: Vec<(f64, f64)> = Vec::new();
    let mut open = (0.0, 0.0);
    for (count, share) in counts.iter().zip(shares) {
        open.0 += *count as f64;
        open.1 += total * share / whole;
        if open.1 >= EXPECTED_MIN {
            cells.push(std::mem::take(&mut open));
        }
    }
    match cells.last_mut() {
        Some(last) => *last = (last.0 + open.0, last.1 + open.1),
        None => cells.push(open),
    }
    if cells.len() < 2 {
        return Test {
            statistic: 0.0,
            p_value: 1.0,
        };
    }
    let statistic = cells
        .iter()
        .map(|(count, expected)| (count - expected).powi(2) / expected)
        .sum();
    let freedom = (cells.len() - 1) as f64;
    Test {
        statistic,
        p_value: upper_gamma(freedom / 2.0, statistic / 2.0),
    }
}

/// Q(a, x) = Γ(a, x) / Γ(a), the regularised upper incomplete gamma function, for a above 0 and x
/// from 0 on: its series below a + 1, its continued fraction by Lentz' method above (Abramowitz and
/// Stegun 6.5.29, 6.5.31).
fn upper_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let scale = (a * x.ln() - x - libm::lgamma(a)).exp();
    // About 10 √a terms are needed where x is near a.
    let terms_max = 1000 + 20 * a.sqrt() as u32;
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for n in 1..terms_max {
            term *= x / (a + f64::from(n));
            sum += term;
            if term < sum * 1e-15 {
                break;
            }
        }
        return (1.0 - scale * sum).clamp(0.0, 1.0);
    }
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for n in 1..terms_max {
        let step = -f64::from(n) * (f64::from(n) - a);
        b += 2.0;
        d = 1.0 / (step * d + b);
        c = b + step / c;
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (scale * fraction).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_distribution_has_its_known_points() {
        for (freedom, x, p) in [
            (1.0, 3.841_459, 0.05),
            (2.0, 9.210_340, 0.01),
            (10.0, 18.307_038, 0.05),
            (100.0, 149.449_25, 0.001),
            (1999.0, 2104.128, 0.05),
        ] {
            let q = upper_gamma(freedom / 2.0, x / 2.0);
            assert!((q / p - 1.0).abs() < 2e-3, "{freedom} {x} {q}");
        }
        assert_eq!(upper_gamma(1.0, 0.0), 1.0);
        assert!((upper_gamma(1.0, 3.0) - (-3f64).exp()).abs() < 1e-14);
    }

    #[test]
    fn cells_with_few_counts_are_joined() {
        // 50 expected in the first cell, 2 in each other: the others make cells of three.
        let (counts, shares) = ([50, 2, 2, 2, 2], [50.0, 2.0, 2.0, 2.0, 2.0]);
        let joined = test(&counts, &shares);
        assert_eq!((joined.statistic, joined.p_value), (0.0, 1.0));
        assert_eq!(test(&[3], &[1.0]).p_value, 1.0);
        assert_eq!(test(&[], &[]).p_value, 1.0);
    }

    #[test]
    fn a_die_that_is_loaded_is_found_out_and_a_fair_one_is_not() {
        let mut rng = Rng::new(5, 0);
        let mut counts = [0; 6];
        (0..60_000).for_each(|_| counts[rng.below(6) as usize] += 1);
        assert!(test(&counts, &[1.0; 6]).p_value > 0.001);
        counts[0] += 500;
        assert!(test(&counts, &[1.0; 6]).p_value < 0.001);
    }
}
