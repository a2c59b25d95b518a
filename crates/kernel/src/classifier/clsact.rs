//! Programs on kernels before 6.6: filters of a qdisc `clsact`, which outlive their process.

use std::io;

use super::error::ClassifierError;
use super::{FILTER_HANDLE, FILTER_PRIORITY};
use crate::device::{self, Device};
use crate::netlink::Connection;
use crate::netlink::filter::FilterName;

const FILTER: FilterName = FilterName {
    priority: FILTER_PRIORITY,
    handle: FILTER_HANDLE,
};

/// The qdisc that our filters hang in; it goes when this is dropped, unless others use it.
#[derive(Debug)]
pub struct Ours {
    connection: Connection,
    device: Device,
}

impl Ours {
    /// Makes sure there is one. Filters of ours that a killed process left give way.
    pub fn on(device: &Device) -> Result<Ours, ClassifierError> {
        let change = |source| ClassifierError::kernel(device, source);
        let mut connection = Connection::open().map_err(change)?;
        if !connection.add_clsact(device.index).map_err(change)? {
            connection
                .delete_filter(device.index, FILTER)
                .map_err(change)?;
        }
        Ok(Ours {
            connection,
            device: device.clone(),
        })
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // Nobody is left to tell; the next start tries again.
        let _ = remove(&mut self.connection, self.device.index);
    }
}

/// Removes what processes that are gone left on the devices of this network namespace; gives the devices' names.
///
/// The caller must own the devices: filters of a process that lives are not told from others.
pub fn remove_leftovers(owned: &[Device]) -> io::Result<Vec<String>> {
    let mut connection = Connection::open()?;
    let mut cleaned = Vec::new();
    for device in device::all()? {
        let is_left =
            owned.contains(&device) && connection.filters(device.index)?.contains(&FILTER);
        if is_left {
            remove(&mut connection, device.index)?;
            cleaned.push(device.name);
        }
    }
    Ok(cleaned)
}

/// Our filters, and the qdisc where nothing else is in it: an empty one does nothing, whoever made it.
fn remove(connection: &mut Connection, device: u32) -> io::Result<()> {
    connection.delete_filter(device, FILTER)?;
    if connection.has_clsact(device)? && connection.filters(device)?.is_empty() {
        connection.delete_clsact(device)?;
    }
    Ok(())
}
