//! `sooner load trace`.

use super::no_request::NoRequest;
use crate::advise::{Taken, names};
use crate::output::{self, Undelivered};
use crate::whole_file;
use anyhow::{Context, Result, bail};
use clap::Args;
use sooner_advise::{Logs, Requests, trace_files};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct TraceArgs {
    /// Access logs, in every form that `sooner advise` reads; `-` is standard input.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Name of the trace: NAME.csv.gz, NAME.objects.csv.gz and NAME.paths.csv.gz are written.
    #[arg(short = 'o', long, value_name = "NAME")]
    output: String,
    /// Unit of the time taken at the end of a line that Apache or nginx wrote, and of fields of JSON
    /// that do not name theirs, such as duration and latency.
    #[arg(long, value_name = "UNIT", default_value = "guess")]
    time_taken: Taken,
}

/// Reads the logs and writes the trace.
pub fn run(args: &TraceArgs) -> Result<ExitCode> {
    let name = args.output.trim_end_matches(".gz").trim_end_matches(".csv");
    let [requests_path, objects_path, paths_path] = ["csv.gz", "objects.csv.gz", "paths.csv.gz"]
        .map(|end| PathBuf::from(format!("{name}.{end}")));
    for path in [&requests_path, &objects_path, &paths_path] {
        output::check_file("--output", path)?;
    }
    let mut read = Requests::default();
    let mut stored_bytes = 0;
    Logs::open_with_requests(&args.logs, args.time_taken.into())
        .and_then(|logs| {
            stored_bytes = logs.stored_bytes();
            logs.read(&mut read, |_| ())
        })
        .map_err(|error| error.for_command("load trace -o NAME"))?;
    let (requests, whats, unsaid) = read.finish();
    if requests.iter().all(|request| request.bytes == 0) {
        let names = names(&args.logs);
        let without = NoRequest {
            unsaid: &unsaid,
            stored_bytes,
            requests: requests.len(),
        };
        let why = without.why(match requests.len() as u64 {
            all if unsaid.without_size == all => "requests have no size, which a trace needs",
            _ if unsaid.without_size == 0 => "requests have a response of 0 bytes",
            _ => "requests have a response of 0 bytes or no size",
        });
        bail!("{names}: no line is a request with a response of some bytes; {why}");
    }
    let files = trace_files(&requests, &whats).context("cannot make the trace")?;
    // The requests last: where they are, a trace is whole.
    for (path, content) in [
        (&objects_path, &files.objects),
        (&paths_path, &files.paths),
        (&requests_path, &files.requests),
    ] {
        whole_file::write(path, content)
            .map_err(|error| Undelivered::file("--output", path, error))?;
    }
    let span_s = requests.last().map_or(0, |request| request.at_ns) as f64 / 1e9;
    let clients = requests
        .iter()
        .map(|request| request.client)
        .max()
        .map_or(0, |most| most + 1);
    output::line(format_args!(
        "{}: {} requests of {} objects by {clients} clients in {span_s:.0} s",
        requests_path.display(),
        requests.len(),
        whats.len()
    ))?;
    for said in unsaid.sentences().iter().chain(&unsaid.of_responses()) {
        output::line(format_args!("not in the log: {said}"))?;
    }
    output::line(format_args!(
        "{}: which object was which path",
        paths_path.display()
    ))?;
    output::line(format_args!(
        "next: sooner load mkroot {name}.csv.gz DIR, serve DIR, and sooner load replay {name}.csv.gz"
    ))?;
    Ok(ExitCode::SUCCESS)
}
