//! Headers an owner adds to every answer of a site.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue, VARY};
use thiserror::Error;

/// What the server says itself, because the bytes that follow depend on it.
const OURS: [&str; 21] = [
    "accept-ranges",
    "alt-used",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "host",
    "http2-settings",
    "keep-alive",
    "last-modified",
    "location",
    "proxy-connection",
    "status",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
];

/// Headers to add; each name once.
#[derive(Debug, Clone, Default)]
pub struct ExtraHeaders(Vec<(HeaderName, HeaderValue)>);

/// Why a header cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExtraHeaderError {
    /// Not a name.
    #[error(
        "{0:?} is not a name of a header: use letters, digits and dashes, as in X-Frame-Options"
    )]
    Name(String),
    /// A header that says where bytes begin and end, or which they are.
    #[error("the server sets {0} itself: leave it out")]
    Ours(HeaderName),
    /// Given twice, in different spellings.
    #[error("{0} is given twice: names of headers are the same in capitals")]
    Twice(HeaderName),
    /// Not a value.
    #[error("the value of {0} must be printable ASCII in one line")]
    Value(HeaderName),
}

impl ExtraHeaders {
    /// Adds a header.
    pub fn push(&mut self, name: &str, value: &str) -> Result<(), ExtraHeaderError> {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ExtraHeaderError::Name(name.to_owned()))?;
        if OURS.contains(&name.as_str()) {
            return Err(ExtraHeaderError::Ours(name));
        }
        if self.0.iter().any(|(other, _)| *other == name) {
            return Err(ExtraHeaderError::Twice(name));
        }
        let Ok(value) = HeaderValue::from_str(value) else {
            return Err(ExtraHeaderError::Value(name));
        };
        self.0.push((name, value));
        Ok(())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Puts them into the head of an answer. They replace what is there, but for `Vary`, of which
    /// each member counts.
    pub fn add_to(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.0 {
            if *name == VARY {
                headers.append(name, value.clone());
            } else {
                headers.insert(name, value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_what_is_there_but_for_vary() {
        let mut extra = ExtraHeaders::default();
        extra.push("X-Frame-Options", "DENY").unwrap();
        extra.push("vary", "origin").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("x-frame-options", HeaderValue::from_static("SAMEORIGIN"));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        extra.add_to(&mut headers);
        assert_eq!(headers["x-frame-options"], "DENY");
        let vary: Vec<_> = headers.get_all(VARY).iter().collect();
        assert_eq!(vary, ["accept-encoding", "origin"]);
    }

    #[test]
    fn what_frames_the_body_is_not_for_owners() {
        let mut extra = ExtraHeaders::default();
        for name in ["Content-Length", "transfer-encoding", "Connection", "ETag"] {
            assert_eq!(
                extra.push(name, "1"),
                Err(ExtraHeaderError::Ours(name.parse().unwrap()))
            );
        }
        for name in ["", "a b", "a:b", "\u{fc}"] {
            let error = extra.push(name, "1").unwrap_err();
            assert_eq!(error, ExtraHeaderError::Name(name.into()));
        }
        for value in ["a\r\nb: c", "a\0b", "\u{7f}"] {
            assert!(matches!(
                extra.push("x-a", value),
                Err(ExtraHeaderError::Value(_))
            ));
        }
        extra.push("x-a", "1").unwrap();
        assert!(matches!(
            extra.push("X-A", "2"),
            Err(ExtraHeaderError::Twice(_))
        ));
        assert_eq!(extra.count(), 1);
    }
}
