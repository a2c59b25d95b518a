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
//! Tables are bounded, because clients choose kinds and are many. A job costs at most one entry in
//! each of three tables, and a time that does not grow with them.

mod average;
mod line;
mod quality;
mod trust;

pub(crate) use quality::Outcomes;
pub use quality::{Outcome, Quality, Shadows, quality};

use crate::second_chance::SecondChance;
use crate::subject::Subject;
use average::{Average, Moments};
use line::Line;
use sooner_policy::ClientId;
use trust::{Trust, mixed, weight};

/// The jobs that the mean of a kind remembers, unless the caller says how many.
pub const KIND_MEMORY: u64 = 8;
/// The jobs that the mean of everything remembers.
const OVERALL_MEMORY: f64 = 64.0;
/// The slow mean of a kind remembers so many times as many as the fast one.
const SLOWER: f64 = 16.0;
/// The jobs that a spread remembers.
const SPREAD_MEMORY: f64 = 64.0;
/// Jobs of one client in a kind that its factor remembers.
const FACTOR_MEMORY: f64 = 24.0;
/// A factor begins as if so many jobs had shown none.
const FACTOR_BEFORE: f64 = 2.0;
/// One job counts for at most so much in a factor.
const FACTOR_MAX: f64 = 32.0;
/// Kinds that are remembered.
const KINDS_MAX: usize = 1024;
/// Neighbourhoods, and clients, that are remembered, each in each kind.
const CLIENTS_MAX: usize = 4096;

/// Of all jobs of a kind, how much the finer is better.
const SHARED_MEMORY: f64 = 128.0;
const SHARED_MAX: f64 = 8.0;
/// The same of one client's.
const OWN_MEMORY: f64 = 32.0;
const OWN_MAX: f64 = 4.0;
/// What weighs against the finer before anything is known.
const PRIOR: f64 = 2.0;
const GAIN: f64 = 1.5;

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
    spread: Moments,
    kinds: SecondChance<Kind>,
    neighbourhoods: SecondChance<Factor, OfKind>,
    clients: SecondChance<Factor, OfKind>,
    kinds_seen: u64,
}

#[derive(Debug)]
struct Kind {
    /// No other kind has had it, one that was forgotten neither.
    number: u64,
    fast: Average,
    slow: Average,
    line: Line,
    spread: Moments,
    trust_slow: Trust,
    trust_line: Trust,
    trust_neighbourhood: Trust,
    trust_client: Trust,
}

/// A client, or a neighbourhood, in a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OfKind(u64, ClientId);

impl From<&OfKind> for OfKind {
    fn from(of: &OfKind) -> Self {
        *of
    }
}

/// How many times as long jobs take as is expected without it.
#[derive(Clone, Copy, Debug)]
struct Factor {
    over: Average,
    trust: Trust,
}

impl Factor {
    fn new() -> Self {
        Self {
            over: Average::new(FACTOR_MEMORY),
            trust: Trust::new(OWN_MEMORY, OWN_MAX),
        }
    }

    fn get(&self) -> f64 {
        self.over.with_before(FACTOR_BEFORE, 1.0)
    }

    /// What is expected with it where without it is `coarse`.
    fn corrected(&self, coarse: f64, shared: &Trust) -> f64 {
        let weight = weight(shared.score() + self.trust.score(), GAIN, PRIOR);
        mixed(coarse, coarse * self.get(), weight)
    }

    /// A job took `actual` where `coarse` was expected without it.
    fn note(&mut self, actual: f64, coarse: f64, shared: &mut Trust) {
        let fine = coarse * self.get();
        if self.over.samples() > 0.0 {
            self.trust.note(actual, coarse, fine);
            shared.note(actual, coarse, fine);
        }
        self.over.add((actual / coarse).min(FACTOR_MAX));
    }
}

impl Kind {
    fn new(number: u64, memory: f64) -> Self {
        let shared = Trust::new(SHARED_MEMORY, SHARED_MAX);
        Self {
            number,
            fast: Average::new(memory),
            slow: Average::new(SLOWER * memory),
            line: Line::new(),
            spread: Moments::new(SPREAD_MEMORY),
            trust_slow: shared,
            trust_line: shared,
            trust_neighbourhood: shared,
            trust_client: shared,
        }
    }

    /// By kind alone.
    fn expected(&self) -> Option<f64> {
        let weight = weight(self.trust_slow.score(), GAIN, 0.0);
        Some(mixed(self.fast.get()?, self.slow.get()?, weight))
    }

    fn with_amount(&self, coarse: f64, amount: Option<u64>) -> f64 {
        let line = amount.and_then(|amount| self.line.expected(amount));
        line.map_or(coarse, |line| {
            mixed(coarse, line, weight(self.trust_line.score(), GAIN, PRIOR))
        })
    }

    fn note(&mut self, actual: f64) {
        if let (Some(fast), Some(slow)) = (self.fast.get(), self.slow.get()) {
            self.trust_slow.note(actual, fast, slow);
        }
        self.fast.add(actual);
        self.slow.add(actual);
        if let (Some(fast), true) = (self.fast.get(), self.trust_slow.score() < SLOW_GIVEN_UP) {
            // It is of times that are over: it begins anew.
            self.slow.restart(fast, self.fast.samples());
        }
    }

    fn note_amount(&mut self, actual: f64, coarse: f64, amount: Option<u64>) {
        let Some(amount) = amount else { return };
        if let Some(fine) = self.line.expected(amount) {
            self.trust_line.note(actual, coarse, fine);
        }
        self.line.note(amount, actual);
    }
}

/// The score below which the slow mean of a kind begins anew.
const SLOW_GIVEN_UP: f64 = -1.0;

impl Predictor {
    /// Nothing is known yet; the fast mean of a kind will remember `kind_memory` jobs.
    pub fn new(kind_memory: u64) -> Self {
        Self {
            memory: kind_memory.max(1) as f64,
            overall: Average::new(OVERALL_MEMORY),
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
                expected_ns: overall as u64,
                spread: overall_variance.sqrt(),
                kind_ns: overall as u64,
            });
        };
        let mut expected = kind.with_amount(kind.expected()?, subject.amount);
        if let Some(id) = subject.neighbourhood
            && let Some(factor) = self.neighbourhoods.get(&OfKind(kind.number, id))
        {
            expected = factor.corrected(expected, &kind.trust_neighbourhood);
        }
        if let Some(id) = subject.client
            && let Some(factor) = self.clients.get(&OfKind(kind.number, id))
        {
            expected = factor.corrected(expected, &kind.trust_client);
        }
        let variance = kind.spread.variance_with_before(2.0, overall_variance);
        Some(Prediction {
            expected_ns: expected as u64,
            spread: variance.sqrt(),
            kind_ns: kind.fast.get()? as u64,
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
        let (number, memory) = (self.kinds_seen, self.memory);
        let (kind, _) = self
            .kinds
            .entry(subject.kind.as_str(), || Kind::new(number, memory));
        self.kinds_seen += u64::from(kind.number == number);
        let Some(of_kind) = kind.expected() else {
            kind.note(actual);
            kind.note_amount(actual, actual, subject.amount);
            return;
        };
        let mut expected = kind.with_amount(of_kind, subject.amount);
        kind.note(actual);
        kind.note_amount(actual, of_kind, subject.amount);
        if let Some(id) = subject.neighbourhood {
            let of = OfKind(kind.number, id);
            let (factor, _) = self.neighbourhoods.entry(&of, Factor::new);
            let corrected = factor.corrected(expected, &kind.trust_neighbourhood);
            factor.note(actual, expected, &mut kind.trust_neighbourhood);
            expected = corrected;
        }
        if let Some(id) = subject.client {
            let of = OfKind(kind.number, id);
            let (factor, _) = self.clients.entry(&of, Factor::new);
            let corrected = factor.corrected(expected, &kind.trust_client);
            factor.note(actual, expected, &mut kind.trust_client);
            expected = corrected;
        }
        kind.spread.add((actual / expected).ln());
    }
}
