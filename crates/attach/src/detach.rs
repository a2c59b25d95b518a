//! Ending an attachment that runs, and cleaning up after one that was killed.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sooner_kernel::bands::{self, BandsError};
use sooner_kernel::classifier;
use sooner_kernel::device::{self, Device};

/// How long a process has to end after it was asked to; said in an error.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Why an attachment could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum DetachError {
    /// There is no such device, or devices cannot be listed.
    #[error("{0}")]
    Device(#[source] io::Error),
    /// The bands cannot be asked about or taken away.
    #[error(transparent)]
    Bands(#[from] BandsError),
    /// Filters of a killed one cannot be taken away.
    #[error("cannot take filters away: {0}")]
    Filters(#[source] io::Error),
    /// It does not listen to us.
    #[error("cannot end process {pid}: {source}; run as the user it runs as, or as root")]
    Signal {
        /// The process.
        pid: u32,
        /// What the kernel says.
        source: io::Error,
    },
    /// It does not end.
    #[error("process {0} has not ended 10 s after it was asked to")]
    Stays(u32),
}

/// What was done on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detached {
    /// A process was asked to end, and did.
    Ended {
        /// The device's name.
        device: String,
        /// The process.
        pid: u32,
    },
    /// What a killed process left was taken away.
    Cleaned {
        /// The device's name.
        device: String,
    },
}

/// Ends the attachment of a device, or of all devices of this network namespace, and takes away what killed ones left.
pub fn detach(name: Option<&str>) -> Result<Vec<Detached>, DetachError> {
    let devices = match name {
        Some(name) => vec![device::by_name(name).map_err(DetachError::Device)?],
        None => device::all().map_err(DetachError::Device)?,
    };
    let mut done = Vec::new();
    for device in &devices {
        if let Some(pid) = bands::owner(device)? {
            end(pid)?;
            wait_until_free(device, pid)?;
            done.push(Detached::Ended {
                device: device.name.clone(),
                pid,
            });
        }
    }
    let cleaned = clean()?;
    let of_ours = cleaned
        .into_iter()
        .filter(|device| devices.iter().any(|wanted| wanted.name == *device));
    done.extend(of_ours.map(|device| Detached::Cleaned { device }));
    Ok(done)
}

/// Takes away what killed processes left on the devices of this network namespace; gives the devices' names. For every start.
pub fn clean() -> Result<Vec<String>, DetachError> {
    let mut cleaned = bands::remove_leftovers()?;
    let mut free = Vec::new();
    for device in device::all().map_err(DetachError::Device)? {
        if bands::owner(&device)?.is_none() {
            free.push(device);
        }
    }
    cleaned.extend(classifier::remove_leftovers(&free).map_err(DetachError::Filters)?);
    cleaned.sort();
    cleaned.dedup();
    Ok(cleaned)
}

fn end(pid: u32) -> Result<(), DetachError> {
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(process) = process else {
        return Err(DetachError::Stays(pid));
    };
    kill_process(process, Signal::TERM).map_err(|errno| DetachError::Signal {
        pid,
        source: errno.into(),
    })
}

fn wait_until_free(device: &Device, pid: u32) -> Result<(), DetachError> {
    let start = Instant::now();
    while bands::owner(device)?.is_some() {
        if start.elapsed() > PATIENCE {
            return Err(DetachError::Stays(pid));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
