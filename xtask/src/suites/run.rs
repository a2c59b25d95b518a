//! The run of one suite: its results are written as they come, and judged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::case::Case;
use super::expected::{Expected, is_like};
use crate::process;
use crate::record::Record;

/// A run that goes on.
pub struct Run {
    /// Below `target/suites`: what was fetched, and outputs in full.
    pub folder: PathBuf,
    /// The program under test.
    pub sooner: PathBuf,
    /// The cases to run, of names or patterns; empty for all.
    pub only: Vec<String>,
    pub expected: Expected,
    /// Under `experiments/`: what differs, and the summary.
    kept: Option<Record>,
    /// In the folder: every case.
    every: File,
    summary: Summary,
    /// Of [`Self::only`], those of which no case has come.
    absent: Vec<String>,
}

/// Figures of a suite.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    pub suite: String,
    pub versions: BTreeMap<String, String>,
    /// By way.
    pub counts: BTreeMap<String, Counts>,
    /// Expected differences that did not come.
    pub missing: Vec<String>,
    /// Where cases differ unexpectedly, as a person reads it.
    #[serde(skip)]
    pub unexpected: Vec<String>,
}

/// Cases of one way.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    pub cases: u64,
    pub equal: u64,
    /// Of these, those that were equal only when they were run again.
    #[serde(default)]
    pub repeated: u64,
    pub expected: u64,
    pub unexpected: u64,
}

impl Summary {
    /// Whether nothing is unexpected and nothing that was expected is missing.
    pub fn is_good(&self) -> bool {
        self.missing.is_empty() && self.counts.values().all(|counts| counts.unexpected == 0)
    }

    /// Why it is not good.
    pub fn why(&self) -> String {
        let missing = self.missing.iter();
        let missing = missing.map(|one| format!("expected, and did not come: {one}"));
        let all: Vec<String> = self.unexpected.iter().cloned().chain(missing).collect();
        all.join("\n")
    }
}

impl Run {
    /// A run of all cases is kept under `experiments/`, one of some is not.
    pub fn begin(suite: &str, folder: PathBuf, sooner: PathBuf, only: Vec<String>) -> Result<Self> {
        let expected = process::root().join("experiments/suites/expected");
        let expected = Expected::read(&expected.join(format!("{suite}.toml")))?;
        let kept = if only.is_empty() {
            Some(Record::open("suites", suite)?)
        } else {
            None
        };
        Ok(Self {
            every: File::create(folder.join("cases.jsonl"))?,
            folder,
            sooner,
            absent: only.clone(),
            only,
            expected,
            kept,
            summary: Summary {
                suite: suite.to_owned(),
                ..Summary::default()
            },
        })
    }

    /// Keeps the version of a program or package that takes part.
    pub fn version(&mut self, what: &str, version: &str) {
        let version = version.trim().to_owned();
        self.summary.versions.insert(what.to_owned(), version);
    }

    /// Judges a case, and writes it down.
    pub fn case(&mut self, case: &Case) -> Result<()> {
        writeln!(self.every, "{}", serde_json::to_string(case)?)?;
        self.expected.ran(&case.name);
        self.absent.retain(|only| !is_like(only, &case.name));
        for tried in &case.tried {
            let counts = self.summary.counts.entry(tried.way.clone()).or_default();
            counts.cases += 1;
            if tried.differences.is_empty() {
                counts.equal += 1;
                counts.repeated += u64::from(tried.repeated);
                continue;
            }
            let (mut reasons, mut unexpected) = (Vec::new(), Vec::new());
            for difference in &tried.differences {
                match self.expected.reason(&case.name, &tried.way, difference) {
                    Some(reason) => reasons.push(reason.to_owned()),
                    None => unexpected.push(difference),
                }
            }
            if unexpected.is_empty() {
                counts.expected += 1
            } else {
                counts.unexpected += 1
            }
            for difference in &unexpected {
                let (name, way, start) = (&case.name, &tried.way, start_of(difference));
                let text = format!("unexpected: {name} ({way})\n{start}");
                eprintln!("{text}");
                self.summary.unexpected.push(text);
            }
            reasons.sort();
            reasons.dedup();
            let line = json!({
                "case": case.name,
                "way": tried.way,
                "reference": case.reference,
                "outcome": tried.outcome,
                "expected_because": reasons,
                "unexpected": unexpected.iter().map(|text| start_of(text)).collect::<Vec<_>>(),
            });
            if let Some(kept) = &mut self.kept {
                kept.add(&line)?;
            }
        }
        Ok(())
    }

    /// Writes the summary; an error where a case that was named, or every one, has not come.
    pub fn end(mut self) -> Result<Summary> {
        let suite = &self.summary.suite;
        ensure!(
            self.absent.is_empty(),
            "suite {suite} has no case {}",
            self.absent.join(", ")
        );
        ensure!(!self.summary.counts.is_empty(), "suite {suite} ran no case");
        self.summary.missing = self.expected.missing(self.only.is_empty());
        for missing in &self.summary.missing {
            eprintln!("expected, and did not come: {missing}");
        }
        if let Some(kept) = &mut self.kept {
            kept.add(&json!({ "summary": self.summary }))?;
        }
        Ok(self.summary)
    }

    /// A file of outputs in full.
    pub fn output(&self, way: &str, case: &str) -> Result<PathBuf> {
        let folder = self.folder.join("outputs").join(way);
        std::fs::create_dir_all(&folder)?;
        Ok(folder.join(Path::new(&case.replace('/', "_"))))
    }
}

/// As much of a difference as a person reads.
fn start_of(difference: &str) -> String {
    let lines: Vec<&str> = difference.lines().take(30).collect();
    lines.join("\n").chars().take(2000).collect()
}

#[cfg(test)]
mod tests {
    use super::super::case::Tried;
    use super::*;

    #[test]
    fn a_case_that_is_named_and_does_not_come_is_an_error() {
        let end = |only: &[&str], cases: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            let only = only.iter().map(|one| (*one).to_owned()).collect();
            let folder = folder.path().to_owned();
            std::fs::create_dir_all(&folder).unwrap();
            let mut run = Run::begin("zsync", folder, PathBuf::new(), only).unwrap();
            for name in cases {
                let case = Case {
                    name: (*name).to_owned(),
                    reference: "passed".into(),
                    tried: vec![Tried::word("clear text", "passed", "passed", "")],
                };
                run.case(&case).unwrap();
            }
            run.end().map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(end(&["a", "b*"], &["a", "bc"]), Ok(()));
        let absent = "suite zsync has no case b*, c".to_owned();
        assert_eq!(end(&["a", "b*", "c"], &["a"]), Err(absent));
        let none = "suite zsync has no case a".to_owned();
        assert_eq!(end(&["a"], &[]), Err(none));
    }
}
