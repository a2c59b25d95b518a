//! Where results go: standard output, and the files that flags name.
//!
//! A reader that leaves early ends a command as it ends `cat`: quietly, by SIGPIPE. A full disk is
//! one line on standard error and exit code 1. `println!` and `eprintln!` panic in both cases, so
//! this binary has neither.

use crate::whole_file;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Results that could not be delivered, although the work was done.
#[derive(Debug, thiserror::Error)]
pub enum Undelivered {
    /// The process that read standard output has closed its end.
    #[error("standard output is closed")]
    ReaderLeft,
    /// Standard output takes nothing.
    #[error("cannot write to standard output: {0}")]
    Stdout(io::Error),
    /// The file that a flag names takes nothing.
    #[error("{flag} {}: cannot write: {error}", path.display())]
    File {
        /// The flag.
        flag: &'static str,
        /// What it named.
        path: PathBuf,
        /// Why not.
        error: String,
    },
}

/// Writes the text as it is, to its last byte.
pub fn print(text: &str) -> Result<(), Undelivered> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    written
        .and_then(|()| stdout.flush())
        .map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Undelivered::ReaderLeft,
            _ => Undelivered::Stdout(error),
        })
}

/// Writes one line.
pub fn line(text: impl Display) -> Result<(), Undelivered> {
    print(&format!("{text}\n"))
}

/// Writes a value as indented JSON.
pub fn json(value: &impl Serialize) -> Result<()> {
    Ok(line(serde_json::to_string_pretty(value)?)?)
}

/// Writes one line to standard error, where that can be written.
pub fn say(text: impl Display) {
    // In one piece, so that lines of several threads do not mix.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Fails where a later write would, before the work is done; and changes nothing.
pub fn check_file(flag: &'static str, path: &Path) -> Result<()> {
    whole_file::check(path).with_context(|| format!("{flag} {}", path.display()))
}

/// Writes the page that `--html` named, where it named one. Print the results before looking at
/// what this gives: a disk that is full keeps the page and not the figures.
pub fn html(path: Option<&Path>, page: impl FnOnce() -> String) -> Result<(), Undelivered> {
    let Some(path) = path else { return Ok(()) };
    whole_file::write(path, page()).map_err(|error| Undelivered::file("--html", path, error))
}

impl Undelivered {
    /// What `flag` named could not be written.
    pub fn file(flag: &'static str, path: &Path, error: impl Display) -> Self {
        let (path, error) = (path.to_owned(), error.to_string());
        Self::File { flag, path, error }
    }
}
