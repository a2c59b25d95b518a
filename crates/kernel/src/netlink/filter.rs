//! The qdisc `clsact`, where programs look at packets before they are queued, and its filters
//! (linux/pkt_sched.h, linux/rtnetlink.h).

use std::io;

use super::connection::{CREATE, Connection, EXCLUSIVE};
use super::message::u32_at;
use super::traffic::{RTM_DELQDISC, RTM_NEWQDISC, TCA_KIND, TrafficHandle, body};

const RTM_NEWTFILTER: u16 = 44;
const RTM_DELTFILTER: u16 = 45;
const RTM_GETTFILTER: u16 = 46;
/// Where a `clsact` hangs, and its own number.
const CLSACT_PARENT: u32 = 0xFFFF_FFF1;
const CLSACT_HANDLE: u32 = 0xFFFF_0000;
/// Where its filters hang: of what leaves, of what comes in.
const DIRECTIONS: [u32; 2] = [0xFFFF_FFF3, 0xFFFF_FFF2];
const ETH_P_ALL: u16 = 3;

/// A filter, as far as it is told apart from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterName {
    /// Its place in the order; the lowest is asked first.
    pub priority: u16,
    pub handle: u32,
}

impl Connection {
    /// Adds the qdisc; whether it was not there before.
    pub fn add_clsact(&mut self, device: u32) -> io::Result<bool> {
        let place = clsact(device);
        let added = self.change(RTM_NEWQDISC, CREATE | EXCLUSIVE, |request| {
            request
                .body(&body(place))
                .attribute_text(TCA_KIND, "clsact")
        });
        match added {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
            result => result.map(|()| true),
        }
    }

    /// Takes the qdisc and its filters away.
    pub fn delete_clsact(&mut self, device: u32) -> io::Result<()> {
        let place = clsact(device);
        self.change(RTM_DELQDISC, 0, |request| request.body(&body(place)))
    }

    /// Whether the device has the qdisc.
    pub fn has_clsact(&mut self, device: u32) -> io::Result<bool> {
        let qdiscs = self.qdiscs(device)?;
        Ok(qdiscs.iter().any(|qdisc| qdisc.kind == "clsact"))
    }

    /// The filters of both directions; none without the qdisc.
    pub fn filters(&mut self, device: u32) -> io::Result<Vec<FilterName>> {
        let mut names = Vec::new();
        if !self.has_clsact(device)? {
            return Ok(names);
        }
        for parent in DIRECTIONS {
            let place = TrafficHandle {
                device,
                handle: 0,
                parent,
            };
            let take = |kind, payload: &[u8]| {
                if kind == RTM_NEWTFILTER {
                    names.extend(name(payload));
                }
            };
            self.dump(RTM_GETTFILTER, |request| request.body(&body(place)), take)?;
        }
        Ok(names)
    }

    /// Takes a filter away in both directions; one that is not there is fine.
    pub fn delete_filter(&mut self, device: u32, filter: FilterName) -> io::Result<()> {
        for parent in DIRECTIONS {
            let place = TrafficHandle {
                device,
                handle: filter.handle,
                parent,
            };
            let body = filter_body(place, filter.priority);
            let deleted = self.change(RTM_DELTFILTER, 0, |request| request.body(&body));
            match deleted.as_ref().map_err(io::Error::raw_os_error) {
                Ok(()) | Err(Some(libc::ENOENT | libc::EINVAL | libc::ENODEV)) => {}
                Err(_) => return deleted,
            }
        }
        Ok(())
    }
}

fn clsact(device: u32) -> TrafficHandle {
    TrafficHandle {
        device,
        handle: CLSACT_HANDLE,
        parent: CLSACT_PARENT,
    }
}

/// The body of a message about a filter: priority and protocol stand where others have nothing.
fn filter_body(place: TrafficHandle, priority: u16) -> [u8; 20] {
    let mut body = body(place);
    let info = u32::from(priority) << 16 | u32::from(ETH_P_ALL.to_be());
    body[16..20].copy_from_slice(&info.to_ne_bytes());
    body
}

/// What tells a filter apart, in the payload of a RTM_NEWTFILTER; the one without a handle is its
/// head.
fn name(payload: &[u8]) -> Option<FilterName> {
    let handle = u32_at(payload, 8).filter(|handle| *handle != 0)?;
    let priority = (u32_at(payload, 16)? >> 16) as u16;
    Some(FilterName { priority, handle })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_told_by_priority_and_handle() {
        let place = TrafficHandle {
            device: 2,
            handle: 0x5005,
            parent: DIRECTIONS[0],
        };
        let body = filter_body(place, 5005);
        let named = FilterName {
            priority: 5005,
            handle: 0x5005,
        };
        assert_eq!(name(&body), Some(named));
        assert_eq!(body[4..8], 2_u32.to_ne_bytes());
        assert_eq!(body[12..16], 0xFFFF_FFF3_u32.to_ne_bytes());
        assert_eq!(u32_at(&body, 16), Some(5005 << 16 | 0x0300));
    }

    #[test]
    fn half_a_filter_is_none() {
        assert_eq!(name(&[0; 12]), None);
        assert_eq!(name(&[0; 20]), None, "the head of a chain");
    }
}
