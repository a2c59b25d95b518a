//! The laws, their ranges and their moments.

use super::curve::branches;
use super::partial::pareto;
use super::special::normal_cdf;
use std::sync::Arc;

/// Range of a parameter that is a size or a time.
const VALUES: std::ops::RangeInclusive<f64> = 1e-15..=1e15;
/// Range of a shape: outside, quantiles leave what a float can hold.
const SHAPES: std::ops::RangeInclusive<f64> = 0.1..=100.0;
/// Largest |μ| of a logarithm.
const MU_MAX: f64 = 50.0;
/// Largest σ of a logarithm: with it second moments are still numbers.
const SIGMA_MAX: f64 = 10.0;
/// Largest squared coefficient of variation.
const MAX_C2: f64 = 1e6;

/// Table 1 of Crovella, Frangioso and Harchol-Balter (1999).
pub(super) const SURGE: Law = Law::LognormalPareto {
    mu: 7.630,
    sigma: 1.001,
    cut: 9020.0,
    k: 631.44,
    p: 1e10,
    alpha: 1.0,
};

/// A distribution by its law; sizes and times are 1e-15 to 1e15, shapes (`alpha`, `shape`) 0.1 to
/// 100.
#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    /// Always the same value, which may be 0.
    Deterministic {
        /// The value.
        mean: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Two exponential branches that carry half of the mean each (balanced means).
    Hyperexponential {
        /// Mean of both together.
        mean: f64,
        /// Squared coefficient of variation, 1 to 1e6.
        c2: f64,
    },
    /// P\[X > x\] = (k/x)^alpha from k on.
    Pareto {
        /// Smallest value.
        k: f64,
        /// Tail index.
        alpha: f64,
    },
    /// Pareto between k and p.
    BoundedPareto {
        /// Smallest value.
        k: f64,
        /// Largest value, above k.
        p: f64,
        /// Tail index.
        alpha: f64,
    },
    /// The logarithm is normal.
    Lognormal {
        /// Mean of the logarithm, -50 to 50.
        mu: f64,
        /// Standard deviation of the logarithm, above 0 to 10.
        sigma: f64,
    },
    /// Lognormal below `cut`; what that leaves is a bounded Pareto from there to p.
    LognormalPareto {
        /// Mean of the body's logarithm.
        mu: f64,
        /// Standard deviation of the body's logarithm.
        sigma: f64,
        /// Where the tail begins, from k up and below p.
        cut: f64,
        /// Where the tail's law itself would begin; it only changes how Table 1 is written, not the
        /// law above `cut`.
        k: f64,
        /// Largest value.
        p: f64,
        /// Tail index.
        alpha: f64,
    },
    /// P\[X > x\] = exp(-(x/scale)^shape).
    Weibull {
        /// Scale.
        scale: f64,
        /// Shape; below 1 the tail is heavier than exponential.
        shape: f64,
    },
    /// Each of these values, in ascending order, equally likely; finite, not negative, at least
    /// one.
    Empirical(Arc<[f64]>),
}

impl Law {
    /// What is wrong with the parameters.
    pub(super) fn problem(&self) -> Option<String> {
        let value = |name: &str, x: f64| {
            (!VALUES.contains(&x)).then(|| {
                format!(
                    "{name} is {x}; it must be {:e} to {:e}",
                    VALUES.start(),
                    VALUES.end()
                )
            })
        };
        let shape = |name: &str, x: f64| {
            (!SHAPES.contains(&x)).then(|| {
                format!(
                    "{name} is {x}; it must be {} to {}",
                    SHAPES.start(),
                    SHAPES.end()
                )
            })
        };
        let rises = |low: (&str, f64), high: (&str, f64)| {
            (low.1 >= high.1).then(|| {
                format!(
                    "{} is {} and {} {}; {0} must be the smaller one",
                    low.0, low.1, high.0, high.1
                )
            })
        };
        match *self {
            Law::Deterministic { mean: 0.0 } => None,
            Law::Deterministic { mean } | Law::Exponential { mean } => value("mean", mean),
            Law::Hyperexponential { mean, c2 } => value("mean", mean).or_else(|| {
                (!(1.0..=MAX_C2).contains(&c2))
                    .then(|| format!("c2 is {c2}; it must be 1 to {MAX_C2:e}"))
            }),
            Law::Pareto { k, alpha } => value("k", k).or_else(|| shape("alpha", alpha)),
            Law::BoundedPareto { k, p, alpha } => value("k", k)
                .or_else(|| value("p", p))
                .or_else(|| shape("alpha", alpha))
                .or_else(|| rises(("k", k), ("p", p))),
            Law::Lognormal { mu, sigma } => logarithm_problem(mu, sigma),
            Law::LognormalPareto {
                mu,
                sigma,
                cut,
                k,
                p,
                alpha,
            } => logarithm_problem(mu, sigma)
                .or_else(|| value("k", k))
                .or_else(|| value("p", p))
                .or_else(|| shape("alpha", alpha))
                .or_else(|| rises(("k", k), ("cut", cut)))
                .or_else(|| rises(("cut", cut), ("p", p)))
                .or_else(|| empty_part(mu, sigma, cut)),
            Law::Weibull {
                scale,
                shape: shape_value,
            } => value("scale", scale).or_else(|| shape("shape", shape_value)),
            Law::Empirical(ref values) => (values.is_empty()
                || values.iter().any(|x| !(0.0..=*VALUES.end()).contains(x)))
            .then(|| {
                format!(
                    "the values must be at least one, and 0 to {:e}",
                    VALUES.end()
                )
            }),
        }
    }

    /// Probability and mean of each branch of a hyperexponential law, the likelier one first; none
    /// for other laws.
    pub fn branches(&self) -> Option<[(f64, f64); 2]> {
        match *self {
            Law::Hyperexponential { mean, c2 } => Some(branches(mean, c2)),
            _ => None,
        }
    }

    /// E\[X^order\] for order 1 or 2; infinite where it does not exist.
    pub(super) fn moment(&self, order: f64) -> f64 {
        match *self {
            Law::Deterministic { mean } => mean.powf(order),
            Law::Exponential { mean } => mean.powf(order) * libm::tgamma(1.0 + order),
            Law::Hyperexponential { mean, c2 } if order > 1.0 => (c2 + 1.0) * mean * mean,
            Law::Hyperexponential { mean, .. } => mean,
            Law::Pareto { alpha, .. } if alpha <= order => f64::INFINITY,
            Law::Pareto { k, alpha } => alpha * k.powf(order) / (alpha - order),
            Law::BoundedPareto { k, p, alpha } => pareto_moment(order, k, p, alpha),
            Law::Lognormal { mu, sigma } => (order * mu + (order * sigma).powi(2) / 2.0).exp(),
            Law::LognormalPareto {
                mu,
                sigma,
                cut,
                p,
                alpha,
                ..
            } => {
                let whole = (order * mu + (order * sigma).powi(2) / 2.0).exp();
                let below_cut = normal_cdf((cut.ln() - mu) / sigma - order * sigma);
                let tail_share = normal_cdf(-(cut.ln() - mu) / sigma);
                whole * below_cut + tail_share * pareto_moment(order, cut, p, alpha)
            }
            Law::Weibull { scale, shape } => scale.powf(order) * libm::tgamma(1.0 + order / shape),
            Law::Empirical(ref values) => {
                values.iter().map(|x| x.powf(order)).sum::<f64>() / values.len() as f64
            }
        }
    }
}

/// E\[X^order\] of a Pareto law between `low` and `high`.
fn pareto_moment(order: f64, low: f64, high: f64, alpha: f64) -> f64 {
    pareto(order, high, low, high, alpha)
}

fn logarithm_problem(mu: f64, sigma: f64) -> Option<String> {
    if !(-MU_MAX..=MU_MAX).contains(&mu) {
        return Some(format!("mu is {mu}; it must be -{MU_MAX} to {MU_MAX}"));
    }
    (!(sigma > 0.0 && sigma <= SIGMA_MAX))
        .then(|| format!("sigma is {sigma}; it must be above 0 and at most {SIGMA_MAX}"))
}

/// A body or a tail that would never be drawn.
fn empty_part(mu: f64, sigma: f64, cut: f64) -> Option<String> {
    let body = normal_cdf((cut.ln() - mu) / sigma);
    (!(1e-12..=1.0 - 1e-12).contains(&body)).then(|| {
        format!("below cut = {cut} the lognormal has a share of {body}; choose cut where both parts are drawn")
    })
}
