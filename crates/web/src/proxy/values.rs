//! What a request's head says in one place: what is said twice says nothing.

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, COOKIE};
use std::borrow::Cow;

/// The value of a field that is there once, in text; what is said twice says nothing.
pub fn only_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next()?, values.next());
    second.is_none().then(|| first.to_str().ok()).flatten()
}

/// The same of a cookie. HTTP/2 has them in several fields (RFC 9113, 8.2.3).
pub fn only_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let fields = headers.get_all(COOKIE).iter();
    let pairs = fields.flat_map(|field| field.as_bytes().split(|byte| *byte == b';'));
    let mut values = pairs.filter_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let own = pair[..equals].trim_ascii();
        (own == name.as_bytes()).then(|| pair[equals + 1..].trim_ascii())
    });
    let (first, second) = (values.next()?, values.next());
    second
        .is_none()
        .then(|| str::from_utf8(first).ok())
        .flatten()
}

/// The value as it is compared: of `Authorization` the case of the scheme and the number of blanks
/// behind it say nothing (RFC 9110, 11.1 and 11.6.2).
pub fn comparable<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    match value.split_once(' ') {
        Some((scheme, rest)) if name.eq_ignore_ascii_case(AUTHORIZATION.as_str()) => {
            format!("{} {}", scheme.to_ascii_lowercase(), rest.trim_start()).into()
        }
        _ => value.into(),
    }
}
