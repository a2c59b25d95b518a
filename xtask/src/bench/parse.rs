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
    // `sooner load` ends with 1 where its figures may not be believed; its report says why.
    let is_reported = output.status.success() || output.status.code() == Some(1);
    if !is_reported || output.stdout.is_empty() {
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

/// Requests a second and mean response time in ms, from what h2load prints.
pub fn h2load(printed: &str) -> Option<[f64; 2]> {
    let after = |start: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(start))?;
        Some(line.split_whitespace().collect::<Vec<_>>())
    };
    // finished in 10.01s, 1143.40 req/s, 1.13MB/s
    let finished = after("finished in ")?;
    // time for request: min, max, mean, sd, +/- sd
    let times = after("time for request:")?;
    Some([finished.get(1)?.parse().ok()?, milliseconds(times.get(2)?)?])
}

/// A time as h2load writes it: `853us`, `6.99ms`, `1.02s`.
fn milliseconds(text: &str) -> Option<f64> {
    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
    let (number, factor) = units
        .into_iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_h2load() {
        let printed = "finished in 10.01s, 1143.40 req/s, 1.13MB/s\nrequests: 1 total\n\
            time for request:     1.20ms     12.33ms      6.99ms      1.02ms    70.00%\n";
        assert_eq!(h2load(printed), Some([1143.4, 6.99]));
        assert_eq!(h2load("nothing"), None);
        assert_eq!(milliseconds("853us"), Some(0.853));
        assert_eq!(milliseconds("1.5s"), Some(1500.0));
    }
}
