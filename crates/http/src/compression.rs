//! Which responses may be compressed on their way, and what their heads say then.
//!
//! What a response says of itself decides: its status, its type, its length, and whether its
//! maker has encoded it, cut it, summed it up or forbidden to change it.

use crate::conditional::names_weakly;
use crate::negotiation::Coding;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, HeaderName, HeaderValue, VARY,
};
use http::{HeaderMap, StatusCode};
use thiserror::Error;

/// What is worth compressing, unless said otherwise: text in all its forms, and the few formats of
/// fonts and pictures that are not compressed already.
pub const DEFAULT_TYPES: [&str; 20] = [
    "text/*",
    "*+json",
    "*+xml",
    "application/javascript",
    "application/json",
    "application/jsonl",
    "application/toml",
    "application/vnd.apple.mpegurl",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/xml",
    "application/yaml",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "image/x-icon",
    "model/gltf+json",
];

/// Sums over the bytes of a body: they would be those of another one.
const SUMS: [HeaderName; 4] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
];

/// Media types, by name or by pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaTypes(Vec<Pattern>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    /// `text/*`: with the slash.
    Family(String),
    /// `*+json`: from the plus on.
    Suffix(String),
    Exact(String),
}

/// A text that is no pattern of media types.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a media type; write one as in \"application/json\", \"text/*\" or \"*+xml\"")]
pub struct NotAType(String);

impl MediaTypes {
    /// Adds a type (`application/json`), a family (`text/*`) or a suffix (`*+xml`).
    pub fn add(&mut self, text: &str) -> Result<(), NotAType> {
        let lower = text.to_ascii_lowercase();
        let is_token = |part: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
            !part.is_empty() && part.bytes().all(allowed)
        };
        let pattern = if let Some(suffix) = lower.strip_prefix("*+") {
            is_token(suffix).then(|| Pattern::Suffix(format!("+{suffix}")))
        } else {
            match lower.split_once('/') {
                Some((family, "*")) if is_token(family) => {
                    Some(Pattern::Family(format!("{family}/")))
                }
                Some((family, name)) if is_token(family) && is_token(name) => {
                    Some(Pattern::Exact(lower))
                }
                _ => None,
            }
        };
        self.0.push(pattern.ok_or_else(|| NotAType(text.into()))?);
        Ok(())
    }

    /// Whether the value of a `Content-Type` is one of them. Total; O(length).
    pub fn contain(&self, content_type: &[u8]) -> bool {
        let end = content_type.iter().position(|&byte| byte == b';');
        let name = content_type[..end.unwrap_or(content_type.len())].trim_ascii();
        let name = name.to_ascii_lowercase();
        self.0.iter().any(|pattern| match pattern {
            Pattern::Family(family) => name.starts_with(family.as_bytes()),
            Pattern::Suffix(suffix) => name.ends_with(suffix.as_bytes()),
            Pattern::Exact(exact) => name == exact.as_bytes(),
        })
    }
}

/// Whether a response could be sent compressed, were its client to accept that. How long it is is
/// another question.
pub fn may_be(status: StatusCode, headers: &HeaderMap, types: &MediaTypes) -> bool {
    let has_whole_body = !status.is_informational()
        && ![
            StatusCode::NO_CONTENT,
            StatusCode::RESET_CONTENT,
            StatusCode::PARTIAL_CONTENT,
            StatusCode::NOT_MODIFIED,
        ]
        .contains(&status);
    has_whole_body
        && describes_whole_text(headers, types)
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && !forbids_change(headers)
        && !SUMS.iter().any(|name| headers.contains_key(name))
}

fn describes_whole_text(headers: &HeaderMap, types: &MediaTypes) -> bool {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    match (kinds.next(), kinds.next()) {
        (Some(kind), None) => types.contain(kind.as_bytes()),
        _ => false,
    }
}

/// `Cache-Control: no-transform` (RFC 9111, 5.2.2.6).
fn forbids_change(headers: &HeaderMap) -> bool {
    headers.get_all(CACHE_CONTROL).iter().any(|value| {
        let mut directives = value.as_bytes().split(|&byte| byte == b',');
        directives.any(|one| one.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
    })
}

/// The length that a response says it has, in bytes.
pub fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The length of the whole of which a response is a part, in bytes (RFC 9110, 14.4).
pub fn whole_length(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    range.rsplit_once('/')?.1.parse().ok()
}

/// Says that other clients may get another coding (RFC 9110, 12.5.5).
pub fn vary(headers: &mut HeaderMap) {
    let is_said = headers.get_all(VARY).iter().any(|value| {
        let mut names = value.as_bytes().split(|&byte| byte == b',');
        names.any(|name| {
            let name = name.trim_ascii();
            name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding")
        })
    });
    if !is_said {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}

/// Makes the head of a response that of its compressed form, of which the length is not known yet.
///
/// A strong tag becomes weak: it stands for these very bytes, and a compressor that is updated or
/// set otherwise makes others. Parts cannot be had of bytes that are made anew each time.
pub fn encode(headers: &mut HeaderMap, coding: Coding) {
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
    weaken_tag(headers);
}

/// Makes a strong tag weak.
pub fn weaken_tag(headers: &mut HeaderMap) {
    let Some(tag) = headers
        .get(ETAG)
        .filter(|tag| tag.as_bytes().starts_with(b"\""))
    else {
        return;
    };
    if let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()) {
        headers.insert(ETAG, weak);
    }
}

/// Whether the strong tag of a 304 answers a client that has the compressed form: it named the tag
/// as weak, and must find the same one in the answer.
pub fn answers_weak_tag(request: &HeaderMap, response: &HeaderMap) -> bool {
    response
        .get(ETAG)
        .is_some_and(|tag| names_weakly(request, tag.as_bytes()))
}

#[cfg(test)]
mod tests;
