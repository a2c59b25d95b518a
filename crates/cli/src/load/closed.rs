//! `sooner load closed`.

use super::protocol::ProtocolArgs;
use super::{exit_code, runtime};
use crate::output;
use crate::seconds;
use anyhow::Result;
use clap::Args;
use sooner_load::closed::report::{ClosedReport, ClosedRun};
use sooner_load::closed::{self, ClosedOptions};
use sooner_load::socket::SocketOptions;
use sooner_load::target::Target;
use sooner_report::number;
use sooner_stats::Verdict;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Args)]
pub struct ClosedArgs {
    /// URLs to request; connection i always requests URL number i modulo their number
    #[arg(long, required = true, num_args = 1..)]
    url: Vec<String>,
    #[command(flatten)]
    protocol: ProtocolArgs,
    /// Number of connections
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Length of the run, such as 10, 10s or 2m; the first fifth is not measured
    #[arg(long = "for", value_name = "TIME", value_parser = seconds::run)]
    duration: Duration,
    /// Addresses of this host to send from, separated by commas; connection i uses number i modulo
    /// their number
    #[arg(long, value_name = "ADDR[,ADDR...]", value_delimiter = ',')]
    from: Vec<IpAddr>,
    /// TCP congestion control of the client's sockets, such as cubic [default: the system's]
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the loop and prints its figures.
pub fn run(args: ClosedArgs) -> Result<ExitCode> {
    let targets = args
        .url
        .iter()
        .map(|url| Target::resolve(url, &args.protocol.tls()))
        .collect::<Result<Vec<_>, _>>()?;
    let options = ClosedOptions {
        targets,
        connections: args.connections,
        sources: args.from,
        http2_streams: args.protocol.http2_streams(),
        duration: args.duration,
        socket: SocketOptions {
            congestion_control: args.congestion_control,
            ..SocketOptions::default()
        },
    };
    let run = runtime()?.block_on(closed::run(&options))?;
    let code = exit_code(run.verdict == Verdict::Valid);
    if args.json {
        output::json(&ClosedReport::new(vec![run]))?
    } else {
        print(&run)?
    }
    Ok(code)
}

fn print(run: &ClosedRun) -> Result<()> {
    let ms = |value: Option<f64>| value.map_or("-".into(), number::duration);
    let verdict = if run.verdict == Verdict::Valid {
        "VALID"
    } else {
        "INVALID"
    };
    output::line(format_args!("connections  {}", run.connections))?;
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
        "response     mean {}, p50 {}, p95 {}, p99 {}, p99.9 {}, max {}",
        ms(run.all.mean_response_ms),
        ms(run.all.p50_response_ms),
        ms(run.all.p95_response_ms),
        ms(run.all.p99_response_ms),
        ms(run.all.p99_9_response_ms),
        ms(run.all.max_response_ms)
    ))?;
    output::line(format_args!("errors       {}", run.all.errors))?;
    output::line(format_args!(
        "generator    {:.0} % of a core",
        run.generator_cpu_share * 100.0
    ))?;
    output::line(format_args!("{verdict}: {}", run.verdict_reason))?;
    Ok(())
}
