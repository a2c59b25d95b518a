//! `sooner serve import`.

use crate::output;
use anyhow::Context;
use clap::Args;
use sooner_import::{Imported, NginxFiles, import_nginx};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Converts an nginx.conf to a sooner.toml, and says what it leaves out.
///
/// FILE is a whole nginx.conf, a file of conf.d or sites-available, or what `nginx -T` prints.
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
        read: &read,
        list: &list,
    };
    let Imported { text, left_out } = import_nginx(&args.file.display().to_string(), files)?;
    match &args.out {
        Some(file) => {
            fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?
        }
        None => output::print(&text)?,
    }
    let words = match left_out {
        0 => "everything is carried over".to_owned(),
        1 => "1 directive is not carried over; a comment says which".to_owned(),
        _ => format!("{left_out} directives are not carried over; comments say which"),
    };
    let _ = writeln!(io::stderr(), "sooner serve import: {words}");
    Ok(ExitCode::SUCCESS)
}

/// What is no text becomes a letter that stands for that: in a comment it does no harm.
fn read(file: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned())
}

fn list(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}
