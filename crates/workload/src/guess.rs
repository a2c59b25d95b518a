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

/// What to expect of an estimate: the mean of all sizes that have it. It orders as the estimate
/// does.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Natural logarithms of estimates, [`STEP`] of σ apart from the first, and their means.
    first: f64,
    step: f64,
    means: Vec<f64>,
}

/// Of σ, between two estimates of which the mean is calculated.
const STEP: f64 = 0.125;
/// Sizes that stand for the law.
const CALIBRATION_SIZES: u32 = 4096;
/// So many σ below the smallest size and above the largest are calculated.
const SIGMAS: f64 = 5.0;
/// Estimates of which the mean is calculated, at most.
const ESTIMATES_MAX: f64 = 4096.0;

impl Calibration {
    /// Of estimates of `sizes` with this σ, which is above 0.
    pub fn new(sizes: &Distribution, sigma: f64) -> Self {
        assert!(sigma > 0.0, "estimates that are exact need no calibration");
        let share = |index: u32| (f64::from(index) + 0.5) / f64::from(CALIBRATION_SIZES);
        let sizes: Vec<f64> = (0..CALIBRATION_SIZES)
            .map(|index| sizes.quantile(share(index)).max(f64::MIN_POSITIVE))
            .collect();
        let logarithms: Vec<f64> = sizes.iter().map(|size| size.ln()).collect();
        let first = logarithms[0] - SIGMAS * sigma;
        let range = logarithms[logarithms.len() - 1] + SIGMAS * sigma - first;
        let step = (STEP * sigma).max(range / ESTIMATES_MAX);
        let count = (range / step).ceil() as usize + 1;
        let mean_at = |index: usize| {
            let estimate = first + step * index as f64;
            let exponent = |ln: f64| -(((estimate - ln) / sigma).powi(2)) / 2.0;
            // The largest weight is 1, however far the estimate is from all sizes.
            let most = logarithms
                .iter()
                .map(|ln| exponent(*ln))
                .fold(f64::NEG_INFINITY, f64::max);
            let (mut weights, mut sum) = (0.0, 0.0);
            for (size, ln) in sizes.iter().zip(&logarithms) {
                let weight = (exponent(*ln) - most).exp();
                weights += weight;
                sum += weight * size;
            }
            sum / weights
        };
        Self {
            first,
            step,
            means: (0..count).map(mean_at).collect(),
        }
    }

    /// The mean of the sizes that have this estimate, in their unit.
    pub fn mean_of(&self, estimate: f64) -> f64 {
        let last = self.means.len() - 1;
        let at = ((estimate.ln() - self.first) / self.step).clamp(0.0, last as f64);
        let below = (at as usize).min(last.saturating_sub(1));
        let part = at - below as f64;
        let above = (below + 1).min(last);
        self.means[below] * (1.0 - part) + self.means[above] * part
    }
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
    fn what_to_expect_of_lognormal_sizes_has_a_formula() {
        // The logarithm of the size, given that of the estimate, is normal with the share
        // s = 1 / (1 + σ²) of it and the variance σ² s.
        for sigma in [0.3, 1.0, 2.0] {
            let calibration = Calibration::new(&of("lognormal:mu=0,sigma=1"), sigma);
            for estimate in [0.2_f64, 1.0, 3.0, 8.0] {
                let share = 1.0 / (1.0 + sigma * sigma);
                let exact = (share * estimate.ln() + sigma * sigma * share / 2.0).exp();
                let found = calibration.mean_of(estimate);
                let off = (found / exact - 1.0).abs();
                assert!(off < 0.01, "{sigma} {estimate}: {found} {exact}");
            }
        }
    }

    #[test]
    fn what_to_expect_orders_as_the_estimates_do() {
        for text in ["exp:mean=7", "det:mean=2", "bpareto:k=1,p=1000,alpha=1.1"] {
            let calibration = Calibration::new(&of(text), 0.8);
            let estimates = (-60..60).map(|at| (f64::from(at) / 4.0).exp());
            let means: Vec<f64> = estimates.map(|at| calibration.mean_of(at)).collect();
            assert!(means.is_sorted(), "{text}: {means:?}");
            assert!(means.iter().all(|mean| *mean > 0.0), "{text}");
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
