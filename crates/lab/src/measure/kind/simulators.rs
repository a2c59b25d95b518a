//! `simulators`: `sooner sim` and `sooner solve` beside other simulators and formulas, which are
//! installed into a folder that is thrown away: speed by turns on one core, means side by side.

use super::{Keys, Kind};
use crate::measure::bench::Bench;
use crate::measure::rows::number;
use crate::measure::{Item, Measure, Record};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What is compared with: versions that were tried.
const PACKAGES: [&str; 3] = ["ciw==3.2.7", "most-queue==2.9", "line-solver==3.0.8"];
const SCRIPT: &str = "simulators.py";

/// `simulators`.
#[derive(Debug)]
pub struct Simulators {
    what: What,
    limits: Vec<Limit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimulatorKeys {
    what: What,
}

#[derive(Debug, Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum What {
    /// Jobs a second.
    Speed,
    /// The cost of a job at load 0.99, with ten times as many present, over that at 0.9.
    Flat,
    /// Formulas of ours against most-queue's and octave's.
    Exact,
    /// A limit on jobs that share: simulated by us, by Ciw, and solved.
    Mpl,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    #[serde(default)]
    exact: f64,
}

impl Simulators {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            what: keys.own::<SimulatorKeys>()?.what,
            limits: keys.cases()?,
        }))
    }
}

impl Kind for Simulators {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        match self.what {
            What::Speed => {
                let python = python(bench)?;
                bench.by_turns(measure, record, |case, way, turn| {
                    speed(bench, &python, case, way, turn + 1)
                })
            }
            What::Flat => {
                for case in bench.cases(measure) {
                    let ratios = (0..bench.turns(measure))
                        .map(|turn| growth(bench, case.text("policy"), turn + 1));
                    let ratios: Vec<f64> = ratios.collect::<Result<_>>()?;
                    let mut row = measure.is.clone();
                    row.insert("policy".into(), case.text("policy").into());
                    row.insert("ratios".into(), ratios.into());
                    record.add(row)?;
                }
                Ok(())
            }
            What::Exact => exact(bench, record),
            What::Mpl => {
                let python = python(bench)?;
                for (case, limit) in bench.cases(measure).iter().zip(&self.limits) {
                    let mut row = limited(bench, &python, case.text("mpl"), limit.exact)?;
                    row.extend(measure.is.clone());
                    row.insert("mpl".into(), case.text("mpl").into());
                    record.add(row)?;
                }
                Ok(())
            }
        }
    }
}

/// A Python with the others, made once a part.
fn python(bench: &Bench<'_>) -> Result<PathBuf> {
    let environment = bench.scratch().join("python");
    let python = environment.join("bin/python");
    if python.exists() {
        return Ok(python);
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(&environment);
    bench
        .output(make)
        .context("python3 -m venv failed: install python3-venv")?;
    let mut install = Command::new(&python);
    install
        .args(["-m", "pip", "install", "--quiet"])
        .args(PACKAGES);
    bench
        .output(install)
        .with_context(|| format!("pip could not install {}", PACKAGES.join(", ")))?;
    Ok(python)
}

fn script(bench: &Bench<'_>, python: &Path, words: &[&str]) -> Result<Vec<Map<String, Value>>> {
    let mut command = Command::new(python);
    command
        .arg(bench.experiment.folder.join(SCRIPT))
        .args(words);
    let printed = bench.output(command)?;
    let rows = printed
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    Ok(rows.collect())
}

/// One run of ours on one core: seconds, and the run.
fn ours(bench: &Bench<'_>, words: &[&str], jobs: u64, seed: u32) -> Result<(f64, Value)> {
    let (jobs, seed) = (jobs.to_string(), seed.to_string());
    let flags = [
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
    ];
    let begin = Instant::now();
    let printed = bench.output(bench.sooner(&[&flags, words].concat()))?;
    let seconds = begin.elapsed().as_secs_f64();
    let document: Value = serde_json::from_str(&printed).context("sooner sim printed no JSON")?;
    Ok((seconds, document["runs"][0].clone()))
}

/// Jobs a second of a tool. What starting costs is taken off: two lengths are run.
fn speed(
    bench: &Bench<'_>,
    python: &Path,
    case: &Item,
    way: &Item,
    round: u32,
) -> Result<Map<String, Value>> {
    let (policy, tool) = (case.text("policy"), way.text("tool"));
    // Of each tool what takes a second or so.
    let long = match tool {
        "sooner" => 8_000_000,
        "line" => 1_000_000,
        _ => 30_000,
    };
    let long = if bench.is_quick { long / 10 } else { long };
    let mut seconds = Vec::new();
    for jobs in [long / 4, long] {
        seconds.push(match tool {
            "sooner" => {
                let words = ["--sizes", "exp:mean=1", "--load", "0.9", "--policy", policy];
                ours(bench, &words, jobs, round)?.0
            }
            tool => {
                let rows = script(
                    bench,
                    python,
                    &[tool, policy, &jobs.to_string(), &round.to_string()],
                )?;
                rows.first()
                    .and_then(|row| row.get("seconds"))
                    .map_or(f64::NAN, number)
            }
        });
    }
    // Ours plays a tenth more, which it does not count.
    let played = (long - long / 4) as f64 * if tool == "sooner" { 1.1 } else { 1.0 };
    let mut row = super::figures([("jobs_per_second", played / (seconds[1] - seconds[0]))]);
    row.insert("jobs".into(), long.into());
    row.insert("seconds".into(), seconds.into());
    Ok(row)
}

fn growth(bench: &Bench<'_>, policy: &str, round: u32) -> Result<f64> {
    let mut seconds = Vec::new();
    for load in ["0.9", "0.99"] {
        let jobs = if bench.is_quick { 40_000 } else { 4_000_000 };
        let words = ["--sizes", "exp:mean=1", "--load", load, "--policy", policy];
        seconds.push(ours(bench, &words, jobs, round)?.0);
    }
    Ok(seconds[1] / seconds[0])
}

fn exact(bench: &Bench<'_>, record: &mut Record) -> Result<()> {
    let python = python(bench)?;
    for mut row in script(bench, &python, &["exact"])? {
        if let Some(missing) = row.get("missing").and_then(Value::as_str) {
            bench.tell(&format!("{missing} is not installed, and left out"));
            continue;
        }
        let is_mva = row.get("what").and_then(Value::as_str) == Some("mva");
        let word = |key: &str| {
            row.get(key)
                .map(crate::measure::rows::word)
                .unwrap_or_default()
        };
        let (words, pointer) = if is_mva {
            (
                format!(
                    "mva --demands 1,0.4,2.5 --think 20 --users {}",
                    word("users")
                ),
                "/runs/0/mean_response_s",
            )
        } else {
            (
                format!(
                    "mg1 --load 0.8 --policy {} --sizes h2:mean=1,c2={}",
                    word("policy"),
                    word("c2")
                ),
                "/runs/0/all/mean_response",
            )
        };
        let mut solve = bench.sooner(&["solve"]);
        solve.args(words.split(' ')).arg("--json");
        let document: Value =
            serde_json::from_str(&bench.output(solve)?).context("sooner solve printed no JSON")?;
        let found = document.pointer(pointer).map_or(f64::NAN, number);
        row.insert("solved".into(), words.into());
        row.insert("found".into(), found.into());
        record.add(row)?;
    }
    Ok(())
}

fn limited(
    bench: &Bench<'_>,
    python: &Path,
    limit: &str,
    exact: f64,
) -> Result<Map<String, Value>> {
    let jobs = if bench.is_quick { 5_000 } else { 200_000 };
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
    let run = ours(bench, &words, 20 * jobs, 1)?.1;
    let rows = script(bench, python, &["ciw-mpl", limit, &jobs.to_string(), "1"])?;
    let theirs = rows
        .first()
        .and_then(|row| row.get("mean"))
        .map_or(f64::NAN, number);
    Ok(super::figures([
        ("sooner", number(&run["controlled_mean_response"])),
        ("ciw", theirs),
        ("exact", exact),
    ]))
}
