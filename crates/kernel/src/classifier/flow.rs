//! What the programs say of a flow, read from their bytes (the structures of `bpf/order.bpf.c`).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::netlink::message::{u32_at, u64_at};

/// The two ends of a flow, from the server's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// The server's.
    pub server: SocketAddr,
    /// The client's.
    pub client: SocketAddr,
    /// What is spoken between them.
    pub protocol: Protocol,
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// Responses end where the next request begins, or where their head says.
    Tcp,
    /// Datagrams (QUIC): responses end with a pause.
    Udp,
}

/// What is remembered of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Payload of the present response that was sent, bytes.
    pub sent_bytes: u64,
    /// All of the response with its head, bytes; none if not known.
    pub size_bytes: Option<u64>,
    /// When its request came, ns of the monotonic clock; none if that was before the programs were
    /// there.
    pub request_ns: Option<u64>,
    /// The band of its last packet.
    pub band: u8,
}

/// Something that happened to a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Where.
    pub key: FlowKey,
    /// What.
    pub kind: EventKind,
    /// When, ns of the monotonic clock; of an end: when the last byte was acknowledged.
    pub at_ns: u64,
    /// A number that the events of one response share.
    pub response: u64,
    /// The response at that moment.
    pub flow: Flow,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Its first byte left.
    Started,
    /// Its last byte arrived.
    Ended,
    /// The connection was reset before.
    Broken,
    /// Its length has become known behind its first byte.
    Sized,
}

impl FlowKey {
    /// Length of `struct flow_key`.
    pub const BYTES: usize = 40;

    /// Reads one; none where the bytes are of something else.
    pub fn read(bytes: &[u8]) -> Option<FlowKey> {
        let address = |from: usize| {
            let octets: [u8; 16] = bytes.get(from..from + 16)?.try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical())
        };
        let port = |from: usize| {
            Some(u16::from_ne_bytes(
                bytes.get(from..from + 2)?.try_into().ok()?,
            ))
        };
        let protocol = match bytes.get(36)? {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            _ => return None,
        };
        Some(FlowKey {
            server: SocketAddr::new(address(0)?, port(32)?),
            client: SocketAddr::new(address(16)?, port(34)?),
            protocol,
        })
    }
}

impl Flow {
    /// Length of `struct flow`.
    pub const BYTES: usize = 192;

    /// Reads one.
    pub fn read(bytes: &[u8]) -> Option<Flow> {
        Some(Flow {
            sent_bytes: u64_at(bytes, 0)?,
            size_bytes: some(u64_at(bytes, 8)?),
            request_ns: some(u64_at(bytes, 16)?),
            band: *bytes.get(60)?,
        })
    }
}

impl Event {
    /// Length of `struct event`.
    pub const BYTES: usize = 88;

    /// Reads one.
    pub fn read(bytes: &[u8]) -> Option<Event> {
        let at = FlowKey::BYTES;
        let kind = match u32_at(bytes, at + 40)? {
            1 => EventKind::Started,
            2 => EventKind::Ended,
            3 => EventKind::Broken,
            4 => EventKind::Sized,
            _ => return None,
        };
        Some(Event {
            key: FlowKey::read(bytes)?,
            kind,
            at_ns: u64_at(bytes, at)?,
            response: u64_at(bytes, at + 8)?,
            flow: Flow {
                request_ns: some(u64_at(bytes, at + 16)?),
                sent_bytes: u64_at(bytes, at + 24)?,
                size_bytes: some(u64_at(bytes, at + 32)?),
                band: u32_at(bytes, at + 44)? as u8,
            },
        })
    }
}

/// 0 stands for what is not known.
fn some(value: u64) -> Option<u64> {
    Some(value).filter(|value| *value != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_of_both_versions_are_read() {
        let mut bytes = [0; FlowKey::BYTES];
        bytes[10..16].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        bytes[16..32].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        bytes[32..34].copy_from_slice(&443_u16.to_ne_bytes());
        bytes[34..36].copy_from_slice(&5000_u16.to_ne_bytes());
        bytes[36] = 17;
        let key = FlowKey::read(&bytes).unwrap();
        assert_eq!(key.server.to_string(), "10.0.0.1:443");
        assert_eq!(key.client.to_string(), "[::1]:5000");
        assert_eq!(key.protocol, Protocol::Udp);
        bytes[36] = 1;
        assert_eq!(FlowKey::read(&bytes), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = (FlowKey::read(&bytes), Flow::read(&bytes), Event::read(&bytes));
        }
    }
}
