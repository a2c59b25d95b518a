//! Small answers the server makes itself: a status and a line of text.

use crate::body::Source;
use crate::message::Answer;
use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};

/// An answer of plain text: the status and what is wrong.
pub fn plain(status: StatusCode, what: &str) -> Answer {
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
    Answer {
        status,
        headers,
        source: Source::Memory(body),
    }
}

/// The same with one header more.
pub fn plain_with(status: StatusCode, what: &str, name: HeaderName, value: HeaderValue) -> Answer {
    let mut answer = plain(status, what);
    answer.headers.insert(name, value);
    answer
}

/// A value of our own making, or of a URI's characters: visible ASCII.
pub fn visible(value: String) -> HeaderValue {
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static(""))
}
