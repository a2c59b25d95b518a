//! Distribution functions and their inverses.

use super::Kind;
use super::Law;
use super::special::{normal_cdf, normal_quantile};

impl Law {
    /// P\[X <= x\].
    pub(super) fn cdf(&self, x: f64) -> f64 {
        if x < 0.0 {
            return 0.0;
        }
        match *self {
            Law::Deterministic { mean } => f64::from(u8::from(x >= mean)),
            Law::Exponential { mean } => -(-x / mean).exp_m1(),
            Law::Hyperexponential { mean, c2 } => {
                let [(share, first), (rest, second)] = branches(mean, c2);
                -(share * (-x / first).exp_m1() + rest * (-x / second).exp_m1())
            }
            Law::Pareto { k, alpha } => -(alpha * (k / x.max(k)).ln()).exp_m1(),
            Law::BoundedPareto { k, p, alpha } => pareto_cdf(x, k, p, alpha),
            Law::Lognormal { mu, sigma } => normal_cdf((x.ln() - mu) / sigma),
            Law::LognormalPareto {
                mu,
                sigma,
                cut,
                p,
                alpha,
                ..
            } => {
                if x < cut {
                    normal_cdf((x.ln() - mu) / sigma)
                } else {
                    let tail_share = normal_cdf(-(cut.ln() - mu) / sigma);
                    1.0 - tail_share * (1.0 - pareto_cdf(x, cut, p, alpha))
                }
            }
            Law::Weibull { scale, shape } => -(-(x / scale).powf(shape)).exp_m1(),
            Law::Empirical(ref values) => {
                values.partition_point(|value| *value <= x) as f64 / values.len() as f64
            }
        }
    }

    /// The inverse of [`Law::cdf`] at u in [0, 1).
    pub(super) fn quantile(&self, u: f64) -> f64 {
        match *self {
            Law::Deterministic { mean } => mean,
            Law::Exponential { mean } => -mean * (-u).ln_1p(),
            Law::Hyperexponential { mean, c2 } => hyperexponential_quantile(mean, c2, u),
            Law::Pareto { k, alpha } => k * (-(-u).ln_1p() / alpha).exp(),
            Law::BoundedPareto { k, p, alpha } => pareto_quantile(u, k, p, alpha),
            Law::Lognormal { mu, sigma } => lognormal_quantile(u, mu, sigma),
            Law::LognormalPareto {
                mu,
                sigma,
                cut,
                p,
                alpha,
                ..
            } => {
                let body_share = normal_cdf((cut.ln() - mu) / sigma);
                if u < body_share {
                    lognormal_quantile(u, mu, sigma).min(cut)
                } else {
                    pareto_quantile((u - body_share) / (1.0 - body_share), cut, p, alpha)
                }
            }
            Law::Weibull { scale, shape } => scale * (-(-u).ln_1p()).powf(1.0 / shape),
            Law::Empirical(ref values) => {
                let count = values.len() as f64;
                let passed = (u * count) as usize;
                let is_below = passed as f64 / count < u;
                let rank = passed + usize::from(is_below);
                values[rank.clamp(1, values.len()) - 1]
            }
        }
    }

    /// See [`super::Distribution::kinds`]; a number u below the first share gives one of the first
    /// kind.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        match *self {
            Law::Hyperexponential { mean, c2 } => branches(mean, c2)
                .map(|(share, mean)| Kind { share, mean })
                .to_vec(),
            _ => vec![Kind {
                share: 1.0,
                mean: self.moment(1.0),
            }],
        }
    }

    /// A number of this law from u, uniform in [0, 1): the quantile, except where a mixture is
    /// quicker branch by branch, and where u, which may be 0 and never 1, falls between values.
    pub(super) fn draw(&self, u: f64) -> f64 {
        let (mean, c2) = match *self {
            Law::Hyperexponential { mean, c2 } => (mean, c2),
            Law::Empirical(ref values) => {
                let place = (u * values.len() as f64) as usize;
                return values[place.min(values.len() - 1)];
            }
            _ => return self.quantile(u),
        };
        let [(share, first), (rest, second)] = branches(mean, c2);
        if u < share {
            -first * (-u / share).ln_1p()
        } else {
            -second * (-((u - share) / rest).min(1.0 - f64::EPSILON)).ln_1p()
        }
    }
}

/// Probability and mean of each branch of a hyperexponential law with balanced means, the likelier
/// one first.
pub(super) fn branches(mean: f64, c2: f64) -> [(f64, f64); 2] {
    let share = (1.0 + ((c2 - 1.0) / (c2 + 1.0)).sqrt()) / 2.0;
    let rest = 1.0 - share;
    [(share, mean / (2.0 * share)), (rest, mean / (2.0 * rest))]
}

/// Between the quantiles of the two branches.
fn hyperexponential_quantile(mean: f64, c2: f64, u: f64) -> f64 {
    let law = Law::Hyperexponential { mean, c2 };
    let [low, high] = branches(mean, c2).map(|(_, branch_mean)| -branch_mean * (-u).ln_1p());
    halved(low, high, |x| law.cdf(x) < u)
}

/// The least number between `low` and `high` of which `is_below` is false, halved until a float has
/// no number between.
pub(super) fn halved(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

fn lognormal_quantile(u: f64, mu: f64, sigma: f64) -> f64 {
    // A uniform number has 53 bits: below the smallest one but 0 there is nothing to tell apart.
    (mu + sigma * normal_quantile(u.max(f64::EPSILON / 4.0))).exp()
}

fn pareto_cdf(x: f64, low: f64, high: f64, alpha: f64) -> f64 {
    let x = x.clamp(low, high);
    (alpha * (low / x).ln()).exp_m1() / (alpha * (low / high).ln()).exp_m1()
}

fn pareto_quantile(u: f64, low: f64, high: f64, alpha: f64) -> f64 {
    let below = u * (alpha * (low / high).ln()).exp_m1();
    (low * (-below.ln_1p() / alpha).exp()).min(high)
}
