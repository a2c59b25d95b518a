//! Cleaning up after an owner that was killed.

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
    forget_gone_namespaces();
    Ok(restored)
}

/// Removes what was written down of namespaces that are gone, where this user can see all. A device
/// of such a namespace has ended with it, or went back to where it came from with its limits.
fn forget_gone_namespaces() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let Ok(living) = netns::living() else { return };
    for record in Record::of_gone(&living) {
        moved::restore(&record);
        // One that may not be removed does no harm.
        let _ = record.delete();
    }
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
        let previous = record
            .as_ref()
            .map_or_else(|| kernel_default(&link), |record| record.previous);
        let replaced = record.as_ref().and_then(|record| record.replaced.as_ref());
        take_down(connection, device, Some(previous), replaced)?;
    }
    if let Some(record) = record {
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
