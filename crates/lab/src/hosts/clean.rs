//! Taking hosts away: the processes in them, then the namespaces; after their owner, or after a
//! kill.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::HostsError;
use super::record::{self, Made};
use super::tools::ip;

/// Where `ip netns add NAME` keeps its namespaces.
const NAMESPACES: &str = "/run/netns";
/// How often processes are looked for until they are killed, and then until they are gone.
const LOOKS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Removes the hosts of processes that are gone, and what runs on them; gives the names of the
/// namespaces that were there.
pub fn clean() -> Result<Vec<String>, HostsError> {
    clean_in(Path::new(record::FOLDER))
}

fn clean_in(folder: &Path) -> Result<Vec<String>, HostsError> {
    let reading = |source| HostsError::system(format!("records in {}", folder.display()), source);
    let mut removed = Vec::new();
    for orphan in record::orphans(folder).map_err(reading)? {
        removed.extend(remove(&orphan.made)?);
        orphan.delete().map_err(reading)?;
    }
    Ok(removed)
}

/// Ends what runs in the namespaces, removes them and the control groups; gives the names of the
/// namespaces that were there.
pub fn remove(made: &[Made]) -> Result<Vec<String>, HostsError> {
    let namespaces: Vec<&String> = made
        .iter()
        .filter_map(|made| match made {
            Made::Namespace(name) if Path::new(NAMESPACES).join(name).exists() => Some(name),
            _ => None,
        })
        .collect();
    end_processes(&namespaces);
    for name in &namespaces {
        ip(&["netns", "del", name])?;
    }
    for made in made {
        if let Made::ControlGroup(path) = made {
            remove_group(path)?;
        }
    }
    Ok(namespaces.into_iter().cloned().collect())
}

/// A process that was just ended may count for the group a moment longer.
fn remove_group(path: &Path) -> Result<(), HostsError> {
    let mut result = Ok(());
    for _ in 0..LOOKS {
        result = fs::remove_dir(path);
        match &result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(PAUSE),
            _ => break,
        }
    }
    result.map_err(|source| HostsError::system(format!("cannot remove {}", path.display()), source))
}

/// Asks the processes in the namespaces to end, then makes them.
fn end_processes(namespaces: &[&String]) {
    let numbers: Vec<u64> = namespaces
        .iter()
        .filter_map(|name| Some(fs::metadata(Path::new(NAMESPACES).join(name)).ok()?.ino()))
        .collect();
    for signal in [Signal::TERM, Signal::KILL] {
        if signal_all(&numbers, Some(signal)) == 0 {
            return;
        }
        for _ in 0..LOOKS {
            if signal_all(&numbers, None) == 0 {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Sends a signal to every other process in the namespaces with these numbers; how many there are.
fn signal_all(namespaces: &[u64], signal: Option<Signal>) -> usize {
    let Ok(entries) = fs::read_dir("/proc") else {
        return 0;
    };
    let own = std::process::id();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != own && signal_one(*pid, namespaces, signal))
        .count()
}

/// Whether the process is in one of the namespaces; sends it the signal then.
fn signal_one(pid: u32, namespaces: &[u64], signal: Option<Signal>) -> bool {
    let is_inside = || {
        let number = fs::metadata(format!("/proc/{pid}/ns/net")).map(|data| data.ino());
        number.is_ok_and(|number| namespaces.contains(&number))
    };
    if !is_inside() {
        return false;
    }
    let Some(signal) = signal else { return true };
    // Through a descriptor, looked at once more: the number may have become another process's
    // meanwhile.
    let id = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(Ok(process)) = id.map(|id| pidfd_open(id, PidfdFlags::empty())) else {
        return false;
    };
    // One that has just ended needs no signal.
    is_inside() && pidfd_send_signal(process, signal).is_ok()
}
