//! A request as HTTP/2 brings it, in the form that the service expects: checked, with a Host field,
//! with one Cookie field.

use hyper::header::{COOKIE, HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use thiserror::Error;

/// Why a request is not answered by the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It breaks a rule of RFC 9113 (8.2, 8.3); the stream is reset.
    #[error("malformed request: {0}")]
    Malformed(&'static str),
    /// The client requests a tunnel (RFC 9113, 8.5); status 501.
    #[error("no tunnels: CONNECT is not implemented")]
    Connect,
    /// Its head is too long; status 431.
    #[error("the request head is longer than {0} bytes, with 32 bytes for every field")]
    TooLong(u32),
    /// Two hosts are named (RFC 9113, 8.3.1); status 400.
    #[error(":authority and Host name different hosts")]
    HostsDisagree,
}

/// What a field counts beside its octets (RFC 9113, 6.5.2).
const FIELD_BYTES: usize = 32;

/// Checks what the HTTP/2 library does not, then brings the head, up to `bytes_max` long, into the
/// form of HTTP/1.
pub fn prepare(head: &mut Parts, bytes_max: u32) -> Result<(), Refusal> {
    if head_bytes(head) > bytes_max as usize {
        return Err(Refusal::TooLong(bytes_max));
    }
    if head.method == Method::CONNECT {
        return Err(Refusal::Connect);
    }
    check_path(head)?;
    check_values(&head.headers)?;
    set_host(head)?;
    join_cookies(&mut head.headers);
    Ok(())
}

/// The length of a head as RFC 9113 (6.5.2) counts it.
fn head_bytes(head: &Parts) -> usize {
    let fields = head.headers.iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES);
    let path = head
        .uri
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    let authority = head.uri.authority().map_or(0, |it| it.as_str().len());
    let pseudo = ":method".len() + head.method.as_str().len() + ":path".len() + path + authority;
    fields.sum::<usize>() + pseudo + ":scheme:authority".len() + 4 * FIELD_BYTES
}

/// RFC 9113, 8.3.1: a path begins with a slash, or is the asterisk of OPTIONS.
fn check_path(head: &Parts) -> Result<(), Refusal> {
    match head.uri.path() {
        path if path.starts_with('/') => Ok(()),
        "*" if head.method == Method::OPTIONS => Ok(()),
        _ => Err(Refusal::Malformed("the path does not begin with /")),
    }
}

/// RFC 9113, 8.2.1: no value begins or ends with a blank.
fn check_values(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let has_blanks = headers
        .values()
        .map(HeaderValue::as_bytes)
        .any(|value| is_blank(value.first()) || is_blank(value.last()));
    if has_blanks {
        return Err(Refusal::Malformed("a field value with blanks around it"));
    }
    Ok(())
}

/// The authority as the Host field, in place of one that names the same host (RFC 9113, 8.3.1).
/// Whether the names agree is looked at where the site is chosen, and so is a second field; here it
/// is the ports.
fn set_host(head: &mut Parts) -> Result<(), Refusal> {
    let Some(authority) = head.uri.authority() else {
        return Ok(());
    };
    let mut hosts = head.headers.get_all(HOST).iter();
    if let (Some(host), None) = (hosts.next(), hosts.next()) {
        let default_port = match head.uri.scheme_str() {
            Some("http") => 80,
            _ => 443,
        };
        let (name, port) = host_and_port(host.as_bytes(), default_port);
        let (authority, authority_port) =
            host_and_port(authority.as_str().as_bytes(), default_port);
        if port != authority_port {
            return Err(Refusal::HostsDisagree);
        }
        if !name.eq_ignore_ascii_case(authority) {
            return Ok(());
        }
    } else if head.headers.contains_key(HOST) {
        return Ok(());
    }
    // An authority has no character that a value must not have.
    if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
        head.headers.insert(HOST, host);
    }
    Ok(())
}

/// The host, without the dot at its end, and the port of `value`; `None` for a port that is none.
fn host_and_port(value: &[u8], default_port: u16) -> (&[u8], Option<u16>) {
    let after_address = value.iter().rposition(|&byte| byte == b']').unwrap_or(0);
    let colon = value[after_address..].iter().position(|&byte| byte == b':');
    let (host, port) = match colon.map(|colon| value.split_at(after_address + colon)) {
        None | Some((_, b":")) => (
            &value[..after_address + colon.unwrap_or(value.len() - after_address)],
            Some(default_port),
        ),
        Some((host, port)) => {
            let digits = std::str::from_utf8(&port[1..]).ok();
            (host, digits.and_then(|digits| digits.parse().ok()))
        }
    };
    (host.strip_suffix(b".").unwrap_or(host), port)
}

/// RFC 9113, 8.2.3: cookies may come in several fields, which no program outside HTTP/2 expects.
fn join_cookies(headers: &mut HeaderMap) {
    let mut crumbs = headers.get_all(COOKIE).iter();
    let (Some(first), Some(second)) = (crumbs.next(), crumbs.next()) else {
        return;
    };
    let mut joined = first.as_bytes().to_vec();
    for crumb in std::iter::once(second).chain(crumbs) {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(crumb.as_bytes());
    }
    // What joins valid values is one.
    if let Ok(joined) = HeaderValue::from_bytes(&joined) {
        headers.insert(COOKIE, joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn prepared(
        method: &str,
        uri: &str,
        headers: &[(&'static str, &'static str)],
    ) -> Result<HeaderMap, Refusal> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        prepare(&mut head, 500).map(|()| head.headers)
    }

    const URI: &str = "https://example.org/a?b";

    #[test]
    fn the_authority_becomes_the_host() {
        assert_eq!(prepared("GET", URI, &[]).unwrap()[HOST], "example.org");
        let agreeing = prepared("GET", URI, &[("host", "Example.ORG")]).unwrap();
        assert_eq!(
            agreeing[HOST], "example.org",
            "the authority is the one that counts"
        );
        assert_eq!(agreeing.get_all(HOST).iter().count(), 1);
        let alone = prepared("GET", "/a", &[("host", "example.net")]).unwrap();
        assert_eq!(alone[HOST], "example.net");
        assert!(!prepared("GET", "/a", &[]).unwrap().contains_key(HOST));
    }

    #[test]
    fn hosts_with_different_ports_are_different() {
        let host_of =
            |uri, host| prepared("GET", uri, &[("host", host)]).map(|it| it[HOST].clone());
        for (uri, host, is_same) in [
            ("https://a.org:8443/", "a.org", false),
            ("https://a.org/", "a.org:8443", false),
            ("https://a.org:8443/", "A.org.:8443", true),
            ("https://a.org/", "a.org:443", true),
            ("https://a.org:443/", "a.org", true),
            ("https://a.org/", "a.org:80", false),
            ("http://a.org:80/", "a.org", true),
            ("http://a.org/", "a.org:", true),
            ("http://a.org/", "a.org:x", false),
            ("http://[::1]:81/", "[::1]:81", true),
            ("http://[::1]:81/", "[::1]", false),
        ] {
            let authority = uri.parse::<hyper::Uri>().unwrap();
            let authority = authority.authority().unwrap().as_str();
            let expected = if is_same {
                Ok(HeaderValue::from_str(authority).unwrap())
            } else {
                Err(Refusal::HostsDisagree)
            };
            assert_eq!(host_of(uri, host), expected, "{uri} {host}");
        }
        // Another name is for those who choose the site.
        assert_eq!(host_of("http://a.org/", "b.org").unwrap(), "b.org");
    }

    #[test]
    fn a_head_is_counted_with_32_bytes_a_field() {
        // Four pseudo-header fields of 10, 13, 21 and 8 octets.
        let fits = "x".repeat(500 - 4 * 32 - 52 - 32 - 1);
        let fits: &'static str = fits.leak();
        assert!(prepared("GET", URI, &[("x", fits)]).is_ok());
        let too_long: &'static str = format!("{fits}xxxxxxxx").leak();
        let refused = prepared("GET", URI, &[("x", too_long)]).unwrap_err();
        assert_eq!(refused, Refusal::TooLong(500));
    }

    #[test]
    fn cookies_are_one_field() {
        let crumbs = [("cookie", "a=b"), ("cookie", "c=d"), ("cookie", "e=f")];
        let headers = prepared("GET", URI, &crumbs).unwrap();
        assert_eq!(headers.get_all(COOKIE).iter().count(), 1);
        assert_eq!(headers[COOKIE], "a=b; c=d; e=f");
    }

    #[test]
    fn paths_and_values_have_one_form() {
        assert!(prepared("OPTIONS", "*", &[]).is_ok());
        assert!(prepared("GET", "*", &[]).is_err());
        for value in [" a", "a ", "\ta", "a\t"] {
            assert!(prepared("GET", URI, &[("x", value)]).is_err());
        }
        assert!(prepared("GET", URI, &[("x", "")]).is_ok());
        assert_eq!(
            prepared("CONNECT", "example.org:443", &[]),
            Err(Refusal::Connect)
        );
    }
}
