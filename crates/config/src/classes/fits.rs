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

/// That a star is at the end of a pattern: elsewhere it is a letter that no value has.
pub fn check_star(pattern: &str) -> Result<(), String> {
    let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
    let Some((before, _)) = beginning.split_once('*') else {
        return Ok(());
    };
    let hint = match before {
        "" => "list the values".to_owned(),
        before => format!("write \"{before}*\", or list the values"),
    };
    Err(format!(
        "{pattern:?} matches nothing: a * stands for anything only at the end; {hint}"
    ))
}

/// Whether what fits the one pattern fits the other.
pub fn covers_pattern(all: &str, one: &str) -> bool {
    match (all.strip_suffix('*'), one.strip_suffix('*')) {
        (Some(beginning), None) => one.starts_with(beginning),
        (Some(beginning), Some(longer)) => longer.starts_with(beginning),
        (None, _) => all == one,
    }
}
