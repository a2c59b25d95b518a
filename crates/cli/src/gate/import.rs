//! `sooner gate import`.

use crate::output;
use clap::Args;
use sooner_import::{Files, Imported, import};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Convert a pgbouncer.ini to a gate.toml.
///
/// The result goes to standard output, with comments on what it leaves out. Run it in the directory
/// in which PgBouncer is started: file names in a pgbouncer.ini are relative to that.
#[derive(Args)]
pub struct ImportArgs {
    /// File to convert
    #[arg(value_name = "PGBOUNCER.INI")]
    pub file: PathBuf,
}

/// Writes the configuration to standard output.
pub fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let files = Files {
        folder: &std::env::current_dir()?,
        read: &read,
    };
    let Imported { text, left_out } = import(&args.file.display().to_string(), &files)?;
    output::print(&text)?;
    let words = match left_out {
        0 => "everything is carried over".to_owned(),
        1 => "1 setting is not carried over; a comment says which".to_owned(),
        _ => format!("{left_out} settings are not carried over; comments say which"),
    };
    let _ = writeln!(io::stderr(), "sooner gate import: {words}");
    Ok(ExitCode::SUCCESS)
}

/// What is no text becomes a letter that stands for that: in a comment it does no harm.
fn read(file: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned())
}
