//! How long a job will stay inside, from how long others like it did.
//!
//! What is known of a job ([`Subject`]) makes it like others in a coarse way or in a fine one. From
//! coarse to fine: everything; its kind, by the mean of the last few and by that of many; its
//! amount within the kind; the neighbourhood of its client within the kind; the client. Each level
//! corrects the one before it by a factor, and is believed as far as it has been better on the same
//! jobs ([`trust`]).
//!
//! What is expected is a mean, because the order by expected means is the one that gives the lowest
//! mean wait where nothing is interrupted (Smith 1956), and because the imagined service of the
//! queue adds expectations up. So levels are means of times, or of times over what the level before
//! expects. Logarithms only serve where a factor is meant: between levels, for the slope by amount,
//! and for the spread.
//!
//! What is said of a job follows its level only where that has moved by more than chance
//! ([`settled`]), so that jobs that are alike go in as they came.
//!
//! Tables are bounded, because clients choose kinds and are many. A job costs at most one entry in
//! each of three tables, and a time that does not grow with them.

mod average;
mod factor;
mod kind;
mod line;
mod outcomes;
mod quality;
mod settled;
mod steps;
mod trust;

pub use outcomes::Outcome;
pub(crate) use outcomes::Outcomes;
pub use outcomes::tuning_of;
pub use quality::{Quality, Shadows, quality};
pub use trust::Trust;

use crate::second_chance::SecondChance;
use crate::subject::Subject;
use average::{Average, Moments};
use factor::Factor;
use kind::{Kind, SPREAD_MEMORY};
use settled::Settled;
use sooner_policy::ClientId;

/// The jobs that the mean of a kind remembers, unless the caller says how many.
pub const KIND_MEMORY: u64 = 8;
/// The jobs that the mean of everything remembers.
const OVERALL_MEMORY: f64 = 64.0;
/// Kinds that are remembered.
const KINDS_MAX: usize = 1024;
/// Neighbourhoods, and clients, that are remembered, of all kinds together.
const CLIENTS_MAX: usize = 4096;

/// How long a job is expected to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The mean, ns.
    pub expected_ns: u64,
    /// The standard deviation of the logarithm of the time.
    pub spread: f64,
    /// The mean of what was of the same kind of late, which is what one would expect without all
    /// the rest, ns.
    pub kind_ns: u64,
}

/// Learns what takes how long.
#[derive(Debug)]
pub struct Predictor {
    memory: f64,
    overall: Average,
    overall_settled: Settled,
    spread: Moments,
    kinds: SecondChance<Kind>,
    neighbourhoods: SecondChance<Factor, OfKind>,
    clients: SecondChance<Factor, OfKind>,
    kinds_seen: u64,
}

/// A client, or a neighbourhood, in a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OfKind(u64, ClientId);

impl From<&OfKind> for OfKind {
    fn from(of: &OfKind) -> Self {
        *of
    }
}

impl Predictor {
    /// Nothing is known yet; the fast mean of a kind will remember `kind_memory` jobs.
    pub fn new(kind_memory: u64) -> Self {
        Self {
            memory: kind_memory.max(1) as f64,
            overall: Average::new(OVERALL_MEMORY),
            overall_settled: Settled::new(),
            spread: Moments::new(SPREAD_MEMORY),
            kinds: SecondChance::new(KINDS_MAX),
            neighbourhoods: SecondChance::of_keys(CLIENTS_MAX),
            clients: SecondChance::of_keys(CLIENTS_MAX),
            kinds_seen: 0,
        }
    }

    /// What is expected of a job; `None` before the first observation of any.
    pub fn predict(&mut self, subject: &Subject) -> Option<Prediction> {
        let overall = self.overall.get()?;
        let overall_variance = self.spread.variance_with_before(1.0, 1.0);
        let Some(kind) = self.kinds.get(subject.kind.as_str()) else {
            return Some(Prediction {
                expected_ns: self.overall_settled.get() as u64,
                spread: overall_variance.sqrt(),
                kind_ns: overall as u64,
            });
        };
        let mut expected = kind.with_amount(kind.expected()?, subject.amount);
        if let Some(id) = subject.neighbourhood
            && let Some(factor) = self.neighbourhoods.get(&OfKind(kind.number, id))
        {
            expected = factor.corrected(expected, &kind.neighbourhood_trust);
        }
        if let Some(id) = subject.client
            && let Some(factor) = self.clients.get(&OfKind(kind.number, id))
        {
            expected = factor.corrected(expected, &kind.client_trust);
        }
        let variance = kind.spread.variance_with_before(2.0, overall_variance);
        Some(Prediction {
            expected_ns: kind.settled(expected)? as u64,
            spread: variance.sqrt(),
            kind_ns: kind.mean()? as u64,
        })
    }

    /// The mean of all recent jobs, ns.
    pub fn overall_ns(&self) -> Option<u64> {
        self.overall.get().map(|mean| mean as u64)
    }

    /// A job took `service_ns`.
    pub fn observe(&mut self, subject: &Subject, service_ns: u64) {
        let actual = service_ns.max(1) as f64;
        if let Some(overall) = self.overall.get() {
            self.spread.add((actual / overall).ln());
        }
        self.overall.add(actual);
        if let Some(overall) = self.overall.get() {
            self.overall_settled.note(overall);
        }
        let (number, memory) = (self.kinds_seen, self.memory);
        let new = || Kind::new(number, memory);
        let (kind, _) = self.kinds.entry(subject.kind.as_str(), new);
        self.kinds_seen += u64::from(kind.number == number);
        let of_kind = kind.expected().unwrap_or(actual);
        let mut expected = kind.with_amount(of_kind, subject.amount);
        kind.note(actual, subject.amount);
        let levels = [
            (
                subject.neighbourhood,
                &mut self.neighbourhoods,
                &mut kind.neighbourhood_trust,
            ),
            (subject.client, &mut self.clients, &mut kind.client_trust),
        ];
        for (id, factors, trust) in levels {
            let Some(id) = id else { continue };
            let (factor, _) = factors.entry(&OfKind(kind.number, id), Factor::new);
            let corrected = factor.corrected(expected, trust);
            factor.note(actual, expected, trust);
            expected = corrected;
        }
        kind.spread.add((actual / expected).ln());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is expected after these times, in ms, of jobs of the same kind.
    fn ways(subjects: &[(&str, u64)]) -> String {
        let mut predictor = Predictor::new(KIND_MEMORY);
        let mut said = Vec::new();
        for &(kind, service_ms) in subjects {
            let prediction = predictor.predict(&kind.into());
            said.push(prediction.map_or("?".to_owned(), |one| {
                format!("{}", one.expected_ns / 1_000_000)
            }));
            predictor.observe(&kind.into(), service_ms * 1_000_000);
        }
        said.join(" ")
    }

    #[test]
    fn an_unknown_kind_is_expected_to_be_like_the_others() {
        let subjects = [
            ("a", 10),
            ("b", 30),
            ("a", 10),
            ("b", 30),
            ("c", 7),
            ("c", 7),
        ];
        assert_eq!(ways(&subjects), "? 10 10 30 16 7");
    }

    #[test]
    fn a_kind_is_followed_when_it_changes() {
        let mut subjects = vec![("a", 10); 200];
        subjects.extend([("a", 100); 40]);
        let said = ways(&subjects);
        let after: Vec<&str> = said.split(' ').skip(200).step_by(6).collect();
        assert_eq!(after.join(" "), "10 53 72 90 90 90 98");
    }

    #[test]
    fn what_varies_more_has_a_wider_spread() {
        let mut predictor = Predictor::new(KIND_MEMORY);
        for job in 0..200 {
            predictor.observe(&"even".into(), 1_000_000);
            predictor.observe(&"odd".into(), [100_000, 10_000_000][job % 2]);
        }
        let mut spread = |kind: &str| predictor.predict(&kind.into()).map(|one| one.spread);
        assert!(spread("even") < Some(0.5) && spread("odd") > Some(2.0));
    }

    #[test]
    fn times_without_bounds_are_borne() {
        let mut predictor = Predictor::new(1);
        for job in 0..500_u64 {
            let subject = Subject {
                kind: "k".into(),
                amount: Some([0, u64::MAX, 1 << (job % 64)][job as usize % 3]),
                client: Some(ClientId(job % 5)),
                neighbourhood: Some(ClientId(1)),
                ..Subject::default()
            };
            predictor.observe(&subject, [0, u64::MAX, 1, 1 << 40][job as usize % 4]);
            let prediction = predictor.predict(&subject).unwrap();
            assert!(prediction.spread.is_finite(), "{prediction:?}");
        }
    }
}
