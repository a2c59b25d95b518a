//! Addresses and masks of a pg_hba.conf as networks.

use sooner_config::{Network, NetworkError};
use std::net::IpAddr;

/// What an address stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// A network.
    Network(String),
    /// It has bits beyond its mask, and so PgBouncer finds no client in it.
    Nobody,
    /// A name, or something that begins like one.
    NoAddress,
}

/// Whether it is an address, and no name.
pub fn is_one(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// `10.0.0.0/8`, or `10.0.0.0` with its mask `255.0.0.0`.
pub fn network(text: &str, mask: Option<&str>) -> Result<Found, String> {
    let text = match mask {
        Some(mask) => format!("{text}/{}", bits(text, mask)?),
        None => text.to_owned(),
    };
    match text.parse::<Network>() {
        Ok(_) => Ok(Found::Network(text)),
        Err(NetworkError::HostBits { .. }) => Ok(Found::Nobody),
        Err(NetworkError::NoAddress { .. }) => Ok(Found::NoAddress),
        Err(error) => Err(error.to_string()),
    }
}

/// How many bits a mask has in front.
fn bits(address: &str, mask: &str) -> Result<u32, String> {
    let no_mask =
        || format!("{address} has no mask; write {address}/32, /128 or another number of bits");
    let (ones, zeros, width) = match mask.parse::<IpAddr>().map_err(|_| no_mask())? {
        IpAddr::V4(mask) => (
            mask.to_bits().leading_ones(),
            mask.to_bits().trailing_zeros(),
            32,
        ),
        IpAddr::V6(mask) => (
            mask.to_bits().leading_ones(),
            mask.to_bits().trailing_zeros(),
            128,
        ),
    };
    if ones + zeros == width {
        Ok(ones)
    } else {
        Err(format!(
            "{mask} is a mask with gaps; write the networks one by one"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_with_bits_or_a_mask() {
        let found = |text, mask| match network(text, mask) {
            Ok(Found::Network(network)) => network,
            Ok(other) => format!("{other:?}"),
            Err(what) => what,
        };
        assert_eq!(found("10.0.0.0/8", None), "10.0.0.0/8");
        assert_eq!(found("10.0.0.0", Some("255.0.0.0")), "10.0.0.0/8");
        assert_eq!(
            found("::1", Some("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")),
            "::1/128"
        );
        assert_eq!(found("0.0.0.0", Some("0.0.0.0")), "0.0.0.0/0");
        assert_eq!(found("10.0.0.1/8", None), "Nobody");
        assert_eq!(found("db.example", None), "NoAddress");
        assert!(found("10.0.0.0/33", None).contains("number of bits"));
        assert!(found("10.0.0.0", Some("trust")).contains("has no mask"));
        assert!(found("10.0.0.0", Some("255.0.255.0")).contains("with gaps"));
    }
}
