//! Whether a request means this address: a page of another site with a name that was made to point
//! here (DNS rebinding) does not.
//!
//! The browser sends the name that page was loaded under. So the names that no stranger can own are
//! allowed, and those the operator names.

use std::net::{IpAddr, SocketAddr};

/// Whether `host`, as the Host header or the target gives it, is a loopback name or address, the
/// address `reached` that the client connected to, or one of `names`. The port is not looked at: a
/// tunnel may have another one.
pub fn is_allowed(host: &[u8], reached: SocketAddr, names: &[String]) -> bool {
    let Some(name) = std::str::from_utf8(host).ok().and_then(without_port) else {
        return false;
    };
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    if let Ok(address) = bare.parse::<IpAddr>() {
        let address = address.to_canonical();
        return address.is_loopback()
            || address == reached.ip().to_canonical()
            || names.iter().any(|known| known == bare);
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The name or address before the port; `None` for what is neither.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.rfind(']') {
        // An IPv6 address stands in brackets.
        Some(end) => host.split_at(end + 1),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|digit| digit.is_ascii_digit()),
        None => port.is_empty(),
    };
    (is_port && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_ok(host: &str) -> bool {
        let reached = "192.0.2.7:9090".parse().unwrap();
        is_allowed(host.as_bytes(), reached, &["metrics.example.org".into()])
    }

    #[test]
    fn names_nobody_else_can_own_are_allowed() {
        for host in [
            "localhost",
            "LOCALHOST:9090",
            "localhost.:1",
            "127.0.0.1:9090",
            "127.8.8.8",
            "[::1]:9090",
            "[::1]",
            "[::ffff:127.0.0.1]:9090",
            "192.0.2.7:80",
            "metrics.example.org:9090",
        ] {
            assert!(is_ok(host), "{host}");
        }
    }

    #[test]
    fn all_others_are_not() {
        for host in [
            "",
            "evil.example",
            "evil.example:9090",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.0.2.8",
            "[::2]:9090",
            "localhost:90x",
            "localhost@evil",
            ":9090",
            "[::1",
            "127.0.0.1:80:80",
        ] {
            assert!(!is_ok(host), "{host}");
        }
        assert!(!is_allowed(b"\xff", "[::1]:1".parse().unwrap(), &[]));
    }

    #[test]
    fn an_address_of_ipv4_in_ipv6_is_the_same() {
        let reached = "[::ffff:192.0.2.7]:80".parse().unwrap();
        assert!(is_allowed(b"192.0.2.7", reached, &[]));
    }

    proptest! {
        #[test]
        fn a_name_with_letters_before_or_after_an_allowed_one_is_another(before in "[a-z]{0,3}", after in "[a-z]{0,3}") {
            let host = format!("{before}localhost{after}");
            prop_assert_eq!(is_ok(&host), before.is_empty() && after.is_empty());
        }
    }
}
