//! Who asked: addresses with and without ports, lists of forwarded addresses, names.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Names a client; none of what says that it is not known. The port does not count: a client has
/// many.
pub fn name(text: &[u8]) -> Option<u64> {
    if matches!(text, b"" | b"-" | b"unknown" | b"null" | b"(null)") {
        return None;
    }
    match std::str::from_utf8(text).ok().and_then(address) {
        Some(IpAddr::V4(address)) => Some(hash(&address.octets())),
        Some(IpAddr::V6(address)) => Some(hash(&address.octets())),
        None => Some(hash(text)),
    }
}

/// Names a client that always has a port behind it. HAProxy and AWS put no brackets around an IPv6
/// address, so that the port reads as one more group of it: `2001:db8::1:4711`.
pub fn with_port(text: &[u8]) -> Option<u64> {
    let colon = text.iter().rposition(|byte| *byte == b':');
    let before_port = colon
        .map(|colon| text.split_at(colon))
        .filter(|(_, port)| port.len() > 1 && port[1..].iter().all(u8::is_ascii_digit));
    name(before_port.map_or(text, |(address, _)| address))
}

/// The first in a list of forwarded addresses, which is the client: `203.0.113.7, 10.0.0.1`. None
/// where no address is in it.
pub fn forwarded(list: &[u8]) -> Option<u64> {
    list.split(|byte| *byte == b',').find_map(|one| {
        let one = one.trim_ascii();
        let text = std::str::from_utf8(one.strip_prefix(b"for=").unwrap_or(one)).ok()?;
        let text = text.split(';').next().unwrap_or(text);
        address(text.trim_matches(['"', '\\'])).and_then(|_| name(text.as_bytes()))
    })
}

/// The client in what stands before the time of a line of httpd's kind: `[VHOST ]CLIENT IDENT
/// USER`, behind a daemon's name and time where the log went through syslog. Users may have blanks
/// in their names, and the client may be a list.
pub fn before_time(head: &[u8]) -> Option<u64> {
    let words: Vec<&[u8]> = head
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    if let Some(first) = words.iter().position(|word| word.ends_with(b",")) {
        let first = words[first].strip_suffix(b",").unwrap_or(words[first]);
        if let Some(client) = forwarded(first) {
            return Some(client);
        }
    }
    if let [client, ident, _] = words.as_slice()
        && parsed(ident).is_none()
        && *client != b"-"
    {
        return name(client);
    }
    // The identity that no server asks for is a dash, and the client stands before it.
    let ident = (1..words.len()).find(|place| words[*place] == b"-");
    match ident {
        Some(place) => {
            let client = words[place - 1];
            let before = place.checked_sub(2).map(|place| words[place]);
            name(original(before, client))
        }
        None if words.len() >= 3 => name(words[words.len() - 3]),
        None => words.first().and_then(|client| name(client)),
    }
}

/// Of two addresses side by side the one that is not a proxy's: a forwarded one may stand before
/// the one that asked.
fn original<'a>(before: Option<&'a [u8]>, client: &'a [u8]) -> &'a [u8] {
    match before {
        Some(before)
            if parsed(before).is_some_and(|one| !is_inside(one))
                && parsed(client).is_some_and(is_inside) =>
        {
            before
        }
        _ => client,
    }
}

fn parsed(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn is_inside(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_private() || address.is_loopback() || address.is_link_local()
        }
        IpAddr::V6(address) => address.is_unique_local() || address.is_loopback(),
    }
}

/// `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:4711`, with a zone
/// or without.
fn address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address.ip().to_canonical());
    }
    let inner = text.strip_prefix('[').unwrap_or(text);
    let inner = inner.split(']').next().unwrap_or(inner);
    let inner = inner.split('%').next().unwrap_or(inner);
    let address = inner.parse::<Ipv6Addr>().ok()?;
    Some(IpAddr::V6(address).to_canonical())
}

/// FNV-1a: names of clients are only compared.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_one_whatever_its_port() {
        let v4 = name(b"192.0.2.1");
        for text in [
            "192.0.2.1:4711",
            "::ffff:192.0.2.1",
            "[::ffff:192.0.2.1]:80",
        ] {
            assert_eq!(name(text.as_bytes()), v4, "{text}");
        }
        let v6 = name(b"2001:db8::1");
        for text in [
            "[2001:db8::1]",
            "[2001:db8::1]:4711",
            "2001:db8:0::1",
            "[2001:db8::1%eth0]:1",
        ] {
            assert_eq!(name(text.as_bytes()), v6, "{text}");
        }
        assert_ne!(v4, v6);
        assert_eq!(name(b"-"), None);
        assert!(name(b"host.example.org").is_some());
    }

    #[test]
    fn a_port_behind_an_address_without_brackets_is_none_of_its_groups() {
        let v4 = name(b"192.0.2.1");
        for text in [
            "192.0.2.1:4711",
            "::ffff:192.0.2.1:4711",
            "[::ffff:192.0.2.1]:80",
        ] {
            assert_eq!(with_port(text.as_bytes()), v4, "{text}");
        }
        let v6 = name(b"2001:db8::1");
        for text in [
            "2001:db8::1:50123",
            "2001:db8::1:4711",
            "2001:db8:0:0:0:0:0:1:50123",
            "[2001:db8::1]:4711",
            "[2001:db8::1]",
        ] {
            assert_eq!(with_port(text.as_bytes()), v6, "{text}");
        }
        assert_eq!(with_port(b"unix:1"), with_port(b"unix:2"));
        assert_eq!(with_port(b"host"), name(b"host"));
        assert_eq!((with_port(b"-"), with_port(b"")), (None, None));
    }

    #[test]
    fn the_first_of_a_list_is_the_client() {
        let client = name(b"203.0.113.7");
        for list in [
            "203.0.113.7",
            "203.0.113.7, 10.0.0.1",
            "203.0.113.7,10.0.0.1",
            "unknown, 203.0.113.7:99, 10.0.0.1",
            "for=203.0.113.7;proto=https, for=10.0.0.1",
        ] {
            assert_eq!(forwarded(list.as_bytes()), client, "{list}");
        }
        assert_eq!(forwarded(b"-"), None);
        assert_eq!(forwarded(b"words of an agent"), None);
    }

    #[test]
    fn it_stands_before_the_identity() {
        let client = name(b"203.0.113.7");
        for head in [
            "203.0.113.7 - - ",
            "203.0.113.7 - a user of blanks ",
            "www.example.org:80 203.0.113.7 - - ",
            "198.51.100.1:80 203.0.113.7 - frank ",
            "Nov 26 04:00:00 web1 nginx: 203.0.113.7 - - ",
            "203.0.113.7, 10.0.0.1 - - ",
            "203.0.113.7, 10.0.0.1 10.0.0.2 - - ",
            "203.0.113.7 10.0.0.2 - - ",
            "- 203.0.113.7 - - ",
            "203.0.113.7:4711 - - ",
            "203.0.113.7 ident user ",
            "203.0.113.7 ident - ",
            "203.0.113.7 - ",
            "203.0.113.7 ",
        ] {
            assert_eq!(before_time(head.as_bytes()), client, "{head}");
        }
        assert_eq!(before_time(b"- - - "), None);
        assert_eq!(before_time(b""), None);
    }
}
