//! Did the requests come as they were to? The gaps between what was sent against the requested law.
//!
//! A Poisson process is tested by its distribution ([`exponential`]), because the model requests a
//! distribution. A trace's gaps are compared one by one, because the model requests each of them; a
//! distribution would not do: gaps that are equal in a trace are off by microseconds when sent,
//! which is nothing, and yet no test of distributions takes them for equal.

use sooner_stats::{GapLaw, Interarrivals};
use sooner_workload::Process;
use sooner_workload::fit::exponential;

/// A gap of a trace counts as off when it is wrong by more than this share of the mean gap.
const OFF_SHARE: f64 = 0.5;
/// Largest share of gaps that may be off: as much as is negligible in the test of a distribution.
const OFF_GAPS_MAX: f64 = exponential::NEGLIGIBLE_DISTANCE;

/// A gap between two arrivals in the same phase, relative to the phase's mean gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// As it was planned.
    pub planned: f64,
    /// As it was sent.
    pub sent: f64,
}

/// Tests `gaps` against the law of `process`; none where there are too few to say anything.
pub fn test(gaps: &[Gap], process: Process) -> Option<Interarrivals> {
    if gaps.len() < exponential::GAPS_MIN {
        return None;
    }
    let (law, distance, limit) = match process {
        Process::Poisson => {
            let mut sent: Vec<f64> = gaps.iter().map(|gap| gap.sent).collect();
            let distance = exponential::distance(&mut sent)?;
            let limit = exponential::distance_max(gaps.len());
            (GapLaw::Exponential, distance, limit)
        }
        Process::Trace => {
            let is_off = |gap: &&Gap| (gap.sent - gap.planned).abs() > OFF_SHARE;
            let off = gaps.iter().filter(is_off).count();
            (GapLaw::Trace, off as f64 / gaps.len() as f64, OFF_GAPS_MAX)
        }
    };
    Some(Interarrivals {
        law,
        gaps: gaps.len() as u64,
        distance,
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(sent: impl Fn(usize) -> f64) -> Vec<Gap> {
        let gap = |at| Gap {
            planned: 1.0,
            sent: sent(at),
        };
        (0..200).map(gap).collect()
    }

    fn is_believed(gaps: &[Gap], process: Process) -> bool {
        let test = test(gaps, process).expect("enough gaps");
        test.distance <= test.limit
    }

    #[test]
    fn a_traces_gaps_may_be_a_little_off_or_a_few_of_them_much() {
        let jittered = gaps(|at| if at % 2 == 0 { 1.01 } else { 0.99 });
        assert!(is_believed(&jittered, Process::Trace));
        let ten_off = gaps(|at| if at % 20 == 0 { 3.0 } else { 1.0 });
        assert!(is_believed(&ten_off, Process::Trace));
        let every_tenth_off = gaps(|at| if at % 10 == 0 { 1.51 } else { 1.0 });
        assert!(!is_believed(&every_tenth_off, Process::Trace));
    }

    #[test]
    fn bunched_requests_keep_to_neither_law() {
        let bunched = gaps(|at| if at % 4 == 0 { 4.0 } else { 0.0 });
        assert!(!is_believed(&bunched, Process::Trace));
        assert!(!is_believed(&bunched, Process::Poisson));
    }

    #[test]
    fn few_gaps_say_nothing() {
        assert_eq!(test(&gaps(|_| 9.0)[..19], Process::Trace), None);
    }
}
