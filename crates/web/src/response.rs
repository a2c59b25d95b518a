//! A response that has not been sent, and the small ones that the server makes itself: a status and
//! a line of text.

use crate::body::Source;
use bytes::Bytes;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};

/// A response that has not been sent.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// What a backend wrote behind the status, where these are not the usual words. HTTP/1 alone
    /// sends it.
    pub reason: Option<ReasonPhrase>,
    /// All headers but those that depend on the connection and on the clock.
    pub headers: HeaderMap,
    /// The body.
    pub source: Source,
}

/// What stands behind the status where hyper would write something else: a backend's words, or
/// nothing, where hyper knows none and would write `<none>`.
pub fn own_reason(status: StatusCode, reason: Option<ReasonPhrase>) -> Option<ReasonPhrase> {
    let is_unknown = status.canonical_reason().is_none();
    reason.or(is_unknown.then(|| ReasonPhrase::from_static(b"")))
}

/// An answer of plain text: the status and what is wrong.
pub fn plain(status: StatusCode, what: &str) -> Response {
    let body = Bytes::from(format!(
        "{} {}: {what}\n",
        status.as_str(),
        status.canonical_reason().unwrap_or_default()
    ));
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    Response {
        status,
        reason: None,
        headers,
        source: Source::Memory(body),
    }
}

/// The same with one header more.
pub fn plain_with(
    status: StatusCode,
    what: &str,
    name: HeaderName,
    value: HeaderValue,
) -> Response {
    let mut response = plain(status, what);
    response.headers.insert(name, value);
    response
}

/// A value of our own making, or of a URI's characters: visible ASCII.
pub fn visible(value: String) -> HeaderValue {
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static(""))
}
