//! Who counts as one client, where connections are bounded and service is charged by address.

use sooner_admission::{ClientId, Payer};
use std::net::{IpAddr, Ipv4Addr};

/// An IPv4 address, or the 64 bits of an IPv6 address that name a network: what one customer gets
/// (RFC 6177).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientNetwork {
    /// One address.
    V4(Ipv4Addr),
    /// The first 64 bits.
    V6(u64),
}

impl ClientNetwork {
    /// A number for it alone: the first half of an IPv6 address, for IPv4 one that no network has.
    pub fn number(self) -> u64 {
        match self {
            Self::V4(address) => 0xffff << 32 | u64::from(address.to_bits()),
            Self::V6(network) => network,
        }
    }

    /// Who is charged for what it gets: itself, and the network that it lies in.
    pub fn payer(self) -> Payer {
        Payer {
            client: ClientId(self.number()),
            network: Some(ClientId(self.neighbourhood().number())),
        }
    }

    /// The network that it lies in, as one operator has it: 24 bits of an IPv4 address, 48 of an
    /// IPv6 address.
    pub fn neighbourhood(self) -> Self {
        match self {
            Self::V4(address) => Self::V4(Ipv4Addr::from_bits(address.to_bits() & !0xff)),
            Self::V6(network) => Self::V6(network & !0xffff),
        }
    }
}

impl From<IpAddr> for ClientNetwork {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> ClientNetwork {
        ClientNetwork::from(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn one_customer_is_one_client() {
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("192.0.2.1"), network("::ffff:192.0.2.1"));
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
    }

    #[test]
    fn neighbours_are_charged_apart_and_their_network_with_them() {
        let [one, near, far] = ["192.0.2.1", "192.0.2.200", "192.0.3.1"].map(|text| {
            let payer = network(text).payer();
            (payer.client, payer.network)
        });
        assert_ne!(one.0, near.0);
        assert_eq!(one.1, near.1);
        assert_ne!(one.1, far.1);
        assert_eq!(network("::ffff:192.0.2.1").payer().client, one.0);
    }

    #[test]
    fn neighbours_lie_in_one_network() {
        let near = |text| network(text).neighbourhood();
        assert_eq!(near("192.0.2.1"), near("192.0.2.200"));
        assert_ne!(near("192.0.2.1"), near("192.0.3.1"));
        assert_eq!(near("2001:db8:1:2::1"), near("2001:db8:1:3::1"));
        assert_ne!(near("2001:db8:1:2::1"), near("2001:db8:2:2::1"));
    }
}
