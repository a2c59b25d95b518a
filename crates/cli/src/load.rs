//! `sooner load`: replay a trace, saturate a server, make a document root.

mod surge;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use sooner_load::closed::report::{ClosedReport, ClosedRun};
use sooner_load::closed::{self, ClosedOptions};
use sooner_load::play::Progress;
use sooner_load::pool::Reuse;
use sooner_load::probe::Costs;
use sooner_load::replay::{self, ReplayOptions};
use sooner_load::samples;
use sooner_load::socket::SocketOptions;
use sooner_load::target::Target;
use sooner_load::tls::TlsOptions;
use sooner_report::{number, table};
use sooner_stats::{Report, Verdict};
use sooner_workload::{Process, Rate, Schedule, Trace, mkroot};
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Shortest run: less than this is noise.
const RUN_MIN: Duration = Duration::from_secs(1);

/// Generates HTTP load and measures response times.
#[derive(Args)]
pub struct LoadArgs {
    #[command(subcommand)]
    command: LoadCommand,
}

#[derive(Subcommand)]
enum LoadCommand {
    /// Replay a trace at an exact load of a link, and compare with the ideal for the same arrivals.
    Replay(ReplayArgs),
    /// Saturate a server with a fixed number of connections: throughput only.
    Closed(ClosedArgs),
    /// Write the files of a trace to a directory, to be served.
    Mkroot(MkrootArgs),
    /// Let SURGE's users loose on a server: pages with embedded files, and pauses as published.
    Surge(surge::SurgeArgs),
    /// Draw everything SURGE is made of, and compare it with what was published.
    SurgeFit(surge::FitArgs),
}

#[derive(Args)]
struct ReplayArgs {
    /// `epa`, `nasa`, `surge:SEED` or the path of a NAME.csv.gz.
    trace: String,
    /// Where the trace's files are served, like `http://127.0.0.1:8080` or `https://example.org`.
    #[arg(long)]
    url: String,
    #[command(flatten)]
    protocol: ProtocolArgs,
    /// Load as a share of the uplink, like 0.9.
    #[arg(
        long,
        required_unless_present = "schedule",
        conflicts_with = "schedule"
    )]
    rho: Option<Schedule>,
    /// Alternating load: LOW,HIGH,LOW_SECONDS,HIGH_SECONDS, like 0.2,1.2,10,10.
    #[arg(long)]
    schedule: Option<Schedule>,
    /// Rate of the link that limits the server, like 10mbit (bit, kbit, mbit, gbit).
    #[arg(long)]
    uplink: Rate,
    /// Length of the run in seconds, warm-up included.
    #[arg(long = "for", value_name = "SECONDS", value_parser = run_seconds)]
    duration: Duration,
    /// Exponential gaps between requests instead of the trace's own.
    #[arg(long)]
    poisson: bool,
    /// Close a connection after K requests; until then a request takes one that is idle, or opens a new one [default: 1,
    /// with --streams no limit].
    #[arg(long, value_name = "K")]
    requests_per_connection: Option<NonZeroU32>,
    /// First seconds of the run, left out of the statistics [default: 10 % of the run].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    warm_up: Option<Duration>,
    /// How many seconds to wait for the last responses after the last request.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    drain: Duration,
    /// Chooses where in the trace the run starts, and the gaps of --poisson.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Name of the policy under test, for the report.
    #[arg(long, default_value = "unnamed")]
    label: String,
    /// TCP congestion control of the client's sockets, like cubic.
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// Write every request as a line of JSON to this file.
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ClosedArgs {
    /// What to ask for; connection i always asks for URL number i modulo how many there are.
    #[arg(long, required = true, num_args = 1..)]
    url: Vec<String>,
    #[command(flatten)]
    protocol: ProtocolArgs,
    /// Number of connections.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Length of the run in seconds; the first fifth is not measured.
    #[arg(long = "for", value_name = "SECONDS", value_parser = run_seconds)]
    duration: Duration,
    /// TCP congestion control of the client's sockets, like cubic.
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// What is spoken.
#[derive(Args)]
struct ProtocolArgs {
    /// Accept any certificate of an https:// server: for test servers with a self-signed one.
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// PEM file of the certificate authorities to trust instead of the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Resume TLS sessions where the server offers it; without, every new connection makes the whole handshake.
    #[arg(long)]
    resume: bool,
    /// Speak HTTP/2: agreed in the TLS handshake, or known beforehand for an http:// server.
    #[arg(long)]
    http2: bool,
    /// At most N requests at a time on an HTTP/2 connection; one more opens another connection [default: 1].
    #[arg(long, value_name = "N", requires = "http2")]
    streams: Option<NonZeroU32>,
}

impl ProtocolArgs {
    fn tls(&self) -> TlsOptions {
        TlsOptions {
            insecure: self.insecure,
            authorities: self.ca.clone(),
            resume: self.resume,
            http2: self.http2,
        }
    }

    /// Streams at a time on a connection; `None`: HTTP/1.1.
    fn http2_streams(&self) -> Option<NonZeroU32> {
        self.http2.then(|| self.streams.unwrap_or(NonZeroU32::MIN))
    }

    /// What to do with connections in a replay where `asked` was asked for.
    fn reuse(&self, asked: Option<NonZeroU32>) -> Reuse {
        let otherwise = match self.streams {
            Some(_) => NonZeroU32::MAX,
            None => NonZeroU32::MIN,
        };
        Reuse {
            requests_per_connection: asked.unwrap_or(otherwise),
            http2_streams: self.http2_streams(),
        }
    }
}

#[derive(Args)]
struct MkrootArgs {
    /// `epa`, `nasa`, `surge:SEED` or the path of a NAME.csv.gz.
    trace: String,
    /// Directory to fill: new, empty, or one that was made by this command.
    dir: PathBuf,
}

/// Runs the subcommand; results go to stdout, progress to stderr when that is a terminal.
pub fn run(args: LoadArgs) -> Result<ExitCode> {
    match args.command {
        LoadCommand::Replay(args) => run_replay(args)?,
        LoadCommand::Closed(args) => run_closed(args)?,
        LoadCommand::Mkroot(args) => run_mkroot(args)?,
        LoadCommand::Surge(args) => surge::run(args)?,
        LoadCommand::SurgeFit(args) => return surge::run_fit(args),
    }
    Ok(ExitCode::SUCCESS)
}

fn run_replay(args: ReplayArgs) -> Result<()> {
    let warm_up = args.warm_up.unwrap_or(args.duration.mul_f64(0.1));
    let options = ReplayOptions {
        target: Target::resolve(&args.url, &args.protocol.tls())?,
        trace: Trace::open(&args.trace)?,
        schedule: args
            .rho
            .or(args.schedule)
            .context("give --rho or --schedule")?,
        process: if args.poisson {
            Process::Poisson
        } else {
            Process::Trace
        },
        rate: args.uplink,
        duration: args.duration,
        warm_up,
        drain: args.drain,
        reuse: args.protocol.reuse(args.requests_per_connection),
        seed: args.seed,
        label: args.label,
        socket: SocketOptions {
            congestion_control: args.congestion_control,
        },
    };
    let shows_progress = io::stderr().is_terminal();
    let mut progress = |progress: Progress| {
        if shows_progress {
            show(progress, options.duration);
        }
    };
    let replay = runtime()?.block_on(replay::run(&options, &mut progress))?;
    if shows_progress {
        eprintln!();
    }
    if let Some(path) = &args.samples {
        samples::write(path, &replay.samples, replay.warm_up_samples)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let (syn_retransmissions, passed_over) = (replay.run.syn_retransmissions, replay.passed_over);
    let wire = said_of_wire(replay.run.protocol.as_deref(), &replay.costs);
    let report = Report::new(vec![replay.run]);
    if args.json {
        return print_json(&report);
    }
    print!("{}", table::render(&report));
    println!("\n{}", said_of_trace(&options.trace, passed_over));
    println!("{wire}");
    if let Some(count) = syn_retransmissions {
        println!("SYNs sent again: {count}");
    }
    Ok(())
}

/// What was done to the trace, which a reader of the figures has to know.
fn said_of_trace(trace: &Trace, passed_over: u64) -> String {
    format!(
        "trace {}: {} requests of {} objects, each as large as its largest response; {} rows \
         without bytes left out; {passed_over} requests passed over to make the load exact",
        trace.name,
        trace.requests.len(),
        trace.objects.len(),
        trace.dropped_zero_rows
    )
}

/// What was counted as work beside bodies and packets.
fn said_of_wire(protocol: Option<&str>, costs: &Costs) -> String {
    let opening = match costs.wire.opening_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} B from the server to open a connection"),
    };
    format!(
        "{}: {} B a response head{opening}",
        protocol.unwrap_or("HTTP"),
        costs.head_bytes
    )
}

fn show(progress: Progress, duration: Duration) {
    eprint!(
        "\r{:>4} s of {:.0} s: {} of {} sent, {} open, {} failed ",
        progress.elapsed_ns / 1_000_000_000,
        duration.as_secs_f64(),
        progress.sent,
        progress.planned,
        progress.sent - progress.ended,
        progress.failed
    );
    io::stderr().flush().ok();
}

fn run_closed(args: ClosedArgs) -> Result<()> {
    let targets = args
        .url
        .iter()
        .map(|url| Target::resolve(url, &args.protocol.tls()))
        .collect::<Result<Vec<_>, _>>()?;
    let options = ClosedOptions {
        targets,
        connections: args.connections,
        http2_streams: args.protocol.http2_streams(),
        duration: args.duration,
        socket: SocketOptions {
            congestion_control: args.congestion_control,
        },
    };
    let run = runtime()?.block_on(closed::run(&options))?;
    if args.json {
        return print_json(&ClosedReport::new(vec![run]));
    }
    print_closed(&run);
    Ok(())
}

fn print_closed(run: &ClosedRun) {
    let ms = |value: Option<f64>| value.map_or("-".into(), number::duration);
    let verdict = if run.verdict == Verdict::Valid {
        "VALID"
    } else {
        "INVALID"
    };
    println!("connections  {}", run.connections);
    println!(
        "requests/s   {} ({} in {:.1} s)",
        number::significant(run.requests_per_sec),
        run.all.completed,
        run.measured_s
    );
    println!(
        "goodput      {}",
        number::bits_per_sec(run.goodput_bits_per_sec)
    );
    println!(
        "response     mean {}, p50 {}, p95 {}, p99 {}, p99.9 {}, max {}",
        ms(run.all.mean_response_ms),
        ms(run.all.p50_response_ms),
        ms(run.all.p95_response_ms),
        ms(run.all.p99_response_ms),
        ms(run.all.p99_9_response_ms),
        ms(run.all.max_response_ms)
    );
    println!("errors       {}", run.all.errors);
    println!(
        "generator    {:.0} % of a core",
        run.generator_cpu_share * 100.0
    );
    println!("{verdict}: {}", run.verdict_reason);
}

fn run_mkroot(args: MkrootArgs) -> Result<()> {
    let trace = Trace::open(&args.trace)?;
    let summary = mkroot(&trace, &args.dir)?;
    println!(
        "{}: {} files written ({}), {} already right",
        args.dir.display(),
        summary.written_files,
        number::bytes(summary.written_bytes as f64),
        summary.kept_files
    );
    Ok(())
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.context("cannot start the event loop")
}

fn print_json(value: &impl serde::Serialize) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

fn run_seconds(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        duration if duration < RUN_MIN => Err("a run takes at least 1 second".into()),
        duration => Ok(duration),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let value = text
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    value
        .ok_or_else(|| format!("`{text}` is not a number of seconds; write for example 120 or 2.5"))
}
