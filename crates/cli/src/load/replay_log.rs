//! `sooner load replay ACCESS.log`: a log's requests, to a server of the user's own.

use super::measure::MeasureArgs;
use super::no_request::NoRequest;
use super::rate::{CONNECTIONS, play};
use super::requests::field;
use super::results::ResultArgs;
use crate::advise::Taken;
use crate::seconds;
use anyhow::{Result, bail};
use clap::Args;
use sooner_advise::{LoggedRequest, Logs, Requested, Requests, TimeTaken, is_safe, other_methods};
use sooner_load::expectation::Expectation;
use sooner_load::message::Question;
use sooner_load::pool::Reuse;
use sooner_load::questions::Questions;
use sooner_load::rate::arrivals::{Ramp, Stages};
use sooner_load::rate::{Arrival, RateOptions};
use sooner_load::socket::SocketOptions;
use sooner_workload::job_log;
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long a request may take, unless told otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);
/// After its last request a log goes on for so long.
const AFTER_LAST_NS: u64 = 1_000_000;

/// How a log is replayed.
#[derive(Args)]
#[command(next_help_heading = "Access logs")]
pub struct LogArgs {
    /// Speed relative to the log, such as 2x or 0.5x.
    #[arg(long, value_name = "FACTOR", value_parser = factor, conflicts_with = "rate")]
    speed: Option<f64>,
    /// Send at this rate per second instead of at the log's times, such as 500 or 100..1000; after
    /// its last request the log starts again.
    #[arg(long, value_name = "RATE")]
    rate: Option<Ramp>,
    /// With --rate: send at constant gaps instead of as a Poisson process.
    #[arg(long, requires = "rate")]
    constant: bool,
    /// Also send requests with other methods than GET and HEAD; without bodies, because a log has
    /// none.
    #[arg(long)]
    all_methods: bool,
    /// Unit of the time taken at the end of a line that Apache or nginx wrote, and of fields of JSON
    /// that do not name theirs, such as duration and latency [default: guess].
    #[arg(long, value_name = "UNIT")]
    time_taken: Option<Taken>,
    /// Header of every request, such as 'host: www.example.org'; repeatable.
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = field)]
    header: Vec<(http::HeaderName, http::HeaderValue)>,
    /// Most connections [default: 10000].
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: Option<u32>,
    /// Longest time for a request, from the moment at which it was due [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = seconds::patience)]
    timeout: Option<Duration>,
    /// Expected result, such as 'p99<200ms', 'errors<0.1%' or 'rate>=495/s'; repeatable. The exit
    /// code is 1 if one is not met.
    #[arg(long, value_name = "EXPECTATION", value_delimiter = ',')]
    expect: Vec<Expectation>,
    /// Write the response times to this file as HdrHistogram's plotters read them.
    #[arg(long, value_name = "FILE")]
    hgrm: Option<PathBuf>,
    /// Write a line of JSON a second to this file: rate, errors, in flight, p50, p99, max.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
}

impl LogArgs {
    /// The first flag given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--speed", self.speed.is_some()),
            ("--rate", self.rate.is_some()),
            ("--constant", self.constant),
            ("--all-methods", self.all_methods),
            ("--time-taken", self.time_taken.is_some()),
            ("--header", !self.header.is_empty()),
            ("--connections", self.connections.is_some()),
            ("--timeout", self.timeout.is_some()),
            ("--expect", !self.expect.is_empty()),
            ("--hgrm", self.hgrm.is_some()),
            ("--timeline", self.timeline.is_some()),
        ];
        given
            .iter()
            .find(|(_, given)| *given)
            .map(|(flag, _)| *flag)
    }
}

/// `2x`, `0.5`.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches(['x', 'X']);
    let value = number.parse().ok();
    value
        .filter(|value| (1e-6..=1e6).contains(value))
        .ok_or_else(|| format!("`{text}` is not a speed; write for example 2x or 0.5x"))
}

/// Whether this names an access log and no trace.
pub fn is_log(name: &str) -> bool {
    let is_trace = name.ends_with(".csv") || name.ends_with(".csv.gz") || job_log::is_named(name);
    name == "-" || (!is_trace && Path::new(name).exists())
}

/// What a log has, and what has to be said of it.
struct Log {
    requests: Vec<LoggedRequest>,
    whats: Vec<Requested>,
    remarks: Vec<String>,
}

/// Sends the log's requests and prints the figures.
pub fn run(name: &str, measure: &MeasureArgs, log: &LogArgs, seed: u64) -> Result<ExitCode> {
    if log.constant && log.rate.is_none() {
        bail!("--constant without --rate: the requests come at the log's times; give --rate RATE");
    }
    let Log {
        requests,
        whats,
        remarks,
    } = read(name, log)?;
    let questions = questions(&whats, measure, log)?;
    let Sent {
        duration,
        stages,
        mut arrivals,
    } = sent(&requests, measure.duration, log, seed)?;
    let warm_up = measure.warm_up.unwrap_or_default();
    if warm_up >= duration {
        let (warm_up, duration) = (warm_up.as_secs_f64(), duration.as_secs_f64());
        bail!("--warm-up {warm_up}s: the run takes {duration:.3} s; give a shorter warm-up");
    }
    let options = RateOptions {
        servers: questions.servers().to_vec(),
        requests: questions.requests().to_vec(),
        duration,
        warm_up,
        timeout: log.timeout.unwrap_or(TIMEOUT),
        connections: log.connections.unwrap_or(CONNECTIONS),
        reuse: Reuse {
            requests_per_connection: requests_per_connection(measure),
            http2_streams: measure.protocol.http2_streams(),
        },
        arrivals: match (log.rate, log.constant) {
            (None, _) => "log",
            (Some(_), true) => "constant",
            (Some(_), false) => "poisson",
        },
        stages,
        expectations: log.expect.clone(),
        socket: SocketOptions::default(),
    };
    let results = ResultArgs {
        expect: log.expect.clone(),
        hgrm: log.hgrm.clone(),
        timeline: log.timeline.clone(),
        json: measure.json,
    };
    play(&options, &mut arrivals, &results, remarks)
}

/// Without the flag a log has no limit.
fn requests_per_connection(measure: &MeasureArgs) -> NonZeroU32 {
    measure.requests_per_connection.unwrap_or(NonZeroU32::MAX)
}

/// The requests, below the path of `--url`.
fn questions(whats: &[Requested], measure: &MeasureArgs, log: &LogArgs) -> Result<Questions> {
    let mut questions = Questions::new(measure.protocol.tls(), requests_per_connection(measure));
    let base = measure.url.trim_end_matches('/');
    let mut fields = http::HeaderMap::new();
    for (name, value) in &log.header {
        fields.append(name, value.clone());
    }
    for what in whats {
        let question = Question {
            method: what.method.parse()?,
            fields: fields.clone(),
            ..Question::get("/")
        };
        questions.add(&format!("{base}{}", what.target), &question, 1.0)?;
    }
    Ok(questions)
}

/// What is sent of a log.
struct Sent<'a> {
    /// How long the run takes.
    duration: Duration,
    /// The rate that was asked for, where it is not the log's own.
    stages: Option<Stages>,
    /// The requests at their times in the run, made one by one as they are due.
    arrivals: Box<dyn Iterator<Item = Arrival> + 'a>,
}

/// What is sent, when, and for how long.
fn sent<'a>(
    requests: &'a [LoggedRequest],
    most: Option<Duration>,
    log: &LogArgs,
    seed: u64,
) -> Result<Sent<'a>> {
    if let Some(ramp) = log.rate {
        let Some(duration) = most else {
            bail!("give --for TIME with --rate, the length of the run, such as 60s");
        };
        let stages = Stages::one(ramp, duration.as_secs_f64())?;
        let pairs = stages
            .times(log.constant, seed)
            .zip(requests.iter().cycle());
        return Ok(Sent {
            duration,
            stages: Some(stages),
            arrivals: Box::new(pairs.map(|(at_ns, own)| arrival(at_ns, own))),
        });
    }
    let speed = log.speed.unwrap_or(1.0);
    let at_ns = move |request: &LoggedRequest| (request.at_ns as f64 / speed) as u64;
    let last_ns = requests.last().map_or(0, at_ns);
    let span = Duration::from_nanos(last_ns.saturating_add(AFTER_LAST_NS));
    let duration = most.map_or(span, |most| most.min(span));
    let is_within =
        move |request: &&LoggedRequest| u128::from(at_ns(request)) < duration.as_nanos();
    let within = requests.iter().filter(is_within);
    Ok(Sent {
        duration,
        stages: None,
        arrivals: Box::new(within.map(move |own| arrival(at_ns(own), own))),
    })
}

fn arrival(at_ns: u64, request: &LoggedRequest) -> Arrival {
    Arrival {
        at_ns,
        request: request.what,
        failed_before: request.status >= 400,
    }
}

fn read(name: &str, log: &LogArgs) -> Result<Log> {
    let all_methods = log.all_methods;
    let taken = log.time_taken.map_or(TimeTaken::Guess, Into::into);
    let mut read = Requests::default();
    let mut stored_bytes = 0;
    Logs::open_with_requests(&[PathBuf::from(name)], taken)
        .and_then(|logs| {
            stored_bytes = logs.stored_bytes();
            logs.read(&mut read, |_| ())
        })
        .map_err(|error| error.for_command("load replay"))?;
    let (mut requests, whats, unsaid) = read.finish();
    let without = NoRequest {
        unsaid: &unsaid,
        stored_bytes,
        requests: requests.len(),
    };
    let mut remarks: Vec<String> = Vec::new();
    remarks.extend(unsaid.sentences());
    let others = other_methods(&requests, &whats);
    if !others.is_empty() {
        let listed: Vec<String> = others
            .iter()
            .map(|(method, n)| format!("{method} {n}"))
            .collect();
        let listed = listed.join(", ");
        remarks.push(if all_methods {
            format!("sent without a body, which the log does not have: {listed}")
        } else {
            format!("left out, since it may change something: {listed}; --all-methods sends it")
        });
    }
    if !all_methods {
        requests.retain(|request| is_safe(&whats[request.what as usize].method));
        let first_ns = requests.first().map_or(0, |request| request.at_ns);
        requests
            .iter_mut()
            .for_each(|request| request.at_ns -= first_ns);
    }
    if requests.is_empty() {
        let why = without.why("requests are no GET and no HEAD, and --all-methods sends those");
        bail!("{name}: no line is a request that can be sent; {why}");
    }
    let targets: HashSet<u32> = requests.iter().map(|request| request.what).collect();
    let all = format!("{} requests for {} targets", requests.len(), targets.len());
    remarks.insert(0, all);
    Ok(Log {
        requests,
        whats,
        remarks,
    })
}

#[cfg(test)]
mod tests;
