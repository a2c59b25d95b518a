//! Network devices: which one carries an address, and what it has sent.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::netlink::{Connection, Link, attribute, u32_at};
use crate::raw;

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// Length of `struct ifaddrmsg`; index at 4.
const ADDRESS_BODY_BYTES: usize = 8;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
/// Length of `struct rtmsg`; family at 0, length of the destination in bits at 1.
const ROUTE_BODY_BYTES: usize = 12;
/// Addresses of documentation (RFC 5737, RFC 3849): no host has a route of its own to them, so the
/// default route answers.
const FAR_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// A network device of the namespace it was looked up in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name, for instance `eth0`.
    pub name: String,
    /// Its number, which stays when the name changes.
    pub index: u32,
    /// Whether it only leads back to this host.
    pub is_loopback: bool,
    /// Whether its packets begin with an Ethernet header; those of a tunnel may begin with the IP
    /// header.
    pub has_ethernet_header: bool,
    /// Largest packet without the link header.
    pub mtu_bytes: u32,
}

impl Device {
    /// Bytes sent since the device exists, link headers included.
    pub fn tx_bytes(&self) -> io::Result<u64> {
        Ok(self.link()?.tx_bytes)
    }

    /// Packets it dropped instead of sending them, since it exists; what a qdisc in front of it
    /// dropped is not in it.
    pub fn tx_dropped_packets(&self) -> io::Result<u64> {
        Ok(self.link()?.tx_dropped)
    }

    /// Lets that many packets wait in front of it; needs `CAP_NET_ADMIN`.
    pub fn set_queue_packets_max(&self, packets: u32) -> io::Result<()> {
        Connection::open()?.set_queue_length(self.index, packets)
    }

    /// Bytes of the largest super-packet TCP may hand to the device.
    pub fn gso_max_size(&self) -> io::Result<u32> {
        Ok(self.link()?.gso.size_bytes)
    }

    /// Segments of the largest super-packet TCP may hand to the device.
    pub fn gso_max_segs(&self) -> io::Result<u32> {
        Ok(self.link()?.gso.segments)
    }

    /// Hardware queues for sending; with more than one the kernel's default root qdisc is `mq`.
    pub fn queue_count(&self) -> io::Result<u32> {
        Ok(self.link()?.tx_queues)
    }

    /// How fast the device says it is, Mbit/s; none where it does not know or is virtual without a
    /// speed. A tun says what it was told, or a number that means nothing: 10 before Linux 6.0.
    pub fn speed_mbit(&self) -> Option<u64> {
        if self.link().is_ok_and(|link| link.kind == "tun") {
            return None;
        }
        let speed_mbit = raw::ethtool_speed_mbit(&self.name).ok()?;
        (speed_mbit != 0 && speed_mbit != u32::MAX).then_some(speed_mbit.into())
    }

    /// Bytes of a full packet with its Ethernet header.
    pub fn frame_bytes(&self) -> u32 {
        self.mtu_bytes.saturating_add(14)
    }

    fn link(&self) -> io::Result<Link> {
        Connection::open()?.link(self.index)
    }
}

impl From<Link> for Device {
    fn from(link: Link) -> Device {
        Device {
            name: link.name,
            index: link.index,
            is_loopback: link.is_loopback,
            has_ethernet_header: link.has_ethernet_header,
            mtu_bytes: link.mtu_bytes,
        }
    }
}

/// The device called `name`, which may be an alternative name (`altname` of ip-link(8)); not found
/// otherwise, with the names there are.
pub fn by_name(name: &str) -> io::Result<Device> {
    let links = Connection::open()?.links()?;
    let is_called = |link: &&Link| {
        link.name == name || link.alternative_names.iter().any(|other| other == name)
    };
    if let Some(link) = links.iter().find(is_called) {
        return Ok(link.clone().into());
    }
    let names: Vec<_> = links.into_iter().map(|link| link.name).collect();
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        format!(
            "no network device `{name}`; there are: {}",
            names.join(", ")
        ),
    ))
}

/// The device with this index in the calling thread's network namespace; None when there is none any
/// more.
pub fn by_index(index: u32) -> io::Result<Option<Device>> {
    linked(&mut Connection::open()?, index)
}

fn linked(connection: &mut Connection, index: u32) -> io::Result<Option<Device>> {
    match connection.link(index) {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        found => found.map(|link| Some(link.into())),
    }
}

/// All devices of the calling thread's network namespace.
pub fn all() -> io::Result<Vec<Device>> {
    Ok(Connection::open()?
        .links()?
        .into_iter()
        .map(Device::from)
        .collect())
}

/// The device that sends the answers of a listener on `address`: the one that has the address,
/// loopback for a loopback address, the default route's for an unspecified one. None when there is
/// no such device.
pub fn carrying(address: IpAddr) -> io::Result<Option<Device>> {
    match address.to_canonical() {
        address if address.is_loopback() => {
            Ok(all()?.into_iter().find(|device| device.is_loopback))
        }
        IpAddr::V4(address) if address.is_unspecified() => towards(FAR_V4.into()),
        IpAddr::V6(address) if address.is_unspecified() => match towards(FAR_V6.into())? {
            Some(device) => Ok(Some(device)),
            None => towards(FAR_V4.into()),
        },
        address => with_address(address),
    }
}

/// The device through which packets to `peer` leave; None when there is no route.
pub fn towards(peer: IpAddr) -> io::Result<Option<Device>> {
    let mut connection = Connection::open()?;
    let octets = octets(peer);
    let mut body = [0; ROUTE_BODY_BYTES];
    body[0] = family(peer);
    body[1] = (octets.len() * 8) as u8;
    let mut index = None;
    let asked = connection.ask(
        RTM_GETROUTE,
        |request| request.body(&body).attribute(RTA_DST, &octets),
        |kind, payload| {
            if kind == RTM_NEWROUTE {
                index = payload
                    .get(ROUTE_BODY_BYTES..)
                    .and_then(|rest| u32_at(attribute(rest, RTA_OIF)?, 0));
            }
        },
    );
    match asked {
        Err(error) if no_route(&error) => Ok(None),
        Err(error) => Err(error),
        Ok(()) => index.map_or(Ok(None), |index| linked(&mut connection, index)),
    }
}

fn no_route(error: &io::Error) -> bool {
    let codes = [
        libc::ENETUNREACH,
        libc::EHOSTUNREACH,
        libc::ESRCH,
        libc::EAFNOSUPPORT,
        libc::EACCES,
        libc::EINVAL,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

fn with_address(address: IpAddr) -> io::Result<Option<Device>> {
    let mut connection = Connection::open()?;
    let octets = octets(address);
    let mut body = [0; ADDRESS_BODY_BYTES];
    body[0] = family(address);
    let mut index = None;
    connection.dump(
        RTM_GETADDR,
        |request| request.body(&body),
        |kind, payload| {
            if kind == RTM_NEWADDR && assigned(payload) == Some(&octets[..]) {
                index = u32_at(payload, 4);
            }
        },
    )?;
    index.map_or(Ok(None), |index| linked(&mut connection, index))
}

/// The host's own address in a RTM_NEWADDR payload; on a point-to-point link IFA_ADDRESS is the
/// peer's.
fn assigned(payload: &[u8]) -> Option<&[u8]> {
    let rest = payload.get(ADDRESS_BODY_BYTES..)?;
    attribute(rest, IFA_LOCAL).or_else(|| attribute(rest, IFA_ADDRESS))
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_carries_loopback_addresses() {
        for address in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            let device = carrying(address.parse().unwrap()).unwrap().unwrap();
            assert!(device.is_loopback, "{address}");
        }
        let device = towards("127.0.0.1".parse().unwrap()).unwrap().unwrap();
        assert_eq!(by_name(&device.name).unwrap(), device);
        assert!(
            device.mtu_bytes > 0
                && device.gso_max_size().unwrap() > 0
                && device.gso_max_segs().unwrap() > 0
        );
        assert!(device.queue_count().unwrap() > 0);
    }

    #[test]
    fn a_device_that_went_away_is_none() {
        let loopback = carrying("127.0.0.1".parse().unwrap()).unwrap();
        let index = loopback.as_ref().unwrap().index;
        assert_eq!(by_index(index).unwrap(), loopback);
        assert_eq!(by_index(0x7fff_ffff).unwrap(), None);
    }

    #[test]
    fn an_address_of_someone_else_has_no_device() {
        assert_eq!(carrying("192.0.2.77".parse().unwrap()).unwrap(), None);
        assert_eq!(carrying("2001:db8::77".parse().unwrap()).unwrap(), None);
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_right_ones() {
        let error = by_name("no-such0").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(
            error
                .to_string()
                .starts_with("no network device `no-such0`; there are: lo"),
            "{error}"
        );
    }

    #[test]
    fn an_unspecified_address_is_answered_by_the_default_route() {
        for address in ["0.0.0.0", "::"] {
            if let Some(device) = carrying(address.parse().unwrap()).unwrap() {
                assert!(!device.is_loopback);
            }
        }
    }
}
