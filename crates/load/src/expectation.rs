//! What a run is expected to show, as people write it: `p99<200ms`, `errors<0.1%`, `rate>=495/s`.

use hdrhistogram::Histogram;
use sooner_workload::parse_duration;
use std::fmt;
use std::str::FromStr;

/// One expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    text: String,
    figure: Figure,
    relation: Relation,
    limit: f64,
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// Mean response time, ms.
    Mean,
    /// Shortest response time, ms.
    Min,
    /// A percentile of the response times, ms; 100 is the longest.
    Percentile(f64),
    /// Share of requests that failed, per cent.
    ErrorPercent,
    /// Number of requests that failed.
    Errors,
    /// Answers a second.
    Rate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    Less,
    AtMost,
    AtLeast,
    More,
    Equal,
}

/// An expectation beside what came.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Checked {
    /// The expectation as it was written.
    pub expected: String,
    /// What was measured: ms, per cent, a number or answers a second; none where nothing was.
    pub measured: Option<f64>,
    /// Whether it is met.
    pub is_met: bool,
    /// The figure with its unit, for people.
    #[serde(skip)]
    pub shown: String,
}

/// No expectation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpectationError {
    /// No relation in it.
    #[error("`{0}` compares nothing; write for example p99<200ms, errors<0.1% or rate>=495/s")]
    Form(String),
    /// An unknown figure.
    #[error(
        "`{text}`: there is no figure `{figure}`; use mean, min, max, p50 to p99.99, errors or rate"
    )]
    Figure {
        /// The expectation.
        text: String,
        /// The figure.
        figure: String,
    },
    /// Not a limit of this figure.
    #[error("`{text}`: `{limit}` is no {what}; write {right}")]
    Limit {
        /// The expectation.
        text: String,
        /// The limit.
        limit: String,
        /// What it should be.
        what: &'static str,
        /// How.
        right: String,
    },
}

/// Longer ones first: `<` begins `<=`.
const RELATIONS: [(&str, Relation); 6] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("==", Relation::Equal),
    ("<", Relation::Less),
    (">", Relation::More),
    ("=", Relation::Equal),
];

impl FromStr for Expectation {
    type Err = ExpectationError;

    fn from_str(text: &str) -> Result<Self, ExpectationError> {
        let text = text.trim();
        let place = text.find(['<', '>', '=']);
        let (name, rest) = text.split_at(place.unwrap_or(text.len()));
        let found = RELATIONS
            .iter()
            .find_map(|(sign, relation)| Some((*relation, rest.strip_prefix(sign)?)));
        let Some((relation, limit)) = found else {
            return Err(ExpectationError::Form(text.into()));
        };
        let figure = figure(name.trim()).ok_or_else(|| ExpectationError::Figure {
            text: text.into(),
            figure: name.trim().into(),
        })?;
        let limit = limit.trim();
        let (figure, value) = match figure {
            Figure::Errors => match limit.strip_suffix('%') {
                Some(percent) => (Figure::ErrorPercent, number(percent)),
                None => (figure, number(limit).filter(|limit| limit.fract() == 0.0)),
            },
            Figure::Rate => (figure, number(limit.trim_end_matches("/s"))),
            // A number alone may mean seconds or, to others, milliseconds.
            _ if limit.parse::<f64>().is_ok() => (figure, None),
            _ => {
                let time = parse_duration(limit).ok();
                (figure, time.map(|time| time.as_secs_f64() * 1e3))
            }
        };
        let limit = value.ok_or_else(|| figure.wrong_limit(text, limit))?;
        Ok(Self {
            text: text.into(),
            figure,
            relation,
            limit,
        })
    }
}

/// `p99`, `p(99)` of k6, `max`.
fn figure(name: &str) -> Option<Figure> {
    Some(match name.to_ascii_lowercase().as_str() {
        "mean" | "avg" => Figure::Mean,
        "min" => Figure::Min,
        "max" => Figure::Percentile(100.0),
        "med" | "median" => Figure::Percentile(50.0),
        "errors" | "error" => Figure::Errors,
        "rate" => Figure::Rate,
        name => {
            let percent = name.strip_prefix('p')?;
            let percent = percent.trim_start_matches('(').trim_end_matches(')');
            let percent = number(percent)?;
            return (percent <= 100.0).then_some(Figure::Percentile(percent));
        }
    })
}

fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let starts_right = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let value: f64 = text.parse().ok()?;
    (starts_right && value.is_finite()).then_some(value)
}

impl Figure {
    fn wrong_limit(self, text: &str, limit: &str) -> ExpectationError {
        let (what, right) = match self {
            // Meant as a share, as k6 writes it; as a number it lets no request fail.
            Figure::Errors if number(limit).is_some() => (
                "whole number of requests",
                "errors<1% for a share, or errors<=5".to_owned(),
            ),
            Figure::Errors | Figure::ErrorPercent => (
                "share or number of requests",
                "errors<0.1% or errors<=5".to_owned(),
            ),
            Figure::Rate => ("rate", "rate>=495/s".to_owned()),
            _ if limit.parse::<f64>().is_ok() => (
                "time, its unit is missing",
                format!("{limit}ms or {limit}s"),
            ),
            _ => ("time", "200ms or 1.5s".to_owned()),
        };
        ExpectationError::Limit {
            text: text.into(),
            limit: limit.into(),
            what,
            right,
        }
    }

    /// The figure with its unit.
    fn shown(self, value: Option<f64>) -> String {
        let Some(value) = value else {
            return "nothing was measured".into();
        };
        match self {
            Figure::ErrorPercent => format!("{value:.3} %"),
            Figure::Errors => format!("{value:.0}"),
            Figure::Rate => format!("{value:.1}/s"),
            _ if value < 1000.0 => format!("{value:.3} ms"),
            _ => format!("{:.3} s", value / 1e3),
        }
    }
}

/// What expectations are held against.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    /// Response times, ns.
    pub responses: &'a Histogram<u64>,
    /// Requests that ended well.
    pub answered: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Answers a second.
    pub answered_per_sec: f64,
}

impl Measured<'_> {
    /// A figure in the unit of its kind; none where nothing was measured.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        let ended = self.answered + self.errors;
        let times = self.responses;
        match figure {
            Figure::Errors => (ended > 0).then_some(self.errors as f64),
            Figure::ErrorPercent => (ended > 0).then(|| self.errors as f64 * 100.0 / ended as f64),
            Figure::Rate => Some(self.answered_per_sec),
            _ if times.is_empty() => None,
            Figure::Mean => Some(times.mean() / 1e6),
            Figure::Min => Some(times.min() as f64 / 1e6),
            Figure::Percentile(percent) => {
                Some(times.value_at_quantile(percent / 100.0) as f64 / 1e6)
            }
        }
    }
}

/// Whether an expectation says how many errors there may be.
pub fn judge_errors(expectations: &[Expectation]) -> bool {
    expectations.iter().any(Expectation::is_of_errors)
}

/// Holds all of them against what was measured.
pub fn check(expectations: &[Expectation], measured: &Measured<'_>) -> Vec<Checked> {
    let check = |expectation: &Expectation| expectation.check(|figure| measured.figure(figure));
    expectations.iter().map(check).collect()
}

impl Expectation {
    /// Whether it says something of errors: how many there may be is then for it to judge.
    pub fn is_of_errors(&self) -> bool {
        matches!(self.figure, Figure::Errors | Figure::ErrorPercent)
    }

    /// Holds it against what was measured; `figure` gives a figure in the unit of its kind. What
    /// was not measured meets nothing.
    pub fn check(&self, figure: impl Fn(Figure) -> Option<f64>) -> Checked {
        let measured = figure(self.figure);
        let is_met = measured.is_some_and(|value| match self.relation {
            Relation::Less => value < self.limit,
            Relation::AtMost => value <= self.limit,
            Relation::AtLeast => value >= self.limit,
            Relation::More => value > self.limit,
            Relation::Equal => value == self.limit,
        });
        Checked {
            expected: self.text.clone(),
            measured,
            is_met,
            shown: self.figure.shown(measured),
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn met(text: &str, value: f64) -> bool {
        let expectation: Expectation = text.parse().expect(text);
        expectation.check(|_| Some(value)).is_met
    }

    #[test]
    fn figures_limits_and_relations_are_read() {
        for (text, below, above) in [
            ("p99<200ms", 199.9, 200.0),
            ("p(99.9) < 1.5s", 1499.0, 1501.0),
            ("mean<=200ms", 200.0, 200.1),
            ("max<1min", 59_999.0, 60_000.0),
            ("errors<0.1%", 0.05, 0.1),
            ("errors<=5", 5.0, 6.0),
            ("errors==0", 0.0, 1.0),
            ("errors<5.0", 4.0, 5.0),
            ("med<500us", 0.4, 0.5),
        ] {
            assert!(met(text, below) && !met(text, above), "{text}");
        }
        for (text, above, below) in [("rate>=495/s", 495.0, 494.9), ("rate>495", 496.0, 495.0)] {
            assert!(met(text, above) && !met(text, below), "{text}");
        }
        let figure = |text: &str| text.parse::<Expectation>().expect(text).figure;
        assert_eq!(figure("p99.99<1s"), Figure::Percentile(99.99));
        assert_eq!(figure("max<1s"), Figure::Percentile(100.0));
        assert_eq!(figure("errors<1%"), Figure::ErrorPercent);
        let nothing = "p99<1s"
            .parse::<Expectation>()
            .expect("right")
            .check(|_| None);
        assert!(!nothing.is_met);
    }

    #[test]
    fn what_is_none_says_in_one_line_what_would_be_right() {
        for (text, words) in [
            ("", "compares nothing"),
            ("p99", "p99<200ms"),
            ("p99 200ms", "compares nothing"),
            ("p99<200", "200ms or 200s"),
            ("p99<soon", "200ms or 1.5s"),
            ("p99<", "200ms or 1.5s"),
            ("p101<1s", "no figure `p101`"),
            ("p-1<1s", "no figure `p-1`"),
            ("latency<1s", "use mean, min, max"),
            ("errors<1ms", "errors<0.1%"),
            (
                "errors<0.01",
                "`0.01` is no whole number of requests; write errors<1% for a share, or errors<=5",
            ),
            ("errors<=5.5", "no whole number"),
            ("errors==1e-3", "no whole number"),
            ("rate>=1ms", "rate>=495/s"),
            ("rate>=inf", "rate>=495/s"),
        ] {
            let said = text.parse::<Expectation>().expect_err(text).to_string();
            assert!(
                said.contains(words) && !said.contains('\n'),
                "{text}: {said}"
            );
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in ".{0,30}") {
            let _ = text.parse::<Expectation>();
        }
    }
}
