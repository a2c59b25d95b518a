//! What independent replications say together: a mean with its interval, the same corrected by what
//! was really offered, and whether to believe it.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewer replications have no control.
const CONTROLLED_MIN: usize = 4;
/// The skewness of fewer is chance.
const SKEWED_MIN: usize = 10;
/// Skewness over the root of their number that changes nothing.
const SKEWNESS_LOW: f64 = 1e-6;

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
    /// Of replications with these `means`, with `confidence` like 0.95: by Student's t, and for
    /// replications enough to show it wider by their skewness.
    pub fn of(means: &[f64], confidence: f64) -> Self {
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        Self {
            mean,
            half_width: half_width(means, mean, confidence),
        }
    }

    /// The same with a control variate: `controls` has of each replication what is known to be
    /// `known` in the mean; how far they are off explains a part of how far the means are off. The
    /// slope is fitted to the same replications, which would bias the mean and make the interval
    /// too narrow: the jackknife, which leaves out each in turn, corrects for both (Efron 1982).
    pub fn controlled(means: &[f64], controls: &[f64], known: f64, confidence: f64) -> Self {
        let pseudo = pseudo_values(means, controls, known);
        Self::of(pseudo.as_deref().unwrap_or(means), confidence)
    }

    /// The ends of the interval.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.half_width
            .map(|width| [self.mean - width, self.mean + width])
    }
}

/// What each replication adds to the controlled mean, by the jackknife; none where there are too
/// few, or where the controls do not differ.
fn pseudo_values(means: &[f64], controls: &[f64], known: f64) -> Option<Vec<f64>> {
    if means.len() < CONTROLLED_MIN {
        return None;
    }
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let control = controls.iter().sum::<f64>() / n;
    let off = || {
        means
            .iter()
            .map(|y| y - mean)
            .zip(controls.iter().map(|x| x - control))
    };
    let together: f64 = off().map(|(y, x)| y * x).sum();
    let alone: f64 = off().map(|(_, x)| x * x).sum();
    // Sums of squares over all others than one are less by this many times its own.
    let own = n / (n - 1.0);
    let estimate = |together: f64, alone: f64, y: f64, x: f64| {
        (alone > 0.0).then(|| mean + y - together / alone * (control + x - known))
    };
    let all = estimate(together, alone, 0.0, 0.0)?;
    let one = |(y, x): (f64, f64)| {
        let (rest_y, rest_x) = (-y / (n - 1.0), -x / (n - 1.0));
        let left_out = estimate(together - own * x * y, alone - own * x * x, rest_y, rest_x)?;
        Some(n * all - (n - 1.0) * left_out)
    };
    off().map(one).collect()
}

/// Half the interval of the mean of these values. Means of busy queues are skewed: an interval by
/// Student's t then misses high true means too often. Hall's transformation of t (1992) gives the
/// lower and the upper side their own length; this is the longer one.
fn half_width(values: &[f64], mean: f64, confidence: f64) -> Option<f64> {
    let n = values.len();
    let freedom = n.checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let quantile = student.inverse_cdf(0.5 + confidence / 2.0);
    let moment = |power| {
        values
            .iter()
            .map(|one| (one - mean).powi(power))
            .sum::<f64>()
    };
    let squares = moment(2);
    let error = (squares / freedom / n as f64).sqrt();
    if n < SKEWED_MIN || squares <= 0.0 {
        return Some(quantile * error);
    }
    let n = n as f64;
    let skewness = moment(3) / n / (squares / n).powf(1.5) * (n * freedom).sqrt() / (n - 2.0);
    let a = skewness.abs() / n.sqrt();
    if a < SKEWNESS_LOW {
        return Some(quantile * error);
    }
    let side = |t: f64| 3.0 / a * ((1.0 + a * (t - a / 6.0)).cbrt() - 1.0);
    Some(error * side(quantile).abs().max(side(-quantile).abs()))
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
