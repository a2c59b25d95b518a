//! `sooner gate top`.

use clap::Args;
use std::process::ExitCode;

/// Watches a gate that runs.
#[derive(Args)]
pub struct TopArgs {}

/// Prints a table every second.
pub fn run(_args: &TopArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not yet")
}
