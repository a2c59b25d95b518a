//! How a run is made, measured and printed: what `replay` and `surge` have in common.

use super::protocol::ProtocolArgs;
use super::{exit_code, runtime};
use crate::output::{self, Undelivered};
use crate::seconds;
use crate::whole_file;
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Map, Value};
use sooner_load::model::Model;
use sooner_load::patience::Patience;
use sooner_load::play::Progress;
use sooner_load::probe::Costs;
use sooner_load::replay::{self, Replay, ReplayOptions};
use sooner_load::samples;
use sooner_load::socket::SocketOptions;
use sooner_load::target::Target;
use sooner_report::{number, table};
use sooner_stats::{Group, Report, Run, Verdict};
use sooner_workload::wire::{MSS_BYTES_MAX, MSS_BYTES_MIN};
use sooner_workload::{Rate, Trace, TraceError, parse_bytes};
use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Asks again so often after an abort, unless told otherwise.
const RELOADS: u32 = 3;

/// How a run is made, measured and printed.
#[derive(Args)]
pub struct MeasureArgs {
    /// Server of the files that `sooner load mkroot` wrote, such as `http://127.0.0.1:8080`
    /// or `https://example.org`
    #[arg(long)]
    pub url: String,
    #[command(flatten)]
    pub protocol: ProtocolArgs,
    /// Rate of the link that limits the server, such as 10mbit or 12.5MB/s; required, except with a
    /// model file that has one or an access log
    #[arg(long, value_name = "RATE")]
    uplink: Option<Rate>,
    /// Length of the run including the warm-up, such as 60s or 5min
    #[arg(long = "for", value_name = "TIME", value_parser = seconds::run)]
    pub duration: Option<Duration>,
    /// Requests on each connection before it closes; a request takes an idle connection, or opens
    /// one [default: 1, with --streams no limit]
    #[arg(long, value_name = "K")]
    pub requests_per_connection: Option<NonZeroU32>,
    /// Time after which an unfinished request is aborted by closing its connection, and sent again
    /// [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = seconds::patience)]
    patience: Option<Duration>,
    /// Most repetitions of an aborted request [default: 3]
    #[arg(long, value_name = "N", requires = "patience")]
    reloads: Option<u32>,
    /// Count status 503 as a refusal by a server that limits admission, not as an error
    #[arg(long)]
    expect_refusals: bool,
    /// Addresses of this host to send from, separated by commas; each request, visit or user draws
    /// one with equal probability
    #[arg(long, value_name = "ADDR[,ADDR...]", value_delimiter = ',')]
    from: Vec<IpAddr>,
    /// Length of each response's head that is assumed when requests are chosen, in bytes; servers
    /// to compare then get the same requests although their heads differ
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    plan_head: Option<u64>,
    /// First part of the run, excluded from the statistics [default: 10 % of the run, 0 with an
    /// access log]
    #[arg(long, value_name = "TIME", value_parser = seconds::any)]
    pub warm_up: Option<Duration>,
    /// Longest wait for the last responses after the last request or the end of visits, such as 60s
    /// or 5min
    #[arg(long, value_name = "TIME", value_parser = seconds::any, default_value = "60s")]
    drain: Duration,
    /// Name of the policy under test, for the report [default: the model file's policy, else
    /// unnamed]
    #[arg(long)]
    label: Option<String>,
    /// TCP congestion control of the client's sockets, such as cubic [default: the system's]
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// TCP maximum segment size to announce, in bytes; it limits the server's packets
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(MSS_BYTES_MIN as i64..=MSS_BYTES_MAX as i64))]
    mss: Option<u32>,
    /// File for a line of JSON for each request, gzipped if its name ends in .gz
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// What there is to say of a run beside its figures.
#[derive(Default)]
pub struct Remarks {
    /// Beneath the table.
    pub words: String,
    /// Beside the run's fields in JSON.
    pub figures: Map<String, Value>,
}

impl From<String> for Remarks {
    fn from(words: String) -> Self {
        Self {
            words,
            figures: Map::new(),
        }
    }
}

impl MeasureArgs {
    /// Takes from a model file what no flag says.
    pub fn fill_in(&mut self, uplink: Option<Rate>, label: Option<&str>) {
        self.uplink = self.uplink.or(uplink);
        self.label = self.label.take().or(label.map(Into::into));
    }

    /// The first flag given that says something of links and sizes, which a log's replay does not
    /// look at.
    pub fn flag_of_traces(&self) -> Option<&'static str> {
        let given = [
            ("--uplink", self.uplink.is_some()),
            ("--patience", self.patience.is_some()),
            ("--expect-refusals", self.expect_refusals),
            ("--from", !self.from.is_empty()),
            ("--plan-head", self.plan_head.is_some()),
            ("--label", self.label.is_some()),
            ("--congestion-control", self.congestion_control.is_some()),
            ("--mss", self.mss.is_some()),
            ("--samples", self.samples.is_some()),
        ];
        given
            .iter()
            .find(|(_, given)| *given)
            .map(|(flag, _)| *flag)
    }

    /// A run of `trace`, which is opened when everything else is right.
    pub fn options(
        &self,
        model: Model,
        trace: impl FnOnce() -> Result<Trace, TraceError>,
        seed: u64,
    ) -> Result<ReplayOptions> {
        let Some(rate) = self.uplink else {
            bail!("give --uplink RATE, the rate of the link that limits the server, such as 10mbit")
        };
        let Some(duration) = self.duration else {
            bail!("give --for TIME, the length of the run, such as 60s")
        };
        Ok(ReplayOptions {
            model,
            target: Target::resolve(&self.url, &self.protocol.tls())?,
            trace: trace()?,
            rate,
            duration,
            warm_up: self.warm_up.unwrap_or(duration.mul_f64(0.1)),
            drain: self.drain,
            reuse: self.protocol.reuse(self.requests_per_connection),
            patience: self.patience.map(|limit| Patience {
                limit,
                reloads: self.reloads.unwrap_or(RELOADS),
            }),
            expects_refusals: self.expect_refusals,
            sources: self.from.clone(),
            plan_head_bytes: self.plan_head,
            seed,
            label: self.label.clone().unwrap_or_else(|| "unnamed".into()),
            socket: SocketOptions {
                congestion_control: self.congestion_control.clone(),
                mss_bytes: self.mss,
                source: None,
            },
        })
    }

    /// Makes the run and prints its figures, with `remarks` on them.
    pub fn run(
        &self,
        options: &ReplayOptions,
        remarks: impl FnOnce(&Replay) -> Remarks,
    ) -> Result<ExitCode> {
        if let Some(path) = &self.samples {
            output::check_file("--samples", path)?;
        }
        let shows_progress = io::stderr().is_terminal();
        let mut progress = |progress: Progress| {
            if shows_progress {
                show(progress, options.duration);
            }
        };
        let replay = runtime()?.block_on(replay::run(options, &mut progress))?;
        if shows_progress {
            output::say("");
        }
        let kept = match &self.samples {
            Some(path) => whole_file::create(path)
                .and_then(|file| samples::write_to(file, path, &replay.samples, &replay.measured))
                .map_err(|error| Undelivered::file("--samples", path, error)),
            None => Ok(()),
        };
        let remarks = remarks(&replay);
        let code = exit_code(replay.run.verdict == Verdict::Valid);
        self.print(replay, options, remarks)?;
        kept?;
        Ok(code)
    }

    fn print(&self, replay: Replay, options: &ReplayOptions, remarks: Remarks) -> Result<()> {
        let Remarks { words, mut figures } = remarks;
        if let Some(load) = replay.asked_load {
            figures.insert("asked_load".into(), load.into());
        }
        figures.insert("resent".into(), replay.resent.into());
        if self.json {
            let mut report = serde_json::to_value(Report::new(vec![replay.run]))?;
            if let Some(run) = report["runs"][0].as_object_mut() {
                run.extend(figures);
            }
            return output::json(&report);
        }
        print(replay, options, &words)
    }
}

fn print(replay: Replay, options: &ReplayOptions, remarks: &str) -> Result<()> {
    let Replay {
        run,
        costs,
        asked_load,
        resent,
        ..
    } = replay;
    let wire = said_of_wire(run.protocol.as_deref(), &costs);
    let impatience = options.patience.map(|_| said_of_aborts(&run));
    let report = Report::new(vec![run]);
    output::print(&table::render_requested(&report, &[asked_load]))?;
    output::line(format_args!("\n{remarks}"))?;
    output::line(wire)?;
    if let Some(words) = impatience {
        output::line(words)?;
    }
    for client in &report.runs[0].by_client {
        output::line(said_of_client(&client.address, &client.all))?;
    }
    if let Some(count) = report.runs[0].syn_retransmissions {
        output::line(format_args!("SYNs sent again: {count}"))?;
    }
    if resent > 0 {
        output::line(format_args!("requests sent again: {resent}"))?;
    }
    Ok(())
}

/// What was counted as work beside bodies and packets.
fn said_of_wire(protocol: Option<&str>, costs: &Costs) -> String {
    let opening = match costs.wire.opening_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} B from the server to open a connection"),
    };
    format!(
        "{}: {} B a response head{opening}, segments of {} B",
        protocol.unwrap_or("HTTP"),
        costs.head_bytes,
        costs.wire.segment_bytes
    )
}

/// What users did not wait for: these requests are in no mean and no percentile.
fn said_of_aborts(run: &Run) -> String {
    let share = |group: &Group| {
        format!(
            "{} of {} given up ({} aborts)",
            group.given_up, group.n, group.aborts
        )
    };
    format!(
        "patience: {}; smallest half {}; largest 1 % {}; largest {}",
        share(&run.all),
        share(&run.smallest_half),
        share(&run.largest_1_percent),
        share(&run.largest)
    )
}

fn said_of_client(address: &str, group: &Group) -> String {
    let mean = group.mean_response_ms.map_or("-".into(), number::duration);
    format!("from {address}: {} requests, mean response {mean}", group.n)
}

fn show(progress: Progress, duration: Duration) {
    let line = format!(
        "\r{:>4} s of {:.0} s: {} of {} sent, {} open, {} failed ",
        progress.elapsed_ns / 1_000_000_000,
        duration.as_secs_f64(),
        progress.sent,
        progress.planned,
        progress.sent - progress.ended,
        progress.failed
    );
    let _ = io::stderr().write_all(line.as_bytes());
}
