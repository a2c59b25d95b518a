//! Moments of what is at most x, and the inverse of the distribution function seen from its upper
//! end: what formulas for queues are made of.

use super::Law;
use super::curve::{branches, halved};
use super::special::{normal_cdf, normal_quantile, power_integral};
use statrs::function::gamma::gamma_lr;

impl Law {
    /// E\[X^order; X <= x\] for order 0, 1 or 2.
    pub(super) fn partial_moment(&self, order: i32, x: f64) -> f64 {
        if x < 0.0 || x.is_nan() {
            return 0.0;
        }
        let power = f64::from(order);
        match *self {
            Law::Deterministic { mean } if x < mean => 0.0,
            Law::Deterministic { mean } => mean.powi(order),
            Law::Exponential { mean } => exponential(order, x, mean),
            Law::Hyperexponential { mean, c2 } => branches(mean, c2)
                .map(|(share, branch_mean)| share * exponential(order, x, branch_mean))
                .iter()
                .sum(),
            // In units of `k`, so that no power leaves the range of a float.
            Law::Pareto { k, alpha } => {
                k.powi(order) * alpha * power_integral(power - alpha, 1.0, (x / k).max(1.0))
            }
            Law::BoundedPareto { k, p, alpha } => pareto(power, x, k, p, alpha),
            Law::Lognormal { mu, sigma } => lognormal(power, x, mu, sigma),
            Law::LognormalPareto {
                mu,
                sigma,
                cut,
                p,
                alpha,
                ..
            } => {
                let tail_share = normal_cdf(-(cut.ln() - mu) / sigma);
                let body = lognormal(power, x.min(cut), mu, sigma);
                body + tail_share * pareto(power, x, cut, p, alpha)
            }
            Law::Weibull { scale, shape } => {
                let exponent = 1.0 + power / shape;
                let whole = scale.powi(order) * libm::tgamma(exponent);
                whole * lower_gamma(exponent, (x / scale).powf(shape))
            }
            Law::Empirical(ref values) => {
                let count = values.partition_point(|value| *value <= x);
                let sum: f64 = values[..count].iter().map(|value| value.powi(order)).sum();
                sum / values.len() as f64
            }
        }
    }

    /// P\[X > x\]; nothing is lost to 1 - P\[X <= x\].
    pub(super) fn above(&self, x: f64) -> f64 {
        if x < 0.0 {
            return 1.0;
        }
        match *self {
            Law::Deterministic { mean } => f64::from(u8::from(x < mean)),
            Law::Exponential { mean } => (-x / mean).exp(),
            Law::Hyperexponential { mean, c2 } => hyperexponential_above(mean, c2, x),
            Law::Pareto { k, alpha } => (k / x.max(k)).powf(alpha),
            Law::BoundedPareto { k, p, alpha } => pareto_above(x, k, p, alpha),
            Law::Lognormal { mu, sigma } => normal_cdf((mu - x.ln()) / sigma),
            Law::LognormalPareto {
                mu,
                sigma,
                cut,
                p,
                alpha,
                ..
            } => {
                let tail_share = normal_cdf((mu - cut.ln()) / sigma);
                if x < cut {
                    normal_cdf((mu - x.ln()) / sigma)
                } else {
                    tail_share * pareto_above(x, cut, p, alpha)
                }
            }
            Law::Weibull { scale, shape } => (-(x / scale).powf(shape)).exp(),
            Law::Empirical(ref values) => {
                let count = values.len() - values.partition_point(|value| *value <= x);
                count as f64 / values.len() as f64
            }
        }
    }

    /// The smallest x with P\[X > x\] <= v, for v in (0, 1); nothing is lost to 1 - v.
    pub(super) fn upper_quantile(&self, v: f64) -> f64 {
        match *self {
            Law::Deterministic { mean } => mean,
            Law::Exponential { mean } => -mean * v.ln(),
            Law::Hyperexponential { mean, c2 } => hyperexponential(mean, c2, v),
            Law::Pareto { k, alpha } => k * v.powf(-1.0 / alpha),
            Law::BoundedPareto { k, p, alpha } => upper_pareto(v, k, p, alpha),
            Law::Lognormal { mu, sigma } => (mu - sigma * normal_quantile(v)).exp(),
            Law::LognormalPareto {
                mu,
                sigma,
                cut,
                p,
                alpha,
                ..
            } => {
                let tail_share = normal_cdf(-(cut.ln() - mu) / sigma);
                if v >= tail_share {
                    (mu - sigma * normal_quantile(v)).exp().min(cut)
                } else {
                    upper_pareto(v / tail_share, cut, p, alpha)
                }
            }
            Law::Weibull { scale, shape } => scale * (-v.ln()).powf(1.0 / shape),
            Law::Empirical(ref values) => {
                let count = values.len() as f64;
                let passed = (v * count) as usize;
                let is_more = (passed + 1) as f64 / count <= v;
                let above = passed + usize::from(is_more);
                values[values.len() - 1 - above.min(values.len() - 1)]
            }
        }
    }
}

/// Of an exponential law.
fn exponential(order: i32, x: f64, mean: f64) -> f64 {
    let y = x / mean;
    // Beyond, nothing is left.
    if y > 700.0 {
        return mean.powi(order) * libm::tgamma(f64::from(order) + 1.0);
    }
    // Where y is small the closed forms lose everything to their difference.
    if y < 0.01 {
        return mean.powi(order) * small_gamma(order, y);
    }
    let below = -(-y).exp_m1();
    let density = (-y).exp();
    mean.powi(order)
        * match order {
            0 => below,
            1 => below - y * density,
            _ => 2.0 * (below - y * density) - y * y * density,
        }
}

/// The lower incomplete gamma function of `order` + 1 for y below 0.01: seven terms of its series,
/// the next one being below 1e-17 of it.
fn small_gamma(order: i32, y: f64) -> f64 {
    let mut term = y.powi(order + 1);
    let mut sum = 0.0;
    for n in 0..7 {
        sum += term / f64::from(order + 1 + n);
        term *= -y / f64::from(n + 1);
    }
    sum
}

/// E\[X^power; X <= x\] of a Pareto law between `low` and `high`, in units of `low`, so that no
/// power leaves the range of a float.
pub(super) fn pareto(power: f64, x: f64, low: f64, high: f64, alpha: f64) -> f64 {
    let (end, most) = ((x / low).max(1.0), high / low);
    low.powf(power) * power_integral(power - alpha, 1.0, end.min(most))
        / power_integral(-alpha, 1.0, most)
}

fn pareto_above(x: f64, low: f64, high: f64, alpha: f64) -> f64 {
    let least = (low / high).powf(alpha);
    ((low / x.clamp(low, high)).powf(alpha) - least) / (1.0 - least)
}

fn upper_pareto(v: f64, low: f64, high: f64, alpha: f64) -> f64 {
    // P[X > x] = ((low/x)^alpha - (low/high)^alpha) / (1 - (low/high)^alpha)
    let least = (low / high).powf(alpha);
    let power = v + (1.0 - v) * least;
    (low * power.powf(-1.0 / alpha)).min(high)
}

fn lognormal(power: f64, x: f64, mu: f64, sigma: f64) -> f64 {
    let whole = (power * mu + (power * sigma).powi(2) / 2.0).exp();
    whole * normal_cdf((x.ln() - mu) / sigma - power * sigma)
}

/// The regularized lower incomplete gamma function, at the ends of its range as well.
fn lower_gamma(exponent: f64, y: f64) -> f64 {
    if y <= 0.0 {
        0.0
    } else if y.is_finite() {
        gamma_lr(exponent, y)
    } else {
        1.0
    }
}

/// Between the two branches' own.
fn hyperexponential(mean: f64, c2: f64, v: f64) -> f64 {
    let [low, high] = branches(mean, c2).map(|(_, branch_mean)| -branch_mean * v.ln());
    halved(low, high, |x| hyperexponential_above(mean, c2, x) > v)
}

fn hyperexponential_above(mean: f64, c2: f64, x: f64) -> f64 {
    let of_branch = |(share, branch_mean): (f64, f64)| share * (-x / branch_mean).exp();
    branches(mean, c2).map(of_branch).iter().sum()
}
