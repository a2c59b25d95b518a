//! How fast the tail of response times falls under first come, first served, and the scale of
//! boosts that follows from it.
//!
//! On one server with Poisson arrivals at rate λ, P\[T > t\] falls like e^(-γt) where sizes have a
//! light tail: γ is the solution above 0 of λ (E e^(γS) - 1) = γ (Cramér and Lundberg). Since
//! E e^(γS) - 1 = γ ∫ e^(γx) P\[S > x\] dx, it is where λ ∫ e^(γx) P\[S > x\] dx = 1, which has one
//! solution and no root at 0. No order has a larger γ; the order with boosts of scale 1/γ has the
//! least factor before the exponential (Yu and Scully 2024).
//!
//! Times are in the unit of the sizes, a server does one unit of work in one unit of time.

use crate::TheoryError;
use crate::quadrature::integral;
use sooner_workload::Distribution;
use sooner_workload::sizes::Law;

/// Panels of an integral over all sizes; each has eight points.
const PANELS: u32 = 800;
/// Halvings of the interval that the solution is in.
const HALVINGS: u32 = 80;

/// γ of these sizes at this load; none where the tail of the sizes is heavy, or decays so slowly
/// that there is none.
pub fn decay_rate(sizes: &Distribution, load: f64) -> Result<Option<f64>, TheoryError> {
    let mean = checked_mean(sizes, load)?;
    let rate = load / mean;
    let Some(excess) = excess(sizes) else {
        return Ok(None);
    };
    // λ ∫ e^(γx) P[S > x] dx - 1 rises with γ, from the load less 1.
    let is_above = |gamma: f64| rate * excess(gamma) >= 1.0;
    let mut high = 1.0 / mean;
    while !is_above(high) {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if is_above(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(Some(f64::midpoint(low, high)))
}

/// The scale of boosts for these sizes at this load: 1/γ, or where sizes have a heavy tail the mean
/// wait under first come, first served, which is infinite where sizes have no variance.
///
/// The wait is our choice, and no result: with a heavy tail what is best for the mean is no harm to
/// the tail, and a boost of a few waits is near to shortest first.
pub fn boost_scale(sizes: &Distribution, load: f64) -> Result<f64, TheoryError> {
    if let Some(gamma) = decay_rate(sizes, load)? {
        return Ok(1.0 / gamma);
    }
    let rate = load / sizes.mean();
    Ok(rate * sizes.second_moment() / 2.0 / (1.0 - load))
}

fn checked_mean(sizes: &Distribution, load: f64) -> Result<f64, TheoryError> {
    if !(load > 0.0 && load < 1.0) {
        return Err(TheoryError::Load(load));
    }
    let mean = sizes.mean();
    if !(mean.is_finite() && mean > 0.0) {
        return Err(TheoryError::Mean);
    }
    Ok(mean)
}

type Excess<'a> = Box<dyn Fn(f64) -> f64 + 'a>;

/// γ to ∫ e^(γx) P\[S > x\] dx, infinite where it does not exist; none where it never does.
fn excess(sizes: &Distribution) -> Option<Excess<'_>> {
    let of_value = |gamma: f64, x: f64| (gamma * x).exp_m1() / gamma;
    Some(match *sizes.law() {
        Law::Deterministic { mean } => Box::new(move |gamma| of_value(gamma, mean)),
        Law::Exponential { .. } | Law::Hyperexponential { .. } => {
            let kinds = sizes.kinds();
            Box::new(move |gamma| {
                let of_kind = |kind: &sooner_workload::sizes::Kind| {
                    let left = 1.0 - gamma * kind.mean;
                    if left > 0.0 {
                        kind.share * kind.mean / left
                    } else {
                        f64::INFINITY
                    }
                };
                kinds.iter().map(of_kind).sum()
            })
        }
        Law::Empirical(ref values) => Box::new(move |gamma| {
            let sum: f64 = values.iter().map(|&x| of_value(gamma, x)).sum();
            sum / values.len() as f64
        }),
        Law::BoundedPareto { p, .. } | Law::LognormalPareto { p, .. } => up_to(sizes, p),
        // Beyond, the share is too small for a float, and falls faster than any exponential rises.
        Law::Weibull { shape, .. } if shape > 1.0 => up_to(sizes, sizes.upper_quantile(1e-300)),
        Law::Weibull { shape: 1.0, scale } => Box::new(move |gamma| {
            let left = 1.0 - gamma * scale;
            if left > 0.0 {
                scale / left
            } else {
                f64::INFINITY
            }
        }),
        Law::Weibull { .. } | Law::Pareto { .. } | Law::Lognormal { .. } => return None,
    })
}

/// The same of sizes that are at most `largest`.
fn up_to(sizes: &Distribution, largest: f64) -> Excess<'_> {
    // Even panels for the exponential at the end, others for a tail over many orders.
    let even = (0..=PANELS).map(|panel| largest * f64::from(panel) / f64::from(PANELS));
    let least = sizes.quantile(0.0).max(largest * 1e-12);
    let step = (largest / least).powf(1.0 / f64::from(PANELS));
    let logarithmic = (0..PANELS).map(|panel| least * step.powi(panel as i32));
    let mut ends: Vec<f64> = even.chain(logarithmic).collect();
    ends.sort_unstable_by(f64::total_cmp);
    Box::new(move |gamma| {
        let of_panel = |ends: &[f64]| {
            integral(ends[0], ends[1], |x| {
                (gamma * x).min(700.0).exp() * sizes.above(x)
            })
        };
        ends.windows(2).map(of_panel).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(sizes: &str, load: f64) -> Option<f64> {
        decay_rate(&sizes.parse().expect("a law"), load).expect("a load")
    }

    fn near(found: Option<f64>, exact: f64) {
        let found = found.expect("a light tail");
        assert!((found / exact - 1.0).abs() < 1e-6, "{found}, exact {exact}");
    }

    #[test]
    fn rates_that_are_known() {
        // M/M/1: the response time is exponential.
        near(rate("exp:mean=2", 0.9), 0.05);
        near(rate("weibull:scale=2,shape=1", 0.9), 0.05);
        near(rate("h2:mean=1,c2=1", 0.8), 0.2);
        // M/D/1: λ (e^γ - 1) = γ.
        let gamma = rate("det:mean=1", 0.8).expect("a light tail");
        assert!((0.8 * gamma.exp_m1() / gamma - 1.0).abs() < 1e-9, "{gamma}");
        // Two branches: 0.9 (p m / (1 - γ m) + q n / (1 - γ n)) = 1 is a square equation.
        let gamma = rate("h2:mean=1,c2=4", 0.9).expect("a light tail");
        let law: Distribution = "h2:mean=1,c2=4".parse().expect("a law");
        let sum: f64 = law
            .kinds()
            .iter()
            .map(|kind| kind.share * kind.mean / (1.0 - gamma * kind.mean))
            .sum();
        assert!((0.9 * sum - 1.0).abs() < 1e-9, "{gamma}");
    }

    #[test]
    fn integrals_and_sums_agree() {
        // Many quantiles of a law have nearly its own rate.
        for text in ["weibull:scale=1,shape=2", "bpareto:k=1,p=1000,alpha=1.5"] {
            let law: Distribution = text.parse().expect("a law");
            let count = 200_000;
            let values = (0..count).map(|i| law.quantile((f64::from(i) + 0.5) / f64::from(count)));
            let values = Distribution::of_values(values.collect()).expect("values");
            let exact = decay_rate(&values, 0.8).expect("a load").expect("bounded");
            let found = rate(text, 0.8).expect("a light tail");
            assert!(
                (found / exact - 1.0).abs() < 0.01,
                "{text}: {found} {exact}"
            );
        }
    }

    #[test]
    fn heavy_tails_have_no_rate_and_a_scale() {
        assert_eq!(rate("lognormal:mu=0,sigma=1", 0.5), None);
        assert_eq!(rate("weibull:scale=1,shape=0.5", 0.5), None);
        let scale = |text: &str| boost_scale(&text.parse().expect("a law"), 0.5).expect("a load");
        // λ = 1/3, E[S²] = 12 (k = 2, alpha = 3): 0.5 x 12 / 3 / 2 / 0.5.
        assert!((scale("pareto:k=2,alpha=3") - 2.0).abs() < 1e-9);
        assert_eq!(scale("pareto:k=2,alpha=1.5"), f64::INFINITY);
        assert!((scale("exp:mean=1") - 2.0).abs() < 1e-6);
    }
}
