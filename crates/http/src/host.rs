//! Which host a request is for (RFC 9110, 7.2; RFC 9112, 3.2; RFC 9113, 8.3.1).

use http::header::HOST;
use http::{Request, Version};
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::Ipv6Addr;
use thiserror::Error;

/// The longest name DNS knows.
const NAME_BYTES_MAX: usize = 255;

/// Why a request cannot be given to a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HostError {
    /// HTTP/1.1 without a `Host` header.
    #[error("a request of HTTP/1.1 needs a Host header")]
    Missing,
    /// More than one `Host` header.
    #[error("a request has one Host header, not several")]
    Several,
    /// Neither a name nor an address.
    #[error("the host must be a name or an address, with a port or without")]
    Malformed,
    /// HTTP/2 with two hosts.
    #[error(":authority and Host name different hosts")]
    Disagree,
}

/// The host a request is for, without port and trailing dot, as the client wrote it; empty when it
/// names none.
///
/// The host of the target (`:authority` in HTTP/2) counts before the `Host` header, which HTTP/1.1
/// must have exactly once all the same, and which in HTTP/2 must not name another one.
pub fn of<B>(request: &Request<B>) -> Result<&str, HostError> {
    let mut headers = request.headers().get_all(HOST).iter();
    let header = match (headers.next(), headers.next()) {
        (Some(value), None) => Some(parse(value.as_bytes()).ok_or(HostError::Malformed)?),
        (Some(_), Some(_)) => return Err(HostError::Several),
        (None, _) if request.version() == Version::HTTP_11 => return Err(HostError::Missing),
        (None, _) => None,
    };
    let Some(authority) = request.uri().authority() else {
        return Ok(header.unwrap_or_default());
    };
    let host = parse(authority.as_str().as_bytes()).ok_or(HostError::Malformed)?;
    match header {
        Some(other)
            if request.version() >= Version::HTTP_2 && !other.eq_ignore_ascii_case(host) =>
        {
            Err(HostError::Disagree)
        }
        _ => Ok(host),
    }
}

/// The host in `host[:port]`, without a trailing dot; the empty value names none. Total; O(length).
pub fn parse(value: &[u8]) -> Option<&str> {
    if value.is_empty() {
        return Some("");
    }
    let is_address = value[0] == b'[';
    let host_len = if is_address {
        value.iter().position(|&byte| byte == b']')? + 1
    } else {
        let is_end = |&byte: &u8| !OF_NAME[usize::from(byte)];
        value.iter().position(is_end).unwrap_or(value.len())
    };
    let (host, port) = value.split_at(host_len);
    let is_port = match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let host = std::str::from_utf8(host).ok().filter(|_| is_port)?;
    if is_address {
        let address = &host[1..host.len() - 1];
        return address.parse::<Ipv6Addr>().is_ok().then_some(host);
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_name = !name.is_empty() && !name.ends_with('.') && name.len() <= NAME_BYTES_MAX;
    is_name.then_some(name)
}

/// The characters of a registered name (RFC 3986, 3.2.2).
const OF_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~%!$&'()*+,;=";
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
};

/// What hosts stand for: names as they are, and suffixes after `*.`.
#[derive(Debug)]
pub struct HostMap<T> {
    exact: HashMap<Box<str>, T>,
    below: HashMap<Box<str>, T>,
}

/// Why a host of the configuration cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HostPatternError {
    /// With a port.
    #[error("a host has no port here: sites are told apart by name")]
    Port,
    /// A star that is not a whole first label.
    #[error("a star stands for the first labels only, as in *.example.org")]
    Star,
    /// Letters that are not in host names.
    #[error("a name beyond ASCII is written as it is in DNS: xn--...")]
    NotAscii,
    /// Anything else.
    #[error(
        "a host is a name or an address, as in example.org, *.example.org, 192.0.2.1 or [2001:db8::1]"
    )]
    Malformed,
}

impl<T> Default for HostMap<T> {
    fn default() -> Self {
        Self {
            exact: HashMap::new(),
            below: HashMap::new(),
        }
    }
}

impl<T> HostMap<T> {
    /// From now on `pattern` stands for `value`; gives back what it stood for before.
    pub fn insert(&mut self, pattern: &str, value: T) -> Result<Option<T>, HostPatternError> {
        if !pattern.is_ascii() {
            return Err(HostPatternError::NotAscii);
        }
        let (map, host) = match pattern.strip_prefix("*.") {
            Some(suffix) => (&mut self.below, suffix),
            None => (&mut self.exact, pattern),
        };
        if host.contains('*') {
            return Err(HostPatternError::Star);
        }
        let parsed = parse(host.as_bytes())
            .filter(|parsed| !parsed.is_empty() && !parsed.split('.').any(str::is_empty))
            .ok_or(HostPatternError::Malformed)?;
        if host.len() > parsed.len() + usize::from(host.ends_with('.')) {
            return Err(HostPatternError::Port);
        }
        Ok(map.insert(normal(parsed).into(), value))
    }

    /// What a host (as [`parse`] gives it) stands for: as it is, else by its longest suffix.
    pub fn get(&self, host: &str) -> Option<&T> {
        if self.exact.is_empty() && self.below.is_empty() {
            return None;
        }
        let host = normal(host);
        self.exact.get(&*host).or_else(|| {
            let mut rest = &*host;
            while let Some((_, suffix)) = rest.split_once('.') {
                if let Some(value) = self.below.get(suffix) {
                    return Some(value);
                }
                rest = suffix;
            }
            None
        })
    }
}

/// One spelling for each host: small letters, addresses in their shortest form.
pub fn normal(host: &str) -> Cow<'_, str> {
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .and_then(|address| address.parse::<Ipv6Addr>().ok());
    if let Some(address) = address {
        Cow::Owned(format!("[{address}]"))
    } else if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_without_what_is_around_them() {
        for (value, host) in [
            ("", Some("")),
            ("example.org", Some("example.org")),
            ("Example.ORG:8080", Some("Example.ORG")),
            ("example.org.", Some("example.org")),
            ("example.org.:80", Some("example.org")),
            ("example.org:", Some("example.org")),
            ("127.0.0.1:80", Some("127.0.0.1")),
            ("[::1]", Some("[::1]")),
            ("[2001:db8::1]:443", Some("[2001:db8::1]")),
            ("a_b", Some("a_b")),
            (".", None),
            ("a..", None),
            (":80", None),
            ("example.org:port", None),
            ("example.org:123456", None),
            ("example.org:80:80", None),
            ("::1", None),
            ("[::1", None),
            ("[::1]x", None),
            ("[example.org]", None),
            ("a b", None),
            ("a/b", None),
            ("a@b", None),
            ("a\\b", None),
            ("\u{fc}", None),
        ] {
            assert_eq!(parse(value.as_bytes()), host, "{value}");
        }
        assert_eq!(parse(&[b'a'; 300]), None);
        assert_eq!(parse(b"\xff"), None);
    }

    fn request(version: Version, uri: &str, hosts: &[&str]) -> Request<()> {
        let mut request = Request::builder().version(version).uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn one_host_a_request() {
        use HostError::{Disagree, Malformed, Missing, Several};
        let (h10, h11, h2) = (Version::HTTP_10, Version::HTTP_11, Version::HTTP_2);
        for (version, uri, hosts, host) in [
            (h11, "/", &["a.org:80"][..], Ok("a.org")),
            (h11, "/", &[""], Ok("")),
            (h11, "/", &[], Err(Missing)),
            (h11, "/", &["a", "a"], Err(Several)),
            (h11, "/", &["a b"], Err(Malformed)),
            (h11, "http://b.org/", &["a.org"], Ok("b.org")),
            (h11, "http://b.org/", &[], Err(Missing)),
            (h11, "http://u:p@b.org/", &["a.org"], Err(Malformed)),
            (h10, "/", &[], Ok("")),
            (h10, "/", &["a"], Ok("a")),
            (h10, "/", &["a", "b"], Err(Several)),
            (h2, "https://b.org/", &[], Ok("b.org")),
            (h2, "https://b.org/", &["B.org:443"], Ok("b.org")),
            (h2, "https://b.org/", &["a.org"], Err(Disagree)),
            (h2, "/", &["a.org"], Ok("a.org")),
        ] {
            let request = request(version, uri, hosts);
            assert_eq!(of(&request), host, "{version:?} {uri} {hosts:?}");
        }
    }

    #[test]
    fn exact_names_before_the_longest_suffix() {
        let mut map = HostMap::default();
        for (index, pattern) in [
            "*.org",
            "*.Example.org",
            "www.example.org",
            "[2001:DB8::0]",
            "192.0.2.1",
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(map.insert(pattern, index), Ok(None));
        }
        for (host, found) in [
            ("WWW.example.org", Some(2)),
            ("a.b.example.org", Some(1)),
            ("example.org", Some(0)),
            ("org", None),
            ("example.com", None),
            ("", None),
            ("[2001:db8::]", Some(3)),
            ("192.0.2.1", Some(4)),
        ] {
            assert_eq!(map.get(host).copied(), found, "{host}");
        }
        assert_eq!(map.insert("EXAMPLE.org.", 9), Ok(None));
        assert_eq!(map.insert("example.org", 10), Ok(Some(9)));
    }

    #[test]
    fn patterns_that_are_no_hosts() {
        use HostPatternError::{Malformed, NotAscii, Port, Star};
        let mut map = HostMap::default();
        for (pattern, error) in [
            ("example.org:80", Port),
            ("[::1]:80", Port),
            ("*", Star),
            ("*example.org", Star),
            ("a.*.org", Star),
            ("m\u{fc}nchen.de", NotAscii),
            ("", Malformed),
            ("*.", Malformed),
            ("a..b", Malformed),
            ("http://a", Malformed),
            ("a/b", Malformed),
        ] {
            assert_eq!(map.insert(pattern, ()), Err(error), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn parsing_is_total(value in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(host) = parse(&value) {
                prop_assert!(!host.contains(['/', '@', ' ', '\\']));
                prop_assert_eq!(parse(host.as_bytes()).map(normal), Some(normal(host)));
            }
        }
    }
}
