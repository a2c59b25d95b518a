//! Programs on kernels before 6.6: filters of a qdisc `clsact`, which outlive their process.

use std::io;

use super::error::ClassifierError;
use crate::bands::{BandsError, Ownership, unless_gone};
use crate::device::{self, Device};
use crate::netlink::Connection;
use crate::netlink::filter::FilterName;
use crate::place::Place;

/// Our filters' places among others, the first that can be had. First of all, because others may say
/// that a packet has been seen enough, and ours never do; the second where a filter of another kind
/// has the first.
const PRIORITIES: [u16; 2] = [1, 5005];
/// The number shows which program owns the qdisc: another one, or this one, which takes the qdisc
/// away with the filter.
const FILTER_HANDLE: u32 = 0x5005;
const FILTER_HANDLE_OF_OURS: u32 = 0x5006;

/// The names that filters of ours may have where they have this number.
fn names(handle: u32) -> [FilterName; 2] {
    PRIORITIES.map(|priority| FilterName { priority, handle })
}

/// Whether a filter is one of ours, in whichever qdisc.
fn is_ours(filter: &FilterName) -> bool {
    [FILTER_HANDLE_OF_OURS, FILTER_HANDLE]
        .iter()
        .any(|&handle| names(handle).contains(filter))
}

/// The qdisc that our filters hang in; what we added of it goes when this is dropped.
#[derive(Debug)]
pub struct Ours {
    connection: Connection,
    device: Device,
    /// Whether it goes when this is dropped.
    is_added: bool,
    filter: FilterName,
    are_in: bool,
}

impl Ours {
    /// Makes sure there is one. Filters of ours that a killed process left give way.
    pub fn on(device: &Device) -> Result<Ours, ClassifierError> {
        let change = |source| ClassifierError::kernel(device, source);
        let mut connection = Connection::open().map_err(change)?;
        remove(&mut connection, device.index).map_err(change)?;
        let is_added = connection.add_clsact(device.index).map_err(change)?;
        let handle = match is_added {
            true => FILTER_HANDLE_OF_OURS,
            false => FILTER_HANDLE,
        };
        Ok(Ours {
            connection,
            device: device.clone(),
            is_added,
            filter: names(handle)[0],
            are_in: false,
        })
    }

    /// Whether our filters are there, in both directions.
    pub fn are_there(&mut self) -> io::Result<bool> {
        Ok(self.count()? == 2)
    }

    /// Before the filters go: a qdisc in which none of them is any more is another's by now.
    pub fn ends(&mut self) {
        if self.are_in && self.count().is_ok_and(|count| count == 0) {
            self.is_added = false;
        }
    }

    fn count(&mut self) -> io::Result<usize> {
        let filters = self.connection.filters(self.device.index)?;
        Ok(filters.iter().filter(|one| **one == self.filter).count())
    }

    /// The names that the filters may have, the best one first.
    pub fn filters_to_try(&self) -> [FilterName; 2] {
        names(self.filter.handle)
    }

    /// Both filters hang in it, with this name.
    pub fn are_in_as(&mut self, filter: FilterName) {
        self.filter = filter;
        self.are_in = true;
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // No caller is left to report an error to; the next start tries again. The filters are gone
        // by now, so nothing shows any more which program owns the qdisc.
        if self.is_added {
            let _ = self.connection.delete_clsact(self.device.index);
        }
    }
}

/// Removes what processes that are gone left on the devices of this network namespace; gives the
/// devices' names. Those of a process that lives stay: it has the place of its device's attachment.
pub fn remove_leftovers() -> Result<Vec<String>, BandsError> {
    let mut cleaned = Vec::new();
    for device in device::all().map_err(BandsError::Devices)? {
        if remove_leftovers_of(&device)? {
            cleaned.push(device.name);
        }
    }
    Ok(cleaned)
}

/// The same of one device, and of no other; whether something was there. Nothing is on one that goes
/// away meanwhile.
pub fn remove_leftovers_of(device: &Device) -> Result<bool, BandsError> {
    unless_gone(remove_of(device))
}

fn remove_of(device: &Device) -> Result<bool, BandsError> {
    let ask = |source| BandsError::kernel("ask about", device, source);
    let mut connection = Connection::open().map_err(ask)?;
    if !has_ours(&mut connection, device.index).map_err(ask)? {
        return Ok(false);
    }
    let Some(_place) = Place::take(device.index).map_err(ask)? else {
        return Ok(false);
    };
    match Ownership::take(device) {
        Ok(_ownership) => {
            let restore = |source| BandsError::kernel("restore", device, source);
            remove(&mut connection, device.index).map_err(restore)?;
            Ok(true)
        }
        Err(BandsError::Busy { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The devices of this network namespace with filters that a process which has ended left. Changes
/// nothing.
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
    let has_filters = has_ours(&mut connection, device.index).map_err(ask)?;
    Ok(has_filters && Place::take(device.index).map_err(ask)?.is_some())
}

fn has_ours(connection: &mut Connection, device: u32) -> io::Result<bool> {
    let filters = connection.filters(device)?;
    Ok(filters.iter().any(is_ours))
}

/// Our filters, and the qdisc where they say that it is ours.
fn remove(connection: &mut Connection, device: u32) -> io::Result<()> {
    let filters = connection.filters(device)?;
    for &filter in filters.iter().filter(|filter| is_ours(filter)) {
        connection.delete_filter(device, filter)?;
    }
    let shows = |filter: &FilterName| names(FILTER_HANDLE_OF_OURS).contains(filter);
    if filters.iter().any(shows) {
        connection.delete_clsact(device)?;
    }
    Ok(())
}
