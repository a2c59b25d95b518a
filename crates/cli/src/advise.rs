//! `sooner advise`: from an access log to a forecast.

use crate::output;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use sooner_advise::{Logs, Surveyor, TimeTaken, advice, forecast, html, text};
use sooner_workload::Rate;
use std::path::PathBuf;
use std::process::ExitCode;

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// Tell from access logs what ordering would do for this traffic, and for which requests.
///
/// Reads the common and combined formats (nginx, Apache; with the virtual host before, forwarded
/// addresses and the time taken behind), JSON by nginx, Caddy, Traefik, Envoy and Sooner, HAProxy's
/// httplog and tcplog, AWS load balancers, CloudFront and the W3C's (IIS); plain, gzip or zstd;
/// files and pipes in any order.
#[derive(Args)]
pub struct AdviseArgs {
    /// Access logs; `-` is standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// What the server's link can carry, like 100mbit or 100M
    #[arg(long, value_name = "RATE")]
    uplink: Rate,
    /// What the number behind a line of httpd's or nginx's is
    #[arg(long, value_name = "UNIT", default_value = "guess")]
    time_taken: Taken,
    /// Show all orders and loads, not only the ones that matter most
    #[arg(long)]
    all: bool,
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
    /// Seconds (%T)
    S,
    /// Milliseconds
    Ms,
    /// Microseconds (%D)
    Us,
    /// No time: believe no number there
    None,
}

/// Reads, simulates, tells.
pub fn run(args: &AdviseArgs) -> Result<ExitCode> {
    let taken = match args.time_taken {
        Taken::Guess => TimeTaken::Guess,
        Taken::S => TimeTaken::Seconds,
        Taken::Ms => TimeTaken::Milliseconds,
        Taken::Us => TimeTaken::Microseconds,
        Taken::None => TimeTaken::None,
    };
    if let Some(path) = &args.html {
        output::check_file("--html", path)?;
    }
    let logs = Logs::open(&args.logs, taken)?;
    let bar = match logs.stored_bytes() {
        0 => ProgressBar::hidden(),
        bytes => ProgressBar::new(bytes),
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}, {eta} left") {
        bar.set_style(style);
    }
    let mut surveyor = Surveyor::new(args.uplink.bits_per_sec());
    logs.read(&mut surveyor, |bytes| bar.set_position(bytes))?;
    bar.finish_and_clear();
    if surveyor.requests() == 0 {
        bail!("{}", no_request(args, &surveyor));
    }
    let forecast = forecast(surveyor)?;
    let drawn = output::html(args.html.as_deref(), || html(&forecast));
    if args.json {
        let mut document = serde_json::to_value(&forecast)?;
        document["schema"] = SCHEMA.into();
        document["advice"] = advice(&forecast).into();
        output::json(&document)?;
    } else {
        output::print(&text(&forecast, args.all))?;
    }
    drawn?;
    Ok(ExitCode::SUCCESS)
}

/// Why logs have no request: the first line and what is wrong with it, or where reading broke off.
fn no_request(args: &AdviseArgs, surveyor: &Surveyor) -> String {
    let names: Vec<String> = args
        .logs
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let names = match names.as_slice() {
        [name] => name.clone(),
        [name, more @ ..] => format!("{name} and {} more", more.len()),
        [] => String::new(),
    };
    let first = surveyor
        .first_other_line()
        .or(surveyor.broken_files().first().map(String::as_str));
    match first {
        Some(first) => {
            format!("{names}: no line is a request in a known format; the first: {first}")
        }
        None => format!("{names}: no line is a request in a known format: nothing is in it"),
    }
}
