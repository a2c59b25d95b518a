//! Where results go: experiments/NAME/runs/DATE-MACHINE/, each line as it comes.

use std::fs::{self, File};
use std::io::Write;
use std::process::Command;

use anyhow::Context;
use serde_json::{Value, json};

use crate::process;

/// The results of one part.
pub struct Record {
    lines: File,
}

impl Record {
    /// Opens the run of today on this machine; results of an earlier one the same day are replaced.
    pub fn open(experiment: &str, part: &str) -> anyhow::Result<Self> {
        let folder = process::root()
            .join("experiments")
            .join(experiment)
            .join("runs")
            .join(format!("{}-{}", today(), machine()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut lines = File::create(folder.join(format!("{part}.jsonl")))?;
        writeln!(
            lines,
            "{}",
            json!({"commit": commit(), "machine": machine(), "kernel": kernel(), "date": today()})
        )?;
        Ok(Self { lines })
    }

    /// Keeps one result.
    pub fn add(&mut self, result: &Value) -> anyhow::Result<()> {
        writeln!(self.lines, "{result}")?;
        Ok(self.lines.sync_data()?)
    }
}

fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(process::root())
        .output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

fn today() -> String {
    printed("date", &["-u", "+%Y-%m-%d"])
}

/// The commit, marked when anything but results was changed since.
fn commit() -> String {
    let commit = printed("git", &["describe", "--always"]);
    let changes = printed(
        "git",
        &["status", "--porcelain", "--", ".", ":!experiments"],
    );
    if changes.is_empty() {
        commit
    } else {
        format!("{commit}-dirty")
    }
}

fn kernel() -> String {
    printed("uname", &["-sr"])
}

/// Cores and processor, as a name for a folder.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("cpu");
    let cores = info
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let words: Vec<String> = model
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty() && !["R", "TM", "CPU", "Processor"].contains(word))
        .take(2)
        .map(str::to_lowercase)
        .collect();
    format!("{cores}core-{}", words.join("-"))
}
