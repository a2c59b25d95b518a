//! A request as HTTP/2 brings it, made into what those who answer expect: checked, with a Host field, with one Cookie field.

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
    /// A tunnel is asked for (RFC 9113, 8.5); status 501.
    #[error("no tunnels: CONNECT is not implemented")]
    Connect,
}

/// Checks what the HTTP/2 library does not, then brings the head into the form of HTTP/1.
pub fn prepare(head: &mut Parts) -> Result<(), Refusal> {
    if head.method == Method::CONNECT {
        return Err(Refusal::Connect);
    }
    check_path(head)?;
    check_values(&head.headers)?;
    add_host(head);
    join_cookies(&mut head.headers);
    Ok(())
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

/// The authority as a Host field, if there is none; whether the two agree is looked at where the site is chosen.
fn add_host(head: &mut Parts) {
    if head.headers.contains_key(HOST) {
        return;
    }
    let authority = head.uri.authority();
    // An authority has no character that a value must not have.
    if let Some(Ok(host)) = authority.map(|authority| HeaderValue::from_str(authority.as_str())) {
        head.headers.insert(HOST, host);
    }
}

/// RFC 9113, 8.2.3: cookies may come in several fields, which nobody outside HTTP/2 expects.
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
        prepare(&mut head).map(|()| head.headers)
    }

    const URI: &str = "https://example.org/a?b";

    #[test]
    fn the_authority_becomes_the_host() {
        assert_eq!(prepared("GET", URI, &[]).unwrap()[HOST], "example.org");
        let agreeing = prepared("GET", URI, &[("host", "Example.ORG")]).unwrap();
        assert_eq!(agreeing[HOST], "Example.ORG");
        let alone = prepared("GET", "/a", &[("host", "example.net")]).unwrap();
        assert_eq!(alone[HOST], "example.net");
        assert!(!prepared("GET", "/a", &[]).unwrap().contains_key(HOST));
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
