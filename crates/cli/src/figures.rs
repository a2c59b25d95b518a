//! `sooner figures`: the papers' figures that are computed, drawn again, and what they show.

use crate::choice;
use crate::output;
use crate::progress;
use anyhow::{Result, bail, ensure};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use sooner_figures::{ALL, Drawn, Effort, Entry, case_studies};
use sooner_report::curves::{Page, render};
use sooner_workload::trace::job_run_times;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

/// Turns while figures are computed, and counts what was simulated for them.
static SPINNER: OnceLock<ProgressBar> = OnceLock::new();

/// The figure that job logs belong to.
const OF_LOGS: &str = "14.1";
/// With fewer a point says nothing.
const JOBS_MIN: u64 = 1000;
/// A finding does not hold.
const REFUTED: u8 = 1;

/// Recompute the published figures, and check their claims.
///
/// Exits with 1 if a claim does not hold.
#[derive(Args)]
pub struct FiguresArgs {
    /// Figures to compute [default: all]
    #[arg(value_name = "NAME", value_parser = choice::figure())]
    names: Vec<String>,
    /// With 14.1: log of batch jobs (NAME.swf, NAME.jobs.csv, or either as .gz); its run times are
    /// drawn as well; repeatable
    #[arg(long, value_name = "FILE")]
    job_log: Vec<PathBuf>,
    /// Jobs of each simulated point, at least 1000
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(JOBS_MIN..))]
    jobs: u64,
    /// Seed of the random numbers
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Draw the figures in this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Draws them. Exit code 1 where a finding does not hold.
pub fn run(args: &FiguresArgs) -> Result<ExitCode> {
    let entries = chosen(&args.names)?;
    ensure!(
        args.job_log.is_empty() || entries.iter().any(|entry| entry.name == OF_LOGS),
        "--job-log belongs to figure {OF_LOGS}; name that too, or leave --job-log out"
    );
    let threads =
        std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    let effort = Effort {
        jobs: args.jobs,
        seed: args.seed,
        threads,
        told: point_is_done,
    };
    if let Some(path) = &args.html {
        output::check_file("--html", path)?;
    }
    // All are read before anything is computed.
    let mut logs = Vec::new();
    for path in &args.job_log {
        logs.push((path, job_run_times(path)?));
    }
    let (mut figures, mut findings) = (Vec::new(), Vec::new());
    let spinner = SPINNER.get_or_init(|| progress::spinner("0 points simulated"));
    for entry in entries {
        let drawn = drawn(entry, &logs, &effort)?;
        for mut figure in drawn.figures {
            figure.heading = format!("{}: {}", entry.name, figure.heading);
            figures.push(figure);
        }
        for finding in drawn.findings {
            if !args.json {
                let verdict = if finding.holds { "HOLDS  " } else { "REFUTED" };
                let line = || {
                    output::line(format_args!(
                        "{verdict} {}: {}\n        {}",
                        finding.of, finding.claim, finding.evidence
                    ))
                };
                spinner.suspend(line)?;
            }
            findings.push(finding);
        }
    }
    spinner.finish_and_clear();
    let drawn = output::html(args.html.as_deref(), || {
        render(&Page {
            title: "The papers' computed figures".into(),
            summary: format!(
                "sooner figures, {} jobs a simulated point, seed {}",
                effort.jobs, effort.seed
            ),
            figures,
        })
    });
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|one| json!({"of": one.of, "claim": one.claim, "holds": one.holds, "evidence": one.evidence}))
            .collect();
        let document =
            json!({"schema": 1, "jobs": effort.jobs, "seed": effort.seed, "findings": list});
        output::json(&document)?;
    }
    drawn?;
    Ok(if findings.iter().all(|finding| finding.holds) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(REFUTED)
    })
}

/// Shows how many points were simulated.
fn point_is_done() {
    if let Some(spinner) = SPINNER.get() {
        spinner.inc(1);
        spinner.set_message(format!("{} points simulated", spinner.position()));
    }
}

/// Says what is computed now, above the spinner.
fn announce(words: std::fmt::Arguments<'_>) {
    match SPINNER.get() {
        Some(spinner) => spinner.suspend(|| output::say(words)),
        None => output::say(words),
    }
}

/// One figure, and what job logs add to it.
fn drawn(entry: &Entry, logs: &[(&PathBuf, Vec<f64>)], effort: &Effort) -> Result<Drawn> {
    announce(format_args!("{}: {}", entry.name, entry.title));
    let mut drawn = entry.draw(effort)?;
    for (path, run_s) in logs.iter().filter(|_| entry.name == OF_LOGS) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        announce(format_args!("{}: {name}", entry.name));
        let more = case_studies::of_log(&name, run_s, effort)?;
        drawn.figures.extend(more.figures);
        drawn.findings.extend(more.findings);
    }
    Ok(drawn)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Entry>> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let of = |name: &String| match ALL.iter().find(|entry| entry.name == name) {
        Some(entry) => Ok(entry),
        None => {
            let known: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
            bail!("`{name}` is not a figure; use {}", known.join(", "))
        }
    };
    names.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: FiguresArgs,
    }

    #[test]
    fn too_few_jobs_are_refused_and_not_made_more() {
        let jobs = |text| Alone::try_parse_from(["figures", "--jobs", text]);
        assert!(jobs("0").is_err() && jobs("999").is_err());
        assert_eq!(jobs("1000").unwrap().args.jobs, 1000);
    }
}
