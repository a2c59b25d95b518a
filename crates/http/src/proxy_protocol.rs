//! The PROXY protocol's headers, versions 1 and 2 (haproxy.org, doc/proxy-protocol.txt, sections
//! 2.1 and 2.2).
//!
//! Pure and incremental: called with what has come so far, until there is a header or an error.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use thiserror::Error;

/// The longest header of version 1 with its CR LF, bytes (section 2.1).
const V1_BYTES_MAX: usize = 107;
const V1_START: &[u8] = b"PROXY ";
const V2_START: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, length.
const V2_FIXED_BYTES: usize = 16;
/// The longest header of version 2 that is accepted, bytes: the addresses take 216 at most, and
/// extensions are skipped.
const V2_BYTES_MAX: usize = 4096;

/// A header that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Its length; what follows is the client's.
    pub length_bytes: usize,
    /// Who talks to whom; `None` when the proxy speaks for itself or does not say.
    pub addresses: Option<Addresses>,
}

/// The two ends of the connection to the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The client.
    pub source: SocketAddr,
    /// What the client connected to.
    pub destination: SocketAddr,
}

/// Why what came is not a header.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// It begins like neither version.
    #[error("this address must send a PROXY protocol header, and sent something else")]
    NoHeader,
    /// It does not end.
    #[error("a PROXY protocol header longer than {bytes_max} bytes")]
    TooLong {
        /// The bound.
        bytes_max: usize,
    },
    /// It begins well and goes on wrongly.
    #[error("a broken PROXY protocol header: {0}")]
    Broken(&'static str),
}

/// The header at the start of `input`; `None` while more is needed.
pub fn parse(input: &[u8]) -> Result<Option<Header>, HeaderError> {
    if begins_like(input, V2_START) {
        parse_v2(input)
    } else if begins_like(input, V1_START) {
        parse_v1(input)
    } else {
        Err(HeaderError::NoHeader)
    }
}

/// Whether `input` begins with `start`, or is a part of its beginning.
fn begins_like(input: &[u8], start: &[u8]) -> bool {
    let common = input.len().min(start.len());
    input[..common] == start[..common]
}

fn parse_v1(input: &[u8]) -> Result<Option<Header>, HeaderError> {
    let head = &input[..input.len().min(V1_BYTES_MAX)];
    let Some(end) = head.windows(2).position(|pair| pair == b"\r\n") else {
        return if head.len() == V1_BYTES_MAX {
            Err(HeaderError::TooLong {
                bytes_max: V1_BYTES_MAX,
            })
        } else {
            Ok(None)
        };
    };
    // The line end is longer than nothing, so it lies behind "PROXY ".
    let line = head.get(V1_START.len()..end).unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| HeaderError::Broken("it is not ASCII"))?;
    Ok(Some(Header {
        length_bytes: end + 2,
        addresses: v1_addresses(line)?,
    }))
}

/// `TCP4 SOURCE DESTINATION PORT PORT`, with single spaces, or `UNKNOWN` and anything.
fn v1_addresses(line: &str) -> Result<Option<Addresses>, HeaderError> {
    const WORDS: HeaderError = HeaderError::Broken("want family, two addresses and two ports");
    let mut words = line.split(' ');
    let is_v4 = match words.next() {
        Some("UNKNOWN") => return Ok(None),
        Some("TCP4") => true,
        Some("TCP6") => false,
        _ => {
            return Err(HeaderError::Broken(
                "the family is not TCP4, TCP6 or UNKNOWN",
            ));
        }
    };
    let mut next = || words.next().ok_or(WORDS);
    let (source, destination) = (address(next()?, is_v4)?, address(next()?, is_v4)?);
    let (source_port, destination_port) = (port(next()?)?, port(next()?)?);
    if words.next().is_some() {
        return Err(WORDS);
    }
    Ok(Some(Addresses {
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
    }))
}

fn address(text: &str, is_v4: bool) -> Result<IpAddr, HeaderError> {
    let address = if is_v4 {
        text.parse().map(IpAddr::V4)
    } else {
        text.parse().map(IpAddr::V6)
    };
    address.map_err(|_| HeaderError::Broken("an address is not of its family"))
}

fn port(text: &str) -> Result<u16, HeaderError> {
    let is_written_well =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse()
        .ok()
        .filter(|_| is_written_well)
        .ok_or(HeaderError::Broken(
            "a port is not a number from 0 to 65535",
        ))
}

fn parse_v2(input: &[u8]) -> Result<Option<Header>, HeaderError> {
    let Some((fixed, rest)) = input.split_first_chunk::<V2_FIXED_BYTES>() else {
        return Ok(None);
    };
    let [.., version_command, family, length_high, length_low] = *fixed;
    let announced_bytes = usize::from(u16::from_be_bytes([length_high, length_low]));
    let length_bytes = V2_FIXED_BYTES + announced_bytes;
    if length_bytes > V2_BYTES_MAX {
        return Err(HeaderError::TooLong {
            bytes_max: V2_BYTES_MAX,
        });
    }
    let is_local = match version_command {
        0x20 => true,
        0x21 => false,
        _ => return Err(HeaderError::Broken("not version 2, or an unknown command")),
    };
    let Some(announced) = rest.get(..announced_bytes) else {
        return Ok(None);
    };
    let addresses = if is_local {
        None
    } else {
        v2_addresses(family, announced)?
    };
    Ok(Some(Header {
        length_bytes,
        addresses,
    }))
}

/// TCP over IPv4 and IPv6; everything else has no address that could stand for the client's.
fn v2_addresses(family: u8, announced: &[u8]) -> Result<Option<Addresses>, HeaderError> {
    const SHORT: HeaderError = HeaderError::Broken("it is shorter than its addresses");
    let (source, destination, ports) = match family {
        0x11 => {
            let (addresses, rest) = announced.split_first_chunk::<8>().ok_or(SHORT)?;
            let [a, b, c, d, e, f, g, h] = *addresses;
            let source = Ipv4Addr::new(a, b, c, d).into();
            (source, Ipv4Addr::new(e, f, g, h).into(), rest)
        }
        0x21 => {
            let (source, rest) = announced.split_first_chunk::<16>().ok_or(SHORT)?;
            let (destination, rest) = rest.split_first_chunk::<16>().ok_or(SHORT)?;
            let source = Ipv6Addr::from(*source).into();
            (source, Ipv6Addr::from(*destination).into(), rest)
        }
        _ => return Ok(None),
    };
    let (ports, _) = ports.split_first_chunk::<4>().ok_or(SHORT)?;
    let [a, b, c, d] = *ports;
    Ok(Some(Addresses {
        source: SocketAddr::new(source, u16::from_be_bytes([a, b])),
        destination: SocketAddr::new(destination, u16::from_be_bytes([c, d])),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v2(command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u16).to_be_bytes();
        [&V2_START[..], &[command, family], &length, payload].concat()
    }

    fn addresses(source: &str, destination: &str) -> Option<Addresses> {
        Some(Addresses {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        })
    }

    fn whole(input: &[u8]) -> Option<Addresses> {
        let header = parse(input).unwrap().unwrap();
        assert_eq!(header.length_bytes, input.len());
        header.addresses
    }

    #[test]
    fn version_1() {
        assert_eq!(
            whole(b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n"),
            addresses("192.0.2.1:56324", "198.51.100.2:443")
        );
        assert_eq!(
            whole(b"PROXY TCP6 2001:db8::1 ::1 1 0\r\n"),
            addresses("[2001:db8::1]:1", "[::1]:0")
        );
        assert_eq!(whole(b"PROXY UNKNOWN\r\n"), None);
        assert_eq!(whole(b"PROXY UNKNOWN what ever 1 2\r\n"), None);
    }

    #[test]
    fn version_1_is_strict() {
        for line in [
            "PROXY TCP4 192.0.2.1 198.51.100.2 56324\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443 1\r\n",
            "PROXY TCP4  192.0.2.1 198.51.100.2 56324 443\r\n",
            "PROXY TCP4 ::1 198.51.100.2 56324 443\r\n",
            "PROXY TCP6 192.0.2.1 198.51.100.2 56324 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 056324 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 +1 443\r\n",
            "PROXY UDP4 192.0.2.1 198.51.100.2 1 443\r\n",
            "PROXY UNKNOWN2\r\n",
            "PROXY \r\n",
        ] {
            let result = parse(line.as_bytes());
            assert!(matches!(result, Err(HeaderError::Broken(_))), "{line}");
        }
        assert_eq!(parse(b"GET / HTTP/1.1\r\n"), Err(HeaderError::NoHeader));
        assert_eq!(parse(b"PROXY\t"), Err(HeaderError::NoHeader));
    }

    #[test]
    fn version_2() {
        let four = [192, 0, 2, 1, 198, 51, 100, 2, 0xdc, 4, 1, 0xbb];
        let expected = addresses("192.0.2.1:56324", "198.51.100.2:443");
        assert_eq!(whole(&v2(0x21, 0x11, &four)), expected);
        let with_extension = [&four[..], &[3, 0, 4, 1, 2, 3, 4]].concat();
        assert_eq!(whole(&v2(0x21, 0x11, &with_extension)), expected);
        let mut six = [0; 36];
        (six[15], six[31], six[33], six[35]) = (1, 2, 3, 4);
        assert_eq!(
            whole(&v2(0x21, 0x21, &six)),
            addresses("[::1]:3", "[::2]:4")
        );
        for (command, family, payload) in [
            (0x20, 0, &[][..]),
            (0x20, 0x11, &four[..]),
            (0x21, 0, &[1, 2, 3][..]),
            (0x21, 0x31, &[0; 216][..]),
            (0x21, 0x12, &four[..]),
        ] {
            assert_eq!(whole(&v2(command, family, payload)), None);
        }
    }

    #[test]
    fn version_2_is_strict() {
        for (command, family, payload) in [
            (0x11, 0x11, 12),
            (0x22, 0x11, 12),
            (0x21, 0x11, 11),
            (0x21, 0x21, 35),
        ] {
            let input = v2(command, family, &vec![0; payload]);
            assert!(matches!(parse(&input), Err(HeaderError::Broken(_))));
        }
    }

    #[test]
    fn headers_have_an_end() {
        let endless = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat();
        assert_eq!(parse(&endless[..106]), Ok(None));
        assert!(matches!(parse(&endless), Err(HeaderError::TooLong { .. })));
        let long = v2(0x21, 0x11, &[0; 4081]);
        assert!(matches!(
            parse(&long[..16]),
            Err(HeaderError::TooLong { .. })
        ));
        assert!(parse(&v2(0x21, 0x11, &[0; 4080])).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = parse(&bytes);
            let _ = parse(&[&V2_START[..], &bytes].concat());
        }

        /// Where a header ends does not depend on how it was cut.
        #[test]
        fn every_part_of_a_header_wants_more(source: SocketAddr, destination: SocketAddr, rest: Vec<u8>) {
            let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
            let line = format!(
                "PROXY {family} {} {} {} {}\r\n",
                source.ip(), destination.ip(), source.port(), destination.port()
            );
            let input = [line.as_bytes(), &rest].concat();
            match parse(&input) {
                Ok(header) => {
                    prop_assert_eq!(header.map(|header| header.length_bytes), Some(line.len()));
                    for end in 0..line.len() {
                        prop_assert_eq!(parse(&input[..end]), Ok(None));
                    }
                }
                Err(_) => prop_assert!(source.is_ipv4() != destination.is_ipv4()),
            }
        }
    }
}
