//! `sooner gate import`.

use crate::imported;
use clap::Args;
use sooner_import::{Files, import};
use std::path::PathBuf;
use std::process::ExitCode;

/// Convert a pgbouncer.ini to a gate.toml.
///
/// Comments in the result name what it leaves out. Run it in the directory in which PgBouncer is
/// started: file names in a pgbouncer.ini are relative to that.
#[derive(Args)]
pub struct ImportArgs {
    /// File to convert, or - for standard input
    #[arg(value_name = "PGBOUNCER.INI")]
    pub file: PathBuf,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Writes the configuration.
pub fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let files = Files {
        folder: &std::env::current_dir()?,
        read: &imported::read,
    };
    let found = import(&imported::file(&args.file), &files)?;
    imported::write(
        &found,
        args.out.as_deref(),
        ("sooner gate import", "setting"),
    )?;
    Ok(ExitCode::SUCCESS)
}
