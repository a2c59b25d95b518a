//! Cleaning up after an owner that was killed.

use std::fs::File;

use super::error::BandsError;
use super::owner::Ownership;
use super::record::Record;
use super::{is_ours, moved, root_of, take_down};
use crate::device::{self, Device};
use crate::netlink::link::GsoLimits;
use crate::netlink::{Connection, Link};
use crate::netns;

/// Restores every device of this network namespace with bands that no process owns any more; gives
/// their names. Without `CAP_NET_ADMIN` it fails if there is something to restore. For the start of
/// the program.
pub fn remove_leftovers() -> Result<Vec<String>, BandsError> {
    let mut restored = Vec::new();
    for device in device::all().map_err(BandsError::Devices)? {
        let mut connection = Connection::open()
            .map_err(|source| BandsError::kernel("ask about", &device, source))?;
        if !has_traces(&mut connection, &device)? {
            continue;
        }
        match Ownership::take(&device) {
            Ok(_ownership) => {
                if restore(&mut connection, &device)? {
                    restored.push(device.name);
                }
            }
            Err(BandsError::Busy { .. }) => (),
            Err(error) => return Err(error),
        }
    }
    restore_strays();
    Ok(restored)
}

/// The devices of this network namespace that a process which has ended left changed. Changes
/// nothing; without the right to read what was written down, only bands show it.
pub fn devices_left_changed() -> Result<Vec<Device>, BandsError> {
    let mut left = Vec::new();
    for device in device::all().map_err(BandsError::Devices)? {
        let ask = |source| BandsError::kernel("ask about", &device, source);
        let mut connection = Connection::open().map_err(ask)?;
        let link = connection.link(device.index).map_err(ask)?;
        let has_bands = root_of(&mut connection, &device)?.is_some_and(|root| is_ours(&root));
        let is_limited = Record::read(&device)
            .is_some_and(|record| record.limited != record.previous && record.limited == link.gso);
        if (has_bands || is_limited) && Ownership::take(&device).is_ok() {
            left.push(device);
        }
    }
    Ok(left)
}

/// Restores the devices that left their network namespaces, in whichever they are now, after the
/// processes that limited them were killed, and removes what was written down of them; also of
/// devices that are gone. As far as this user can see.
fn restore_strays() {
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
    let is_here = device::all().is_ok_and(|all| all.iter().any(|device| device.index == index));
    !is_here && Ownership::is_free(index)
}

/// Restores a device that the caller owns from what an earlier owner left on it; whether there was
/// something.
pub(super) fn restore(connection: &mut Connection, device: &Device) -> Result<bool, BandsError> {
    let record = Record::read(device);
    let ask = |source| BandsError::kernel("ask about", device, source);
    let link = connection.link(device.index).map_err(ask)?;
    let ours = root_of(connection, device)?.is_some_and(|root| is_ours(&root));
    let limited = record
        .as_ref()
        .is_some_and(|record| record.limited != record.previous && record.limited == link.gso);
    if ours || limited {
        // Without a record nothing says which limits are ours.
        let limits = record.as_ref().map_or_else(
            || (link.gso, kernel_default(&link)),
            |record| (record.limited, record.previous),
        );
        let replaced = record.as_ref().and_then(|record| record.replaced.as_ref());
        take_down(connection, device, limits, replaced)?;
    }
    if let Some(record) = record {
        if !ours && !limited {
            moved::restore(&record);
        }
        record.delete()?;
    }
    Ok(ours || limited)
}

fn has_traces(connection: &mut Connection, device: &Device) -> Result<bool, BandsError> {
    Ok(
        root_of(connection, device)?.is_some_and(|root| is_ours(&root))
            || Record::read(device).is_some(),
    )
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
