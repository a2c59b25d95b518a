//! `sooner figures`: the papers' figures that are computed, drawn again, and what they show.

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use sooner_figures::{ALL, Effort, Entry};
use sooner_report::curves::{Page, render};
use std::path::PathBuf;
use std::process::ExitCode;

/// A finding does not hold.
const REFUTED: u8 = 1;

/// Draw the papers' figures that are computed and not measured, and check what they show.
#[derive(Args)]
pub struct FiguresArgs {
    /// Which: 13.1, 13.2, 13.3, 13.4, 14.1, 7-8, 9.7, 9.10 [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Jobs for every simulated point
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    jobs: u64,
    /// Names the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the figures into this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Draws them. Exit code 1 where a finding does not hold.
pub fn run(args: &FiguresArgs) -> Result<ExitCode> {
    let entries = chosen(&args.names)?;
    let threads =
        std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    let effort = Effort {
        jobs: args.jobs.max(1000),
        seed: args.seed,
        threads,
    };
    if let Some(path) = &args.html {
        std::fs::write(path, "").with_context(|| format!("--html {}", path.display()))?;
    }
    let (mut figures, mut findings) = (Vec::new(), Vec::new());
    for entry in entries {
        eprintln!("{}: {}", entry.name, entry.title);
        let drawn = entry.draw(&effort)?;
        for mut figure in drawn.figures {
            figure.heading = format!("{}: {}", entry.name, figure.heading);
            figures.push(figure);
        }
        for finding in drawn.findings {
            if !args.json {
                let verdict = if finding.holds { "HOLDS  " } else { "REFUTED" };
                println!(
                    "{verdict} {}: {}\n        {}",
                    finding.of, finding.claim, finding.evidence
                );
            }
            findings.push(finding);
        }
    }
    if let Some(path) = &args.html {
        let page = Page {
            title: "The papers' computed figures".into(),
            summary: format!(
                "sooner figures, {} jobs a simulated point, seed {}",
                effort.jobs, effort.seed
            ),
            figures,
        };
        std::fs::write(path, render(&page))
            .with_context(|| format!("--html {}", path.display()))?;
    }
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|one| json!({"of": one.of, "claim": one.claim, "holds": one.holds, "evidence": one.evidence}))
            .collect();
        let document =
            json!({"schema": 1, "jobs": effort.jobs, "seed": effort.seed, "findings": list});
        println!("{}", serde_json::to_string_pretty(&document)?);
    }
    Ok(match findings.iter().all(|finding| finding.holds) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(REFUTED),
    })
}

fn chosen(names: &[String]) -> Result<Vec<&'static Entry>> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let of = |name: &String| match ALL.iter().find(|entry| entry.name == name) {
        Some(entry) => Ok(entry),
        None => {
            let known: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
            bail!("`{name}` is no figure; use {}", known.join(", "))
        }
    };
    names.iter().map(of).collect()
}
