//! Headers that belong to one connection, those that are ours to say, and those no trailer may
//! carry.

use super::forwarded::describes_client;
use http::HeaderMap;
use http::header::{
    self, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    COOKIE, EXPECT, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};

/// The name Sooner signs with (RFC 9110, 7.6.3).
pub const PSEUDONYM: &str = "sooner";

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// What is never passed on, whether `Connection` names it or not (RFC 9110, 7.6.1). The last is not
/// of HTTP, but CGI programs take it for the address of a proxy to use.
static HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    KEEP_ALIVE,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("proxy"),
];

/// What decides about framing, routing, rights or how to read the body comes before the body or not
/// at all (RFC 9110, 6.5.1).
static NOT_IN_TRAILERS: [HeaderName; 11] = [
    AUTHORIZATION,
    CONTENT_ENCODING,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    SET_COOKIE,
    TRAILER,
    header::CACHE_CONTROL,
    header::MAX_FORWARDS,
];

/// Whether `name` belongs to one connection by its nature.
pub(super) fn is_hop_by_hop(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(name)
}

/// What is written anew for the connection to the upstream, also where `_` is taken for `-`.
pub(super) fn is_set_by_proxy(name: &HeaderName) -> bool {
    matches!(*name, HOST | CONTENT_LENGTH | EXPECT)
        || matches!(name.as_str(), "content_length" | "transfer_encoding")
}

/// The header names that `Connection` lists.
pub(super) fn connection_options(headers: &HeaderMap) -> Vec<HeaderName> {
    tokens(headers, &CONNECTION)
        .filter_map(|token| HeaderName::from_bytes(token.as_bytes()).ok())
        .collect()
}

/// The elements of a list header, over all its lines.
pub(super) fn tokens<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> + use<'a> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}

/// Whether a list header has `token`.
pub(super) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|present| present.eq_ignore_ascii_case(token))
}

/// Removes what belongs to the connection the headers came on.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    for name in connection_options(headers) {
        headers.remove(name);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// What `Content-Length` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// Nothing.
    Absent,
    /// This, perhaps several times.
    Exact(u64),
    /// Different things, or no number.
    Conflicting,
}

/// Reads `Content-Length` (RFC 9110, 8.6; RFC 9112, 6.3).
pub(super) fn content_length(headers: &HeaderMap) -> Length {
    let mut length = Length::Absent;
    for value in headers.get_all(CONTENT_LENGTH) {
        for number in value.as_bytes().split(|byte| *byte == b',') {
            let Some(number) = decimal(number.trim_ascii()) else {
                return Length::Conflicting;
            };
            match length {
                Length::Absent => length = Length::Exact(number),
                Length::Exact(other) if other == number => {}
                _ => return Length::Conflicting,
            }
        }
    }
    length
}

/// Digits alone: `+1` and ` 1` are numbers to some parsers, and no lengths.
fn decimal(text: &[u8]) -> Option<u64> {
    let is_plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if !is_plain {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether the only transfer coding is `chunked`, said once (RFC 9112, 6.1).
pub(super) fn is_chunked_alone(headers: &HeaderMap) -> bool {
    is_transfer_coding_alone(headers, b"chunked")
}

/// Whether there is one transfer coding, and it is none: what HTTP had a word for before RFC 7230.
pub(super) fn is_identity_alone(headers: &HeaderMap) -> bool {
    is_transfer_coding_alone(headers, b"identity")
}

fn is_transfer_coding_alone(headers: &HeaderMap, coding: &[u8]) -> bool {
    let mut values = headers.get_all(TRANSFER_ENCODING).iter();
    let is_coding = values
        .next()
        .is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(coding));
    is_coding && values.next().is_none()
}

/// Removes from trailers what may not be in them. Who adds them to the headers must find there what
/// was checked before.
pub fn clean_trailers(trailers: &mut HeaderMap) {
    remove_hop_by_hop(trailers);
    let is_forbidden = |name: &&HeaderName| {
        NOT_IN_TRAILERS.contains(name) || is_set_by_proxy(name) || describes_client(name)
    };
    let forbidden: Vec<HeaderName> = trailers.keys().filter(is_forbidden).cloned().collect();
    for name in forbidden {
        trailers.remove(name);
    }
}

/// Removes what a program that knows no difference between `-` and `_` takes for one of `names`: all
/// other spellings of it. For headers that are ours to say.
pub fn remove_disguised(headers: &mut HeaderMap, names: &[HeaderName]) {
    let is_disguised = |other: &&HeaderName| {
        other.as_str().contains('_') && names.iter().any(|name| is_alike(other, name))
    };
    while let Some(other) = headers.keys().find(is_disguised).cloned() {
        headers.remove(other);
    }
}

fn is_alike(one: &HeaderName, other: &HeaderName) -> bool {
    let dashed = |byte: u8| if byte == b'_' { b'-' } else { byte };
    let (one, other) = (one.as_str().bytes(), other.as_str().bytes());
    one.map(dashed).eq(other.map(dashed))
}

/// How long a server says it keeps an idle connection, s; `None` when it does not say.
pub fn keep_alive_seconds(headers: &HeaderMap) -> Option<u64> {
    tokens(headers, &KEEP_ALIVE)
        .find_map(|parameter| parameter.strip_prefix("timeout="))
        .and_then(|seconds| decimal(seconds.as_bytes()))
}

/// Signs: a message that came over `version` went through here.
pub(super) fn add_via(headers: &mut HeaderMap, version: http::Version) {
    let received = match version {
        http::Version::HTTP_10 => "1.0",
        http::Version::HTTP_2 => "2",
        http::Version::HTTP_3 => "3",
        _ => "1.1",
    };
    let mine = format!("{received} {PSEUDONYM}");
    if let Ok(value) = HeaderValue::try_from(mine) {
        headers.append(VIA, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::tests::map;

    #[test]
    fn what_connection_names_goes_and_the_rest_stays() {
        let mut headers = map(&[
            ("connection", "close, X-Mine"),
            ("connection", "x-too ,,"),
            ("x-mine", "1"),
            ("x-too", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "x"),
            ("proxy", "http://evil"),
            ("x-stays", "1"),
            ("x-stays", "2"),
        ]);
        remove_hop_by_hop(&mut headers);
        assert_eq!(headers, map(&[("x-stays", "1"), ("x-stays", "2")]));
    }

    #[test]
    fn a_length_is_digits_and_said_without_contradiction() {
        let length = |lines: &[&str]| {
            let lines: Vec<_> = lines
                .iter()
                .map(|value| ("content-length", *value))
                .collect();
            content_length(&map(&lines))
        };
        assert_eq!(length(&[]), Length::Absent);
        assert_eq!(length(&["5"]), Length::Exact(5));
        assert_eq!(length(&["5", "5, 5"]), Length::Exact(5));
        for wrong in [
            "+5",
            "-5",
            "5 5",
            "0x5",
            "",
            "5,",
            "5;",
            "18446744073709551616",
        ] {
            assert_eq!(length(&[wrong]), Length::Conflicting, "{wrong}");
        }
        assert_eq!(length(&["5", "6"]), Length::Conflicting);
    }

    #[test]
    fn a_server_may_say_how_long_it_keeps_a_connection() {
        let kept = |value| keep_alive_seconds(&map(&[("keep-alive", value)]));
        assert_eq!(kept("timeout=5, max=100"), Some(5));
        assert_eq!(kept("max=100, timeout=7"), Some(7));
        assert_eq!(kept("max=100"), None);
        assert_eq!(kept("timeout=x"), None);
    }

    #[test]
    fn chunked_is_said_once_and_alone() {
        let is_chunked = |lines: &[&str]| {
            let lines: Vec<_> = lines
                .iter()
                .map(|value| ("transfer-encoding", *value))
                .collect();
            is_chunked_alone(&map(&lines))
        };
        assert!(is_chunked(&["Chunked"]));
        for wrong in [
            &["gzip, chunked"][..],
            &["chunked, chunked"],
            &["chunked", "chunked"],
            &["xchunked"],
            &["identity"],
            &[],
        ] {
            assert!(!is_chunked(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn no_other_spelling_of_a_name_stays() {
        let mut headers = map(&[
            ("x-queue-ms", "1"),
            ("x_queue_ms", "2"),
            ("x_queue-ms", "3"),
            ("x-queue_ms", "4"),
            ("x-queue-msx", "5"),
            ("x_mine", "6"),
        ]);
        remove_disguised(&mut headers, &[HeaderName::from_static("x-queue-ms")]);
        let stays = [("x-queue-ms", "1"), ("x-queue-msx", "5"), ("x_mine", "6")];
        assert_eq!(headers, map(&stays));
    }

    #[test]
    fn trailers_carry_no_framing_and_nothing_of_the_client() {
        let mut trailers = map(&[
            ("grpc-status", "0"),
            ("content-length", "7"),
            ("transfer-encoding", "chunked"),
            ("host", "x"),
            ("content_length", "7"),
            ("expect", "100-continue"),
            ("cookie", "a=b"),
            ("x-real-ip", "198.51.100.1"),
            ("x-forwarded-user", "root"),
            ("x_client_subject", "CN=root"),
        ]);
        clean_trailers(&mut trailers);
        assert_eq!(trailers, map(&[("grpc-status", "0")]));
    }
}
