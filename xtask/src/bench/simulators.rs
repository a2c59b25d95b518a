//! `sooner sim` and `sooner solve` beside other people's simulators and formulas: speed by turns on one core, means side by side.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};

use super::Effort;
use super::check::{Checks, median};
use super::parse::figure;
use super::record::Record;
use crate::process;

/// What is compared with: versions that were tried.
const PACKAGES: [&str; 3] = ["ciw==3.2.7", "most-queue==2.9", "line-solver==3.0.8"];
/// How often the fastest of the others we are at least.
const TIMES_MIN: f64 = 4.0;
/// A job in a long queue may cost this many times one in a short queue.
const GROWTH_MAX: f64 = 2.0;
/// Policies, and who of the others has them; LINE's FSP gives SRPT's means.
const POLICIES: [(&str, &[&str]); 5] = [
    ("fcfs", &["line", "ciw", "most-queue"]),
    ("srpt", &["line", "most-queue"]),
    ("fair", &["line", "ciw", "most-queue"]),
    ("las", &["line", "most-queue"]),
    ("fsp", &["line"]),
];

/// Runs all of it; the others are installed into a folder of their own that is thrown away.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let python = install(folder.path())?;
    let mut record = Record::open("simulators", "simulators")?;
    let mut part = Checks::default();
    let mut table = String::from(
        "| policy | tool | jobs a second | times slower than sooner |\n|---|---|---|---|\n",
    );
    for (policy, others) in POLICIES {
        let rows = speeds(policy, others, &python, effort, &mut record)?;
        let ours = rows[0].1;
        for (tool, speed) in &rows {
            table += &format!("| {policy} | {tool} | {speed:.0} | {:.1} |\n", ours / speed);
        }
        let fastest = rows[1..].iter().fold(0.0_f64, |most, row| most.max(row.1));
        part.at_least(
            &format!("{policy}: jobs a second over the fastest of the others"),
            ours / fastest,
            TIMES_MIN,
        );
    }
    flat(effort, &mut record, &mut part)?;
    exact(&python, &mut record, &mut part)?;
    limited(&python, effort, &mut record, &mut part)?;
    record.table("simulators", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

fn install(folder: &Path) -> anyhow::Result<PathBuf> {
    let environment = folder.join("python");
    let made = Command::new("python3")
        .args(["-m", "venv"])
        .arg(&environment)
        .status();
    anyhow::ensure!(
        made.is_ok_and(|status| status.success()),
        "python3 -m venv failed: install python3-venv"
    );
    let python = environment.join("bin/python");
    let installed = Command::new(&python)
        .args(["-m", "pip", "install", "--quiet"])
        .args(PACKAGES)
        .status()?;
    anyhow::ensure!(
        installed.success(),
        "pip could not install {}",
        PACKAGES.join(", ")
    );
    Ok(python)
}

fn script(python: &Path, words: &[&str]) -> anyhow::Result<Vec<Value>> {
    let output = Command::new(python)
        .arg(process::root().join("xtask/src/bench/scripts/simulators.py"))
        .args(words)
        .output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "simulators.py {}: {complaint}",
        words.join(" ")
    );
    let lines = output.stdout.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

/// One run of ours on one core: seconds, and the run.
fn ours(words: &[&str], jobs: u64, seed: u64) -> anyhow::Result<(f64, Value)> {
    let (jobs, seed) = (jobs.to_string(), seed.to_string());
    let start = Instant::now();
    let output = Command::new(process::root().join("target/release/sooner"))
        .args([
            "sim",
            "--threads",
            "1",
            "--replications",
            "20",
            "--json",
            "--jobs",
            &jobs,
            "--seed",
            &seed,
        ])
        .args(words)
        .output()?;
    let seconds = start.elapsed().as_secs_f64();
    let document: Value =
        serde_json::from_slice(&output.stdout).context("sooner sim printed no JSON")?;
    Ok((seconds, document["runs"][0].clone()))
}

/// Median jobs a second of ours and of each of the others, measured by turns. What starting costs is taken off: two lengths are run.
fn speeds<'a>(
    policy: &str,
    others: &[&'a str],
    python: &Path,
    effort: Effort,
    record: &mut Record,
) -> anyhow::Result<Vec<(&'a str, f64)>> {
    let mut all: Vec<(&str, Vec<f64>)> = [&["sooner"], others]
        .concat()
        .into_iter()
        .map(|tool| (tool, Vec::new()))
        .collect();
    for round in 1..=effort.repetitions {
        for (tool, speeds) in &mut all {
            // Of each tool what takes a second or so.
            let long = match *tool {
                "sooner" => 8_000_000,
                "line" => 1_000_000,
                _ => 30_000,
            };
            let long = if effort.quick { long / 10 } else { long };
            let mut seconds = Vec::new();
            for jobs in [long / 4, long] {
                seconds.push(match *tool {
                    "sooner" => {
                        ours(
                            &["--sizes", "exp:mean=1", "--load", "0.9", "--policy", policy],
                            jobs,
                            round.into(),
                        )?
                        .0
                    }
                    tool => {
                        let words = [tool, policy, &jobs.to_string(), &round.to_string()];
                        let rows = script(python, &words)?;
                        figure(rows.first().context("no figure")?, "/seconds")
                    }
                });
            }
            // Ours plays a tenth more, which it does not count.
            let played = (long - long / 4) as f64 * if *tool == "sooner" { 1.1 } else { 1.0 };
            let speed = played / (seconds[1] - seconds[0]);
            record.add(&json!({"what": "speed", "tool": tool, "policy": policy, "round": round, "jobs": long, "seconds": seconds, "jobs_per_second": speed}))?;
            speeds.push(speed);
        }
    }
    Ok(all
        .into_iter()
        .map(|(tool, speeds)| (tool, median(&speeds)))
        .collect())
}

/// The cost of a job at load 0.99, with ten times as many present, over that at 0.9.
fn flat(effort: Effort, record: &mut Record, part: &mut Checks) -> anyhow::Result<()> {
    for (policy, _) in POLICIES {
        let mut ratios = Vec::new();
        for round in 1..=effort.repetitions {
            let mut seconds = Vec::new();
            for load in ["0.9", "0.99"] {
                let jobs = if effort.quick { 400_000 } else { 4_000_000 };
                let words = ["--sizes", "exp:mean=1", "--load", load, "--policy", policy];
                seconds.push(ours(&words, jobs, round.into())?.0);
            }
            ratios.push(seconds[1] / seconds[0]);
        }
        record.add(&json!({"what": "flat", "policy": policy, "ratios": ratios}))?;
        part.at_most(
            &format!("{policy}: a job at load 0.99 / at 0.9"),
            median(&ratios),
            GROWTH_MAX,
        );
    }
    Ok(())
}

/// Formulas of ours against most-queue's and octave's.
fn exact(python: &Path, record: &mut Record, part: &mut Checks) -> anyhow::Result<()> {
    for row in script(python, &["exact"])? {
        record.add(&row)?;
        if let Some(missing) = row["missing"].as_str() {
            eprintln!("skipped: {missing} is not installed");
            continue;
        }
        let (words, pointer): (Vec<String>, &str) = match row["what"].as_str() {
            Some("mva") => (
                ["mva", "--demands", "1,0.4,2.5", "--think", "20", "--users"]
                    .map(String::from)
                    .into_iter()
                    .chain([row["users"].to_string()])
                    .collect(),
                "/runs/0/mean_response_s",
            ),
            _ => {
                let policy = row["policy"].as_str().unwrap_or_default();
                let sizes = format!("h2:mean=1,c2={}", row["c2"]);
                (
                    [
                        "mg1", "--load", "0.8", "--policy", policy, "--sizes", &sizes,
                    ]
                    .map(String::from)
                    .to_vec(),
                    "/runs/0/all/mean_response",
                )
            }
        };
        let output = Command::new(process::root().join("target/release/sooner"))
            .arg("solve")
            .args(&words)
            .arg("--json")
            .output()?;
        let document: Value =
            serde_json::from_slice(&output.stdout).context("sooner solve printed no JSON")?;
        let (found, theirs) = (figure(&document, pointer), figure(&row, "/mean"));
        // Their grids of integration are as exact as this.
        part.at_most(
            &format!("solve {}: off {} by", words.join(" "), row["tool"]),
            (found / theirs - 1.0).abs(),
            1e-4,
        );
    }
    Ok(())
}

/// A limit on jobs that share: simulated by us, by Ciw, and solved.
fn limited(
    python: &Path,
    effort: Effort,
    record: &mut Record,
    part: &mut Checks,
) -> anyhow::Result<()> {
    for (limit, exact) in [("2", 28.342_51), ("8", 10.3433)] {
        let jobs = if effort.quick { 20_000 } else { 200_000 };
        let words = [
            "--sizes",
            "h2:mean=1,c2=16",
            "--load",
            "0.8",
            "--policy",
            "fcfs",
            "--mpl",
            limit,
        ];
        let found = figure(&ours(&words, 20 * jobs, 1)?.1, "/controlled_mean_response");
        let rows = script(python, &["ciw-mpl", limit, &jobs.to_string(), "1"])?;
        let theirs = figure(rows.first().context("no figure")?, "/mean");
        record.add(
            &json!({"what": "mpl", "mpl": limit, "sooner": found, "ciw": theirs, "exact": exact}),
        )?;
        part.at_most(
            &format!("mpl {limit}: simulated mean off the exact one by"),
            (found / exact - 1.0).abs(),
            0.03,
        );
        // It has no warm-up and few jobs of so variable sizes.
        part.at_most(
            &format!("mpl {limit}: Ciw's mean off the exact one by"),
            (theirs / exact - 1.0).abs(),
            0.25,
        );
    }
    Ok(())
}
