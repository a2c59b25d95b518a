//! `sooner serve import`.

use crate::imported;
use clap::Args;
use sooner_import::{NginxFiles, import_nginx};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Converts an nginx.conf to a sooner.toml, and says what it leaves out.
///
/// FILE is a whole nginx.conf, a file of conf.d or sites-available, or what `nginx -T` prints; `-`
/// is standard input.
/// Names of included files are relative to the folder of nginx.conf.
#[derive(Args)]
pub struct ImportArgs {
    /// File to convert.
    #[arg(value_name = "NGINX.CONF")]
    pub file: PathBuf,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Writes the configuration.
pub fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let files = NginxFiles {
        folder: &std::env::current_dir()?,
        read: &imported::read,
        list: &list,
    };
    let found = import_nginx(&imported::file(&args.file), files)?;
    imported::write(
        &found,
        args.out.as_deref(),
        ("sooner serve import", "directive"),
    )?;
    Ok(ExitCode::SUCCESS)
}

fn list(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}
