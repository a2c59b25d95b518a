//! The benchmark of a crate itself (`cargo bench`), which prints JSON lines.

use serde_json::Value;

use super::Effort;
use crate::process;

/// Runs it and takes what it prints.
pub fn printed_by(package: &str, bench: &str, effort: Effort) -> anyhow::Result<Vec<Value>> {
    let words = [
        "bench",
        "--quiet",
        "--package",
        package,
        "--bench",
        bench,
        "--",
    ];
    let mut command = process::cargo(&words);
    if effort.quick {
        command.arg("--quick");
    }
    let finished = process::run(&mut command)?;
    anyhow::ensure!(finished.success, "the benchmark failed");
    let lines = finished.lines.iter();
    let rows: Vec<Value> = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    anyhow::ensure!(!rows.is_empty(), "the benchmark printed no figures");
    Ok(rows)
}
