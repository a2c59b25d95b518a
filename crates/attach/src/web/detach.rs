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
use crate::detach::Which;

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
/// what killed ones left; or only the latter. Servers with bands of their own are no attachments.
/// What could not be done on one device comes as well, and keeps no other from being done.
pub fn detach(
    name: Option<&str>,
    which: Which,
) -> Result<(Vec<Detached>, Vec<DetachError>), DetachError> {
    let devices = match name {
        Some(name) => vec![device::by_name(name).map_err(DetachError::Device)?],
        None => device::all().map_err(DetachError::Device)?,
    };
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    if which == Which::All {
        for device in &devices {
            match end(device) {
                Ok(ended) => done.extend(ended),
                Err(error) => problems.push(error),
            }
        }
    }
    let cleaned = match name {
        // What was left on other devices stays there.
        Some(_) => clean_each(&devices),
        None => clean_all(&devices),
    };
    for left in cleaned.left {
        match left.became {
            Became::Untouched => problems.push(BandsError::OfAnotherUser(left).into()),
            Became::Restored | Became::Cleared => done.push(Detached::Cleaned(left)),
        }
    }
    problems.extend(cleaned.problems);
    Ok((done, problems))
}

/// Asks the process that is attached to a device to end, and waits for it; none where there is
/// none.
fn end(device: &Device) -> Result<Option<Detached>, DetachError> {
    let Some(pid) = holder(device)? else {
        return Ok(None);
    };
    kill_process(pid, Signal::TERM).map_err(|errno| DetachError::Signal {
        pid,
        source: errno.into(),
    })?;
    wait_until_gone(device, pid)?;
    Ok(Some(Detached::Ended {
        device: device.name.clone(),
        pid,
    }))
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
/// of each, and what could not be done. Tries all; an error is what went wrong on the wanted device.
/// For every start.
pub fn clean(wanted: Option<&Device>) -> Result<(Vec<Left>, Vec<DetachError>), DetachError> {
    let devices = device::all().map_err(DetachError::Device)?;
    let is_wanted = |device: &Device| wanted.is_some_and(|wanted| wanted.index == device.index);
    let (own, others): (Vec<Device>, Vec<Device>) = devices.into_iter().partition(is_wanted);
    let own = clean_each(&own);
    let others = clean_all(&others);
    if let Some(problem) = own.problems.into_iter().next() {
        return Err(problem);
    }
    let left = own.left.into_iter().chain(others.left);
    Ok((left.collect(), others.problems))
}

/// What was taken away, and what could not be.
#[derive(Debug, Default)]
struct Cleaned {
    left: Vec<Left>,
    problems: Vec<DetachError>,
}

/// Of these devices, and of those that have left this network namespace.
fn clean_all(devices: &[Device]) -> Cleaned {
    let cleaned = clean_each(devices);
    bands::restore_strays();
    // What cannot be looked at is of another user, and no reason not to begin.
    let _ = control::remove_dead();
    cleaned
}

/// Of these devices, and of no others.
fn clean_each(devices: &[Device]) -> Cleaned {
    let mut cleaned = Cleaned::default();
    for device in devices {
        clean_one(device, &mut cleaned);
    }
    cleaned
}

/// Takes bands, programs and the socket away.
fn clean_one(device: &Device, cleaned: &mut Cleaned) {
    let bands = bands::remove_leftovers_of(device).unwrap_or_else(|error| {
        cleaned.problems.push(error.into());
        None
    });
    let has_programs = classifier::remove_leftovers_of(device).unwrap_or_else(|error| {
        cleaned.problems.push(error.into());
        false
    });
    let of_programs = || Left {
        device: device.name.clone(),
        became: Became::Restored,
    };
    let Some(left) = bands.or_else(|| has_programs.then(of_programs)) else {
        return;
    };
    cleaned.left.push(left);
    if let Err(error) = remove_socket(device) {
        cleaned.problems.push(error);
    }
}

/// Removes the socket of a process that is gone.
fn remove_socket(device: &Device) -> Result<(), DetachError> {
    if holder(device)?.is_some() {
        return Ok(());
    }
    let removed = control_name(device).and_then(|name| control::remove_leftover(&name));
    removed.map_err(|source| DetachError::Control {
        device: device.name.clone(),
        source,
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_kernel::netns;
    use sooner_testbed::namespace::Namespace;
    use sooner_testbed::skip::is_root;
    use std::fs;
    use std::os::unix::fs::DirBuilderExt;

    /// Bands of a killed process in place of a queue that the kernel does not take again.
    fn leave_bands(namespace: &Namespace, device: &Device) {
        let root = format!("qdisc replace dev {} root handle 5005: htb", device.name);
        namespace.tc(&root).unwrap();
        let folder = bands::runtime_folder().unwrap();
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(&folder).unwrap();
        let number = netns::current_id().unwrap();
        let text = format!(
            "pid 4000000\ndevice {}\nprevious 65536 65535 -\nlimited 65536 65535 -\n\
             replaced nosuch 458752 00000000\n",
            device.name
        );
        let name = format!("bands-{number}-{}", device.index);
        fs::write(folder.join(name), text).unwrap();
    }

    #[test]
    fn what_stays_on_another_device_is_no_reason_not_to_begin() {
        let test = "what_stays_on_another_device_is_no_reason_not_to_begin";
        if !is_root(test, "to make a network namespace") {
            return;
        }
        let name = format!("sooner-attach-{}", std::process::id());
        let namespace = Namespace::make(&name).unwrap();
        namespace.ip("link add s0 type veth peer name t0").unwrap();
        let look = || {
            let [wanted, other] = ["s0", "t0"].map(|name| device::by_name(name).unwrap());
            leave_bands(&namespace, &other);
            let (left, problems) = clean(Some(&wanted)).unwrap();
            let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert!(left.is_empty() && told.len() == 1, "{left:?} {told:?}");
            assert!(
                told[0].starts_with("cannot restore device `t0`: "),
                "{told:?}"
            );
            leave_bands(&namespace, &other);
            let refused = clean(Some(&other)).unwrap_err().to_string();
            assert_eq!(refused, told[0], "of the wanted device");
            // The bands are gone, and with this the record.
            let (left, problems) = clean(None).unwrap();
            assert!(
                left.is_empty() && problems.is_empty(),
                "{left:?} {problems:?}"
            );
            Ok(())
        };
        netns::inside(namespace.name(), look).unwrap();
    }
}
