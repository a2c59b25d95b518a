//! Ending an attachment that runs, and cleaning up after one that was killed.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sooner_kernel::bands::{self, BandsError, Became, Left};
use sooner_kernel::classifier;
use sooner_kernel::device::{self, Device};
use sooner_kernel::place::Place;

use super::control_name;
use crate::control;

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
    /// Whether something is attached cannot be found out.
    #[error("cannot find out what is attached to device `{device}`: {source}")]
    Control {
        /// The device's name.
        device: String,
        /// What the system says.
        source: io::Error,
    },
    /// It does not listen to us.
    #[error("cannot end process {pid}: {source}; run as the user it runs as, or as root")]
    Signal {
        /// The process.
        pid: Pid,
        /// What the kernel says.
        source: io::Error,
    },
    /// It does not end.
    #[error("process {0} has not ended 10 s after it was asked to")]
    Stays(Pid),
}

/// What was done on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detached {
    /// A process was asked to end, and did.
    Ended {
        /// The device's name.
        device: String,
        /// The process.
        pid: Pid,
    },
    /// What a killed process left was taken away.
    Cleaned(Left),
}

/// Ends the attachment of a device, or of all devices of this network namespace, and takes away
/// what killed ones left. Servers with bands of their own are no attachments.
pub fn detach(name: Option<&str>) -> Result<Vec<Detached>, DetachError> {
    let devices = match name {
        Some(name) => vec![device::by_name(name).map_err(DetachError::Device)?],
        None => device::all().map_err(DetachError::Device)?,
    };
    let mut done = Vec::new();
    for device in &devices {
        if let Some(pid) = holder(device)? {
            kill_process(pid, Signal::TERM).map_err(|errno| DetachError::Signal {
                pid,
                source: errno.into(),
            })?;
            wait_until_gone(device, pid)?;
            done.push(Detached::Ended {
                device: device.name.clone(),
                pid,
            });
        }
    }
    let cleaned = match name {
        // What was left on other devices stays there.
        Some(_) => clean_each(&devices)?,
        None => clean()?,
    };
    for left in cleaned {
        match left.became {
            Became::Untouched => return Err(BandsError::OfAnotherUser(left).into()),
            Became::Restored | Became::Cleared => done.push(Detached::Cleaned(left)),
        }
    }
    Ok(done)
}

/// Whether a process is attached to a device that does not answer here: one of another user, or in a
/// container with files of its own.
pub fn is_held_out_of_sight(device: &Device) -> io::Result<bool> {
    let name = control_name(device)?;
    if control::holder(&name)?.is_some() || Place::take(device.index)?.is_some() {
        return Ok(false);
    }
    // One that begins has its place before its socket, and one that ends has it longer.
    thread::sleep(PAUSE);
    Ok(control::holder(&name)?.is_none() && Place::take(device.index)?.is_none())
}

/// Takes away what killed processes left on the devices of this network namespace; gives what became
/// of each. For every start.
pub fn clean() -> Result<Vec<Left>, DetachError> {
    let cleaned = bands::remove_leftovers()?;
    let devices = device::all().map_err(DetachError::Device)?;
    let cleaned = with_programs(cleaned, &devices)?;
    // What cannot be looked at is of another user, and no reason not to begin.
    let _ = control::remove_dead();
    Ok(cleaned)
}

/// The same of these devices, and of no others.
fn clean_each(devices: &[Device]) -> Result<Vec<Left>, DetachError> {
    let mut cleaned = Vec::new();
    for device in devices {
        cleaned.extend(bands::remove_leftovers_of(device)?);
    }
    with_programs(cleaned, devices)
}

/// Takes programs and sockets away as well, where bands were or not.
fn with_programs(mut cleaned: Vec<Left>, devices: &[Device]) -> Result<Vec<Left>, DetachError> {
    for device in devices {
        let has_programs = classifier::remove_leftovers_of(device)?;
        let has_bands = cleaned.iter().any(|left| left.device == device.name);
        if has_programs && !has_bands {
            cleaned.push(Left {
                device: device.name.clone(),
                became: Became::Restored,
            });
        }
        if (has_programs || has_bands) && holder(device)?.is_none() {
            let told = |source| DetachError::Control {
                device: device.name.clone(),
                source,
            };
            let removed = control_name(device).and_then(|name| control::remove_leftover(&name));
            removed.map_err(told)?;
        }
    }
    Ok(cleaned)
}

/// The names of devices of this network namespace that killed processes left changed. Changes
/// nothing.
pub fn devices_left_changed() -> Result<Vec<String>, DetachError> {
    let mut left = bands::devices_left_changed()?;
    left.extend(classifier::devices_left_changed()?);
    let mut names: Vec<String> = left.into_iter().map(|device| device.name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn holder(device: &Device) -> Result<Option<Pid>, DetachError> {
    let holder = control_name(device).and_then(|name| control::holder(&name));
    holder.map_err(|source| DetachError::Control {
        device: device.name.clone(),
        source,
    })
}

/// Its socket goes last, when the device is as it was.
fn wait_until_gone(device: &Device, pid: Pid) -> Result<(), DetachError> {
    let start = Instant::now();
    while holder(device)?.is_some() {
        if start.elapsed() > PATIENCE {
            return Err(DetachError::Stays(pid));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
