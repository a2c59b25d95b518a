//! Networks, and whether an address is in one of them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network: all addresses with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u8,
}

/// Text that is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no network: write for example 10.0.0.0/8, fd00::/8 or 192.0.2.7")]
pub struct NotANetwork {
    text: String,
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let wrong = || NotANetwork { text: text.into() };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            None => bits_max,
            Some(prefix) => prefix.parse().map_err(|_| wrong())?,
        };
        if prefix_bits > bits_max {
            return Err(wrong());
        }
        Ok(Self {
            address,
            prefix_bits,
        })
    }
}

impl Network {
    /// Whether `address` is in it; an IPv4 address is the same when a socket for both writes it as IPv6.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (ours, theirs, bits) = match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                (u128::from(ours.to_bits()), u128::from(theirs.to_bits()), 32)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (ours.to_bits(), theirs.to_bits(), 128),
            _ => return false,
        };
        let host_bits = bits - u32::from(self.prefix_bits);
        let differing = ours ^ theirs;
        differing.checked_shr(host_bits).unwrap_or(0) == 0
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(network: &str, address: &str) -> bool {
        let network: Network = network.parse().unwrap();
        network.contains(address.parse().unwrap())
    }

    #[test]
    fn an_address_is_in_a_network_or_not() {
        assert!(is_in("10.0.0.0/8", "10.255.0.1"));
        assert!(!is_in("10.0.0.0/8", "11.0.0.1"));
        assert!(is_in("10.0.0.0/8", "::ffff:10.0.0.1"));
        assert!(is_in("192.0.2.7", "192.0.2.7") && !is_in("192.0.2.7", "192.0.2.6"));
        assert!(is_in("0.0.0.0/0", "8.8.8.8") && !is_in("0.0.0.0/0", "::1"));
        assert!(is_in("::/0", "::1") && is_in("fd00::/8", "fdff::1"));
        assert!(!is_in("fd00::/8", "fe80::1"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "a/8", "10.0.0.0/", "10/8", "10.0.0.0/-1"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
