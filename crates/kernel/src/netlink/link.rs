//! RTM_GETLINK and RTM_SETLINK: a device's name, flags, queues, counters and segmentation limits.

use std::io;

use super::connection::Connection;
use super::message::{Request, attributes, u32_at, u64_at};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
/// Length of `struct ifinfomsg`; what kind of link at 2, index at 4, flags at 8.
const BODY_BYTES: usize = 16;
const IFF_LOOPBACK: u32 = 8;
/// Kinds of links that put an Ethernet header before a packet; loopback is one.
const ARPHRD_ETHERNET: [u16; 2] = [1, 772];

const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_STATS64: u16 = 23;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_GSO_MAX_SIZE: u16 = 41;
/// Holds the further names, each an attribute of the kind below; since Linux 5.5.
const IFLA_PROP_LIST: u16 = 52;
const IFLA_ALT_IFNAME: u16 = 53;
const IFLA_TSO_MAX_SIZE: u16 = 59;
const IFLA_TSO_MAX_SEGS: u16 = 60;
const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
/// Where `struct rtnl_link_stats64` has the bytes sent.
const STATS64_TX_BYTES: usize = 24;
/// And the packets it dropped instead of sending them.
const STATS64_TX_DROPPED: usize = 56;

/// What the kernel says of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// Further names of up to 127 bytes, each unique among all names.
    pub alternative_names: Vec<String>,
    /// What drives it, of virtual ones: `veth`, `tun`, `bond`.
    pub kind: String,
    pub is_loopback: bool,
    pub has_ethernet_header: bool,
    pub mtu_bytes: u32,
    pub tx_bytes: u64,
    pub tx_dropped: u64,
    pub tx_queues: u32,
    pub gso: GsoLimits,
    /// What the device itself can segment; None before Linux 5.18.
    pub tso_max: Option<(u32, u32)>,
}

/// The largest super-packet TCP may hand to a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GsoLimits {
    pub size_bytes: u32,
    pub segments: u32,
    /// The separate size for IPv4; None before Linux 6.3.
    pub ipv4_size_bytes: Option<u32>,
}

impl GsoLimits {
    /// These with each that is still the one of `limited` as in `previous`: another one was set
    /// since.
    pub fn back(self, limited: GsoLimits, previous: GsoLimits) -> GsoLimits {
        let back = |now, limited, previous| if now == limited { previous } else { now };
        GsoLimits {
            size_bytes: back(self.size_bytes, limited.size_bytes, previous.size_bytes),
            segments: back(self.segments, limited.segments, previous.segments),
            ipv4_size_bytes: match (limited.ipv4_size_bytes, previous.ipv4_size_bytes) {
                (limited, previous) if self.ipv4_size_bytes == limited => previous,
                _ => self.ipv4_size_bytes,
            },
        }
    }

    /// These where the device can segment so much by now, bytes and segments: the kernel refuses
    /// more.
    pub fn within(self, tso_max: Option<(u32, u32)>) -> GsoLimits {
        let (size_max, segments_max) = tso_max.unwrap_or((u32::MAX, u32::MAX));
        GsoLimits {
            size_bytes: self.size_bytes.min(size_max),
            segments: self.segments.min(segments_max),
            ipv4_size_bytes: self.ipv4_size_bytes.map(|bytes| bytes.min(size_max)),
        }
    }
}

impl Link {
    /// Reads a RTM_NEWLINK message's payload; None without a body.
    pub fn from_payload(payload: &[u8]) -> Option<Link> {
        let flags = u32_at(payload, 8)?;
        let kind = u16::from_ne_bytes([payload[2], payload[3]]);
        let mut link = Link {
            index: u32_at(payload, 4)?,
            is_loopback: flags & IFF_LOOPBACK != 0,
            has_ethernet_header: ARPHRD_ETHERNET.contains(&kind),
            ..Link::default()
        };
        let (mut tso_size, mut tso_segments) = (None, None);
        for (kind, value) in attributes(payload.get(BODY_BYTES..)?) {
            let number = u32_at(value, 0);
            match kind {
                IFLA_IFNAME => link.name = text(value),
                IFLA_PROP_LIST => {
                    let names = attributes(value).filter(|(kind, _)| *kind == IFLA_ALT_IFNAME);
                    let names = names.map(|(_, name)| text(name));
                    link.alternative_names.extend(names);
                }
                IFLA_LINKINFO => {
                    let mut info = attributes(value);
                    let kind = info.find(|(kind, _)| *kind == IFLA_INFO_KIND);
                    link.kind = kind.map_or_else(String::new, |(_, value)| text(value));
                }
                IFLA_MTU => link.mtu_bytes = number.unwrap_or(0),
                IFLA_STATS64 => {
                    link.tx_bytes = u64_at(value, STATS64_TX_BYTES).unwrap_or(0);
                    link.tx_dropped = u64_at(value, STATS64_TX_DROPPED).unwrap_or(0);
                }
                IFLA_NUM_TX_QUEUES => link.tx_queues = number.unwrap_or(0),
                IFLA_GSO_MAX_SEGS => link.gso.segments = number.unwrap_or(0),
                IFLA_GSO_MAX_SIZE => link.gso.size_bytes = number.unwrap_or(0),
                IFLA_GSO_IPV4_MAX_SIZE => link.gso.ipv4_size_bytes = number,
                IFLA_TSO_MAX_SIZE => tso_size = number,
                IFLA_TSO_MAX_SEGS => tso_segments = number,
                _ => (),
            }
        }
        link.tso_max = tso_size.zip(tso_segments);
        Some(link)
    }
}

impl Connection {
    /// The device with this index; not found (ENODEV) when there is none.
    pub fn link(&mut self, index: u32) -> io::Result<Link> {
        let mut found = None;
        self.ask(
            RTM_GETLINK,
            |request| request.body(&body(index)),
            |kind, payload| keep(&mut found, kind, payload),
        )?;
        found.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// All devices, by index.
    pub fn links(&mut self) -> io::Result<Vec<Link>> {
        let mut links = Vec::new();
        self.dump(
            RTM_GETLINK,
            |request| request.body(&body(0)),
            |kind, payload| {
                let mut found = None;
                keep(&mut found, kind, payload);
                links.extend(found);
            },
        )?;
        Ok(links)
    }

    /// Sets how large a super-packet TCP may hand to a device; needs `CAP_NET_ADMIN`.
    pub fn set_gso_limits(&mut self, index: u32, limits: GsoLimits) -> io::Result<()> {
        self.change(RTM_SETLINK, 0, |request| {
            gso_request(request.body(&body(index)), limits)
        })
    }

    /// Sets how many packets may wait in front of a device; needs `CAP_NET_ADMIN`.
    pub fn set_queue_length(&mut self, index: u32, packets: u32) -> io::Result<()> {
        self.change(RTM_SETLINK, 0, |request| {
            request
                .body(&body(index))
                .attribute_u32(IFLA_TXQLEN, packets)
        })
    }
}

fn gso_request(request: Request, limits: GsoLimits) -> Request {
    let request = request
        .attribute_u32(IFLA_GSO_MAX_SEGS, limits.segments)
        .attribute_u32(IFLA_GSO_MAX_SIZE, limits.size_bytes);
    match limits.ipv4_size_bytes {
        Some(bytes) => request.attribute_u32(IFLA_GSO_IPV4_MAX_SIZE, bytes),
        None => request,
    }
}

fn body(index: u32) -> [u8; BODY_BYTES] {
    let mut body = [0; BODY_BYTES];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body
}

fn keep(found: &mut Option<Link>, kind: u16, payload: &[u8]) {
    if kind == RTM_NEWLINK {
        *found = Link::from_payload(payload);
    }
}

/// Text up to its ending zero.
pub fn text(value: &[u8]) -> String {
    let end = value
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bit that the kernel sets in the kind of an attribute with attributes in it.
    const NESTED: u16 = 0x8000;

    #[test]
    fn reads_what_a_kernel_would_send() {
        let mut payload = body(7).to_vec();
        payload[8] = 8;
        let mut request = Request::new(RTM_NEWLINK, 0, &payload)
            .attribute_text(IFLA_IFNAME, "eth0")
            .attribute_u32(IFLA_MTU, 1500)
            .attribute_u32(IFLA_NUM_TX_QUEUES, 4)
            .nested(IFLA_PROP_LIST | NESTED, |names| {
                let names = names.attribute_text(IFLA_ALT_IFNAME, "enp0s3");
                names.attribute_text(IFLA_ALT_IFNAME, "towards-clients")
            });
        request = gso_request(
            request,
            GsoLimits {
                size_bytes: 65536,
                segments: 65535,
                ipv4_size_bytes: Some(65536),
            },
        );
        let link = Link::from_payload(&request.with_sequence(1)[16..]).unwrap();
        assert_eq!(
            (
                link.index,
                link.name.as_str(),
                link.is_loopback,
                link.mtu_bytes,
                link.tx_queues
            ),
            (7, "eth0", true, 1500, 4)
        );
        assert_eq!(
            link.gso,
            GsoLimits {
                size_bytes: 65536,
                segments: 65535,
                ipv4_size_bytes: Some(65536)
            }
        );
        assert_eq!(link.tso_max, None);
        assert_eq!(link.alternative_names, ["enp0s3", "towards-clients"]);
    }

    #[test]
    fn only_limits_that_nothing_else_has_set_go_back() {
        let of = |size_bytes, segments, ipv4| GsoLimits {
            size_bytes,
            segments,
            ipv4_size_bytes: Some(ipv4),
        };
        let (limited, previous) = (of(2026, 1, 2026), of(65_536, 65_535, 60_000));
        assert_eq!(limited.back(limited, previous), previous);
        assert_eq!(previous.within(None), previous);
        let slower = previous.within(Some((16_384, 64)));
        assert_eq!(slower, of(16_384, 64, 16_384), "it was put below a bond");
        let set = of(40_000, 1, 40_000).back(limited, previous);
        assert_eq!(set, of(40_000, 65_535, 40_000));
        assert_eq!(of(2026, 77, 9).back(limited, previous), of(65_536, 77, 9));
    }

    #[test]
    fn loopback_is_there() {
        let mut connection = Connection::open().unwrap();
        let links = connection.links().unwrap();
        let loopback = links.iter().find(|link| link.is_loopback).unwrap();
        assert_eq!(connection.link(loopback.index).unwrap().name, loopback.name);
        assert!(connection.link(0x7fff_ffff).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Link::from_payload(&bytes);
        }
    }
}
