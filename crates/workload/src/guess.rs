//! Estimates of sizes that rank a given share of all pairs rightly.
//!
//! An estimate is the size times a factor with a normal logarithm of deviation σ. Of two sizes x
//! and y the larger one has the larger estimate with probability Φ(|ln x - ln y| / (σ √2)); so how
//! many pairs a σ ranks rightly depends on how far the sizes are apart. Pairs of equal sizes do not
//! count.

use crate::Distribution;
use crate::sizes::special::normal_cdf;

/// Sizes that stand for the law: all pairs of them are looked at.
const SIZES: u32 = 256;
/// σ beyond which estimates say nothing.
const SIGMA_MAX: f64 = 1000.0;
const HALVINGS: u32 = 60;

/// The share of pairs of `sizes` that estimates with this σ rank rightly; none where all are equal.
pub fn right_pairs(sizes: &Distribution, sigma: f64) -> Option<f64> {
    let gaps = gaps(sizes);
    (!gaps.is_empty()).then(|| right(&gaps, sigma))
}

/// The σ with which estimates rank the share `right_share` of all pairs of `sizes` rightly; none
/// where it is not above 0.5 and at most 1, or all sizes are equal.
pub fn sigma_of(sizes: &Distribution, right_share: f64) -> Option<f64> {
    let gaps = gaps(sizes);
    if gaps.is_empty() || !(right_share > 0.5 && right_share <= 1.0) {
        return None;
    }
    let (mut low, mut high) = (0.0, SIGMA_MAX);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if right(&gaps, middle) >= right_share {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

fn right(gaps: &[f64], sigma: f64) -> f64 {
    let of_gap = |gap: &f64| normal_cdf(gap / (sigma.max(1e-12) * std::f64::consts::SQRT_2));
    gaps.iter().map(of_gap).sum::<f64>() / gaps.len() as f64
}

/// How far the logarithms of two different sizes are apart.
fn gaps(sizes: &Distribution) -> Vec<f64> {
    let share = |index: u32| (f64::from(index) + 0.5) / f64::from(SIZES);
    let logarithm = |index| sizes.quantile(share(index)).max(f64::MIN_POSITIVE).ln();
    let logarithms: Vec<f64> = (0..SIZES).map(logarithm).collect();
    let pairs = logarithms.iter().enumerate().flat_map(|(index, small)| {
        let larger = logarithms[index + 1..].iter();
        larger.map(move |large| large - small)
    });
    pairs.filter(|gap| *gap > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Distribution {
        text.parse().expect(text)
    }

    #[test]
    fn lognormal_sizes_have_a_formula() {
        // Of two normal numbers with correlation ρ: 1/2 + asin(ρ) / π.
        let law = of("lognormal:mu=3,sigma=1");
        for sigma in [0.3, 1.0, 3.0] {
            let correlation = 1.0 / (1.0_f64 + sigma * sigma).sqrt();
            let exact = 0.5 + correlation.asin() / std::f64::consts::PI;
            let found = right_pairs(&law, sigma).expect("sizes differ");
            assert!((found - exact).abs() < 0.005, "{sigma}: {found} {exact}");
        }
    }

    #[test]
    fn a_share_has_its_sigma() {
        for text in [
            "exp:mean=7",
            "h2:mean=1,c2=16",
            "bpareto:k=1,p=1000,alpha=1.1",
        ] {
            for share in [0.6, 0.76, 0.9] {
                let sigma = sigma_of(&of(text), share).expect("a share");
                let found = right_pairs(&of(text), sigma).expect("sizes differ");
                assert!(
                    (found - share).abs() < 1e-6,
                    "{text} {share}: {sigma} {found}"
                );
            }
        }
        assert_eq!(sigma_of(&of("det:mean=1"), 0.7), None);
        assert_eq!(sigma_of(&of("exp:mean=1"), 0.5), None);
        assert!(sigma_of(&of("exp:mean=1"), 1.0).expect("a share") < 0.01);
    }
}
