//! What rules and classes name, held against a client: a list that is not there fits everybody.

use sooner_config::Network;
use std::net::IpAddr;

/// Whether a name is one of these.
pub fn fits(names: &Option<Vec<String>>, name: &str) -> bool {
    match names {
        Some(names) => names.iter().any(|own| own == name),
        None => true,
    }
}

/// Whether an address is in one of these networks; through a socket file nobody comes from any.
pub fn comes_from(networks: &Option<Vec<Network>>, address: Option<IpAddr>) -> bool {
    match (networks, address) {
        (Some(networks), Some(address)) => networks.iter().any(|own| own.contains(address)),
        (Some(_), None) => false,
        (None, _) => true,
    }
}

/// Whether a text is one of these, or begins as one of them that ends in `*`.
pub fn fits_beginning(patterns: &[String], text: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => text.starts_with(beginning),
            None => pattern == text,
        })
}
