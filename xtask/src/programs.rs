//! The test programs that Cargo has built, cut into parts that are run at the same time.
//!
//! `cargo test` runs one program after the other, and most of them end with one slow test and an
//! idle core. A part is the tests of one program and one module, in a process of its own. How long
//! each test takes comes from the harness. Its `--report-time` needs RUSTC_BOOTSTRAP on a stable
//! compiler; nothing is compiled with it.

use crate::process::{self, Finished};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of a program that has the integration tests of its crate in modules.
const ALL: &str = "all";

/// One program as `cargo test --no-run` names it.
#[derive(Debug)]
struct Program {
    path: PathBuf,
    /// Where `cargo test` would run it.
    folder: PathBuf,
    /// The crate without `sooner-`.
    of: String,
    target: String,
    is_integration: bool,
}

/// Tests that run in one process.
#[derive(Clone, Debug)]
pub struct Part {
    program: PathBuf,
    folder: PathBuf,
    /// What stands before the names of tests in what is printed: the crate, and the target.
    pub label: String,
    /// The module of the tests, or the program, if it is no program of modules.
    pub module: String,
    pub tests: Vec<String>,
    environment: Vec<(&'static str, PathBuf)>,
}

/// What one test came to.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub name: String,
    /// Passed, or failed; none where the harness ignored it.
    pub passed: Option<bool>,
    pub seconds: f64,
    /// What it printed, or why it was ignored.
    pub text: String,
}

/// Builds all tests, and gives their parts; none, after the compiler has said why, if that fails.
pub fn build() -> Result<Option<Vec<Part>>> {
    let mut build = process::cargo(&["test", "--workspace", "--no-run"]);
    build.args(["--message-format", "json-render-diagnostics"]);
    let built = process::run_showing_errors(&mut build)?;
    if !built.success {
        return Ok(None);
    }
    let programs = built.lines.iter().filter_map(|line| program(line));
    let parts: Result<Vec<Vec<Part>>> = programs.map(|program| program.parts()).collect();
    Ok(Some(parts?.concat()))
}

/// The program that one of Cargo's messages names.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message["executable"].as_str()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = message["target"]["name"].as_str()?;
    let is_integration = message["target"]["kind"][0] == "test";
    Some(Program {
        path: path.into(),
        of: folder.file_name()?.to_string_lossy().into_owned(),
        folder: folder.into(),
        target: target.to_owned(),
        is_integration,
    })
}

impl Program {
    fn parts(&self) -> Result<Vec<Part>> {
        let mut list = Command::new(&self.path);
        list.args(["--list", "--format", "terse"])
            .current_dir(&self.folder);
        let listed = process::output(&mut list)
            .with_context(|| format!("{} cannot list its tests", self.path.display()))?;
        let names = listed
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        let mut modules = BTreeMap::<&str, Vec<String>>::new();
        for name in names {
            modules
                .entry(self.module_of(name))
                .or_default()
                .push(name.to_owned());
        }
        let label = if self.is_integration {
            self.of.clone()
        } else {
            format!("{} (unit)", self.of)
        };
        Ok(modules
            .into_iter()
            .map(|(module, tests)| Part {
                program: self.path.clone(),
                folder: self.folder.clone(),
                label: label.clone(),
                module: module.to_owned(),
                tests,
                environment: Vec::new(),
            })
            .collect())
    }

    fn module_of<'a>(&'a self, test: &'a str) -> &'a str {
        match test.split_once("::") {
            Some((module, _)) if self.is_integration && self.target == ALL => module,
            _ => &self.target,
        }
    }
}

impl Part {
    /// The same tests once more, with an environment variable.
    pub fn with(&self, label: String, variable: &'static str, value: PathBuf) -> Self {
        let mut part = self.clone();
        part.label = label;
        part.environment.push((variable, value));
        part
    }

    /// A part for each test.
    pub fn one_by_one(&self) -> Vec<Self> {
        self.tests.iter().map(|test| self.only(test)).collect()
    }

    /// Its part with one of its tests.
    pub fn only(&self, test: &str) -> Self {
        Self {
            tests: vec![test.to_owned()],
            ..self.clone()
        }
    }

    /// The name of the first of its tests among those of all crates.
    pub fn name(&self) -> String {
        self.full_name(self.tests.first().map_or("", String::as_str))
    }

    /// The name of a test among those of all crates.
    pub fn full_name(&self, test: &str) -> String {
        format!("{}: {test}", self.label)
    }

    /// Runs the tests one after the other: other parts run beside it.
    pub fn run(&self) -> Result<(Vec<Outcome>, Finished)> {
        let mut command = Command::new(&self.program);
        command
            .args(["-Zunstable-options", "--format=json", "--report-time"])
            .args(["--show-output", "--exact"])
            .arg("--test-threads=1")
            .args(&self.tests)
            .current_dir(&self.folder)
            .env("RUSTC_BOOTSTRAP", "1")
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        let finished = process::run_quietly(&mut command)?;
        let outcomes = finished.lines.iter().filter_map(|line| outcome(line));
        Ok((outcomes.collect(), finished))
    }
}

/// Whether the line is the harness', and not what a test printed past it.
pub fn is_event(line: &str) -> bool {
    line.contains(r#"{ "type": ""#)
}

/// What a line of the harness says of a test; something else may stand before it on the line.
fn outcome(line: &str) -> Option<Outcome> {
    let at = line.find(r#"{ "type": "test""#)?;
    let event: Value = serde_json::from_str(&line[at..]).ok()?;
    let passed = match event["event"].as_str()? {
        "ok" => Some(true),
        "ignored" => None,
        "failed" => Some(false),
        _ => return None,
    };
    let texts = ["stdout", "message", "reason"].map(|key| event[key].as_str().unwrap_or(""));
    Some(Outcome {
        name: event["name"].as_str()?.to_owned(),
        passed,
        seconds: event["exec_time"].as_f64().unwrap_or(0.0),
        text: texts.concat(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_harness_are_read_and_others_are_not() {
        let passed = r#"noise{ "type": "test", "name": "a::b", "event": "ok", "exec_time": 1.5 }"#;
        let outcome_of = |line| outcome(line).map(|one| (one.name, one.passed, one.seconds));
        assert_eq!(outcome_of(passed), Some(("a::b".into(), Some(true), 1.5)));
        let failed = r#"{ "type": "test", "name": "a", "event": "failed", "stdout": "no\n" }"#;
        assert_eq!(outcome(failed).map(|one| one.text), Some("no\n".into()));
        let ignored = r#"{ "type": "test", "name": "a", "event": "ignored", "message": "why" }"#;
        let ignored = outcome(ignored).unwrap();
        assert_eq!((ignored.passed, ignored.text.as_str()), (None, "why"));
        for line in [
            r#"{ "type": "test", "event": "started", "name": "a" }"#,
            r#"{ "type": "suite", "event": "ok", "passed": 1 }"#,
            "skipped: a: no program",
        ] {
            assert_eq!(outcome(line), None, "{line}");
        }
    }

    #[test]
    fn parts_are_modules_of_integration_tests() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/web/Cargo.toml",
            "target":{"kind":["test"],"name":"all"},"profile":{"test":true},"executable":"/t/all-1"}"#;
        let all = program(message).unwrap();
        assert_eq!((all.of.as_str(), all.module_of("tls::a")), ("web", "tls"));
        let unit = program(&message.replace("[\"test\"]", "[\"lib\"]")).unwrap();
        assert_eq!(unit.module_of("tls::a"), "all");
        assert!(program(&message.replace("\"test\":true", "\"test\":false")).is_none());
    }
}
