//! The queue of a device: what kind it is, and how much waits in it. Asking needs no privilege.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use crate::bands::Bands;
use crate::device::{self, Device};
use crate::netlink::connection::ECHO;
use crate::netlink::traffic::{ROOT, RTM_GETQDISC, RTM_GETTCLASS, TrafficHandle, body, counters};
use crate::netlink::{Connection, Request};

/// Between two looks for a device that is gone.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The root qdisc of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its name, for instance `fq_codel`.
    pub kind: String,
    /// What identifies it on its device.
    pub handle: Handle,
}

impl Root {
    /// Whether the kernel put it there by itself; an operator or a program chose every other.
    pub fn is_kernel_default(&self) -> bool {
        self.handle.0 == 0
    }
}

/// Identifies a qdisc or class; shown as `major:minor` in hexadecimal, as tc does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(pub u32);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 >> 16, self.0 & 0xffff) {
            (major, 0) => write!(f, "{major:x}:"),
            (major, minor) => write!(f, "{major:x}:{minor:x}"),
        }
    }
}

/// The root qdisc of a device; None while the device is down.
pub fn root(device: &Device) -> io::Result<Option<Root>> {
    root_on(&mut Connection::open()?, device.index)
}

pub(crate) fn root_on(connection: &mut Connection, device: u32) -> io::Result<Option<Root>> {
    let reply = connection.root_qdisc(device)?;
    Ok(reply.map(|reply| Root {
        kind: reply.kind,
        handle: Handle(reply.handle),
    }))
}

/// A qdisc or class of a device and what went through it since it is there, link headers included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name, for instance `pfifo`.
    pub kind: String,
    /// What identifies it on its device.
    pub handle: Handle,
    /// What it hangs below; `ffff:ffff` is the device.
    pub parent: Handle,
    /// Whether it is a class of the qdisc with the same major number.
    pub is_class: bool,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets there was no room for.
    pub dropped_packets: u64,
    /// Bytes that wait.
    pub backlog_bytes: u64,
    /// Packets that wait.
    pub backlog_packets: u64,
}

/// All qdiscs and classes of a device, qdiscs first; empty for a device without a queue. Two dumps:
/// for once a second, not for once a packet.
pub fn queues(device: &Device) -> io::Result<Vec<Queue>> {
    let replies = Connection::open()?.queues(device.index)?;
    let queues = replies.into_iter().map(|reply| Queue {
        kind: reply.kind,
        handle: Handle(reply.handle),
        parent: Handle(reply.parent),
        is_class: reply.is_class,
        sent_bytes: reply.counters.sent_bytes,
        sent_packets: reply.counters.sent_packets,
        dropped_packets: reply.counters.drops.into(),
        backlog_bytes: reply.counters.backlog_bytes.into(),
        backlog_packets: reply.counters.backlog_packets.into(),
    });
    Ok(queues.collect())
}

/// Bytes that wait in the root qdisc of a device, link headers included. To ask often, keep a
/// [`BacklogProbe`].
pub fn backlog_bytes(device: &Device) -> io::Result<u64> {
    BacklogProbe::open(device)?.backlog_bytes(0)
}

/// An open question to the kernel: how much waits in this device's root qdisc, or in its bands? An
/// answer costs 1.0 to 1.7 us a qdisc or band (two system calls), so a thousand a second take 0.2 %
/// of a core.
///
/// A device that went and came back has another number, and is asked under its name's new one within
/// about a second.
#[derive(Debug)]
pub struct BacklogProbe {
    connection: Connection,
    /// In the order of the bands.
    requests: Vec<Request>,
    device: Device,
    /// How many bands; none: the root.
    bands: Option<u8>,
    /// When the device was last looked for, because it did not answer.
    looked_at: Option<Instant>,
}

impl BacklogProbe {
    /// Opens the socket the questions go through, in the calling thread's network namespace.
    pub fn open(device: &Device) -> io::Result<BacklogProbe> {
        BacklogProbe::of(device, None)
    }

    /// The same for the first `count` of our [`Bands`] on the device.
    pub fn of_bands(device: &Device, count: u8) -> io::Result<BacklogProbe> {
        BacklogProbe::of(device, Some(count))
    }

    fn of(device: &Device, bands: Option<u8>) -> io::Result<BacklogProbe> {
        Ok(BacklogProbe {
            connection: Connection::open()?,
            requests: requests(device, bands),
            device: device.clone(),
            bands,
            looked_at: None,
        })
    }

    /// Bytes that wait in the root, or in `band` and in those before, link headers included; 0 for
    /// a device without a queue.
    pub fn backlog_bytes(&mut self, band: u8) -> io::Result<u64> {
        match self.ask(band) {
            Err(_) if self.finds_device_again() => self.ask(band),
            answer => answer,
        }
    }

    /// Whether the device is there under another number than before.
    fn finds_device_again(&mut self) -> bool {
        if (self.looked_at).is_some_and(|looked_at| looked_at.elapsed() < LOOK_AGAIN_AFTER) {
            return false;
        }
        self.looked_at = Some(Instant::now());
        let Ok(device) = device::by_name(&self.device.name) else {
            return false;
        };
        let is_new = device.index != self.device.index;
        self.requests = requests(&device, self.bands);
        self.device = device;
        is_new
    }

    fn ask(&mut self, band: u8) -> io::Result<u64> {
        let mut sum_bytes = 0;
        for request in self.requests.iter_mut().take(usize::from(band) + 1) {
            let counters = self.connection.ask_fast(request, counters)?;
            sum_bytes += counters.map_or(0, |counters| u64::from(counters.backlog_bytes));
        }
        Ok(sum_bytes)
    }
}

/// What is asked about a device's root, or about each of so many bands.
fn requests(device: &Device, bands: Option<u8>) -> Vec<Request> {
    let handle = |handle, parent| TrafficHandle {
        device: device.index,
        handle,
        parent,
    };
    let Some(count) = bands else {
        return vec![Request::new(RTM_GETQDISC, ECHO, &body(handle(0, ROOT)))];
    };
    let request = |band| {
        let class = handle(Bands::priority_of(band), 0);
        Request::new(RTM_GETTCLASS, ECHO, &body(class))
    };
    (0..count).map(request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_look_as_in_tc() {
        assert_eq!(Handle(0x5005_0000).to_string(), "5005:");
        assert_eq!(Handle(0x5005_0011).to_string(), "5005:11");
        assert_eq!(Handle(0).to_string(), "0:");
    }

    #[test]
    fn loopback_has_the_kernels_queue_and_nothing_waits() {
        let loopback = device::carrying("127.0.0.1".parse().unwrap())
            .unwrap()
            .unwrap();
        if let Some(root) = root(&loopback).unwrap() {
            assert!(root.is_kernel_default(), "{root:?}");
        }
        assert_eq!(backlog_bytes(&loopback).unwrap(), 0);
        let waiting = queues(&loopback).unwrap();
        assert!(waiting.iter().all(|queue| queue.backlog_bytes == 0));
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error() {
        let gone = Device {
            name: "gone0".into(),
            index: 0x7fff_ffff,
            is_loopback: false,
            has_ethernet_header: true,
            mtu_bytes: 1500,
        };
        assert!(root(&gone).is_err());
        assert!(backlog_bytes(&gone).is_err());
    }
}
