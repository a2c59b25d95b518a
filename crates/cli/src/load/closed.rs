//! `sooner load closed`.

use super::protocol::ProtocolArgs;
use super::rate::print_percentiles;
use super::requests::RequestArgs;
use super::results::{self, ResultArgs, listed, sent_again};
use super::{exit_code, runtime};
use crate::output;
use crate::seconds;
use anyhow::Result;
use clap::Args;
use sooner_load::closed::report::{ClosedReport, ClosedRun};
use sooner_load::closed::{self, ClosedOptions};
use sooner_load::socket::SocketOptions;
use sooner_report::number;
use sooner_stats::Verdict;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Args)]
pub struct ClosedArgs {
    #[command(flatten)]
    requests: RequestArgs,
    /// Body of every request, or @FILE to read it from a file
    #[arg(long, value_name = "DATA|@FILE")]
    data: Option<String>,
    #[command(flatten)]
    protocol: ProtocolArgs,
    /// Use HTTP/1.1, which is the default
    #[arg(long, conflicts_with_all = ["http2", "streams"])]
    http1: bool,
    /// Number of connections; connection i always requests URL number i modulo their number
    #[arg(short = 'c', short_alias = 'u', long, alias = "vus", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Length of the run, such as 60s or 5min; the first fifth is not measured
    #[arg(short = 'd', short_alias = 'z', long = "for", alias = "duration", value_name = "TIME", value_parser = seconds::run)]
    duration: Duration,
    /// Longest time for a request [default: as long as the run]
    #[arg(long, value_name = "TIME", value_parser = seconds::patience)]
    timeout: Option<Duration>,
    /// Addresses of this host to send from, separated by commas; connection i uses number i modulo
    /// their number
    #[arg(long, value_name = "ADDR[,ADDR...]", value_delimiter = ',')]
    from: Vec<IpAddr>,
    /// TCP congestion control of the client's sockets, such as cubic [default: the system's]
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    #[command(flatten)]
    results: ResultArgs,
}

/// Runs the loop and prints its figures.
pub fn run(args: ClosedArgs) -> Result<ExitCode> {
    let questions =
        args.requests
            .questions(args.data.as_deref(), args.protocol.tls(), NonZeroU32::MAX)?;
    let options = ClosedOptions {
        asked: questions.by_connection(args.connections),
        connections: args.connections,
        sources: args.from,
        http2_streams: args.protocol.http2_streams(),
        duration: args.duration,
        timeout: args.timeout,
        expectations: args.results.expect.clone(),
        socket: SocketOptions {
            congestion_control: args.congestion_control,
            ..SocketOptions::default()
        },
    };
    let seconds = args.results.begin(args.duration.as_secs_f64())?;
    let left = questions.without_connection(args.connections);
    if left > 0 {
        output::say(format_args!(
            "sooner: never requested, for want of a connection: {left} of {} URLs; give a \
             larger -c",
            questions.requests().len()
        ));
    }
    let ran = runtime()?.block_on(closed::run(&options, &mut |second| seconds.tell(second)))?;
    let told = seconds.end();
    let written = args.results.write_hgrm(&ran.recorder.responses);
    let code = exit_code(ran.run.is_good());
    if args.results.json {
        output::json(&ClosedReport::new(vec![ran.run]))?;
    } else {
        print(&ran.run)?;
    }
    written?;
    told?;
    Ok(code)
}

fn print(run: &ClosedRun) -> Result<()> {
    let ms = |value: Option<f64>| value.map_or("-".into(), number::duration);
    let verdict = if run.verdict == Verdict::Valid {
        "VALID"
    } else {
        "INVALID"
    };
    output::line(format_args!(
        "connections  {}{}",
        run.connections,
        sent_again(run.resent)
    ))?;
    output::line(format_args!(
        "requests/s   {} ({} in {:.1} s)",
        number::significant(run.requests_per_sec),
        run.all.completed,
        run.measured_s
    ))?;
    output::line(format_args!(
        "goodput      {}",
        number::bits_per_sec(run.goodput_bits_per_sec)
    ))?;
    output::line(format_args!(
        "response     mean {}",
        ms(run.response.mean_ms)
    ))?;
    print_percentiles(&run.response)?;
    output::line(format_args!(
        "errors       {}{}",
        run.all.errors,
        listed(run.failures.iter())
    ))?;
    output::line(format_args!(
        "generator    {:.0} % of a core",
        run.generator_cpu_share * 100.0
    ))?;
    results::print(&run.expectations)?;
    output::line(format_args!("{verdict}: {}", run.verdict_reason))?;
    Ok(())
}
