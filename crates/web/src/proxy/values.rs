//! What a request's head says in one place: what is said twice says nothing.

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use sooner_config::Spanned;
use sooner_config::classes::fits_beginning;
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

/// The value as it is compared: where it has a scheme, its case and the number of blanks behind it
/// say nothing (RFC 9110, 11.1 and 11.6.2).
pub fn comparable<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    match value.split_once(' ') {
        Some((scheme, rest)) if has_scheme(name) => {
            format!("{} {}", scheme.to_ascii_lowercase(), rest.trim_start()).into()
        }
        _ => value.into(),
    }
}

/// Whether the value of a field is one of these, or begins as one of them that ends in `*`.
pub fn fits_value(name: &str, patterns: &[Spanned<String>], value: &str) -> bool {
    // A value without a blank is a bare key, in which case counts.
    let begins_with_scheme = has_scheme(name) && value.contains(' ');
    let comparable_value = comparable(name, value);
    patterns.iter().any(|own| {
        let own = own.get_ref();
        let scheme = own.strip_suffix('*').filter(|text| !text.contains(' '));
        let pattern = match scheme.filter(|_| begins_with_scheme) {
            Some(_) => Cow::Owned(own.to_ascii_lowercase()),
            None => comparable(name, own),
        };
        fits_beginning(&[&*pattern], &comparable_value)
    })
}

/// Whether values of this field begin with a scheme: `Basic`, `Bearer`.
fn has_scheme(name: &str) -> bool {
    let with_scheme = [AUTHORIZATION, PROXY_AUTHORIZATION];
    with_scheme
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own.as_str()))
}
