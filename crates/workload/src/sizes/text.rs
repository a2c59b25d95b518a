//! How distributions are written: `NAME:PARAMETER=NUMBER,...`, as in `h2:mean=1,c2=4`.
//!
//! | written | law |
//! |---|---|
//! | `det:mean=` | always the same |
//! | `exp:mean=` | exponential |
//! | `h2:mean=,c2=` | hyperexponential with balanced means |
//! | `pareto:k=,alpha=` | Pareto |
//! | `bpareto:k=,p=,alpha=` | bounded Pareto |
//! | `lognormal:mu=,sigma=` | lognormal |
//! | `lognormal-pareto:mu=,sigma=,cut=,k=,p=,alpha=` | lognormal body, bounded Pareto tail |
//! | `weibull:scale=,shape=` | Weibull |
//! | `surge` | the lognormal-pareto of Table 1 of the 1999 paper |
//! | `trace:NAME` | the sizes a trace asks for, or the run times of a job log ([`Sizes`] only) |

use super::{Distribution, Law};
use crate::job_log;
use crate::trace::{self, Trace, TraceError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Every name with its parameters.
const FORMS: [(&str, &[&str]); 9] = [
    ("det", &["mean"]),
    ("exp", &["mean"]),
    ("h2", &["mean", "c2"]),
    ("pareto", &["k", "alpha"]),
    ("bpareto", &["k", "p", "alpha"]),
    ("lognormal", &["mu", "sigma"]),
    (
        "lognormal-pareto",
        &["mu", "sigma", "cut", "k", "p", "alpha"],
    ),
    ("weibull", &["scale", "shape"]),
    ("surge", &[]),
];

/// A distribution that cannot be read or does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("distribution `{text}`: {problem}")]
pub struct DistributionError {
    text: String,
    problem: String,
}

impl DistributionError {
    pub(super) fn new(text: &str, problem: String) -> Self {
        Self {
            text: shown(text),
            problem,
        }
    }
}

/// The beginning of a text, fit for an error on one line.
fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

impl FromStr for Distribution {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, DistributionError> {
        let read = || {
            let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
            let &(name, keys) = FORMS
                .iter()
                .find(|(form, _)| *form == name.trim())
                .ok_or_else(|| format!("unknown name `{}`; use {}", shown(name), names()))?;
            let law = law(name, &values(name, keys, parameters)?);
            match law.problem() {
                None => Ok(Distribution { law }),
                Some(problem) => Err(problem),
            }
        };
        read().map_err(|problem: String| DistributionError::new(text, problem))
    }
}

fn names() -> String {
    let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// The parameters in the order of `keys`.
fn values(name: &str, keys: &[&str], text: &str) -> Result<Vec<f64>, String> {
    let mut values: Vec<Option<f64>> = vec![None; keys.len()];
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let (key, number) = part.split_once('=').ok_or_else(|| {
            format!(
                "`{}` is not a parameter; write {}",
                shown(part),
                form(name, keys)
            )
        })?;
        let index = keys
            .iter()
            .position(|known| *known == key.trim())
            .ok_or_else(|| {
                format!(
                    "unknown parameter `{}`; write {}",
                    shown(key),
                    form(name, keys)
                )
            })?;
        let value = number
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite());
        let value = value.ok_or_else(|| {
            format!(
                "{} is `{}`, which is not a number",
                keys[index],
                shown(number)
            )
        })?;
        if values[index].replace(value).is_some() {
            return Err(format!("{} is given twice; keep one", keys[index]));
        }
    }
    let missing = keys.iter().zip(&values).find(|(_, value)| value.is_none());
    match missing {
        Some((key, _)) => Err(format!("{key} is missing; write {}", form(name, keys))),
        None => Ok(values.into_iter().flatten().collect()),
    }
}

/// What the whole looks like: `h2:mean=NUMBER,c2=NUMBER`.
fn form(name: &str, keys: &[&str]) -> String {
    if keys.is_empty() {
        return format!("{name} alone");
    }
    let keys: Vec<String> = keys.iter().map(|key| format!("{key}=NUMBER")).collect();
    format!("{name}:{}", keys.join(","))
}

/// The law called `name` with its parameters in the order of [`FORMS`]; `surge` for a name that has
/// none.
fn law(name: &str, values: &[f64]) -> Law {
    match (name, values) {
        ("det", &[mean]) => Law::Deterministic { mean },
        ("exp", &[mean]) => Law::Exponential { mean },
        ("h2", &[mean, c2]) => Law::Hyperexponential { mean, c2 },
        ("pareto", &[k, alpha]) => Law::Pareto { k, alpha },
        ("bpareto", &[k, p, alpha]) => Law::BoundedPareto { k, p, alpha },
        ("lognormal", &[mu, sigma]) => Law::Lognormal { mu, sigma },
        ("lognormal-pareto", &[mu, sigma, cut, k, p, alpha]) => Law::LognormalPareto {
            mu,
            sigma,
            cut,
            k,
            p,
            alpha,
        },
        ("weibull", &[scale, shape]) => Law::Weibull { scale, shape },
        _ => super::law::SURGE,
    }
}

impl fmt::Display for Law {
    /// In the form that is read; values have none and say how many they are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Law::Deterministic { mean } => write!(f, "det:mean={mean}"),
            Law::Exponential { mean } => write!(f, "exp:mean={mean}"),
            Law::Hyperexponential { mean, c2 } => write!(f, "h2:mean={mean},c2={c2}"),
            Law::Pareto { k, alpha } => write!(f, "pareto:k={k},alpha={alpha}"),
            Law::BoundedPareto { k, p, alpha } => write!(f, "bpareto:k={k},p={p},alpha={alpha}"),
            Law::Lognormal { mu, sigma } => write!(f, "lognormal:mu={mu},sigma={sigma}"),
            law if *law == super::law::SURGE => f.write_str("surge"),
            Law::LognormalPareto {
                mu,
                sigma,
                cut,
                k,
                p,
                alpha,
            } => write!(
                f,
                "lognormal-pareto:mu={mu},sigma={sigma},cut={cut},k={k},p={p},alpha={alpha}"
            ),
            Law::Weibull { scale, shape } => write!(f, "weibull:scale={scale},shape={shape}"),
            Law::Empirical(values) => write!(f, "{} values", values.len()),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.law.fmt(f)
    }
}

/// Sizes as a flag or the model file gives them: a law, or a trace by its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Sizes {
    /// A law.
    Law(Distribution),
    /// The sizes of a trace's requests, by the trace's name.
    Trace(String),
}

impl Sizes {
    /// Whether it is a log of batch jobs, by the end of its name: its numbers are seconds, and it
    /// says nothing of gaps.
    pub fn is_job_log(&self) -> bool {
        matches!(self, Sizes::Trace(name) if job_log::is_named(name))
    }

    /// The distribution; a trace is read, and gives the sizes of its requests, a log of batch jobs
    /// (by the end of its name) their run times in seconds.
    pub fn open(&self) -> Result<Distribution, TraceError> {
        let name = match self {
            Sizes::Law(distribution) => return Ok(distribution.clone()),
            Sizes::Trace(name) => name,
        };
        if self.is_job_log() {
            let mut run_s = trace::job_run_times(Path::new(name))?;
            run_s.sort_unstable_by(f64::total_cmp);
            return Ok(Distribution {
                law: Law::Empirical(run_s.into()),
            });
        }
        let trace = Trace::open(name)?;
        let size = |request| trace.object_of(request).size_bytes as f64;
        let mut sizes: Vec<f64> = trace.requests.iter().map(size).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        // A trace has at least one request and no object above 2^40 bytes.
        Ok(Distribution {
            law: Law::Empirical(sizes.into()),
        })
    }
}

impl FromStr for Sizes {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, DistributionError> {
        match text.strip_prefix("trace:") {
            Some("") => Err(DistributionError::new(
                text,
                "no trace is named; write trace:epa or trace:FILE".into(),
            )),
            Some(name) => Ok(Sizes::Trace(name.into())),
            None => text.parse().map(Sizes::Law),
        }
    }
}

impl TryFrom<String> for Sizes {
    type Error = DistributionError;

    fn try_from(text: String) -> Result<Self, DistributionError> {
        text.parse()
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sizes::Law(distribution) => distribution.fmt(f),
            Sizes::Trace(name) => write!(f, "trace:{name}"),
        }
    }
}

impl From<Sizes> for String {
    fn from(sizes: Sizes) -> String {
        sizes.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "det:mean=0",
            "exp:mean=2.5",
            "h2:mean=1,c2=4",
            "pareto:k=1,alpha=2.43",
            "bpareto:k=1,p=1000000,alpha=1.1",
            "lognormal:mu=-1.5,sigma=0.8",
            "lognormal-pareto:mu=7,sigma=1,cut=9020,k=600,p=10000000000,alpha=1",
            "weibull:scale=1.46,shape=0.382",
            "surge",
            "trace:epa",
        ] {
            assert_eq!(text.parse::<Sizes>().expect(text).to_string(), text);
        }
        assert_eq!(
            "h2: c2 = 4 , mean=1".parse::<Sizes>(),
            "h2:mean=1,c2=4".parse()
        );
    }

    #[test]
    fn a_mistake_says_what_would_be_right() {
        let problem = |text: &str| text.parse::<Sizes>().expect_err(text).to_string();
        assert_eq!(
            problem("h3:mean=1"),
            "distribution `h3:mean=1`: unknown name `h3`; use det, exp, h2, pareto, bpareto, lognormal, lognormal-pareto, weibull, surge"
        );
        for (text, words) in [
            ("h2:mean=1", "c2 is missing; write h2:mean=NUMBER,c2=NUMBER"),
            ("h2:mean=1,c2=4,c2=5", "c2 is given twice"),
            ("h2:mean=1,c3=4", "unknown parameter `c3`; write h2:mean"),
            ("h2:1,4", "`1` is not a parameter"),
            ("exp:mean=x", "mean is `x`, which is not a number"),
            ("exp:mean=nan", "which is not a number"),
            ("exp:mean=-1", "mean is -1; it must be 1e-15 to 1e15"),
            ("exp:mean=0", "mean is 0"),
            ("h2:mean=1,c2=0.5", "c2 is 0.5; it must be 1 to"),
            ("pareto:k=1,alpha=0", "alpha is 0; it must be 0.1 to 100"),
            ("bpareto:k=2,p=1,alpha=1", "k must be the smaller one"),
            ("lognormal:mu=0,sigma=0", "sigma is 0"),
            ("lognormal:mu=99,sigma=1", "mu is 99; it must be -50 to 50"),
            (
                "lognormal-pareto:mu=7,sigma=1,cut=500,k=600,p=1e4,alpha=1",
                "k must be the smaller one",
            ),
            (
                "lognormal-pareto:mu=0,sigma=0.1,cut=500,k=400,p=1e4,alpha=1",
                "both parts",
            ),
            (
                "surge:mean=1",
                "unknown parameter `mean`; write surge alone",
            ),
            ("trace:", "no trace is named"),
            ("\u{1b}[31m", "unknown name `\\u{1b}[31m`"),
        ] {
            assert!(problem(text).contains(words), "{text}: {}", problem(text));
        }
    }

    #[test]
    fn a_traces_sizes_are_those_asked_for() {
        let sizes = Sizes::Trace("epa".into()).open().expect("built in");
        assert!(sizes.mean() > 1000.0 && sizes.cdf(0.0) == 0.0);
        assert!(Sizes::Trace("nothing-such".into()).open().is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}") {
            let _ = text.parse::<Sizes>();
        }

        #[test]
        fn what_is_read_can_be_used(name in 0..FORMS.len(), numbers in prop::collection::vec((-16.0..16.0f64, -9..10i32), 6), u in 0.0..1.0f64) {
            let (name, keys) = FORMS[name];
            let numbers = numbers.iter().map(|(exponent, sign)| 10f64.powf(*exponent) * f64::from(sign.signum()));
            let parameters: Vec<String> = keys.iter().zip(numbers).map(|(key, number)| format!("{key}={number}")).collect();
            let text = format!("{name}:{}", parameters.join(","));
            if let Ok(distribution) = text.parse::<Distribution>() {
                prop_assert!(distribution.mean() >= 0.0, "{text}");
                prop_assert!(distribution.second_moment() >= 0.0, "{text}");
                let quantiles = [0.0, u, 1.0].map(|u| distribution.quantile(u));
                prop_assert!(quantiles.is_sorted() && quantiles[0] >= 0.0 && quantiles[2].is_finite(), "{text} {quantiles:?}");
                prop_assert_eq!(distribution.to_string().parse::<Distribution>(), Ok(distribution));
            }
        }

        #[test]
        fn lawful_parameters_give_usable_numbers(mu in -50.0..50.0f64, sigma in 1e-3..10.0f64, at in -3.0..3.0f64, alpha in 0.1..100.0f64, end in 1.0..1e15f64, u in 0.0..1.0f64) {
            let cut = (mu + at * sigma).exp();
            let text = format!("lognormal-pareto:mu={mu},sigma={sigma},cut={cut},k={},p={},alpha={alpha}", cut / 2.0, cut * end);
            if let Ok(distribution) = text.parse::<Distribution>() {
                prop_assert!(distribution.mean() > 0.0 && distribution.second_moment() >= 0.0, "{text}");
                prop_assert!(distribution.quantile(u) <= cut * end * 1.000_001, "{text}");
            }
        }
    }
}
