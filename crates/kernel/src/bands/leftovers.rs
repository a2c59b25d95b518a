//! Cleaning up after an owner that was killed.

use std::fmt;
use std::fs::File;

use super::error::{BandsError, unless_gone};
use super::owner::Ownership;
use super::record::Record;
use super::{is_ours, moved, root_of, take_down};
use crate::device::{self, Device};
use crate::netlink::link::GsoLimits;
use crate::netlink::{Connection, Link};
use crate::netns;

/// A device of which a killed process left something, and what became of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The device's name.
    pub device: String,
    /// What became of it.
    pub became: Became,
}

/// What became of a device that a killed process left changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// It is as it was before.
    Restored,
    /// The bands are gone. What stood there before is not known: its record is damaged, or of
    /// another user.
    Cleared,
    /// It is as it was left: this user cannot know what stood there before.
    Untouched,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = &self.device;
        match self.became {
            Became::Restored => write!(f, "{device}: what a killed process left is gone"),
            Became::Cleared => write!(
                f,
                "{device}: the bands that a killed process left are gone; what stood there before is not known, because its record is damaged or another user's, so the kernel's default stands there now"
            ),
            Became::Untouched => write!(
                f,
                "{device}: has the bands of a killed process of another user, who alone knows what stood there before; run `sooner attach remove --killed` as that user, or as root to have the kernel's default there"
            ),
        }
    }
}

/// Restores every device of this network namespace with bands that no process owns any more; gives
/// what became of each. Tries all, and says what went wrong first: without `CAP_NET_ADMIN` it fails
/// if there is something to restore. For the start of the program.
pub fn remove_leftovers() -> Result<Vec<Left>, BandsError> {
    let devices = device::all().map_err(BandsError::Devices)?;
    let tried: Vec<_> = devices.iter().map(remove_leftovers_of).collect();
    restore_strays();
    tried.into_iter().filter_map(Result::transpose).collect()
}

/// The same of one device, and of no other; none of one that goes away meanwhile.
pub fn remove_leftovers_of(device: &Device) -> Result<Option<Left>, BandsError> {
    unless_gone(remove_of(device))
}

fn remove_of(device: &Device) -> Result<Option<Left>, BandsError> {
    let mut connection =
        Connection::open().map_err(|source| BandsError::kernel("ask about", device, source))?;
    if !has_traces(&mut connection, device)? {
        return Ok(None);
    }
    match Ownership::take(device) {
        Ok(_ownership) => {
            let became = restore(&mut connection, device)?;
            Ok(became.map(|became| Left {
                device: device.name.clone(),
                became,
            }))
        }
        Err(BandsError::Busy { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The devices of this network namespace that a process which has ended left changed. Changes
/// nothing; without the right to read what was written down, only bands show it.
pub fn devices_left_changed() -> Result<Vec<Device>, BandsError> {
    let mut left = Vec::new();
    for device in device::all().map_err(BandsError::Devices)? {
        if unless_gone(is_left_changed(&device))? {
            left.push(device);
        }
    }
    Ok(left)
}

fn is_left_changed(device: &Device) -> Result<bool, BandsError> {
    let ask = |source| BandsError::kernel("ask about", device, source);
    let mut connection = Connection::open().map_err(ask)?;
    let link = connection.link(device.index).map_err(ask)?;
    let has_bands = root_of(&mut connection, device)?.is_some_and(|root| is_ours(&root));
    let is_limited = Record::read(device)
        .is_some_and(|record| record.limited != record.previous && record.limited == link.gso);
    Ok((has_bands || is_limited) && Ownership::take(device).is_ok())
}

/// Restores the devices that left their network namespaces, in whichever they are now, after the
/// processes that limited them were killed, and removes what was written down of them; also of
/// devices that are gone. As far as this user can see.
pub fn restore_strays() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let records = Record::all();
    let (false, Ok(here)) = (records.is_empty(), netns::current_id()) else {
        return;
    };
    let others = netns::others();
    for (record, namespace, index) in records {
        let is_of = |other: &&File| netns::id_of(other).is_ok_and(|id| id == namespace);
        let is_stray = match others.iter().find(is_of) {
            _ if namespace == here => has_left(index),
            Some(other) => netns::within(other, || Ok(has_left(index))).unwrap_or(false),
            None => !record.has_process(),
        };
        if is_stray {
            moved::restore(&record);
            // One that may not be removed does no harm.
            let _ = record.delete();
        }
    }
}

/// Whether the calling thread's namespace has no device of this index, and no process owns it.
fn has_left(index: u32) -> bool {
    matches!(device::by_index(index), Ok(None)) && Ownership::is_free(index)
}

/// Restores a device that the caller owns from what an earlier owner left on it; what became of
/// that, if there was something.
pub(super) fn restore(
    connection: &mut Connection,
    device: &Device,
) -> Result<Option<Became>, BandsError> {
    let record = Record::read(device);
    let ask = |source| BandsError::kernel("ask about", device, source);
    let link = connection.link(device.index).map_err(ask)?;
    let ours = root_of(connection, device)?.is_some_and(|root| is_ours(&root));
    let limited = record
        .as_ref()
        .is_some_and(|record| record.limited != record.previous && record.limited == link.gso);
    let is_damaged = record.is_none() && Record::is_there(device);
    if ours && record.is_none() && !is_damaged && !rustix::process::geteuid().is_root() {
        return Ok(Some(Became::Untouched));
    }
    if ours || limited {
        // Without a record nothing says which limits are ours.
        let limits = record.as_ref().map_or_else(
            || (link.gso, kernel_default(&link)),
            |record| (record.limited, record.previous),
        );
        let replaced = record
            .as_ref()
            .map_or(&[][..], |record| record.replaced.as_slice());
        take_down(connection, device, limits, replaced)?;
    }
    let became = match (ours || limited, &record) {
        (true, Some(_)) => Some(Became::Restored),
        (true, None) => Some(Became::Cleared),
        (false, _) => None,
    };
    if let Some(record) = record {
        if became.is_none() {
            moved::restore(&record);
        }
        record.delete()?;
    } else if is_damaged {
        Record::forget(device);
    }
    Ok(became)
}

fn has_traces(connection: &mut Connection, device: &Device) -> Result<bool, BandsError> {
    Ok(root_of(connection, device)?.is_some_and(|root| is_ours(&root)) || Record::is_there(device))
}

/// The limits a device starts with, for when no record says what it had.
fn kernel_default(link: &Link) -> GsoLimits {
    let (size_max, segments_max) = link.tso_max.unwrap_or((u32::MAX, u32::MAX));
    let size_bytes = size_max.min(65_536);
    GsoLimits {
        size_bytes,
        segments: segments_max.min(65_535),
        ipv4_size_bytes: link.gso.ipv4_size_bytes.map(|_| size_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As between a list of all devices and the question about one.
    #[test]
    fn nothing_is_left_on_a_device_that_went_away() {
        let gone = Device {
            name: "gone0".into(),
            index: 0x7fff_ffff,
            is_loopback: false,
            has_ethernet_header: true,
            mtu_bytes: 1500,
        };
        assert_eq!(remove_leftovers_of(&gone).unwrap(), None);
        assert!(is_left_changed(&gone).is_err());
        assert!(!unless_gone(is_left_changed(&gone)).unwrap());
    }
}
