//! `sooner gate import`.

use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Makes a gate.toml of a pgbouncer.ini, and says what it leaves out.
#[derive(Args)]
pub struct ImportArgs {
    /// The file.
    #[arg(value_name = "PGBOUNCER.INI")]
    pub file: PathBuf,
}

/// Writes the configuration to standard output.
pub fn run(_args: &ImportArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not yet")
}
