//! `sooner package DIR`: manual pages and shell completions, made from the description that the
//! command line itself is read by.

use crate::output;
use anyhow::Context;
use clap::Args;
use clap_complete::Shell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `sooner package`.
#[derive(Args)]
pub struct PackageArgs {
    /// Directory to write to; made if it is not there
    dir: PathBuf,
}

/// Writes `man/` and `completions/` below the directory.
pub fn run(args: &PackageArgs, command: clap::Command) -> anyhow::Result<ExitCode> {
    let (man, completions) = (args.dir.join("man"), args.dir.join("completions"));
    make(&man)?;
    make(&completions)?;
    write_completions(command.clone(), &completions)?;
    clap_mangen::generate_to(command, &man)
        .with_context(|| format!("cannot write manual pages to {}", man.display()))?;
    output::line(args.dir.display())?;
    Ok(ExitCode::SUCCESS)
}

fn make(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

fn write_completions(mut command: clap::Command, folder: &Path) -> anyhow::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "sooner", folder)
            .with_context(|| format!("cannot write completions for {shell}"))?;
    }
    Ok(())
}
