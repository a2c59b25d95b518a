//! The demo, five times with seeds of their own: is FAIR honest, is SRPT near its ideal, is the gain what theory says?

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Effort;
use super::attempts::until_undisturbed;
use super::check::{Checks, median, spread};
use super::parse::{figure, report_of};
use super::record::{Record, slim};
use super::server::sooner;

const REPETITIONS: u32 = 5;
/// FAIR's mean in ideal means of processor sharing, and SRPT's in ideal means of SRPT.
const FAIR_MAX: f64 = 1.15;
const SRPT_MAX: f64 = 1.2;
/// The measured gain as a share of the ideal one.
const GAIN_SHARE_MIN: f64 = 0.85;

/// Five demos.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("demo", "demo")?;
    let repetitions = if effort.quick { 1 } else { REPETITIONS };
    let mut figures: Vec<Vec<f64>> = vec![Vec::new(); ROWS.len()];
    let mut valid = true;
    for seed in 1..=u64::from(repetitions) {
        let (fair, srpt) = until_undisturbed(
            || demo(seed, effort.quick),
            |(fair, srpt)| vec![fair, srpt],
            |(fair, srpt), attempt| {
                record.add(&json!({"seed": seed, "attempt": attempt.number, "stolen_cpu_seconds": attempt.stolen_cpu_seconds,
                    "fair": slim(fair), "srpt": slim(srpt)}))
            },
        )?;
        valid &= fair["verdict"] == "VALID" && srpt["verdict"] == "VALID";
        for (row, figures) in ROWS.iter().zip(&mut figures) {
            figures.push((row.figure)(&fair, &srpt));
        }
    }
    let mut part = Checks::default();
    let mut table = String::from("| figure | median (range) |\n|---|---|\n");
    for (row, figures) in ROWS.iter().zip(&figures) {
        table += &format!("| {} | {} |\n", row.name, spread(figures, 3));
        match row.limit {
            Limit::AtMost(limit) => part.at_most(row.name, median(figures), limit),
            Limit::AtLeast(limit) => part.at_least(row.name, median(figures), limit),
        }
    }
    part.claim(valid, "all demos VALID".into());
    record.table("demo", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

struct Row {
    name: &'static str,
    figure: fn(&Value, &Value) -> f64,
    limit: Limit,
}

const ROWS: [Row; 5] = [
    Row {
        name: "FAIR's mean / ideal sharing",
        figure: |fair, _| mean(fair, "all") / figure(fair, "/all/ideal_ps_mean_response_ms"),
        limit: Limit::AtMost(FAIR_MAX),
    },
    Row {
        name: "SRPT's mean / ideal SRPT",
        figure: |_, srpt| mean(srpt, "all") / figure(srpt, "/all/ideal_srpt_mean_response_ms"),
        limit: Limit::AtMost(SRPT_MAX),
    },
    Row {
        name: "gain / ideal gain, all",
        figure: |fair, srpt| gain_share(fair, srpt, "all"),
        limit: Limit::AtLeast(GAIN_SHARE_MIN),
    },
    Row {
        name: "gain / ideal gain, smallest half",
        figure: |fair, srpt| gain_share(fair, srpt, "smallest_half"),
        limit: Limit::AtLeast(GAIN_SHARE_MIN),
    },
    Row {
        name: "largest 1 % under SRPT / under FAIR",
        figure: |fair, srpt| mean(srpt, "largest_1_percent") / mean(fair, "largest_1_percent"),
        limit: Limit::AtMost(1.0),
    },
];

fn mean(run: &Value, group: &str) -> f64 {
    figure(run, &format!("/{group}/mean_response_ms"))
}

fn gain_share(fair: &Value, srpt: &Value, group: &str) -> f64 {
    let ideal_fair = figure(fair, &format!("/{group}/ideal_ps_mean_response_ms"));
    let ideal_srpt = figure(srpt, &format!("/{group}/ideal_srpt_mean_response_ms"));
    mean(fair, group) / mean(srpt, group) / (ideal_fair / ideal_srpt)
}

fn demo(seed: u64, quick: bool) -> anyhow::Result<(Value, Value)> {
    let scratch = tempfile::tempdir()?;
    let seconds = if quick { "10" } else { "35" };
    let child = Command::new(sooner())
        .args([
            "demo",
            "--json",
            "--seed",
            &seed.to_string(),
            "--seconds",
            seconds,
            "--report",
        ])
        .arg(scratch.path().join("demo.html"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let report = report_of(child)?;
    let runs = &report["runs"];
    Ok((runs[0].clone(), runs[1].clone()))
}
