//! Networks in CIDR notation: `10.0.0.0/8`, `2001:db8::/32`, or one address.

use crate::parsed;
use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use thiserror::Error;

/// The bits before an address of IPv4 that is written as IPv6: `::ffff:0:0/96` (RFC 4291, 2.5.5.2).
const MAPPED_BITS: u32 = 96;

/// Addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u32,
}

/// Why a text is no network.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NetworkError {
    /// It does not begin with an address.
    #[error(
        "{text} is neither an address nor a network; write 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1"
    )]
    NoAddress {
        /// The text.
        text: String,
    },
    /// What follows the slash is no number of bits.
    #[error("{text}: the number after the slash is out of range; write 0 to {bits_max} bits")]
    NoPrefix {
        /// The text.
        text: String,
        /// Bits of such an address.
        bits_max: u32,
    },
    /// The address has bits beyond the prefix.
    #[error("{text} names one address of a network; the network is {network}/{prefix_bits}")]
    HostBits {
        /// The text.
        text: String,
        /// The address without them.
        network: IpAddr,
        /// The prefix that was written.
        prefix_bits: u32,
    },
}

impl Network {
    /// What is written as IPv6 and has only addresses of IPv4 in it is a network of IPv4.
    fn canonical(address: IpAddr, prefix_bits: u32) -> Self {
        match (address.to_canonical(), address) {
            (v4 @ IpAddr::V4(_), IpAddr::V6(_)) if prefix_bits >= MAPPED_BITS => Self {
                address: v4,
                prefix_bits: prefix_bits - MAPPED_BITS,
            },
            _ => Self {
                address,
                prefix_bits,
            },
        }
    }

    /// Whether `address` is in it; an IPv4 address written as IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4()
            && first_bits(address, self.prefix_bits) == self.address
    }

    /// Whether every address in `other` is in it.
    pub fn contains_all(&self, other: &Self) -> bool {
        self.prefix_bits <= other.prefix_bits && self.contains(other.address)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address_text, prefix_text) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address_text.parse().map_err(|_| NetworkError::NoAddress {
            text: text.to_owned(),
        })?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = prefix_text
            .map_or(Some(bits_max), |prefix| number(prefix, bits_max))
            .ok_or_else(|| NetworkError::NoPrefix {
                text: text.to_owned(),
                bits_max,
            })?;
        let network = first_bits(address, prefix_bits);
        if network != address {
            return Err(NetworkError::HostBits {
                text: text.to_owned(),
                network,
                prefix_bits,
            });
        }
        Ok(Self::canonical(address, prefix_bits))
    }
}

fn number(text: &str, most: u32) -> Option<u32> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| *number <= most)?;
    all_digits.then_some(number)
}

/// The address with everything but its first `bits` bits cleared.
fn first_bits(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    fn contains(text: &str, address: &str) -> bool {
        network(text).contains(address.parse().unwrap())
    }

    #[test]
    fn the_first_bits_decide() {
        assert!(contains("10.0.0.0/8", "10.255.3.4"));
        assert!(!contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("0.0.0.0/0", "203.0.113.9"));
        assert!(!contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "2001:db8::1"));
        assert!(!contains("::/0", "::ffff:192.0.2.1"));
        assert!(contains("192.0.2.0/24", "::ffff:192.0.2.1"));
        assert!(contains("192.0.2.1", "192.0.2.1"));
        assert!(!contains("192.0.2.1/32", "192.0.2.2"));
        assert!(contains("2001:db8::/33", "2001:db8:7fff::"));
        assert!(!contains("2001:db8::/33", "2001:db8:8000::"));
    }

    #[test]
    fn a_network_is_in_a_larger_one() {
        let all = |all: &str, one: &str| network(all).contains_all(&network(one));
        assert!(all("10.0.0.0/8", "10.1.0.0/16") && all("10.0.0.0/8", "10.0.0.0/8"));
        assert!(!all("10.1.0.0/16", "10.0.0.0/8") && !all("10.0.0.0/8", "11.0.0.0/16"));
        assert!(all("::/0", "2001:db8::/32") && !all("::/0", "10.0.0.0/8"));
        assert!(!all("0.0.0.0/0", "2001:db8::/32"));
    }

    #[test]
    fn ipv4_written_as_ipv6_is_ipv4() {
        assert_eq!(network("::ffff:10.0.0.5"), network("10.0.0.5"));
        assert_eq!(network("::ffff:10.0.0.0/104"), network("10.0.0.0/8"));
        assert_eq!(network("::ffff:0:0/96"), network("0.0.0.0/0"));
        assert!(contains("::ffff:10.0.0.0/104", "10.1.2.3"));
        assert!(contains("::ffff:10.0.0.0/104", "::ffff:10.1.2.3"));
        assert!(!contains("::ffff:0:0/96", "::1"));
        // One bit less, and it is a network of IPv6.
        assert!(contains("::fffe:0:0/95", "::fffe:0:1"));
        assert!(
            !contains("::10.0.0.5", "10.0.0.5"),
            "compatible, not mapped"
        );
    }

    #[test]
    fn what_is_no_network_is_said() {
        let message = |text: &str| text.parse::<Network>().unwrap_err().to_string();
        assert!(message("ten").contains("is neither an address"));
        assert!(message("10.0.0.0/33").contains("0 to 32"));
        assert!(message("10.0.0.0/+8").contains("0 to 32"));
        assert!(message("10.0.0.0/").contains("0 to 32"));
        assert!(message("2001:db8::/129").contains("0 to 128"));
        assert!(message("10.1.2.3/8").ends_with("the network is 10.0.0.0/8"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = text.parse::<Network>();
        }

        #[test]
        fn a_network_contains_its_own(bits: u32, prefix in 0_u32..=32) {
            let address = IpAddr::from(Ipv4Addr::from_bits(bits));
            let network = Network { address: first_bits(address, prefix), prefix_bits: prefix };
            prop_assert!(network.contains(address));
            let written = format!("{}/{prefix}", network.address);
            prop_assert_eq!(written.parse::<Network>(), Ok(network));
        }
    }
}
