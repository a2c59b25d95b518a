//! Addresses of one file on which not all can be listened.

use crate::{Misconfigured, Spanned};
use std::net::SocketAddr;
use std::ops::Range;

/// An address, the key that names it, and where in the file.
pub type Listening = (&'static str, Range<usize>, SocketAddr);

/// The first address that another one before it takes: the same, or all addresses of its family with
/// its port. A port that the system chooses is never taken.
pub fn check_listening(all: &[Listening]) -> Result<(), Misconfigured> {
    for (index, (key, span, address)) in all.iter().enumerate() {
        let takes = |(_, _, other): &&Listening| exclude_each_other(*other, *address);
        let Some((other_key, _, other)) = all[..index].iter().find(takes) else {
            continue;
        };
        let message = match (other == address, key == other_key) {
            (true, true) => format!("{address} is named twice; keep one of them"),
            (true, false) => format!("{address} is that of {other_key}; choose another port"),
            (false, _) => format!(
                "{address} and {other} of {other_key} exclude each other; keep one of them, or choose another port"
            ),
        };
        let place = Spanned::new(span.clone(), ());
        return Err(Misconfigured::at(&place, key, message));
    }
    Ok(())
}

/// Whether only one of them can be listened on. IPv6 is without IPv4 here.
fn exclude_each_other(one: SocketAddr, other: SocketAddr) -> bool {
    let takes_the_other = one.ip().is_unspecified() || other.ip().is_unspecified();
    let is_one_family = one.is_ipv4() == other.is_ipv4();
    let is_one_place = one.ip() == other.ip() || (is_one_family && takes_the_other);
    one.port() == other.port() && one.port() != 0 && is_one_place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_all_takes_every_other_of_its_family() {
        let excludes = |one: &str, other: &str| {
            let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
            let result = exclude_each_other(one, other);
            assert_eq!(exclude_each_other(other, one), result);
            result
        };
        assert!(excludes("127.0.0.1:80", "127.0.0.1:80"));
        assert!(excludes("0.0.0.0:80", "127.0.0.1:80"));
        assert!(excludes("[::]:80", "[::1]:80"));
        assert!(!excludes("[::]:80", "127.0.0.1:80"));
        assert!(!excludes("0.0.0.0:80", "[::1]:80"));
        assert!(!excludes("127.0.0.1:80", "127.0.0.2:80"));
        assert!(!excludes("0.0.0.0:80", "0.0.0.0:81"));
        assert!(!excludes("0.0.0.0:0", "0.0.0.0:0"));
    }
}
