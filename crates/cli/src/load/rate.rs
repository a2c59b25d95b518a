//! `sooner load rate`.

use super::protocol::ProtocolArgs;
use super::requests::RequestArgs;
use super::results::{self, ResultArgs, listed, sent_again};
use super::{exit_code, runtime};
use crate::output;
use crate::seconds;
use anyhow::{Result, bail};
use clap::Args;
use sooner_load::pool::Reuse;
use sooner_load::rate::arrivals::{Ramp, Stage, Stages};
use sooner_load::rate::report::{PERCENTILES, RateReport, RateRun, Times};
use sooner_load::rate::{self, Arrival, RateOptions};
use sooner_load::socket::SocketOptions;
use sooner_report::number;
use sooner_stats::Verdict;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

/// Most connections to a server, unless told otherwise.
pub const CONNECTIONS: u32 = 10_000;

#[derive(Args)]
pub struct RateArgs {
    #[command(flatten)]
    requests: RequestArgs,
    /// Body of every request, or @FILE to read it from a file.
    #[arg(short = 'd', long, value_name = "DATA|@FILE", value_parser = data)]
    data: Option<String>,
    /// Requests per second, such as 500 or 30000/min, or a ramp such as 100..1000.
    #[arg(short = 'R', short_alias = 'q', long, value_name = "RATE")]
    rate: Option<Ramp>,
    /// Length of the run, such as 60s or 5min.
    #[arg(short = 'z', long = "for", alias = "duration", value_name = "TIME", value_parser = seconds::run)]
    duration: Option<Duration>,
    /// Stages that follow each other, instead of --rate and --for: the time and the rate or ramp of
    /// each, such as 30s:500,1min:500..1000.
    #[arg(long, value_name = "TIME:RATE", value_delimiter = ',', conflicts_with_all = ["rate", "duration"])]
    stage: Vec<Stage>,
    /// Send at constant gaps instead of as a Poisson process.
    #[arg(long)]
    constant: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Seed that chooses the gaps and the order of the URLs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    results: ResultArgs,
}

/// How connections are made and used, where requests come at a rate.
#[derive(Args)]
pub struct ConnectionArgs {
    #[command(flatten)]
    protocol: ProtocolArgs,
    /// Use HTTP/1.1, which is the default.
    #[arg(long, conflicts_with_all = ["http2", "streams"])]
    http1: bool,
    /// Most connections to a server; a request that finds none free waits, and the wait is part of
    /// its response time [default: 10000].
    #[arg(short = 'c', long, value_name = "N", default_value_t = CONNECTIONS, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// Open a new connection for every request.
    #[arg(long, alias = "disable-keepalive")]
    no_keep_alive: bool,
    /// Longest time for a request, from the moment at which it was due.
    #[arg(long, value_name = "TIME", value_parser = seconds::patience, default_value = "30s")]
    timeout: Duration,
    /// First part of the run, excluded from the statistics.
    #[arg(long, value_name = "TIME", value_parser = seconds::any, default_value = "0")]
    warm_up: Duration,
}

impl ConnectionArgs {
    /// How TLS connections are made.
    pub fn tls(&self) -> sooner_load::tls::TlsOptions {
        self.protocol.tls()
    }

    /// Requests after which a connection takes no more.
    pub fn requests_per_connection(&self) -> NonZeroU32 {
        if self.no_keep_alive {
            NonZeroU32::MIN
        } else {
            NonZeroU32::MAX
        }
    }

    /// A run of `duration`, of what `questions` has.
    pub fn options(
        &self,
        questions: &sooner_load::questions::Questions,
        duration: Duration,
        arrivals: &'static str,
        results: &ResultArgs,
    ) -> Result<RateOptions> {
        if self.warm_up >= duration {
            bail!(
                "--warm-up {}s: the run takes {} s; give a shorter warm-up",
                self.warm_up.as_secs_f64(),
                duration.as_secs_f64()
            );
        }
        Ok(RateOptions {
            servers: questions.servers().to_vec(),
            requests: questions.requests().to_vec(),
            duration,
            warm_up: self.warm_up,
            timeout: self.timeout,
            connections: self.connections,
            reuse: Reuse {
                requests_per_connection: self.requests_per_connection(),
                http2_streams: self.protocol.http2_streams(),
            },
            arrivals,
            stages: None,
            expectations: results.expect.clone(),
            socket: SocketOptions::default(),
        })
    }
}

impl RateArgs {
    fn stages(&self) -> Result<Stages> {
        // Here, and not by clap: what is wrong with a stage is then told alone.
        let see = "see `sooner load rate --help`";
        match (self.rate, self.duration) {
            _ if !self.stage.is_empty() => Ok(Stages::new(self.stage.clone())?),
            (Some(ramp), Some(duration)) => Ok(Stages::one(ramp, duration.as_secs_f64())?),
            (Some(_), None) if self.data.is_some() => {
                bail!("--for TIME is missing, and -d is --data here; {see}")
            }
            (Some(_), None) => bail!("--for TIME is missing; {see}"),
            (None, Some(_)) => bail!("--rate RATE is missing; {see}"),
            (None, None) => bail!("--rate RATE and --for TIME are missing; {see}"),
        }
    }
}

/// A body, and no length of time: with wrk2 and `sooner load closed` that is what `-d` means.
fn data(text: &str) -> Result<String, String> {
    let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
    match seconds::any(text) {
        Ok(_) if has_unit => Err(format!(
            "`{text}` is the length of a run, and not a body; write --for {text}, or to send it \
             as the body put it into a file: --data @FILE"
        )),
        _ => Ok(text.to_owned()),
    }
}

/// Sends at the rate and prints the figures.
pub fn run(args: &RateArgs) -> Result<ExitCode> {
    let stages = args.stages()?;
    let connection = &args.connection;
    let questions = args.requests.questions(
        args.data.as_deref(),
        connection.tls(),
        connection.requests_per_connection(),
    )?;
    let duration = Duration::from_secs_f64(stages.seconds());
    let name = if args.constant { "constant" } else { "poisson" };
    let options = RateOptions {
        stages: Some(stages.clone()),
        ..connection.options(&questions, duration, name, &args.results)?
    };
    let times = stages.times(args.constant, args.seed);
    let mut arrivals = times
        .zip(questions.choices(args.seed))
        .map(|(at_ns, request)| Arrival {
            at_ns,
            request,
            failed_before: false,
        });
    play(&options, &mut arrivals, &args.results, Vec::new())
}

/// Makes the run, and prints its figures with `remarks` and its own beneath.
pub fn play(
    options: &RateOptions,
    arrivals: &mut dyn Iterator<Item = Arrival>,
    results: &ResultArgs,
    mut remarks: Vec<String>,
) -> Result<ExitCode> {
    let seconds = results.begin(options.duration.as_secs_f64())?;
    let mut ran = runtime()?.block_on(rate::run(options, arrivals, &mut |second| {
        seconds.tell(second);
    }))?;
    let told = seconds.end();
    let written = results.write_hgrm(&ran.recorder.responses);
    remarks.append(&mut ran.run.remarks);
    ran.run.remarks = remarks;
    let code = exit_code(ran.run.is_good());
    if results.json {
        output::json(&RateReport::new(ran.run))?;
    } else {
        print(&ran.run)?;
    }
    written?;
    told?;
    Ok(code)
}

fn print(run: &RateRun) -> Result<()> {
    let ms = |value: Option<f64>| value.map_or("-".into(), number::duration);
    let rate = |value: f64| format!("{value:.1}/s");
    output::line(format_args!(
        "requests     {} in {:.1} s ({} asked, {}{} sent, {} answered)",
        run.sent,
        run.measured_s,
        rate(run.asked_per_sec),
        if rate(run.offered_per_sec) == rate(run.asked_per_sec) {
            String::new()
        } else {
            format!("{} offered, ", rate(run.offered_per_sec))
        },
        rate(run.sent_per_sec),
        rate(run.answered_per_sec)
    ))?;
    output::line(format_args!(
        "answered     {} below status 400{}",
        run.answered,
        listed(run.statuses.iter().filter(|(status, _)| **status < 400))
    ))?;
    output::line(format_args!(
        "errors       {}{}",
        run.errors,
        listed(run.failures.iter())
    ))?;
    output::line(format_args!(
        "goodput      {}",
        number::bits_per_sec(run.goodput_bits_per_sec)
    ))?;
    output::line(format_args!(
        "connections  {} opened, at most {} requests under way{}",
        run.connections_opened,
        run.in_flight_max,
        sent_again(run.resent)
    ))?;
    output::line(format_args!(
        "response     mean {}, from the moment at which each was to be sent",
        ms(run.response.mean_ms)
    ))?;
    print_percentiles(&run.response)?;
    output::line(format_args!("send lag     {}", in_short(&run.send_lag)))?;
    if run.connection_wait.n > 0 {
        output::line(format_args!(
            "waited       {} requests for a free connection: {}",
            run.connection_wait.n,
            in_short(&run.connection_wait)
        ))?;
    }
    output::line(format_args!(
        "generator    {:.0} % of a core",
        run.generator_cpu_share * 100.0
    ))?;
    // The first says what the log has, the others what it does not.
    for (place, remark) in run.remarks.iter().enumerate() {
        let name = if place == 0 { "log          " } else { "  " };
        output::line(format_args!("{name}{remark}"))?;
    }
    results::print(&run.expectations)?;
    let verdict = match run.verdict {
        Verdict::Valid => "VALID",
        Verdict::Invalid => "INVALID",
    };
    output::line(format_args!("{verdict}: {}", run.verdict_reason))?;
    Ok(())
}

/// A line each.
pub fn print_percentiles(times: &Times) -> Result<()> {
    let shown = |value: Option<f64>| value.map_or("-".into(), number::duration);
    for percent in PERCENTILES {
        let name = format!("p{percent}");
        output::line(format_args!(
            "  {name:<10} {}",
            shown(times.percentile(percent))
        ))?;
    }
    output::line(format_args!("  {:<10} {}", "max", shown(times.max_ms)))?;
    Ok(())
}

fn in_short(times: &Times) -> String {
    let ms = |value: Option<f64>| value.map_or("-".into(), number::duration);
    format!(
        "p50 {}, p99 {}, max {}",
        ms(times.percentile(50.0)),
        ms(times.percentile(99.0)),
        ms(times.max_ms)
    )
}
