//! Kinds of requests by number, in bounded memory, and what a kind tells of a time.

use super::inside::Visit;
use sooner_admission::{KIND_MEMORY, Predictor};
use sooner_workload::Rng;
use std::collections::HashMap;

/// Kinds that are told apart; clients choose their names.
const KINDS_MAX: usize = 4096;
/// All others.
const OTHER: &str = "(other)";
/// Where the log says nothing.
const UNNAMED: &str = "(not in the log)";
/// Pairs that are compared: the share is then right to half a per cent.
const PAIRS: u64 = 40_000;
/// Names the random stream of pairs.
const PURPOSE: u64 = 0x62;

/// Names of kinds.
pub struct Kinds {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            names: vec![UNNAMED.into(), OTHER.into()],
        }
    }
}

impl Kinds {
    /// The number of a kind.
    pub fn number(&mut self, kind: Option<&str>) -> u32 {
        let Some(kind) = kind else {
            return 0;
        };
        if let Some(number) = self.numbers.get(kind) {
            return *number;
        }
        if self.names.len() >= KINDS_MAX {
            return 1;
        }
        let number = self.names.len() as u32;
        self.names.push(kind.to_owned());
        self.numbers.insert(kind.to_owned(), number);
        number
    }

    /// The name of each number.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Share of the variance of `times` that lies between kinds, corrected for what chance puts there;
/// none where nothing varies.
pub fn explained(visits: &[Visit], times: &[f64], kinds: usize) -> Option<f64> {
    let mut sums = vec![(0.0, 0_u64); kinds];
    for (visit, time) in visits.iter().zip(times) {
        let sum = &mut sums[visit.kind as usize];
        *sum = (sum.0 + time, sum.1 + 1);
    }
    let n = times.len() as f64;
    let mean = times.iter().sum::<f64>() / n.max(1.0);
    let all: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    let within: f64 = visits
        .iter()
        .zip(times)
        .map(|(visit, time)| {
            let (sum, n) = sums[visit.kind as usize];
            (time - sum / n as f64).powi(2)
        })
        .sum();
    let groups = sums.iter().filter(|sum| sum.1 > 0).count() as f64;
    if all <= 0.0 || n <= groups {
        return None;
    }
    Some((1.0 - within / (n - groups) / (all / (n - 1.0))).clamp(0.0, 1.0))
}

/// Share of pairs of requests with different times that are ranked correctly by what earlier
/// requests let expect; a pair of one rank counts half. None where no times differ.
pub fn ranked_rightly(visits: &[Visit], times: &[f64], names: &[String]) -> Option<f64> {
    let mut predictor = Predictor::new(KIND_MEMORY);
    let mut expect = |(visit, time): (&Visit, &f64)| {
        let subject = visit.subject(names);
        let prediction = predictor.predict(&subject);
        predictor.observe(&subject, *time as u64);
        prediction.map_or(0, |prediction| prediction.expected_ns)
    };
    let expected: Vec<u64> = visits.iter().zip(times).map(&mut expect).collect();
    let mut rng = Rng::new(visits.len() as u64, PURPOSE);
    let (mut right, mut pairs) = (0.0, 0_u64);
    for _ in 0..PAIRS {
        let [one, other] = [(); 2].map(|()| rng.below(visits.len().max(1) as u64) as usize);
        if visits.is_empty() || times[one] == times[other] {
            continue;
        }
        pairs += 1;
        right += match expected[one].cmp(&expected[other]) {
            std::cmp::Ordering::Equal => 0.5,
            order => f64::from(u8::from(order == times[one].total_cmp(&times[other]))),
        };
    }
    (pairs > 0).then(|| right / pairs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(kinds: impl Iterator<Item = u32>) -> Vec<Visit> {
        let visit = |(at, kind)| Visit {
            at_ns: at,
            enter_ns: at,
            leave_ns: at + 1,
            kind,
            amount: None,
            client: None,
        };
        (0..).zip(kinds).map(visit).collect()
    }

    fn names() -> Vec<String> {
        ["a", "b"].map(String::from).to_vec()
    }

    #[test]
    fn kinds_are_bounded() {
        let mut kinds = Kinds::default();
        assert_eq!(kinds.number(None), 0);
        assert_eq!((kinds.number(Some("a")), kinds.number(Some("b"))), (2, 3));
        for number in 0..10_000 {
            kinds.number(Some(&format!("kind {number}")));
        }
        assert_eq!(kinds.number(Some("a")), 2);
        assert_eq!(kinds.number(Some("another")), 1);
        assert_eq!(kinds.names().len(), KINDS_MAX);
    }

    #[test]
    fn kinds_that_say_all_and_kinds_that_say_nothing() {
        let all = visits((0..20_000).map(|place| place % 2));
        let of_kind: Vec<f64> = all
            .iter()
            .map(|visit| 10.0 + 90.0 * f64::from(visit.kind))
            .collect();
        assert_eq!(explained(&all, &of_kind, 2), Some(1.0));
        assert!(ranked_rightly(&all, &of_kind, &names()) > Some(0.99));
        let mut rng = Rng::new(1, 1);
        let random: Vec<f64> = all.iter().map(|_| 1e6 * rng.exponential()).collect();
        assert!(explained(&all, &random, 2) < Some(0.01));
        let ranked = ranked_rightly(&all, &random, &names()).expect("pairs");
        assert!((ranked - 0.5).abs() < 0.02, "{ranked}");
        assert_eq!(explained(&all, &vec![7.0; 20_000], 2), None);
        assert_eq!(ranked_rightly(&all, &vec![7.0; 20_000], &names()), None);
        assert_eq!(ranked_rightly(&[], &[], &[]), None);
    }
}
