//! Distributions as values: of sizes, think times, gaps.
//!
//! One notation (see [`text`]) names them in flags and in the model file. Every one knows its mean,
//! its second moment, its distribution function and the inverse of that; numbers are drawn by the
//! inverse, one uniform number each, so that the n-th number of a seed is the same whatever else is
//! drawn.

mod curve;
mod law;
mod partial;
mod sampler;
pub(crate) mod special;
pub mod text;

pub use law::Law;
pub use sampler::Sampler;
pub use text::{DistributionError, Sizes};

use std::sync::Arc;

/// Numbers of one kind in a mixture: what can be known of a number before it is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kind {
    /// Share of all numbers.
    pub share: f64,
    /// Mean of those.
    pub mean: f64,
}

/// A distribution of positive numbers with parameters in range.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    law: Law,
}

impl Distribution {
    /// The law, if its parameters are in range (see [`Law`]).
    pub fn new(law: Law) -> Result<Self, DistributionError> {
        match law.problem() {
            None => Ok(Self { law }),
            Some(problem) => Err(DistributionError::new(&law.to_string(), problem)),
        }
    }

    /// Each of `values` equally likely; fails unless there is one and all are finite and not
    /// negative.
    pub fn of_values(mut values: Vec<f64>) -> Result<Self, DistributionError> {
        values.sort_unstable_by(f64::total_cmp);
        Self::new(Law::Empirical(Arc::from(values)))
    }

    /// The sizes of requests in Table 1 of Crovella, Frangioso and Harchol-Balter (1999), in bytes.
    pub fn surge() -> Self {
        Self { law: law::SURGE }
    }

    /// Which law it is, with its parameters.
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// E\[X\]; infinite where it does not exist.
    pub fn mean(&self) -> f64 {
        self.law.moment(1.0)
    }

    /// E\[X²\]; infinite where it does not exist.
    pub fn second_moment(&self) -> f64 {
        self.law.moment(2.0)
    }

    /// The kinds it is mixed of: two in a hyperexponential law, the likelier and smaller one first;
    /// one in all others.
    pub fn kinds(&self) -> Vec<Kind> {
        self.law.kinds()
    }

    /// Squared coefficient of variation, E\[X²\] / E\[X\]² - 1; none where a moment does not exist
    /// or the mean is 0.
    pub fn c2(&self) -> Option<f64> {
        let (mean, second) = (self.mean(), self.second_moment());
        (second.is_finite() && mean > 0.0).then(|| second / (mean * mean) - 1.0)
    }

    /// E\[X^order; X <= x\], for order 0, 1 or 2.
    pub fn partial_moment(&self, order: i32, x: f64) -> f64 {
        self.law.partial_moment(order, x)
    }

    /// P\[X > x\], as exact in the far tail as anywhere.
    pub fn above(&self, x: f64) -> f64 {
        self.law.above(x)
    }

    /// The x with P\[X > x\] = v for v in (0, 1), outside of the nearest v inside: the quantile of
    /// 1 - v, but as exact in the far tail as anywhere.
    pub fn upper_quantile(&self, v: f64) -> f64 {
        let least = f64::MIN_POSITIVE;
        self.law
            .upper_quantile(v.clamp(least, 1.0 - f64::EPSILON / 2.0))
    }

    /// P\[X <= x\].
    pub fn cdf(&self, x: f64) -> f64 {
        self.law.cdf(x)
    }

    /// The smallest x with `cdf(x) >= u`, for u in [0, 1); outside, the nearest u inside.
    pub fn quantile(&self, u: f64) -> f64 {
        self.law.quantile(u.clamp(0.0, 1.0 - f64::EPSILON / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Distribution {
        text.parse().expect(text)
    }

    const EVERY_KIND: [&str; 9] = [
        "det:mean=3",
        "exp:mean=2",
        "h2:mean=1,c2=16",
        "pareto:k=1,alpha=2.43",
        "bpareto:k=1,p=1000000,alpha=1.1",
        "lognormal:mu=1.5,sigma=0.8",
        "weibull:scale=1.46,shape=0.382",
        "lognormal-pareto:mu=7.63,sigma=1.001,cut=9020,k=631.44,p=10000000000,alpha=1",
        "surge",
    ];

    #[test]
    fn surge_has_the_published_mean() {
        let surge = Distribution::surge();
        assert!((surge.mean() - 11_108.0).abs() < 2.0, "{}", surge.mean());
        // Where body and tail meet, both pieces of Table 1 agree.
        assert!((1.0 - surge.cdf(9020.0) - 631.44 / 9020.0).abs() < 2e-4);
        assert_eq!(surge.cdf(1e10), 1.0);
    }

    #[test]
    fn moments_are_the_textbooks() {
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        near(of("exp:mean=2").second_moment(), 8.0);
        near(of("h2:mean=3,c2=4").mean(), 3.0);
        near(of("h2:mean=3,c2=4").c2().expect("finite"), 4.0);
        near(of("pareto:k=2,alpha=3").mean(), 3.0);
        near(of("pareto:k=2,alpha=3").second_moment(), 12.0);
        assert_eq!(of("pareto:k=1,alpha=1.5").second_moment(), f64::INFINITY);
        assert_eq!(of("pareto:k=1,alpha=1").mean(), f64::INFINITY);
        near(of("weibull:scale=1,shape=2").second_moment(), 1.0);
        near(of("lognormal:mu=0,sigma=1").mean(), 0.5f64.exp());
        // The facts on golden values: E[S] 8.23693, C² 4524.
        let bounded = of("bpareto:k=1,p=1e6,alpha=1.1");
        assert!((bounded.mean() - 8.236_93).abs() < 1e-5);
        assert!((bounded.c2().expect("finite") - 4524.0).abs() < 1.0);
        let values = Distribution::of_values(vec![3.0, 1.0]).expect("values");
        assert_eq!((values.mean(), values.second_moment()), (2.0, 5.0));
    }

    /// The mean and the share of the second moment below a point are what the quantiles say.
    #[test]
    fn moments_agree_with_the_quantiles() {
        for text in EVERY_KIND {
            let distribution = of(text);
            let strips = 400_000;
            // Finer and finer strips towards the tail: u = 1 - v³.
            let mean: f64 = (0..strips)
                .map(|strip| {
                    let v = (f64::from(strip) + 0.5) / f64::from(strips);
                    distribution.quantile(1.0 - v.powi(3)) * 3.0 * v * v / f64::from(strips)
                })
                .sum();
            let error = (mean / distribution.mean() - 1.0).abs();
            assert!(error < 0.02, "{text}: {mean} {}", distribution.mean());
        }
    }

    #[test]
    fn values_are_drawn_by_rank() {
        let values = Distribution::of_values(vec![5.0, 1.0, 9.0, 1.0]).expect("values");
        let at = |u| values.quantile(u);
        assert_eq!(
            (at(0.0), at(0.49), at(0.5), at(0.51), at(0.75)),
            (1.0, 1.0, 1.0, 5.0, 5.0)
        );
        assert_eq!((at(0.76), at(0.99), at(1.0)), (9.0, 9.0, 9.0));
        // Each of them is as likely, also where u falls between two.
        let drawn = [0.0, 0.25, 0.5, 0.75].map(|u| values.law().draw(u));
        assert_eq!(drawn, [1.0, 1.0, 5.0, 9.0]);
        assert_eq!(
            (values.cdf(0.0), values.cdf(1.0), values.cdf(9.0)),
            (0.0, 0.5, 1.0)
        );
    }

    proptest! {
        /// At every rank, where rounding would count one more or one fewer.
        #[test]
        fn a_quantile_of_values_is_the_smallest_that_so_many_do_not_exceed(
            values in prop::collection::vec(0_u32..50, 1..120), between in 0.0..1.0f64,
        ) {
            let count = values.len();
            let mut sorted: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            let law = Distribution::of_values(sorted.clone()).expect("values");
            sorted.sort_by(f64::total_cmp);
            let shares = (0..count).map(|rank| rank as f64 / count as f64);
            for share in shares.chain([between]) {
                let first = sorted.iter().copied().find(|x| law.cdf(*x) >= share);
                prop_assert_eq!(Some(law.quantile(share)), first, "{}", share);
                let first = sorted.iter().copied().find(|x| law.above(*x) <= share);
                let share = share.max(f64::MIN_POSITIVE);
                prop_assert_eq!(Some(law.upper_quantile(share)), first, "{}", share);
            }
        }

        #[test]
        fn quantile_and_cdf_are_inverse(kind in 1..EVERY_KIND.len(), u in 1e-9..0.999_999_9f64) {
            let distribution = of(EVERY_KIND[kind]);
            let x = distribution.quantile(u);
            prop_assert!(x > 0.0 && x.is_finite());
            prop_assert!((distribution.cdf(x) - u).abs() < 1e-7 * (u + 1e-3), "{} {u} {x} {}", EVERY_KIND[kind], distribution.cdf(x));
        }

        #[test]
        fn what_lies_below_grows_to_the_whole(kind in 0..EVERY_KIND.len(), order in 1..3, a in 0.0..1.0f64, b in 0.0..1.0f64) {
            let distribution = of(EVERY_KIND[kind]);
            let below = |u| distribution.partial_moment(order, distribution.quantile(u));
            prop_assert!(below(a.min(b)) <= below(a.max(b)));
            let whole = [distribution.mean(), distribution.second_moment()][order as usize - 1];
            let all = distribution.partial_moment(order, f64::MAX);
            prop_assert!(whole.is_infinite() || (all / whole - 1.0).abs() < 1e-9, "{all} {whole}");
        }

        #[test]
        fn a_share_below_is_the_distribution_function(kind in 0..EVERY_KIND.len(), u in 1e-9..0.999_999_9f64) {
            let distribution = of(EVERY_KIND[kind]);
            let x = distribution.quantile(u);
            let (share, cdf) = (distribution.partial_moment(0, x), distribution.cdf(x));
            prop_assert!((share - cdf).abs() < 1e-9 * cdf, "{} {x} {share} {cdf}", EVERY_KIND[kind]);
        }

        #[test]
        fn seen_from_above_quantiles_are_the_same(kind in 0..EVERY_KIND.len(), v in 1e-6..0.999_999f64) {
            let distribution = of(EVERY_KIND[kind]);
            let (above, below) = (distribution.upper_quantile(v), distribution.quantile(1.0 - v));
            prop_assert!((above / below - 1.0).abs() < 1e-7, "{} {v} {above} {below}", EVERY_KIND[kind]);
            if kind > 0 {
                let share = distribution.above(above);
                prop_assert!((share / v - 1.0).abs() < 1e-7, "{} {v} {share}", EVERY_KIND[kind]);
            }
            prop_assert!(distribution.upper_quantile(1.0).is_finite());
        }

        #[test]
        fn quantiles_rise(kind in 0..EVERY_KIND.len(), a in 0.0..1.0f64, b in 0.0..1.0f64) {
            let distribution = of(EVERY_KIND[kind]);
            prop_assert!(distribution.quantile(a.min(b)) <= distribution.quantile(a.max(b)));
        }
    }
}
