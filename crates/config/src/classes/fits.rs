//! Lists of what fits: one that is not there fits everything.

use crate::Network;
use std::borrow::Borrow;
use std::net::IpAddr;

/// Whether a text fits one of these patterns.
pub fn fits_pattern(patterns: &Option<Vec<impl Borrow<str>>>, text: &str) -> bool {
    let patterns = patterns.as_ref();
    patterns.is_none_or(|patterns| fits_beginning(patterns, text))
}

/// Whether an address is in one of these networks; a client of a socket file is in none.
pub fn comes_from(networks: &Option<Vec<Network>>, address: Option<IpAddr>) -> bool {
    match (networks, address) {
        (Some(networks), Some(address)) => networks.iter().any(|own| own.contains(address)),
        (Some(_), None) => false,
        (None, _) => true,
    }
}

/// Whether a text is one of these, or begins as one of them that ends in `*`.
pub fn fits_beginning(patterns: &[impl Borrow<str>], text: &str) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => pattern == text,
    };
    patterns.iter().any(|pattern| fits(pattern.borrow()))
}

/// Whether what fits the one pattern fits the other.
pub fn covers_pattern(all: &str, one: &str) -> bool {
    match (all.strip_suffix('*'), one.strip_suffix('*')) {
        (Some(beginning), None) => one.starts_with(beginning),
        (Some(beginning), Some(longer)) => longer.starts_with(beginning),
        (None, _) => all == one,
    }
}
