//! The tables for people: of this run, and of the newest kept run of each suite.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::run::Summary;

const BEGIN: &str = "<!-- suites: begin -->\n";
const END: &str = "<!-- suites: end -->";

/// One row a suite and way.
#[derive(Default)]
pub struct Table {
    rows: Vec<String>,
    notes: Vec<String>,
}

impl Table {
    /// Adds a suite that was run.
    pub fn add(&mut self, summary: &Summary) {
        let versions: Vec<String> = summary
            .versions
            .iter()
            .map(|(what, version)| format!("{what} {version}"))
            .collect();
        for (way, counts) in &summary.counts {
            self.rows.push(format!(
                "| {} | {way} | {} | {} | {} | {} | {} | {} |",
                summary.suite,
                counts.cases,
                counts.equal,
                counts.repeated,
                counts.expected,
                counts.unexpected,
                versions.join(", "),
            ));
        }
        for missing in &summary.missing {
            let suite = &summary.suite;
            self.notes
                .push(format!("{suite}: expected, and did not come: {missing}"));
        }
    }

    /// Adds a suite that could not be run.
    pub fn skipped(&mut self, suite: &str, reason: &str) {
        self.notes.push(format!("skipped: {suite}: {reason}"));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "| suite | way | cases | equal | of these when run again | expected differences | unexpected | versions |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|")?;
        self.rows
            .iter()
            .try_for_each(|row| writeln!(out, "{row}"))?;
        if !self.notes.is_empty() {
            writeln!(out)?;
        }
        self.notes
            .iter()
            .try_for_each(|note| writeln!(out, "- {note}"))
    }
}

/// Writes the table of the newest kept runs into the README of the folder.
pub fn update(folder: &Path) -> Result<()> {
    let mut table = Table::default();
    for summary in newest(&folder.join("runs"))?.values() {
        table.add(summary);
    }
    let path = folder.join("README.md");
    let text = fs::read_to_string(&path)?;
    let (before, rest) = text.split_once(BEGIN).context("no place for the table")?;
    let (_, after) = rest.split_once(END).context("no end of the table")?;
    Ok(fs::write(
        path,
        format!("{before}{BEGIN}{table}{END}{after}"),
    )?)
}

/// The last whole run of each suite; names of runs begin with their date.
fn newest(runs: &Path) -> Result<BTreeMap<String, Summary>> {
    let folders: Result<Vec<_>, _> = fs::read_dir(runs)?.collect();
    let mut folders: Vec<_> = folders?.iter().map(fs::DirEntry::path).collect();
    folders.sort();
    let mut summaries = BTreeMap::new();
    for folder in folders {
        for file in fs::read_dir(folder)? {
            let text = fs::read_to_string(file?.path())?;
            let last: Value = serde_json::from_str(text.lines().last().unwrap_or("null"))?;
            if let Some(summary) = last.get("summary") {
                let summary: Summary = serde_json::from_value(summary.clone())?;
                summaries.insert(summary.suite.clone(), summary);
            }
        }
    }
    Ok(summaries)
}
