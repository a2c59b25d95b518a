//! What independent replications say together: a mean with its interval, the same corrected by what
//! was really offered, and whether to believe it.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean over replications.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the length of the interval that has the true mean in it with the requested confidence;
    /// none of fewer than two replications.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// Of replications with these `means`, with `confidence` like 0.95, by Student's t.
    pub fn of(means: &[f64], confidence: f64) -> Self {
        let n = means.len() as f64;
        let mean = means.iter().sum::<f64>() / n;
        let squares: f64 = means.iter().map(|one| (one - mean) * (one - mean)).sum();
        Self {
            mean,
            half_width: half_width(squares, means.len(), 1, confidence),
        }
    }

    /// The same with a control variate: `controls` has of each replication what is known to be
    /// `known` in the mean; how far they are off explains a part of how far the means are off.
    pub fn controlled(means: &[f64], controls: &[f64], known: f64, confidence: f64) -> Self {
        let n = means.len() as f64;
        let mean = means.iter().sum::<f64>() / n;
        let control = controls.iter().sum::<f64>() / n;
        let both = means.iter().zip(controls);
        let together: f64 = both.clone().map(|(y, x)| (y - mean) * (x - control)).sum();
        let alone: f64 = controls.iter().map(|x| (x - control) * (x - control)).sum();
        if alone <= 0.0 || means.len() < 4 {
            return Self::of(means, confidence);
        }
        let slope = together / alone;
        let residuals: f64 = both
            .map(|(y, x)| {
                let residual = y - mean - slope * (x - control);
                residual * residual
            })
            .sum();
        let off = control - known;
        // The line is known the worse the farther away it is asked (Law and Kelton, 11.4).
        let widening = (1.0 + n * off * off / alone).sqrt();
        let half_width = half_width(residuals, means.len(), 2, confidence);
        Self {
            mean: mean - slope * off,
            half_width: half_width.map(|width| width * widening),
        }
    }

    /// The ends of the interval.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.half_width
            .map(|width| [self.mean - width, self.mean + width])
    }
}

/// Of `n` numbers with squared deviations that sum up to `squares`, with `fitted` parameters fitted
/// to them.
fn half_width(squares: f64, n: usize, fitted: usize, confidence: f64) -> Option<f64> {
    let freedom = n.checked_sub(fitted).filter(|freedom| *freedom > 0)? as f64;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let quantile = student.inverse_cdf(0.5 + confidence / 2.0);
    Some(quantile * (squares / freedom / n as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students() {
        // 1, 2, 3: mean 2, deviation 1; t(2) at 97.5 % is 4.302653.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0], 0.95);
        assert_eq!(estimate.mean, 2.0);
        let width = estimate.half_width.expect("three numbers");
        assert!((width - 4.302_653 / 3_f64.sqrt()).abs() < 1e-5, "{width}");
        assert_eq!(Estimate::of(&[1.0], 0.95).half_width, None);
    }

    #[test]
    fn a_control_takes_away_what_it_explains() {
        let controls = [0.7, 0.8, 0.9, 1.0];
        let means = controls.map(|control| 3.0 + 10.0 * (control - 0.8));
        let controlled = Estimate::controlled(&means, &controls, 0.8, 0.95);
        assert!((controlled.mean - 3.0).abs() < 1e-9, "{controlled:?}");
        assert!(controlled.half_width.expect("four") < 1e-6);
    }
}
