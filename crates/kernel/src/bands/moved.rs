//! A device that was moved to another network namespace: its qdiscs end with the move, the limits
//! of its super-packets go along.

use super::{is_ours, record::Record, root_of};
use crate::device;
use crate::netlink::Connection;
use crate::netns;
use std::io;

/// Restores the limits of the record's device in whichever namespace it is now; best effort, because
/// to enter another one takes `CAP_SYS_ADMIN`.
pub(super) fn restore(record: &Record) {
    if record.limited == record.previous || restore_here(record).is_ok_and(|is_here| is_here) {
        return;
    }
    for namespace in netns::others() {
        let is_there = netns::within(&namespace, || restore_here(record));
        if is_there.is_ok_and(|is_there| is_there) {
            return;
        }
    }
}

/// Whether it is in the calling thread's namespace, where its limits are then what they were.
fn restore_here(record: &Record) -> io::Result<bool> {
    let mut connection = Connection::open()?;
    for device in device::all()?
        .iter()
        .filter(|found| found.name == record.device)
    {
        let is_limited = connection.link(device.index)?.gso == record.limited;
        // One of that name with bands is another's.
        let has_bands = root_of(&mut connection, device)
            .is_ok_and(|root| root.is_some_and(|root| is_ours(&root)));
        if is_limited && !has_bands {
            connection.set_gso_limits(device.index, record.previous)?;
            return Ok(true);
        }
    }
    Ok(false)
}
