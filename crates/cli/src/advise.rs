//! `sooner advise`: from an access log to a forecast.

use crate::output;
use crate::progress;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use sooner_advise::{Logs, Surveyor, TimeTaken, advice, forecast, html, text};
use sooner_workload::Rate;
use std::path::PathBuf;
use std::process::ExitCode;

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// Forecast from access logs what ordering would change.
///
/// With --uplink it looks at the link. Where log lines contain the time taken, it also looks at the
/// queue before the servers: how many requests were inside, how long they took, and what a limit
/// and an order would have changed.
///
/// It reads the common and combined formats (nginx, Apache, gunicorn, with the virtual host in
/// front, forwarded addresses and times taken behind), JSON by nginx, Caddy, Traefik, Envoy and
/// Sooner, Envoy's default, HAProxy's httplog and tcplog, AWS load balancers, CloudFront, the W3C
/// format (IIS), and JSON of gateways and servers for language models (LiteLLM, OpenAI-like usage,
/// vLLM, llama.cpp, ollama). Logs may be plain, gzip or zstd, files or pipes, in any order.
#[derive(Args)]
pub struct AdviseArgs {
    /// Access logs; `-` reads standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Rate of the server's link, such as 100mbit or 12.5MB/s [default: only the queue before the
    /// servers is examined]
    #[arg(long, value_name = "RATE")]
    uplink: Option<Rate>,
    /// Unit of the time taken at the end of a line that Apache or nginx wrote, and of fields of JSON
    /// that do not name theirs, such as duration and latency
    #[arg(long, value_name = "UNIT", default_value = "guess")]
    time_taken: Taken,
    /// Show every order and every load instead of the most relevant ones
    #[arg(long)]
    all: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Also draw load and response times in this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// What `--time-taken` says.
#[derive(Clone, Copy, ValueEnum)]
pub enum Taken {
    /// Seconds if the number has a decimal point (nginx), else microseconds (%D); of JSON seconds,
    /// of Rails' lograge milliseconds
    Guess,
    /// Seconds (%T)
    S,
    /// Milliseconds
    Ms,
    /// Microseconds (%D)
    Us,
    /// Ignore the number: it is not a time
    None,
}

impl From<Taken> for TimeTaken {
    fn from(taken: Taken) -> Self {
        match taken {
            Taken::Guess => Self::Guess,
            Taken::S => Self::Seconds,
            Taken::Ms => Self::Milliseconds,
            Taken::Us => Self::Microseconds,
            Taken::None => Self::None,
        }
    }
}

/// Reads, simulates, tells.
pub fn run(args: &AdviseArgs) -> Result<ExitCode> {
    if let Some(path) = &args.html {
        output::check_file("--html", path)?;
    }
    let logs = Logs::open(&args.logs, args.time_taken.into())?;
    let bar = match logs.stored_bytes() {
        0 => ProgressBar::hidden(),
        bytes => progress::bar(bytes, "{bar:40} {bytes}/{total_bytes}, {eta} left"),
    };
    let mut surveyor = match args.uplink {
        Some(uplink) => Surveyor::new(uplink.bits_per_sec()),
        None => Surveyor::without_link(),
    };
    let stored_bytes = logs.stored_bytes();
    logs.read(&mut surveyor, |bytes| bar.set_position(bytes))?;
    bar.finish_and_clear();
    if surveyor.requests() == 0 {
        bail!("{}", no_request(args, &surveyor, stored_bytes));
    }
    let names = names(&args.logs);
    let forecast =
        progress::while_spinning("simulating what each order gives", || forecast(surveyor))?;
    if args.uplink.is_none() && forecast.queue.is_none() {
        let disbelieved = &forecast.survey.disbelieved;
        let reasons: String = disbelieved.iter().map(|why| format!(" {why}")).collect();
        bail!(
            "{names}: no line has a time taken that can be believed, so the queue cannot be forecast: log the time (nginx $request_time, Apache %D), say its unit with --time-taken, or give --uplink RATE for a forecast of the link.{reasons}"
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
pub fn names(logs: &[PathBuf]) -> String {
    let mut paths = logs.iter().map(|path| path.display().to_string());
    let first = paths.next().unwrap_or_default();
    match paths.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Why logs have no request: the first line and what is wrong with it, or where reading broke off.
fn no_request(args: &AdviseArgs, surveyor: &Surveyor, stored_bytes: u64) -> String {
    let first = surveyor
        .first_other_line()
        .or(surveyor.broken_files().first().map(String::as_str));
    let (names, why) = (names(&args.logs), nothing_known(first, stored_bytes));
    format!("{names}: no line is a request in a known format; {why}")
}

/// Why logs of so many bytes have no line in a known format, of which the first is this.
pub fn nothing_known(first: Option<&str>, stored_bytes: u64) -> String {
    match first {
        Some(first) => format!("the first: {first}"),
        None if stored_bytes > 0 => {
            "it has nothing but comments, empty lines and bytes of zero".into()
        }
        None => "the log is empty".into(),
    }
}
