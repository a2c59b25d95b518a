//! Reading what measured processes report.

use std::process::Child;

use anyhow::{Context, bail};
use serde_json::Value;

/// Waits for a process that prints a report; returns its first run.
pub fn run_of(child: Child) -> anyhow::Result<Value> {
    let report = report_of(child)?;
    report["runs"]
        .get(0)
        .cloned()
        .context("a report without runs")
}

/// Waits for a process that prints a report.
pub fn report_of(child: Child) -> anyhow::Result<Value> {
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("the output is no JSON report")
}

/// A figure by its JSON pointer; NaN where there is none, which passes no check.
pub fn figure(value: &Value, pointer: &str) -> f64 {
    value
        .pointer(pointer)
        .and_then(Value::as_f64)
        .unwrap_or(f64::NAN)
}
