//! Jobs of several kinds, one kind before the other, the job in service interrupted and resumed:
//! PESJF and PELJF, which know the mean of a kind and no more (thesis 13.1.2; preemptive-resume
//! priority, Kleinrock 1976, 3.6).

use crate::TheoryError;
use sooner_workload::sizes::Kind;

/// Mean response time, in the unit of the sizes, of jobs of exponential `kinds` at `load`, served
/// in the order of `kinds`, each kind first come first served.
pub fn mean_response(kinds: &[Kind], load: f64) -> Result<f64, TheoryError> {
    if !(load > 0.0 && load < 1.0) {
        return Err(TheoryError::Load(load));
    }
    let mean: f64 = kinds.iter().map(|kind| kind.share * kind.mean).sum();
    if !(mean.is_finite() && mean > 0.0) {
        return Err(TheoryError::Mean);
    }
    let rate = load / mean;
    let (mut before, mut residual, mut response) = (0.0, 0.0, 0.0);
    for kind in kinds {
        let up_to = before + rate * kind.share * kind.mean;
        // E[S^2] / 2 of an exponential size is the square of its mean.
        residual += rate * kind.share * kind.mean * kind.mean;
        let of_kind = kind.mean / (1.0 - before) + residual / ((1.0 - before) * (1.0 - up_to));
        response += kind.share * of_kind;
        before = up_to;
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_kind_is_first_come_first_served() {
        let kind = Kind {
            share: 1.0,
            mean: 3.0,
        };
        let found = mean_response(&[kind], 0.8).expect("a queue");
        assert!((found - 15.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn two_equal_kinds_are_first_come_first_served_in_the_mean() {
        let kind = Kind {
            share: 0.5,
            mean: 1.0,
        };
        // Whichever kind interrupts the other, exponential sizes of one mean have no memory.
        let found = mean_response(&[kind, kind], 0.8).expect("a queue");
        assert!((found - 5.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn the_smaller_kind_first_is_better() {
        let small = Kind {
            share: 0.9,
            mean: 0.5,
        };
        let large = Kind {
            share: 0.1,
            mean: 5.5,
        };
        let [pesjf, peljf] = [[small, large], [large, small]]
            .map(|order| mean_response(&order, 0.8).expect("a queue"));
        assert!(pesjf < peljf / 3.0, "{pesjf} {peljf}");
    }
}
