//! A row of the report: the mean of some transactions in milliseconds, by part, with intervals.

use serde::Serialize;

use super::interval::sum_error;
use super::part::Part;
use super::tally::{SLICES, Seconds};

/// What a row counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Transactions.
    Transactions,
    /// Statements: nothing said which transactions they were in.
    Statements,
}

/// A part of a mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PartTime {
    /// Which.
    pub part: Part,
    /// How many transactions are in it at a time, on average.
    pub at_a_time: f64,
    /// Of all their time, 0 to 1.
    pub share: f64,
    /// Of each transaction, on average, ms; none where none began.
    pub ms: Option<f64>,
    /// Half of the 95 per cent interval of `ms`, where it is known.
    pub error_ms: Option<f64>,
}

/// A class, a kind, a statement, or all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// What is counted.
    pub counted: Counted,
    /// How many a second.
    pub per_sec: f64,
    /// How many at a time, on average.
    pub at_a_time: f64,
    /// How long each takes, ms: the sum of the parts; none where none began.
    pub mean_ms: Option<f64>,
    /// Half of its 95 per cent interval, where it is known.
    pub error_ms: Option<f64>,
    /// Of `mean_ms`, in line for a processor before the server shows a transaction.
    pub before_ms: Option<f64>,
    /// All of them that are not 0, as in [`Part::ALL`].
    pub parts: Vec<PartTime>,
}

impl Row {
    /// Milliseconds of a part.
    pub fn ms(&self, part: Part) -> f64 {
        let mut parts = self.parts.iter();
        let own = parts.find(|own| own.part == part);
        own.and_then(|own| own.ms).unwrap_or(0.0)
    }

    /// Milliseconds of all waits for heavyweight locks.
    pub fn locks_ms(&self) -> f64 {
        let locks = self.parts.iter().filter(|own| own.part.is_lock());
        locks.filter_map(|own| own.ms).sum()
    }
}

/// All of a row but its times.
pub struct Shape {
    /// What it is called.
    pub name: String,
    /// What is counted.
    pub counted: Counted,
    /// How many a second.
    pub per_sec: f64,
    /// Half of the interval of that, as a part of it.
    pub rate_error: f64,
    /// How long it was looked at.
    pub time_s: f64,
    /// How long each slice was.
    pub slices_s: [f64; SLICES],
    /// In line for a processor before the server shows a transaction, seconds.
    pub before_s: f64,
}

impl Shape {
    /// With so much time by part.
    pub fn row(self, seconds: &Seconds, slices: Option<&[Seconds; SLICES]>) -> Row {
        let sum_s: f64 = seconds.iter().sum();
        let count = self.per_sec * self.time_s;
        let ms = |seconds: f64| (count > 0.0).then(|| 1e3 * seconds / count);
        // The rate is in all of it, also in what the kernel counts and no slice has.
        let error = |own: f64, of: &dyn Fn(&Seconds) -> f64| {
            let all = slices?.iter().map(of).collect::<Vec<f64>>();
            let of_slices = ms(sum_error(&all, &self.slices_s, self.time_s)?)?;
            let of_rate = ms(own)? * self.rate_error;
            Some(of_slices.hypot(of_rate))
        };
        let time_s = self.time_s.max(f64::MIN_POSITIVE);
        let parts = Part::ALL.iter().zip(seconds).map(|(part, own)| PartTime {
            part: *part,
            at_a_time: own / time_s,
            share: own / sum_s.max(f64::MIN_POSITIVE),
            ms: ms(*own),
            error_ms: match part {
                // Slices have both as one.
                Part::Running | Part::ProcessorWait => None,
                _ => error(*own, &|slice: &Seconds| slice[part.index()]),
            },
        });
        Row {
            mean_ms: ms(sum_s),
            error_ms: error(sum_s, &|slice: &Seconds| slice.iter().sum()),
            before_ms: ms(self.before_s),
            parts: parts.filter(|own| own.at_a_time > 0.0).collect(),
            at_a_time: sum_s / time_s,
            per_sec: self.per_sec,
            counted: self.counted,
            name: self.name,
        }
    }
}
