//! Traffic control (linux/pkt_sched.h): qdiscs and classes, queried and changed.

use std::io;

use super::connection::{CREATE, Connection, EXCLUSIVE, REPLACE};
use super::link::text;
use super::message::{Request, attribute, attributes, u32_at, u64_at};

pub const RTM_NEWQDISC: u16 = 36;
pub const RTM_DELQDISC: u16 = 37;
pub const RTM_GETQDISC: u16 = 38;
const RTM_NEWTCLASS: u16 = 40;
pub const RTM_GETTCLASS: u16 = 42;
/// Length of `struct tcmsg`; index at 4, handle at 8, parent at 12.
const BODY_BYTES: usize = 20;
/// The parent of a root qdisc.
pub const ROOT: u32 = 0xFFFF_FFFF;

pub const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
/// All 64 bits of the packets; the kernel sends it when 32 do not hold them, always behind
/// STATS_BASIC.
const STATS_PACKETS64: u16 = 8;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const HTB_VERSION: u32 = 3;
const PRIO_MAP_BYTES: usize = 16;
/// Divides a class's rate into its quantum; we always state the quantum.
const HTB_RATE_TO_QUANTUM: u32 = 10;
/// Rates count bytes of whole frames; the kernel then needs no rate tables from us.
const LINKLAYER_ETHERNET: u8 = 1;
/// The kernel counts bursts as time at the class's rate, in ticks of this many nanoseconds.
const TICK_NS: u128 = 64;

/// A qdisc or class on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficHandle {
    /// The device's number.
    pub device: u32,
    /// Major number in the upper half, minor in the lower.
    pub handle: u32,
    /// The class or [`ROOT`] it hangs below.
    pub parent: u32,
}

/// A HTB class; `rate` is its own, up to `ceil` it borrows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtbClass {
    pub rate_bytes_per_sec: u64,
    pub ceil_bytes_per_sec: u64,
    pub burst_bytes: u64,
    pub ceil_burst_bytes: u64,
    pub quantum_bytes: u32,
    /// 0 borrows first, 7 last.
    pub priority: u32,
}

/// A qdisc as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QdiscReply {
    pub handle: u32,
    /// The class or [`ROOT`] it hangs below.
    pub parent: u32,
    pub kind: String,
    /// Its options as the kernel tells them, which it also takes for most kinds.
    pub options: Vec<u8>,
}

/// A qdisc or class with its place and what went through it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueReply {
    pub kind: String,
    pub handle: u32,
    pub parent: u32,
    pub is_class: bool,
    pub counters: Counters,
}

/// What went through a qdisc or class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub sent_bytes: u64,
    pub sent_packets: u64,
    pub drops: u32,
    pub backlog_bytes: u32,
    pub backlog_packets: u32,
}

impl Connection {
    /// The root qdisc of a device; None when the kernel shows none (a device that is down).
    pub fn root_qdisc(&mut self, device: u32) -> io::Result<Option<QdiscReply>> {
        let mut found = None;
        let place = TrafficHandle {
            device,
            handle: 0,
            parent: ROOT,
        };
        let take = |kind, payload: &[u8]| {
            if kind == RTM_NEWQDISC {
                found = qdisc(payload);
            }
        };
        match self.ask(RTM_GETQDISC, |request| request.body(&body(place)), take) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            result => result.map(|()| found),
        }
    }

    /// Puts a HTB at the root; unmarked packets go to the class with this minor number. A
    /// configured root qdisc is an error (EEXIST) unless `replace`.
    pub fn add_htb(
        &mut self,
        place: TrafficHandle,
        default_minor: u32,
        replace: bool,
    ) -> io::Result<()> {
        let flags = CREATE | if replace { REPLACE } else { EXCLUSIVE };
        self.change(RTM_NEWQDISC, flags, |request| {
            htb_request(request.body(&body(place)), default_minor)
        })
    }

    /// Puts strict priorities at the root, the first band first; packets without a mark take the
    /// first. A configured root qdisc is an error (EEXIST) unless `replace`.
    pub fn add_prio(&mut self, place: TrafficHandle, bands: u8, replace: bool) -> io::Result<()> {
        let flags = CREATE | if replace { REPLACE } else { EXCLUSIVE };
        self.change(RTM_NEWQDISC, flags, |request| {
            prio_request(request.body(&body(place)), bands)
        })
    }

    /// Adds a HTB class.
    pub fn add_htb_class(&mut self, place: TrafficHandle, class: &HtbClass) -> io::Result<()> {
        self.change(RTM_NEWTCLASS, CREATE | EXCLUSIVE, |request| {
            class_request(request.body(&body(place)), class)
        })
    }

    /// Gives a HTB class that is there other rates; what waits in it stays.
    pub fn change_htb_class(&mut self, place: TrafficHandle, class: &HtbClass) -> io::Result<()> {
        self.change(RTM_NEWTCLASS, 0, |request| {
            class_request(request.body(&body(place)), class)
        })
    }

    /// Puts a first-in-first-out queue of at most `limit_packets` below a class.
    pub fn add_pfifo(&mut self, place: TrafficHandle, limit_packets: u32) -> io::Result<()> {
        self.change(RTM_NEWQDISC, CREATE | EXCLUSIVE, |request| {
            let limit = limit_packets.to_ne_bytes();
            request
                .body(&body(place))
                .attribute_text(TCA_KIND, "pfifo")
                .attribute(TCA_OPTIONS, &limit)
        })
    }

    /// Puts a qdisc where it was, with options as the kernel told them.
    pub fn add_again(&mut self, device: u32, qdisc: &QdiscReply) -> io::Result<()> {
        let place = TrafficHandle {
            device,
            handle: qdisc.handle,
            parent: qdisc.parent,
        };
        self.change(RTM_NEWQDISC, CREATE | EXCLUSIVE, |request| {
            let request = request
                .body(&body(place))
                .attribute_text(TCA_KIND, &qdisc.kind);
            match qdisc.options.is_empty() {
                true => request,
                false => request.attribute(TCA_OPTIONS, &qdisc.options),
            }
        })
    }

    /// Takes a root qdisc with exactly this handle away; another handle is an error (EINVAL), none
    /// is one too (ENOENT).
    pub fn delete_root(&mut self, device: u32, handle: u32) -> io::Result<()> {
        let place = TrafficHandle {
            device,
            handle,
            parent: ROOT,
        };
        self.change(RTM_DELQDISC, 0, |request| request.body(&body(place)))
    }

    /// All qdiscs of a device with their options.
    pub fn qdiscs(&mut self, device: u32) -> io::Result<Vec<QdiscReply>> {
        let mut qdiscs = Vec::new();
        let place = TrafficHandle {
            device,
            handle: 0,
            parent: 0,
        };
        // The kernel tells those of all devices, whichever is named.
        let take = |kind, payload: &[u8]| {
            if kind == RTM_NEWQDISC && u32_at(payload, 4) == Some(device) {
                qdiscs.extend(qdisc(payload));
            }
        };
        self.dump(RTM_GETQDISC, |request| request.body(&body(place)), take)?;
        Ok(qdiscs)
    }

    /// All qdiscs and classes of a device.
    pub fn queues(&mut self, device: u32) -> io::Result<Vec<QueueReply>> {
        let mut queues = Vec::new();
        let place = TrafficHandle {
            device,
            handle: 0,
            parent: 0,
        };
        for request_kind in [RTM_GETQDISC, RTM_GETTCLASS] {
            // The kernel tells the qdiscs of all devices, whichever is named.
            let take = |kind, payload: &[u8]| {
                if matches!(kind, RTM_NEWQDISC | RTM_NEWTCLASS)
                    && u32_at(payload, 4) == Some(device)
                {
                    queues.extend(queue(payload, kind == RTM_NEWTCLASS));
                }
            };
            self.dump(request_kind, |request| request.body(&body(place)), take)?;
        }
        Ok(queues)
    }

    /// The classes of a device: handle and counters of each.
    pub fn classes(&mut self, device: u32) -> io::Result<Vec<(u32, Counters)>> {
        let mut classes = Vec::new();
        let place = TrafficHandle {
            device,
            handle: 0,
            parent: 0,
        };
        self.dump(
            RTM_GETTCLASS,
            |request| request.body(&body(place)),
            |kind, payload| {
                if kind == RTM_NEWTCLASS {
                    classes.extend(u32_at(payload, 8).zip(counters(payload)));
                }
            },
        )?;
        Ok(classes)
    }
}

/// The fixed body of every message of traffic control.
pub fn body(place: TrafficHandle) -> [u8; BODY_BYTES] {
    let mut body = [0; BODY_BYTES];
    body[4..8].copy_from_slice(&place.device.to_ne_bytes());
    body[8..12].copy_from_slice(&place.handle.to_ne_bytes());
    body[12..16].copy_from_slice(&place.parent.to_ne_bytes());
    body
}

/// What the payload of a RTM_NEWQDISC says.
fn qdisc(payload: &[u8]) -> Option<QdiscReply> {
    let kind = attribute(payload.get(BODY_BYTES..)?, TCA_KIND)?;
    let options = attribute(payload.get(BODY_BYTES..)?, TCA_OPTIONS);
    Some(QdiscReply {
        handle: u32_at(payload, 8)?,
        parent: u32_at(payload, 12)?,
        kind: text(kind),
        options: options.unwrap_or_default().to_vec(),
    })
}

/// All that is said of a qdisc or class; one without counters has counted nothing.
fn queue(payload: &[u8], is_class: bool) -> Option<QueueReply> {
    let QdiscReply { handle, kind, .. } = qdisc(payload)?;
    Some(QueueReply {
        kind,
        handle,
        parent: u32_at(payload, 12)?,
        is_class,
        counters: counters(payload).unwrap_or_default(),
    })
}

/// The counters in the payload of a RTM_NEWQDISC or RTM_NEWTCLASS; None when it has none.
pub fn counters(payload: &[u8]) -> Option<Counters> {
    let stats = attribute(payload.get(BODY_BYTES..)?, TCA_STATS2)?;
    let mut counters = Counters::default();
    for (kind, value) in attributes(stats) {
        match kind {
            STATS_BASIC => {
                counters.sent_bytes = u64_at(value, 0)?;
                counters.sent_packets = u32_at(value, 8)?.into();
            }
            STATS_PACKETS64 => counters.sent_packets = u64_at(value, 0)?,
            STATS_QUEUE => {
                counters.backlog_packets = u32_at(value, 0)?;
                counters.backlog_bytes = u32_at(value, 4)?;
                counters.drops = u32_at(value, 8)?;
            }
            _ => (),
        }
    }
    Some(counters)
}

fn htb_request(request: Request, default_minor: u32) -> Request {
    let init = [HTB_VERSION, HTB_RATE_TO_QUANTUM, default_minor, 0, 0]
        .map(u32::to_ne_bytes)
        .concat();
    request
        .attribute_text(TCA_KIND, "htb")
        .nested(TCA_OPTIONS, |options| {
            options.attribute(TCA_HTB_INIT, &init)
        })
}

/// `struct tc_prio_qopt`: how many bands, and to which each of the sixteen old priorities goes: to
/// the first.
fn prio_request(request: Request, bands: u8) -> Request {
    let mut options = u32::from(bands).to_ne_bytes().to_vec();
    options.extend([0; PRIO_MAP_BYTES]);
    request
        .attribute_text(TCA_KIND, "prio")
        .attribute(TCA_OPTIONS, &options)
}

fn class_request(request: Request, class: &HtbClass) -> Request {
    let mut parameters = rate_spec(class.rate_bytes_per_sec).to_vec();
    parameters.extend(rate_spec(class.ceil_bytes_per_sec));
    let numbers = [
        ticks(class.burst_bytes, class.rate_bytes_per_sec),
        ticks(class.ceil_burst_bytes, class.ceil_bytes_per_sec),
        class.quantum_bytes,
        0,
        class.priority,
    ];
    parameters.extend(numbers.map(u32::to_ne_bytes).concat());
    request
        .attribute_text(TCA_KIND, "htb")
        .nested(TCA_OPTIONS, |options| {
            options
                .attribute(TCA_HTB_RATE64, &class.rate_bytes_per_sec.to_ne_bytes())
                .attribute(TCA_HTB_CEIL64, &class.ceil_bytes_per_sec.to_ne_bytes())
                .attribute(TCA_HTB_PARMS, &parameters)
        })
}

/// `struct tc_ratespec`; a rate beyond 32 bits is all ones here, and the kernel reads the attribute
/// of 64 bits instead.
fn rate_spec(bytes_per_sec: u64) -> [u8; 12] {
    let mut spec = [0; 12];
    spec[1] = LINKLAYER_ETHERNET;
    spec[8..12].copy_from_slice(
        &u32::try_from(bytes_per_sec)
            .unwrap_or(u32::MAX)
            .to_ne_bytes(),
    );
    spec
}

/// How long `bytes` take at the rate, in the kernel's ticks.
fn ticks(bytes: u64, bytes_per_sec: u64) -> u32 {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_sec.max(1));
    u32::try_from(ns / TICK_NS).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLASS: HtbClass = HtbClass {
        rate_bytes_per_sec: 1_250_000,
        ceil_bytes_per_sec: 5_000_000_000,
        burst_bytes: 1600,
        ceil_burst_bytes: 6_000_000,
        quantum_bytes: 1514,
        priority: 3,
    };

    fn start(kind: u16) -> Request {
        Request::new(
            kind,
            0,
            &body(TrafficHandle {
                device: 2,
                handle: 0x5005_0010,
                parent: 0x5005_0001,
            }),
        )
    }

    #[test]
    fn the_body_says_where() {
        let place = body(TrafficHandle {
            device: 2,
            handle: 0x5005_0000,
            parent: ROOT,
        });
        assert_eq!(place[4..8], 2_u32.to_ne_bytes());
        assert_eq!(place[8..12], 0x5005_0000_u32.to_ne_bytes());
        assert_eq!(place[12..16], [0xff; 4]);
    }

    #[test]
    fn htb_names_its_default_class() {
        let mut request = htb_request(start(RTM_NEWQDISC), 0x10);
        let attributes = &request.with_sequence(1)[16 + BODY_BYTES..];
        assert_eq!(attribute(attributes, TCA_KIND), Some(&b"htb\0"[..]));
        let init = attribute(attribute(attributes, TCA_OPTIONS).unwrap(), TCA_HTB_INIT).unwrap();
        assert_eq!(
            (init.len(), u32_at(init, 0), u32_at(init, 8)),
            (20, Some(3), Some(0x10))
        );
    }

    #[test]
    fn prio_sends_what_has_no_mark_first() {
        let mut request = prio_request(start(RTM_NEWQDISC), 8);
        let attributes = &request.with_sequence(1)[16 + BODY_BYTES..];
        let kind = [9_u8, 0, 1, 0, b'p', b'r', b'i', b'o', 0, 0, 0, 0];
        let options = [&[24, 0, 2, 0, 8, 0, 0, 0][..], &[0; 16]].concat();
        assert_eq!(attributes, [&kind[..], &options].concat());
    }

    #[test]
    fn a_class_states_rates_bursts_and_priority() {
        let mut request = class_request(start(RTM_NEWTCLASS), &CLASS);
        let options = attribute(&request.with_sequence(1)[16 + BODY_BYTES..], TCA_OPTIONS).unwrap();
        let parameters = attribute(options, TCA_HTB_PARMS).unwrap();
        assert_eq!(parameters.len(), 44);
        assert_eq!(
            (parameters[1], u32_at(parameters, 8)),
            (LINKLAYER_ETHERNET, Some(1_250_000))
        );
        assert_eq!(u32_at(parameters, 20), Some(u32::MAX));
        assert_eq!(u32_at(parameters, 24), Some(20_000)); // 1600 B at 10 Mbit/s: 1.28 ms
        assert_eq!(u32_at(parameters, 28), Some(18_750)); // 6 MB at 40 Gbit/s: 1.2 ms
        assert_eq!(
            (u32_at(parameters, 32), u32_at(parameters, 40)),
            (Some(1514), Some(3))
        );
        assert_eq!(
            u64_at(attribute(options, TCA_HTB_CEIL64).unwrap(), 0),
            Some(5_000_000_000)
        );
    }

    #[test]
    fn counters_are_read_from_their_nest() {
        let mut request = start(RTM_NEWTCLASS).nested(TCA_STATS2, |stats| {
            let basic = [&1_000_000_u64.to_ne_bytes()[..], &700_u32.to_ne_bytes()].concat();
            let queue = [5_u32, 7570, 9, 0, 1].map(u32::to_ne_bytes).concat();
            stats
                .attribute(STATS_BASIC, &basic)
                .attribute(STATS_QUEUE, &queue)
        });
        let expected = Counters {
            sent_bytes: 1_000_000,
            sent_packets: 700,
            drops: 9,
            backlog_bytes: 7570,
            backlog_packets: 5,
        };
        assert_eq!(counters(&request.with_sequence(1)[16..]), Some(expected));
    }

    #[test]
    fn a_burst_that_takes_minutes_stays_in_range() {
        assert_eq!(ticks(1600, 1), u32::MAX);
        assert_eq!(ticks(1600, 0), u32::MAX);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (qdisc(&bytes), counters(&bytes), queue(&bytes, false));
        }
    }
}
