//! Whether the targets of classes can be met, by what a gate or an upstream that runs saw of them:
//! what is printed of it, for both alike.

use anyhow::Result;
use serde::Serialize;
use sooner_admission::{Observed, ResponseTarget, Verdict, verdict};
use sooner_config::classes::ClassAims;
use sooner_config::{Misconfigured, SourceText, Spanned};
use sooner_report::columns::aligned;
use sooner_report::number;

use crate::output;

const NS_PER_MS: f64 = 1e6;
const FEASIBLE: &str = "FEASIBLE";
const NOT_FEASIBLE: &str = "NOT FEASIBLE";

/// That there is nothing to look for.
pub fn no_target(what: &str) -> Misconfigured {
    Misconfigured::without_place(
        "class.target",
        format!(
            "{what}, so there is nothing to check; write for example target = {{ mean = \"30ms\" }}"
        ),
    )
}

/// What waits, and where.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// What jobs are called.
    pub jobs: fn(u64) -> Jobs,
    /// The key that bounds how many are inside.
    pub limit_key: &'a str,
    /// The file that the classes stand in.
    pub source: &'a SourceText,
}

/// A number of jobs, by their name.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Jobs {
    /// Before a database.
    Transactions(u64),
    /// Before an upstream.
    Requests(u64),
}

impl Jobs {
    /// One of them.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Transactions(_) => "transaction",
            Self::Requests(_) => "request",
        }
    }

    fn number(self) -> u64 {
        let (Self::Transactions(number) | Self::Requests(number)) = self;
        number
    }
}

/// Sums of a class in the time in which it was watched, and what is known of its percentiles.
pub struct Seen {
    /// Its jobs.
    pub jobs: u64,
    /// Their response times together, ns.
    pub response_sum_ns: f64,
    /// Their times inside together, ns.
    pub inside_sum_ns: f64,
    /// Shares of recent jobs and what these took at most, ns.
    pub percentiles_ns: Vec<(f64, f64)>,
}

impl Seen {
    /// With these targets.
    pub fn observed(self, response_targets: Vec<ResponseTarget>) -> Observed {
        let mean_ns = |sum_ns: f64| sum_ns / self.jobs.max(1) as f64;
        let response_ns = mean_ns(self.response_sum_ns);
        let spread = self.percentiles_ns.into_iter();
        Observed {
            jobs: self.jobs,
            response_ns,
            inside_ns: mean_ns(self.inside_sum_ns),
            response_targets,
            spread: spread
                .map(|(share, ns)| (share, ns / response_ns))
                .filter(|(_, times)| times.is_finite() && *times > 0.0)
                .collect(),
        }
    }
}

/// What was found. Times in ms.
#[derive(Serialize)]
pub struct Found {
    verdict: &'static str,
    needed_ms: f64,
    allowed_ms: Option<f64>,
    left_over_ms: Option<f64>,
    relax_all_by: Option<f64>,
    classes: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    #[serde(flatten)]
    jobs: Jobs,
    mean_ms: f64,
    inside_ms: f64,
    target_as_mean_ms: Option<f64>,
    is_below_inside: bool,
    relaxed_mean_ms: Option<f64>,
    /// A line for each target that is below the time inside, with its place.
    #[serde(skip)]
    below_inside: Vec<String>,
}

impl Found {
    /// Holds classes against what was seen of them, and behind the last of what is in none; `None`
    /// where nothing was seen.
    pub fn new(classes: &[ClassAims<'_>], seen: &[Observed], place: Place<'_>) -> Option<Self> {
        let verdict = verdict(seen)?;
        let classes = classes.iter().map(Some).chain([None]);
        let rows = classes.zip(seen).enumerate();
        let rows = rows.map(|(at, (class, seen))| row(at, class, seen, (&verdict, place)));
        Some(Self {
            verdict: word(verdict.is_feasible()),
            needed_ms: ms(verdict.needed_ns),
            allowed_ms: verdict.allowed_ns.map(ms),
            left_over_ms: verdict.left_over_ns.map(ms),
            relax_all_by: verdict.factor().filter(|factor| *factor > 1.0),
            classes: rows.collect(),
        })
    }

    /// Whether all targets can be met.
    pub fn is_feasible(&self) -> bool {
        self.verdict == FEASIBLE
    }

    /// As a table, with lines below it; it was watched for so long.
    pub fn print(&self, observed_seconds: u64) -> Result<()> {
        let jobs = self.classes.first().map_or("job", |row| row.jobs.noun());
        let jobs = format!("{jobs}s");
        let head = [
            "class",
            &jobs,
            "mean",
            "inside",
            "target as a mean",
            "alone relaxed to",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(
            self.classes
                .iter()
                .filter(|row| row.name != "(none)" || row.jobs.number() > 0)
                .map(Row::cells),
        );
        output::line(aligned(&rows))?;
        for row in &self.classes {
            for line in &row.below_inside {
                output::line(line)?;
            }
            if row.jobs.number() == 0 && row.name != "(none)" {
                output::line(format_args!(
                    "{}: nothing arrived in {observed_seconds} s",
                    row.name
                ))?;
            }
        }
        let (below, means) = (self.below_inside(), self.means());
        Ok(output::line(format_args!(
            "{}: {below}{means}",
            self.verdict
        ))?)
    }

    /// Which classes have less than they take inside, which no mean of all tells.
    fn below_inside(&self) -> String {
        let below = self.classes.iter().filter(|row| row.is_below_inside);
        let names: Vec<&str> = below.map(|row| row.name.as_str()).collect();
        match names[..] {
            [] => String::new(),
            [name] => format!("{name} takes longer in the server than its target allows; "),
            _ => format!(
                "{} take longer in the server than their targets allow; ",
                names.join(" and ")
            ),
        }
    }

    /// What the means of all classes say.
    fn means(&self) -> String {
        let time = number::duration;
        let needed = time(self.needed_ms);
        match (self.allowed_ms, self.left_over_ms, self.relax_all_by) {
            (Some(allowed), _, Some(factor)) => format!(
                "the targets allow {} in the mean of all, {needed} is needed; relax all of them {} times, or one of them as in the last column",
                time(allowed),
                number::significant(factor)
            ),
            (Some(allowed), _, None) => format!(
                "the targets allow {} in the mean of all, {needed} is needed",
                time(allowed)
            ),
            (None, Some(left_over), _) if left_over < self.needed_ms => {
                format!(
                    "classes without a target would take {} instead of {needed}: the targets are looser than the present times",
                    time(left_over.max(0.0))
                )
            }
            (None, Some(left_over), _) if !self.is_feasible() => format!(
                "the targets leave classes without one a mean of {}, longer than they can be delayed; the mean of all is {needed}; relax one target to its value in the last column",
                time(left_over)
            ),
            (None, left_over, _) => format!(
                "classes without a target would take {}; the mean of all is {needed}",
                time(left_over.unwrap_or(0.0))
            ),
        }
    }
}

/// The verdict in words.
pub fn word(is_feasible: bool) -> &'static str {
    match is_feasible {
        true => FEASIBLE,
        false => NOT_FEASIBLE,
    }
}

fn ms(ns: f64) -> f64 {
    ns / NS_PER_MS
}

fn row(
    at: usize,
    class: Option<&ClassAims<'_>>,
    seen: &Observed,
    (verdict, place): (&Verdict, Place<'_>),
) -> Row {
    let name = class.map_or("(none)", |class| class.name.get_ref().as_str());
    Row {
        name: name.to_owned(),
        jobs: (place.jobs)(seen.jobs),
        mean_ms: ms(seen.response_ns),
        inside_ms: ms(seen.inside_ns),
        target_as_mean_ms: verdict.targets_ns[at].map(ms),
        is_below_inside: verdict.impossible.contains(&at),
        relaxed_mean_ms: verdict.relaxed_ns[at].map(ms),
        below_inside: class
            .map(|class| below_inside(class, seen, place))
            .unwrap_or_default(),
    }
}

/// A line for each target of a class that is below its time inside, with its place.
fn below_inside(class: &ClassAims<'_>, seen: &Observed, place: Place<'_>) -> Vec<String> {
    // Both are in the order of the names.
    let targets = class.target.iter().zip(&seen.response_targets);
    let line = |((name, written), response_target): (
        (&String, &Spanned<String>),
        &ResponseTarget,
    )| {
        let alone = Observed {
            response_targets: vec![*response_target],
            ..seen.clone()
        };
        let verdict = verdict(&[alone])?;
        let target_ns = verdict.targets_ns[0].filter(|_| !verdict.impossible.is_empty())?;
        let time = |ns: f64| number::duration(ms(ns));
        let as_mean = if name == "mean" { "" } else { " in the mean" };
        let words = format!(
            "{}: {}{as_mean} cannot be met: a job takes {} in the server; lower {}, or give a longer target",
            class.name.get_ref(),
            time(target_ns),
            time(seen.inside_ns),
            place.limit_key
        );
        let key = format!("class.target.{name}");
        Some(
            place
                .source
                .render(&Misconfigured::at(written, &key, words)),
        )
    };
    targets.filter_map(line).collect()
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let time = |ms: Option<f64>| ms.map_or("-".into(), number::duration);
        let seen = |ms| (self.jobs.number() > 0).then_some(ms);
        vec![
            self.name.clone(),
            self.jobs.number().to_string(),
            time(seen(self.mean_ms)),
            time(seen(self.inside_ms)),
            time(self.target_as_mean_ms),
            time(self.relaxed_mean_ms),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_their_own_name_in_a_row() {
        let json = |jobs| {
            let row = Row {
                name: "gold".into(),
                jobs,
                mean_ms: 1.0,
                inside_ms: 1.0,
                target_as_mean_ms: None,
                is_below_inside: false,
                relaxed_mean_ms: None,
                below_inside: Vec::new(),
            };
            serde_json::to_value(row).unwrap()
        };
        assert_eq!(json(Jobs::Transactions(5))["transactions"], 5);
        assert_eq!(json(Jobs::Requests(7))["requests"], 7);
    }
}
