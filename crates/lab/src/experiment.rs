//! An experiment is data: experiments/NAME/experiment.toml says the question, the set-ups, who
//! serves and what is claimed.
//!
//! One file has one `[setup]` that holds for all, and `[[case]]`s that differ from it; each case is
//! run once for every seed, all its peers side by side with the very same arrivals. docs/lab.md has
//! every key.

mod check;
mod claim;
mod netem;
mod setup;

pub use claim::{Claim, Standing, median};
pub(crate) use setup::SetupTable;
pub use setup::{Client, Gaps, Model, RouterLink, Setup};

use crate::measure::is_of_measurements;
use serde::Deserialize;
use setup::wrong;
use sooner_report::experiment::Figure;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The file's name in an experiment's folder.
pub(crate) const FILE: &str = "experiment.toml";

/// A checked experiment.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Its folder's name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The rows of the papers' table it answers, like `C2`.
    pub rows: Vec<String>,
    /// The question in one line.
    pub question: String,
    /// What was published, and where.
    pub published: String,
    /// The peer that others are compared with, the shared one.
    pub baseline: String,
    /// Its cases.
    pub cases: Vec<Case>,
    /// What it claims.
    pub claims: Vec<Claim>,
    /// What `--quick` runs.
    pub quick: Quick,
    /// What is drawn: the paper's figure with our data.
    pub plots: Vec<Figure>,
}

/// One set-up under a name.
#[derive(Debug, Clone)]
pub struct Case {
    /// Unique in its experiment.
    pub name: String,
    /// What was published for it, in words.
    pub published: Option<String>,
    /// The published factor between the shared and the ordered mean.
    pub published_gain: Option<f64>,
    /// Where it stands on the horizontal axis of a range: a delay, a loss, a load.
    pub at: Option<f64>,
    /// Everything a run needs.
    pub setup: Setup,
}

/// A run that only shows that everything works.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// The cases; none: the first.
    #[serde(default)]
    pub cases: Vec<String>,
    /// Length of a run, s; 0: a fifth.
    #[serde(default)]
    pub seconds: u64,
}

/// An experiment that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A mistake in the file.
    #[error("{}:{line}: {problem}", path.display())]
    Mistake {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong and what would be right.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rows: Vec<String>,
    question: String,
    published: String,
    baseline: String,
    setup: SetupTable,
    #[serde(rename = "case")]
    cases: Vec<Spanned<CaseTable>>,
    #[serde(rename = "claim", default)]
    claims: Vec<Spanned<Claim>>,
    quick: Option<Spanned<Quick>>,
    #[serde(default)]
    plots: Vec<Figure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseTable {
    name: String,
    published: Option<String>,
    published_gain: Option<f64>,
    at: Option<f64>,
    #[serde(default)]
    setup: SetupTable,
}

impl Experiment {
    /// Reads the experiment in `folder`.
    pub fn open(folder: &Path) -> Result<Self, ExperimentError> {
        let path = folder.join(FILE);
        let text = fs::read_to_string(&path).map_err(|source| ExperimentError::Read {
            path: path.clone(),
            source,
        })?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        Self::parse(&text, &name, folder).map_err(|(span, problem)| ExperimentError::Mistake {
            line: line_of(&text, span.start),
            path,
            problem,
        })
    }

    /// Reads `text`; a mistake comes with its place, in bytes, and is one line whatever the names
    /// in it.
    pub fn parse(text: &str, name: &str, folder: &Path) -> Result<Self, (Range<usize>, String)> {
        Self::read(text, name, folder)
            .map_err(|(span, problem)| (span, problem.replace(char::is_control, " ")))
    }

    fn read(text: &str, name: &str, folder: &Path) -> Result<Self, (Range<usize>, String)> {
        let file: File = toml::from_str(text)
            .map_err(|error| (error.span().unwrap_or(0..0), error.message().to_owned()))?;
        let mut cases: Vec<Case> = Vec::new();
        for table in file.cases {
            let span = table.span();
            let table = table.into_inner();
            let is_alike = |case: &&Case| plain_name(&case.name) == plain_name(&table.name);
            if let Some(other) = cases.iter().find(is_alike) {
                let problem = format!(
                    "case {} has the files of case {}; letters, digits and points must tell them apart",
                    table.name, other.name
                );
                return Err((span, problem));
            }
            let setup = table.setup.over(&file.setup).complete();
            let setup = setup.and_then(|setup| {
                if setup.peers.contains(&file.baseline) {
                    Ok(setup)
                } else {
                    Err(wrong(
                        "peers",
                        format!("the baseline, {}, must serve", file.baseline),
                    ))
                }
            });
            let setup = setup.map_err(|error| (span, format!("case {}, {error}", table.name)))?;
            cases.push(Case {
                name: table.name,
                published: table.published,
                published_gain: table.published_gain,
                at: table.at,
                setup,
            });
        }
        if cases.is_empty() {
            return Err((0..0, "no [[case]]; an experiment has one at least".into()));
        }
        let quick_span = file.quick.as_ref().map_or(0..0, Spanned::span);
        let experiment = Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
            rows: file.rows,
            question: file.question,
            published: file.published,
            baseline: file.baseline,
            cases,
            claims: Vec::new(),
            quick: file.quick.map(Spanned::into_inner).unwrap_or_default(),
            plots: file.plots,
        };
        let claims = file.claims.into_iter().map(|claim| experiment.check(claim));
        let claims = claims.collect::<Result<_, _>>()?;
        let unknown = |name: &&String| experiment.case(name).is_none();
        if let Some(unknown) = experiment.quick.cases.iter().find(unknown) {
            return Err((
                quick_span,
                format!("quick.cases: there is no case {unknown}"),
            ));
        }
        Ok(Self {
            claims,
            ..experiment
        })
    }

    fn check(&self, claim: Spanned<Claim>) -> Result<Claim, (Range<usize>, String)> {
        let span = claim.span();
        let claim = claim.into_inner();
        let refuse =
            |problem: String| Err((span.clone(), format!("claim \"{}\": {problem}", claim.text)));
        if let Some(mistake) = claim.mistake() {
            return refuse(mistake.into());
        }
        if let Some(unknown) = claim.cases.iter().find(|name| self.case(name).is_none()) {
            return refuse(format!("there is no case {unknown}"));
        }
        let names = [Some(&claim.peer), claim.over.as_ref()];
        for peer in names.into_iter().flatten() {
            let mut cases = self.cases.iter().filter(|case| claim.is_for(&case.name));
            if let Some(case) = cases.find(|case| !case.setup.peers.contains(peer)) {
                return refuse(format!("\"{peer}\" does not serve in case {}", case.name));
            }
        }
        Ok(claim)
    }

    /// The case of this name.
    pub fn case(&self, name: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.name == name)
    }

    /// Whether `name` is its name or one of its rows.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.rows.iter().any(|row| row.eq_ignore_ascii_case(name))
    }

    /// Length of all its runs one after the other, peers side by side, s.
    pub fn seconds(&self) -> u64 {
        let of_case = |case: &Case| case.setup.seconds * case.setup.seeds.len() as u64;
        self.cases.iter().map(of_case).sum()
    }

    /// Replays another trace in every case.
    pub fn replay(&mut self, trace: &str) {
        for case in &mut self.cases {
            trace.clone_into(&mut case.setup.trace);
        }
    }

    /// A few of its cases, so short that they only show that everything works.
    pub fn quick(mut self) -> Self {
        let chosen = if self.quick.cases.is_empty() {
            vec![self.cases[0].name.clone()]
        } else {
            self.quick.cases.clone()
        };
        self.cases.retain(|case| chosen.contains(&case.name));
        self.short()
    }

    /// All of its cases, as short.
    pub fn short(mut self) -> Self {
        for case in &mut self.cases {
            let setup = &mut case.setup;
            setup.seeds.truncate(1);
            setup.seconds = match self.quick.seconds {
                0 => (setup.seconds / 5).max(10),
                seconds => seconds,
            };
            setup.warm_up_seconds = setup.seconds / 10;
            setup.drain_seconds = setup.drain_seconds.min(setup.seconds);
        }
        self
    }
}

/// All comparisons under `folder`, by name; those of measurements are [`crate::measure`]'s.
pub fn all(folder: &Path) -> Result<Vec<Experiment>, ExperimentError> {
    let mut experiments = Vec::new();
    for folder in folders(folder)? {
        // One that cannot be read is an error of `open`.
        let text = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
        if !is_of_measurements(&text) {
            experiments.push(Experiment::open(&folder)?);
        }
    }
    Ok(experiments)
}

/// The folders under `folder` with an experiment.toml, by name.
pub(crate) fn folders(folder: &Path) -> Result<Vec<PathBuf>, ExperimentError> {
    let entries = fs::read_dir(folder).map_err(|source| ExperimentError::Read {
        path: folder.to_owned(),
        source,
    })?;
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join(FILE).is_file())
        .collect();
    folders.sort();
    Ok(folders)
}

/// A name as files have it: only letters, digits and points are safe, all else becomes a hyphen.
pub fn plain_name(text: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    text.chars().map(safe).collect()
}

pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count()
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
rows = ["C2"]
question = "q"
published = "p"
baseline = "nginx"
[setup]
peers = ["nginx", "sooner srpt user-space"]
seconds = 100
[[case]]
name = "W1"
published_gain = 8.0
setup = { schedule = "0.2,1.2,25,25", seeds = [1, 2] }
[[case]]
name = "W2"
setup = { schedule = "0.2,1.2,10,10" }
[[claim]]
text = "twice as fast"
figure = "/all/mean_response_ms"
peer = "nginx"
over = "sooner srpt user-space"
at_least = 2.0
"#;

    fn parse(text: &str) -> Result<Experiment, (Range<usize>, String)> {
        Experiment::parse(text, "x", Path::new("x"))
    }

    #[test]
    fn cases_share_a_setup_and_differ_from_it() {
        let experiment = parse(TEXT).unwrap();
        let [one, two] = &experiment.cases[..] else {
            panic!("{experiment:?}")
        };
        assert_eq!(
            (&one.setup.seeds[..], &two.setup.seeds[..]),
            (&[1, 2][..], &[1][..])
        );
        assert_eq!(experiment.clone().short().cases.len(), 2);
        let quick = experiment.quick();
        assert_eq!(quick.cases.len(), 1);
        assert_eq!(
            (
                quick.cases[0].setup.seconds,
                quick.cases[0].setup.seeds.len()
            ),
            (20, 1)
        );
    }

    #[test]
    fn mistakes_have_a_place() {
        for (from, to, line, words) in [
            ("seconds = 100", "second = 100", 8, "unknown field `second`"),
            (
                "name = \"W2\"",
                "name = \"W1\"",
                13,
                "has the files of case W1",
            ),
            (
                "baseline = \"nginx\"",
                "baseline = \"caddy\"",
                9,
                "must serve",
            ),
            (
                "[[claim]]",
                "[quick]\ncases = [\"W9\"]\n[[claim]]",
                16,
                "quick.cases",
            ),
            ("\"0.2,1.2,10,10\"", "\"0.2\"\nx", 16, ""),
            ("10,10\"", "10\"", 13, "case W2, schedule"),
            (
                "peer = \"nginx\"",
                "peer = \"caddy\"",
                16,
                "does not serve in case W1",
            ),
            (
                "at_least = 2.0",
                "cases = [\"W3\"]\nat_least = 2.0",
                16,
                "there is no case W3",
            ),
            ("at_least = 2.0", "", 16, "at_least or at_most"),
        ] {
            let text = TEXT.replace(from, to);
            let (span, problem) = parse(&text).unwrap_err();
            assert_eq!(line_of(&text, span.start), line, "{problem}");
            assert!(problem.contains(words), "{problem}");
        }
    }

    #[test]
    fn a_mistake_is_one_line_whatever_the_names_in_it() {
        let name = "ngi\\nx\\r";
        for (from, to) in [
            ("second", format!("\"{name}\" = 1\nsecond")),
            (
                "\"W2\"\nsetup = { schedule = \"",
                format!("\"{name}\"\nsetup = {{ schedule = \"{name}"),
            ),
            ("baseline = \"nginx\"", format!("baseline = \"{name}\"")),
            ("peer = \"nginx\"", format!("peer = \"{name}\"")),
            (
                "\"twice as fast\"\nfigure = \"/",
                format!("\"{name}\"\nfigure = \""),
            ),
            (
                "at_least = 2.0",
                format!("cases = [\"{name}\"]\nat_least = 2.0"),
            ),
            (
                "[[claim]]",
                format!("[quick]\ncases = [\"{name}\"]\n[[claim]]"),
            ),
        ] {
            let text = TEXT.replacen(from, &to, 1);
            let (_, problem) = parse(&text).unwrap_err();
            assert!(!problem.contains(['\n', '\r']), "{problem:?}");
        }
    }
}
