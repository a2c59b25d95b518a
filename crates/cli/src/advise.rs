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
/// Of the link with --uplink; and of the queue before the servers where lines have the time taken:
/// how many requests were inside, what their times are like, what a limit and an order would have
/// given.
///
/// Reads the common and combined formats (nginx, Apache, gunicorn; with the virtual host before,
/// forwarded addresses and times taken behind), JSON by nginx, Caddy, Traefik, Envoy and Sooner,
/// Envoy's default, HAProxy's httplog and tcplog, AWS load balancers, CloudFront and the W3C's
/// (IIS), JSON of language models' gateways and servers (LiteLLM, OpenAI-like usage, vLLM,
/// llama.cpp, ollama); plain, gzip or zstd; files and pipes in any order.
#[derive(Args)]
pub struct AdviseArgs {
    /// Access logs; `-` is standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// What the server's link can carry, like 100mbit or 100M; without it only the queue before the
    /// servers is looked at
    #[arg(long, value_name = "RATE")]
    uplink: Option<Rate>,
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
    let mut surveyor = match args.uplink {
        Some(uplink) => Surveyor::new(uplink.bits_per_sec()),
        None => Surveyor::without_link(),
    };
    logs.read(&mut surveyor, |bytes| bar.set_position(bytes))?;
    bar.finish_and_clear();
    if surveyor.requests() == 0 {
        bail!("{}", no_request(args, &surveyor));
    }
    let names = names(args);
    let forecast = forecast(surveyor)?;
    if args.uplink.is_none() && forecast.queue.is_none() {
        bail!(
            "{names}: no line has a time taken that can be believed, so nothing can be said of a queue: log the time (nginx $request_time, Apache %D), say its unit with --time-taken, or give --uplink RATE to hear about the link"
        );
    }
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

/// The first log, and how many more.
fn names(args: &AdviseArgs) -> String {
    let mut paths = args.logs.iter().map(|path| path.display().to_string());
    let first = paths.next().unwrap_or_default();
    match paths.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Why logs have no request: the first line and what is wrong with it, or where reading broke off.
fn no_request(args: &AdviseArgs, surveyor: &Surveyor) -> String {
    let names = names(args);
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
