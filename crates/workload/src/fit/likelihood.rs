//! Maximum likelihood with one or two parameters: Newton's method, its derivatives by differences,
//! intervals from the curvature.

/// Quantile of the normal distribution for an interval that holds 999 of 1000.
pub const QUANTILE_99_9: f64 = 3.290_526_731_491_926;

/// Steps that may be taken.
const STEPS_MAX: u32 = 200;

/// An estimated parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The likeliest value.
    pub value: f64,
    /// Its standard error; infinite where the sample says nothing.
    pub standard_error: f64,
}

impl Estimate {
    /// The interval that holds the true value 999 times of 1000.
    pub fn interval(&self) -> (f64, f64) {
        let half = QUANTILE_99_9 * self.standard_error;
        (self.value - half, self.value + half)
    }

    /// Whether that interval holds `value`.
    pub fn holds(&self, value: f64) -> bool {
        let (low, high) = self.interval();
        (low..=high).contains(&value)
    }
}

/// The likeliest two parameters, from `start` on; `log_likelihood` is minus infinity where a
/// parameter is out of range.
pub fn maximise(log_likelihood: impl Fn(f64, f64) -> f64, start: [f64; 2]) -> [Estimate; 2] {
    let mut at = start;
    for _ in 0..STEPS_MAX {
        let curve = Curve::at(&log_likelihood, at);
        let next = climb(&log_likelihood, at, curve.step());
        let is_still = (0..2).all(|i| (next[i] - at[i]).abs() <= 1e-9 * at[i].abs().max(1e-3));
        at = next;
        if is_still {
            break;
        }
    }
    let errors = Curve::at(&log_likelihood, at).standard_errors();
    [0, 1].map(|i| Estimate {
        value: at[i],
        standard_error: errors[i],
    })
}

/// The likeliest value of one parameter, from `start` on.
pub fn maximise_one(log_likelihood: impl Fn(f64) -> f64, start: f64) -> Estimate {
    let mut at = start;
    let mut bend = 0.0;
    for _ in 0..STEPS_MAX {
        let d = difference(at);
        let (left, here, right) = (
            log_likelihood(at - d),
            log_likelihood(at),
            log_likelihood(at + d),
        );
        let slope = (right - left) / (2.0 * d);
        bend = (right - 2.0 * here + left) / (d * d);
        let step = if bend < 0.0 {
            -slope / bend
        } else {
            0.1 * slope.signum()
        };
        let next = climb(&|a, _| log_likelihood(a), [at, 0.0], [step, 0.0])[0];
        let is_still = (next - at).abs() <= 1e-9 * at.abs().max(1e-3);
        at = next;
        if is_still {
            break;
        }
    }
    let standard_error = if bend < 0.0 {
        (-1.0 / bend).sqrt()
    } else {
        f64::INFINITY
    };
    Estimate {
        value: at,
        standard_error,
    }
}

/// The step of a difference that stands for a derivative at `x`: between the error of the
/// difference and that of the sum, which cancels to twice its digits.
fn difference(x: f64) -> f64 {
    2e-4 * x.abs().max(1e-2)
}

/// Slope and curvature of a function of two parameters.
struct Curve {
    slope: [f64; 2],
    /// Second derivatives: twice by the first, by both, twice by the second.
    bend: [f64; 3],
}

impl Curve {
    fn at(f: &impl Fn(f64, f64) -> f64, [a, b]: [f64; 2]) -> Curve {
        let (da, db) = (difference(a), difference(b));
        let here = f(a, b);
        let (left, right, down, up) = (f(a - da, b), f(a + da, b), f(a, b - db), f(a, b + db));
        let corners = f(a + da, b + db) - f(a + da, b - db) - f(a - da, b + db) + f(a - da, b - db);
        Curve {
            slope: [(right - left) / (2.0 * da), (up - down) / (2.0 * db)],
            bend: [
                (right - 2.0 * here + left) / (da * da),
                corners / (4.0 * da * db),
                (up - 2.0 * here + down) / (db * db),
            ],
        }
    }

    /// Newton's step, or one along the slope where the function does not bend down.
    fn step(&self) -> [f64; 2] {
        let ([a, b], [aa, ab, bb]) = (self.slope, self.bend);
        let determinant = aa * bb - ab * ab;
        if aa < 0.0 && determinant > 0.0 {
            [
                (ab * b - bb * a) / determinant,
                (ab * a - aa * b) / determinant,
            ]
        } else {
            let length = a.hypot(b).max(f64::MIN_POSITIVE);
            [0.1 * a / length, 0.1 * b / length]
        }
    }

    fn standard_errors(&self) -> [f64; 2] {
        let [aa, ab, bb] = self.bend;
        let determinant = aa * bb - ab * ab;
        if aa < 0.0 && determinant > 0.0 {
            [(-bb / determinant).sqrt(), (-aa / determinant).sqrt()]
        } else {
            [f64::INFINITY; 2]
        }
    }
}

/// The step, halved until it does not lead down.
fn climb(f: &impl Fn(f64, f64) -> f64, at: [f64; 2], step: [f64; 2]) -> [f64; 2] {
    let here = f(at[0], at[1]);
    let mut share = 1.0;
    while share > 1e-12 {
        let next = [at[0] + share * step[0], at[1] + share * step[1]];
        if f(next[0], next[1]) >= here {
            return next;
        }
        share /= 2.0;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normal_samples_mean_and_deviation_are_found() {
        let sample: Vec<f64> = (0..10_000)
            .map(|i| 5.0 + 2.0 * crate::sizes::special::normal_quantile((f64::from(i) + 0.5) / 1e4))
            .collect();
        let log_likelihood = |mean: f64, deviation: f64| {
            if deviation <= 0.0 {
                return f64::NEG_INFINITY;
            }
            sample
                .iter()
                .map(|x| -((x - mean) / deviation).powi(2) / 2.0 - deviation.ln())
                .sum()
        };
        let [mean, deviation] = maximise(log_likelihood, [0.0, 1.0]);
        assert!((mean.value - 5.0).abs() < 1e-3 && (deviation.value - 2.0).abs() < 1e-2);
        // σ/√n and σ/√(2n).
        assert!((mean.standard_error - 0.02).abs() < 1e-3, "{mean:?}");
        assert!(
            (deviation.standard_error - 0.014_142).abs() < 1e-3,
            "{deviation:?}"
        );
        assert!(mean.holds(5.0) && !mean.holds(5.1));
    }

    #[test]
    fn one_parameter_alone() {
        let estimate = maximise_one(
            |rate| {
                if rate > 0.0 {
                    100.0 * rate.ln() - 50.0 * rate
                } else {
                    f64::NEG_INFINITY
                }
            },
            0.1,
        );
        assert!((estimate.value - 2.0).abs() < 1e-6, "{estimate:?}");
        assert!((estimate.standard_error - 0.2).abs() < 1e-3);
    }

    #[test]
    fn a_flat_likelihood_says_nothing() {
        assert_eq!(maximise_one(|_| 0.0, 1.0).standard_error, f64::INFINITY);
    }
}
