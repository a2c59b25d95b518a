//! `sooner load replay`.

use super::measure::MeasureArgs;
use super::model::ModelArgs;
use super::replay_log::{self, LogArgs};
use crate::choice;
use anyhow::{Result, bail};
use clap::Args;
use sooner_load::model::Model;
use sooner_report::number;
use sooner_workload::Trace;
use std::process::ExitCode;

#[derive(Args)]
pub struct ReplayArgs {
    /// Trace: `epa`, `nasa`, `surge:SEED`, `sizes:LAW` or the path of a NAME.csv.gz; or an access
    /// log, to send its requests to a server of your own
    #[arg(value_name = "TRACE", value_parser = choice::trace())]
    trace: String,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    log: LogArgs,
    /// Seed that chooses where in the trace the run starts, the gaps of --poisson, visits, pauses
    /// and source addresses
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Plays the trace and prints the figures.
pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    if replay_log::is_log(&args.trace) {
        let belongs_to_traces = args.model.given().or(args.measure.flag_of_traces());
        if let Some(flag) = belongs_to_traces {
            bail!(
                "{flag} with an access log: its requests come at their own times, or at --rate; leave it out"
            );
        }
        return replay_log::run(&args.trace, &args.measure, &args.log, args.seed);
    }
    if let Some(flag) = args.log.given() {
        bail!("{flag} is for access logs, and `{}` is not one", args.trace);
    }
    // Before what a trace would need: one that is not there is often a log with a wrong path.
    let trace = Trace::open(&args.trace)?;
    let options = args
        .measure
        .options(args.model.model()?, || Ok(trace), args.seed)?;
    args.measure.run(&options, |replay| {
        let said = said_of_trace(&options.trace, replay.passed_over);
        (said + &said_of_crowd(&options.model, &options.trace)).into()
    })
}

/// Whom the crowd came for, if there was one.
fn said_of_crowd(model: &Model, trace: &Trace) -> String {
    let words = || {
        let crowd = model.offered()?.crowd?;
        let bytes = crowd.object(trace)?.size_bytes as f64;
        let (percent, size) = (crowd.share() * 100.0, number::bytes(bytes));
        Some(format!(
            "\ncrowd: where the load is highest, {percent} % of the requests are for one object of {size}"
        ))
    };
    words().unwrap_or_default()
}

/// What was done to the trace, which a reader of the figures has to know.
pub(super) fn said_of_trace(trace: &Trace, passed_over: u64) -> String {
    format!(
        "trace {}: {} requests of {} objects, each as large as its largest response; {} rows \
         without bytes left out; {passed_over} requests passed over to make the load exact",
        trace.name,
        trace.requests.len(),
        trace.objects.len(),
        trace.dropped_zero_rows
    )
}
