//! Attachments to processes: those that answer, and their end.

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use sooner_attach::control;
use sooner_attach::detach::{self, Detached};
use sooner_attach::record::Record;
use std::io::ErrorKind;

/// The figures of those of a kind that answer.
pub fn attached<R: Record, S: DeserializeOwned>() -> Result<Vec<S>> {
    let mut found = Vec::new();
    for (name, pid) in detach::attached::<R>()? {
        match control::ask(&name) {
            Ok(snapshot) => found.push(snapshot),
            // It has ended meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot reach process {pid}"));
            }
        }
    }
    Ok(found)
}

/// Ends those of a kind; a line each, then one each for what could not be done.
pub fn remove<R: Record>() -> Result<(Vec<String>, Vec<String>)> {
    let words = |detached: &Detached| match detached {
        Detached::Ended { name, pid } => {
            format!("{name}: process {pid} has ended, and the server's processes are as they were")
        }
        Detached::Cleaned { server } => {
            format!("server {server}: what a killed process changed was put back")
        }
    };
    let (done, problems) = detach::detach::<R>()?;
    Ok((done.iter().map(words).collect(), problems))
}
