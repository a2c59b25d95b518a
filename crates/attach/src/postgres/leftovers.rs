//! What is changed of a server's processes, written down before it is, and put back: at the end,
//! or after a kill at the next start.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sooner_kernel::bands::runtime_folder;
use sooner_kernel::process_table;

use super::mechanism::Mechanism;
use crate::control;

/// What the names of attachments to servers begin with.
pub const NAME_BEGIN: &str = "postgres-";

/// A process by its number and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// In ticks.
    pub began: u64,
}

impl ProcessId {
    /// Of a process that runs.
    pub fn of(pid: u32) -> io::Result<ProcessId> {
        let began = process_table::began_ticks(pid)?;
        Ok(ProcessId { pid, began })
    }

    /// Whether it still runs.
    pub fn is_there(self) -> bool {
        process_table::began_ticks(self.pid).is_ok_and(|began| began == self.began)
    }
}

/// What has to be put back of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// The server's first process: all of its children may have been changed.
    pub server: ProcessId,
    /// By which means.
    pub mechanism: Mechanism,
    /// The nice value that the server gives them.
    pub nice: i32,
    /// Gates that were put above them, each with its nice value.
    pub gates: Vec<(ProcessId, i32)>,
}

/// What an attachment to the server with this first process is called.
pub fn name_of(server: u32) -> String {
    format!("{NAME_BEGIN}{server}")
}

impl Leftovers {
    fn path(server: u32) -> io::Result<PathBuf> {
        let folder = runtime_folder().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(folder.join(format!("{}.json", name_of(server))))
    }

    /// Writes it down, before anything is changed.
    pub fn write(&self) -> io::Result<()> {
        let path = Leftovers::path(self.server.pid)?;
        let beside = path.with_extension("new");
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&beside, serde_json::to_vec(self)?)?;
        fs::rename(beside, path)
    }

    /// Puts everything back that still runs, and forgets it.
    pub fn put_back(&self) -> io::Result<()> {
        if self.server.is_there() {
            for pid in process_table::children(self.server.pid)? {
                // One that has gone meanwhile has nothing to put back.
                let _ = self.mechanism.apply(pid, 0, 1, self.nice);
            }
        }
        for (gate, nice) in self.gates.iter().filter(|(gate, _)| gate.is_there()) {
            let _ = self.mechanism.apply(gate.pid, 0, 1, *nice);
        }
        match fs::remove_file(Leftovers::path(self.server.pid)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Puts back what killed ones left; gives the servers' first processes. For every start.
pub fn clean() -> io::Result<Vec<u32>> {
    let Some(folder) = runtime_folder() else {
        return Ok(Vec::new());
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut cleaned = Vec::new();
    for entry in entries {
        let name = entry?.file_name().into_string().unwrap_or_default();
        let server = name.strip_prefix(NAME_BEGIN);
        let server = server.and_then(|rest| rest.strip_suffix(".json")?.parse().ok());
        let Some(server) = server else { continue };
        if control::holder(&name_of(server))?.is_some() {
            continue;
        }
        let text = fs::read(Leftovers::path(server)?)?;
        let left: Leftovers = serde_json::from_slice(&text)?;
        left.put_back()?;
        control::remove_leftover(&name_of(server))?;
        cleaned.push(server);
    }
    Ok(cleaned)
}
