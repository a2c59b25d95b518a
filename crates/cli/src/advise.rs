//! `sooner advise`: from an access log to a forecast.

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use sooner_advise::{Logs, Surveyor, TimeTaken, advice, forecast, html, text};
use sooner_workload::Rate;
use std::path::PathBuf;
use std::process::ExitCode;

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// Tell from access logs what ordering would do for this traffic, and for whom.
///
/// Reads the common and combined formats (nginx, Apache, with the virtual host before and the time taken behind), Caddy's JSON and Sooner's own; plain, gzip or zstd;
/// files in any order.
#[derive(Args)]
pub struct AdviseArgs {
    /// Access logs
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// What the server's link can carry, like 100mbit
    #[arg(long, value_name = "RATE")]
    uplink: Rate,
    /// What the number behind a combined line is
    #[arg(long, value_name = "UNIT", default_value = "guess")]
    time_taken: Taken,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Also draw load and response times into this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Taken {
    /// Seconds with a decimal point (nginx), microseconds without (%D)
    Guess,
    /// Whole seconds (%T)
    S,
    /// Milliseconds
    Ms,
}

/// Reads, simulates, tells.
pub fn run(args: &AdviseArgs) -> Result<ExitCode> {
    let taken = match args.time_taken {
        Taken::Guess => TimeTaken::Guess,
        Taken::S => TimeTaken::Seconds,
        Taken::Ms => TimeTaken::Milliseconds,
    };
    let logs = Logs::open(&args.logs, taken)?;
    if let Some(path) = &args.html {
        std::fs::write(path, "").with_context(|| format!("--html {}", path.display()))?;
    }
    let bar = ProgressBar::new(logs.stored_bytes());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}, {eta} left") {
        bar.set_style(style);
    }
    let mut surveyor = Surveyor::new(args.uplink.bits_per_sec());
    logs.read(&mut surveyor, |bytes| bar.set_position(bytes))?;
    bar.finish_and_clear();
    let Some(forecast) = forecast(surveyor) else {
        let names: Vec<String> = args
            .logs
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        bail!(
            "{}: no line is a request in a known format: common, combined, Caddy's JSON or Sooner's",
            names.join(", ")
        );
    };
    if let Some(path) = &args.html {
        std::fs::write(path, html(&forecast))
            .with_context(|| format!("--html {}", path.display()))?;
    }
    if args.json {
        let mut document = serde_json::to_value(&forecast)?;
        document["schema"] = SCHEMA.into();
        document["advice"] = advice(&forecast).into();
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        print!("{}", text(&forecast));
    }
    Ok(ExitCode::SUCCESS)
}
