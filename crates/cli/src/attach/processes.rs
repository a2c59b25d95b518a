//! Attachments to processes: those that answer, and their end.

use super::Partly;
use anyhow::Result;
use serde::de::DeserializeOwned;
use sooner_attach::control;
use sooner_attach::detach::{self, Detached, Found, Which};
use sooner_attach::record::Record;
use std::io::ErrorKind;

/// The figures of those of a kind that answer.
pub fn attached<R: Record, S: DeserializeOwned>() -> Result<Partly<S>> {
    let mut found = Vec::new();
    let Found {
        names,
        mut problems,
    } = detach::attached::<R>(None)?;
    for (name, pid) in names {
        match control::ask(&name) {
            Ok(snapshot) => found.push(snapshot),
            // It has ended meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => problems.push(format!("cannot reach process {pid}: {error}")),
        }
    }
    Ok((found, problems))
}

/// Ends those of a kind, or the one to the server with this first process.
pub fn remove<R: Record>(which: Which, server: Option<u32>) -> Result<Partly<String>> {
    let words = |detached: &Detached| match detached {
        Detached::Ended { name, pid } => {
            format!("{name}: process {pid} has ended, and the server's processes are as they were")
        }
        Detached::Cleaned { server } => {
            format!("server {server}: what a killed process changed was put back")
        }
    };
    let (done, problems) = detach::detach::<R>(which, server)?;
    Ok((done.iter().map(words).collect(), problems))
}
