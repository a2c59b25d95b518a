//! Parameters of the laws that SURGE is made of, estimated from numbers or counts.

use super::likelihood::{Estimate, maximise, maximise_one};
use crate::sizes::special::normal_cdf;

/// μ and σ of a lognormal law of which only the values below `cut` are in `sample`.
pub fn lognormal_below(sample: &[f64], cut: f64) -> [Estimate; 2] {
    let n = sample.len() as f64;
    let sum: f64 = sample.iter().map(|x| x.ln()).sum();
    let squares: f64 = sample.iter().map(|x| x.ln().powi(2)).sum();
    let log_likelihood = |mu: f64, sigma: f64| {
        if sigma <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let distance = squares - 2.0 * mu * sum + n * mu * mu;
        let below = normal_cdf((cut.ln() - mu) / sigma);
        -distance / (2.0 * sigma * sigma) - n * sigma.ln() - n * below.ln()
    };
    let mean = sum / n;
    maximise(
        log_likelihood,
        [mean, (squares / n - mean * mean).max(1e-6).sqrt()],
    )
}

/// μ and σ of a lognormal law with values that were rounded up to 1, 2, 3 and so on; `counts[i]` of
/// them to i + 1.
pub fn lognormal_of_counts(counts: &[u64]) -> [Estimate; 2] {
    let filled: Vec<(f64, f64)> = (1..)
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(value, count)| (f64::from(value), *count as f64))
        .collect();
    let log_likelihood = |mu: f64, sigma: f64| {
        if sigma <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let above = |x: f64| normal_cdf((mu - x.ln()) / sigma);
        let term = |&(value, count): &(f64, f64)| {
            count
                * (above(value - 1.0) - above(value))
                    .max(f64::MIN_POSITIVE)
                    .ln()
        };
        filled.iter().map(term).sum()
    };
    let n: f64 = filled.iter().map(|(_, count)| count).sum();
    let mean = filled
        .iter()
        .map(|(x, count)| count * (x - 0.5).ln())
        .sum::<f64>()
        / n;
    maximise(log_likelihood, [mean, 0.5])
}

/// The tail index of a Pareto law from `k` on; none of its values is below.
pub fn pareto_alpha(sample: &[f64], k: f64) -> Estimate {
    let n = sample.len() as f64;
    let value = n / sample.iter().map(|x| (x / k).ln()).sum::<f64>();
    Estimate {
        value,
        standard_error: value / n.sqrt(),
    }
}

/// The smallest value of a Pareto law with index about `alpha`: the sample's smallest is 1/(n
/// alpha) too large on average, and that far off in its deviation.
pub fn pareto_k(sample: &[f64], alpha: f64) -> Estimate {
    let smallest = sample.iter().copied().fold(f64::INFINITY, f64::min);
    let off = smallest / (alpha * sample.len() as f64);
    // The error is exponential, not normal: twice the deviation makes the interval hold 99.8 % of
    // an exponential one.
    Estimate {
        value: smallest - off,
        standard_error: 2.0 * off,
    }
}

/// The tail index of a Pareto law between `low` and `high`.
pub fn bounded_pareto_alpha(sample: &[f64], low: f64, high: f64) -> Estimate {
    let n = sample.len() as f64;
    let sum: f64 = sample.iter().map(|x| (x / low).ln()).sum();
    let log_likelihood = |alpha: f64| {
        if alpha <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let whole = -(alpha * (low / high).ln()).exp_m1();
        n * alpha.ln() - alpha * sum - n * whole.ln()
    };
    maximise_one(log_likelihood, n / sum)
}

/// The tail index of a Pareto law from 1 on with values that were rounded down; `counts[i]` of them
/// to i + 1.
pub fn pareto_alpha_of_counts(counts: &[u64]) -> Estimate {
    let log_likelihood = |alpha: f64| {
        if alpha <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let share = |value: f64| value.powf(-alpha) - (value + 1.0).powf(-alpha);
        let term = |(value, count): (u32, &u64)| match count {
            0 => 0.0,
            count => *count as f64 * share(f64::from(value)).max(f64::MIN_POSITIVE).ln(),
        };
        (1..).zip(counts).map(term).sum()
    };
    maximise_one(log_likelihood, 1.0)
}

/// The exponent of Zipf's law; `counts[i]` is how often rank i + 1 was drawn.
pub fn zipf_exponent(counts: &[u64]) -> Estimate {
    let logarithms: Vec<f64> = (1..=counts.len()).map(|rank| (rank as f64).ln()).collect();
    let n = counts.iter().sum::<u64>() as f64;
    let weighted: f64 = counts
        .iter()
        .zip(&logarithms)
        .map(|(count, ln)| *count as f64 * ln)
        .sum();
    let log_likelihood = |exponent: f64| {
        let whole: f64 = logarithms.iter().map(|ln| (-exponent * ln).exp()).sum();
        -exponent * weighted - n * whole.ln()
    };
    maximise_one(log_likelihood, 0.9)
}

/// Scale and shape of a Weibull law.
pub fn weibull(sample: &[f64]) -> [Estimate; 2] {
    let n = sample.len() as f64;
    let logarithms: Vec<f64> = sample
        .iter()
        .map(|x| x.max(f64::MIN_POSITIVE).ln())
        .collect();
    let sum: f64 = logarithms.iter().sum();
    let log_likelihood = |scale: f64, shape: f64| {
        if scale <= 0.0 || shape <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let powers: f64 = logarithms
            .iter()
            .map(|ln| (shape * (ln - scale.ln())).exp())
            .sum();
        n * (shape.ln() - shape * scale.ln()) + (shape - 1.0) * sum - powers
    };
    maximise(log_likelihood, [(sum / n).exp(), 0.5])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::{Distribution, Sampler};

    fn sample(text: &str, count: usize) -> Vec<f64> {
        let distribution: Distribution = text.parse().expect(text);
        Sampler::new(distribution, 7, 99).take(count).collect()
    }

    /// The estimate is near the true value, and its standard error says how near.
    #[track_caller]
    fn finds(estimate: Estimate, value: f64, relative_error: f64) {
        assert!(estimate.holds(value), "{estimate:?} should hold {value}");
        let error = estimate.standard_error / value.abs();
        assert!(
            error > 0.0 && error < relative_error,
            "{estimate:?}: {error}"
        );
    }

    #[test]
    fn the_parameters_that_numbers_were_drawn_with_are_found() {
        let body: Vec<f64> = sample("surge", 20_000)
            .into_iter()
            .filter(|x| *x < 9020.0)
            .collect();
        let [mu, sigma] = lognormal_below(&body, 9020.0);
        finds(mu, 7.63, 0.01);
        finds(sigma, 1.001, 0.02);
        let tail: Vec<f64> = sample("surge", 50_000)
            .into_iter()
            .filter(|x| *x >= 9020.0)
            .collect();
        finds(bounded_pareto_alpha(&tail, 9020.0, 1e10), 1.0, 0.05);
        finds(
            pareto_alpha(&sample("pareto:k=1,alpha=1.5", 10_000), 1.0),
            1.5,
            0.02,
        );
        finds(
            pareto_k(&sample("pareto:k=2,alpha=1.5", 10_000), 1.5),
            2.0,
            0.001,
        );
        let [scale, shape] = weibull(&sample("weibull:scale=1.46,shape=0.382", 10_000));
        finds(scale, 1.46, 0.05);
        finds(shape, 0.382, 0.02);
    }

    #[test]
    fn the_parameters_of_counts_are_found() {
        let count = |values: Vec<f64>, round: fn(f64) -> f64| {
            let mut counts = vec![0; 5000];
            values
                .iter()
                .for_each(|x| counts[(round(*x) as usize - 1).min(4999)] += 1);
            counts
        };
        let distances = count(sample("lognormal:mu=1.5,sigma=0.8", 10_000), f64::ceil);
        let [mu, sigma] = lognormal_of_counts(&distances);
        finds(mu, 1.5, 0.02);
        finds(sigma, 0.8, 0.02);
        let embedded = count(sample("pareto:k=1,alpha=2.43", 10_000), f64::floor);
        finds(pareto_alpha_of_counts(&embedded), 2.43, 0.02);
        let popularity: Vec<u64> = (1..=1000).map(|rank| 10_000 / rank).collect();
        assert!((zipf_exponent(&popularity).value - 1.0).abs() < 0.02);
    }

    #[test]
    fn other_parameters_are_not_taken_for_them() {
        let [scale, shape] = weibull(&sample("weibull:scale=1.6,shape=0.4", 10_000));
        assert!(!scale.holds(1.46) && !shape.holds(0.382));
        assert!(!pareto_alpha(&sample("pareto:k=1,alpha=1.6", 10_000), 1.0).holds(1.5));
    }
}
