//! `sooner load mkroot`.

use super::model_file::trace_name;
use crate::choice;
use crate::output;
use crate::system;
use anyhow::Result;
use clap::Args;
use sooner_report::number;
use sooner_workload::Trace;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub struct MkrootArgs {
    /// Trace: `epa`, `nasa`, `surge:SEED`, `sizes:LAW`, the path of a NAME.csv.gz, or a model file
    /// (.toml) for files of its sizes
    #[arg(value_name = "TRACE", value_parser = choice::trace())]
    trace: String,
    /// Directory to fill: new, empty, or made by this command before
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Writes the files, then says how many.
pub fn run(args: MkrootArgs) -> Result<ExitCode> {
    let trace = if args.trace.ends_with(".toml") {
        Trace::open(&trace_name(&system::read(Path::new(&args.trace))?.sizes))?
    } else {
        Trace::open(&args.trace)?
    };
    let summary = sooner_workload::mkroot(&trace, &args.dir)?;
    output::line(format_args!(
        "{}: {} files written ({}), {} already right",
        args.dir.display(),
        summary.written_files,
        number::bytes(summary.written_bytes as f64),
        summary.kept_files
    ))?;
    Ok(ExitCode::SUCCESS)
}
