//! What goes to the upstream for a client's request: pure, because what is left in or out here is what smuggling needs.
//!
//! Nothing of the client's framing is passed on: the body has been read by its length or its chunks, and is framed anew for the
//! upstream. Headers of the connection go, those that say who the client is are ours, and a request whose meaning the upstream might
//! see otherwise than we do is refused.

use super::forwarded::{self, Client};
use super::headers::{self, Length, PSEUDONYM};
use super::routes::{has_dot_segment, without_prefix};
use crate::static_site::host as host_header;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use hyper::http::request::Parts;
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use std::net::IpAddr;

/// How often a request may have been here before: more is a loop.
const VISITS_MAX: usize = 8;

/// Why a request is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// RFC 9112, 3.2: no Host, or two, or one that is none.
    #[error("a request needs exactly one valid Host")]
    Host,
    /// A coding of the transfer that is not undone here, so that the upstream would read something else.
    #[error("no transfer coding but chunked is understood")]
    TransferCoding,
    /// `Content-Length` contradicts itself or the body.
    #[error("the Content-Length is not one number")]
    ContentLength,
    /// A path that may mean another one behind us.
    #[error("a path with the segment . or .. is not passed on")]
    DotSegment,
    /// CONNECT asks for a tunnel to anywhere, TRACE for the headers that were added here.
    #[error("this method is not passed on")]
    Method,
    /// No path.
    #[error("the request has no path")]
    Target,
    /// The request comes round again.
    #[error("the request has been here before: the upstream leads back to this server")]
    Loop,
}

impl Refusal {
    /// The status that says so.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::ContentLength | Self::DotSegment | Self::Target => {
                StatusCode::BAD_REQUEST
            }
            Self::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Loop => StatusCode::LOOP_DETECTED,
        }
    }
}

/// What a route says of its requests.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The prefix the upstream does not get.
    pub strip_prefix: Option<&'a str>,
    /// The protocols a client may switch to, in lower case.
    pub upgrades: &'a [String],
    /// Whether the upstream gets the client's `Host`.
    pub keeps_host: bool,
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The client's address.
    pub address: IpAddr,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Whether what it says of others is believed.
    pub is_trusted: bool,
    /// The subject of the certificate it showed.
    pub subject: Option<String>,
}

/// A request as it goes out, but for what depends on the server and its protocol.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub target: PathAndQuery,
    /// All headers but those of framing and of the connection.
    pub headers: HeaderMap,
    /// The host to ask for; `None`: the server's own name.
    pub host: Option<HeaderValue>,
    /// The protocol the client would like to switch to.
    pub upgrade: Option<HeaderValue>,
    /// Whether the client waits for `100 Continue` with its body.
    pub expects_continue: bool,
    /// Whether the client takes trailers.
    pub takes_trailers: bool,
}

/// What an upstream is spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// The authority a request is for, with its port if it names one (RFC 9112, 3.2 and 3.3; RFC 9113, 8.3.1).
pub fn asked_host(parts: &Parts) -> Result<Option<&str>, Refusal> {
    let mut lines = parts.headers.get_all(HOST).iter();
    let line = lines.next();
    if lines.next().is_some() {
        return Err(Refusal::Host);
    }
    let line = match line {
        Some(line) => Some(line.to_str().map_err(|_| Refusal::Host)?.trim()),
        None => None,
    };
    let host = match (parts.uri.authority(), line) {
        // HTTP/2 has the host twice, and two hosts are two meanings. In HTTP/1 the target's counts.
        (Some(authority), Some(line))
            if parts.version == Version::HTTP_2
                && !authority.as_str().eq_ignore_ascii_case(line) =>
        {
            return Err(Refusal::Host);
        }
        (Some(authority), _) => authority.as_str(),
        (None, Some(line)) => line,
        (None, None) if parts.version == Version::HTTP_11 => return Err(Refusal::Host),
        (None, None) => return Ok(None),
    };
    if host.is_empty() {
        return Ok(None);
    }
    is_host(host).then_some(Some(host)).ok_or(Refusal::Host)
}

fn is_host(authority: &str) -> bool {
    host_header::parse(authority.as_bytes()).is_some() && Authority::try_from(authority).is_ok()
}

/// What goes out for `parts`; `body_bytes` is how long the body is, if that is known.
pub fn outgoing(
    parts: &Parts,
    body_bytes: Option<u64>,
    asker: &Asker,
    rules: Rules<'_>,
) -> Result<Outgoing, Refusal> {
    if matches!(parts.method, Method::CONNECT | Method::TRACE) {
        return Err(Refusal::Method);
    }
    let host = asked_host(parts)?;
    check_framing(parts, body_bytes)?;
    if visits(&parts.headers) >= VISITS_MAX {
        return Err(Refusal::Loop);
    }
    let target = target(&parts.uri, rules.strip_prefix)?;
    let mut out = end_to_end(&parts.headers);
    if parts.version == Version::HTTP_2 {
        join_cookies(&mut out);
    }
    headers::add_via(&mut out, parts.version);
    let client = Client {
        address: asker.address,
        scheme: asker.scheme,
        host,
        is_trusted: asker.is_trusted,
        prefix: rules.strip_prefix,
        subject: asker.subject.as_deref(),
    };
    forwarded::tell(&mut out, &parts.headers, client);
    let expects_continue = body_bytes != Some(0)
        && parts.version != Version::HTTP_10
        && headers::has_token(&parts.headers, &EXPECT, "100-continue");
    Ok(Outgoing {
        method: parts.method.clone(),
        target,
        headers: out,
        host: match host {
            Some(host) if rules.keeps_host => {
                Some(HeaderValue::from_str(host).map_err(|_| Refusal::Host)?)
            }
            _ => None,
        },
        upgrade: upgrade(parts, rules.upgrades),
        expects_continue,
        takes_trailers: headers::tokens(&parts.headers, &TE)
            .any(|coding| coding.eq_ignore_ascii_case("trailers")),
    })
}

/// The engine has read the body by one framing; here it must be the only one anybody could have read it by.
fn check_framing(parts: &Parts, body_bytes: Option<u64>) -> Result<(), Refusal> {
    if parts.headers.contains_key(TRANSFER_ENCODING) && !headers::is_chunked_alone(&parts.headers) {
        return Err(Refusal::TransferCoding);
    }
    match (headers::content_length(&parts.headers), body_bytes) {
        (Length::Contradictory, _) => Err(Refusal::ContentLength),
        (Length::Said(said), Some(bytes)) if said != bytes => Err(Refusal::ContentLength),
        _ => Ok(()),
    }
}

fn visits(headers: &HeaderMap) -> usize {
    headers::tokens(headers, &VIA)
        .filter(|visit| visit.split_whitespace().nth(1) == Some(PSEUDONYM))
        .count()
}

fn target(uri: &Uri, strip_prefix: Option<&str>) -> Result<PathAndQuery, Refusal> {
    let whole = uri.path_and_query().ok_or(Refusal::Target)?;
    let path = whole.path();
    if !path.starts_with('/') {
        return Err(Refusal::Target);
    }
    if has_dot_segment(path) {
        return Err(Refusal::DotSegment);
    }
    let Some(prefix) = strip_prefix else {
        return Ok(whole.clone());
    };
    let path = without_prefix(path, prefix);
    let target = match whole.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.into_owned(),
    };
    PathAndQuery::try_from(target).map_err(|_| Refusal::Target)
}

/// The headers meant for whoever answers.
fn end_to_end(said: &HeaderMap) -> HeaderMap {
    let named = headers::named_by_connection(said);
    let mut kept = HeaderMap::with_capacity(said.keys_len() + 8);
    for (name, value) in said {
        let stays = !is_ours_to_say(name)
            && !headers::is_of_one_connection(name)
            && !forwarded::speaks_of_the_client(name)
            && !named.contains(name);
        if stays {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

/// What is written anew for the connection to the upstream, also where `_` is taken for `-`.
fn is_ours_to_say(name: &HeaderName) -> bool {
    matches!(*name, HOST | CONTENT_LENGTH | EXPECT)
        || matches!(name.as_str(), "content_length" | "transfer_encoding")
}

/// HTTP/2 may cut a cookie header into pieces; others take the first piece for all of it (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let pieces: Vec<&[u8]> = headers
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if let Ok(whole) = HeaderValue::from_bytes(&pieces.join(&b"; "[..])) {
        headers.insert(COOKIE, whole);
    }
}

/// The first protocol the client would switch to that the route allows.
fn upgrade(parts: &Parts, allowed: &[String]) -> Option<HeaderValue> {
    let asks = parts.version == Version::HTTP_11
        && headers::has_token(&parts.headers, &CONNECTION, "upgrade");
    if !asks {
        return None;
    }
    headers::tokens(&parts.headers, &UPGRADE)
        .find(|protocol| {
            allowed
                .iter()
                .any(|known| known.eq_ignore_ascii_case(protocol))
        })
        .and_then(|protocol| HeaderValue::from_str(protocol).ok())
}

impl Outgoing {
    /// The head for a server called `authority`, spoken to over `wire`; `body_bytes` as far as it is known.
    pub fn head(
        &self,
        wire: Wire,
        authority: &str,
        is_tls: bool,
        body_bytes: Option<u64>,
    ) -> Request<()> {
        let mut headers = HeaderMap::with_capacity(self.headers.keys_len() + 4);
        let host = match &self.host {
            Some(host) => host.clone(),
            None => HeaderValue::from_str(authority)
                .unwrap_or_else(|_| HeaderValue::from_static("localhost")),
        };
        let uri = match wire {
            Wire::Http1 => {
                headers.insert(HOST, host);
                Uri::from(self.target.clone())
            }
            Wire::Http2 => self.absolute(&host, is_tls),
        };
        headers.extend(self.headers.clone());
        self.frame(&mut headers, wire, body_bytes);
        self.connect(&mut headers, wire, body_bytes);
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        *request.version_mut() = match wire {
            Wire::Http1 => Version::HTTP_11,
            Wire::Http2 => Version::HTTP_2,
        };
        request
    }

    fn absolute(&self, host: &HeaderValue, is_tls: bool) -> Uri {
        let scheme = if is_tls { "https" } else { "http" };
        Uri::builder()
            .scheme(scheme)
            .authority(host.as_bytes())
            .path_and_query(self.target.clone())
            .build()
            // Not reached: hosts were checked. Without an authority the request is refused by the connection.
            .unwrap_or_else(|_| Uri::from(self.target.clone()))
    }

    fn frame(&self, headers: &mut HeaderMap, wire: Wire, body_bytes: Option<u64>) {
        let means_a_body = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        match body_bytes {
            Some(0) if !means_a_body => {}
            Some(bytes) => {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
            }
            None if wire == Wire::Http1 => {
                headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
            None => {}
        }
        if body_bytes.is_some() {
            headers.remove(TRAILER);
        }
    }

    fn connect(&self, headers: &mut HeaderMap, wire: Wire, body_bytes: Option<u64>) {
        match (wire, &self.upgrade) {
            (Wire::Http1, Some(protocol)) => {
                headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
                headers.insert(UPGRADE, protocol.clone());
            }
            (Wire::Http1, None) if self.takes_trailers => {
                headers.insert(CONNECTION, HeaderValue::from_static("te"));
                headers.insert(TE, HeaderValue::from_static("trailers"));
            }
            (Wire::Http2, _) if self.takes_trailers => {
                headers.insert(TE, HeaderValue::from_static("trailers"));
            }
            _ => {}
        }
        if wire == Wire::Http1 && self.expects_continue && body_bytes != Some(0) {
            headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKER: Asker = Asker {
        address: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
        scheme: "https",
        is_trusted: false,
        subject: None,
    };

    fn rules(upgrades: &[String]) -> Rules<'_> {
        Rules {
            strip_prefix: None,
            upgrades,
            keeps_host: true,
        }
    }

    fn parts(version: Version, uri: &str, lines: &[(&str, &str)]) -> Parts {
        let mut builder = Request::builder().version(version).uri(uri);
        for (name, value) in lines {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    fn out(lines: &[(&str, &str)], body_bytes: Option<u64>) -> Result<Outgoing, Refusal> {
        let websocket = ["websocket".to_owned()];
        let parts = parts(Version::HTTP_11, "/a?b", lines);
        outgoing(&parts, body_bytes, &ASKER, rules(&websocket))
    }

    /// The head as it would be written, `name: value` lines sorted.
    fn written(outgoing: &Outgoing, wire: Wire, body_bytes: Option<u64>) -> String {
        let head = outgoing.head(wire, "app:3000", false, body_bytes);
        let mut lines: Vec<String> = head
            .headers()
            .iter()
            .filter(|(name, _)| !forwarded::speaks_of_the_client(name))
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        format!("{} {} | {}", head.method(), head.uri(), lines.join(" | "))
    }

    #[test]
    fn the_framing_is_ours() {
        let sized = out(&[("host", "h"), ("content-length", "5")], Some(5)).unwrap();
        assert_eq!(
            written(&sized, Wire::Http1, Some(5)),
            "GET /a?b | content-length: 5 | host: h | via: 1.1 sooner"
        );
        let chunked = out(&[("host", "h"), ("transfer-encoding", "chunked")], None).unwrap();
        assert_eq!(
            written(&chunked, Wire::Http1, None),
            "GET /a?b | host: h | transfer-encoding: chunked | via: 1.1 sooner"
        );
        assert_eq!(
            written(&chunked, Wire::Http2, None),
            "GET http://h/a?b | via: 1.1 sooner"
        );
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let refusals = [
            (vec![], Refusal::Host),
            (vec![("host", "a"), ("host", "a")], Refusal::Host),
            (vec![("host", "a b")], Refusal::Host),
            (vec![("host", "u@a")], Refusal::Host),
            (vec![("host", "a/b")], Refusal::Host),
            (
                vec![
                    ("host", "a"),
                    ("content-length", "1"),
                    ("content-length", "2"),
                ],
                Refusal::ContentLength,
            ),
            (
                vec![("host", "a"), ("content-length", "7")],
                Refusal::ContentLength,
            ),
            (
                vec![("host", "a"), ("transfer-encoding", "gzip, chunked")],
                Refusal::TransferCoding,
            ),
            (
                vec![
                    ("host", "a"),
                    ("transfer-encoding", "chunked"),
                    ("transfer-encoding", "identity"),
                ],
                Refusal::TransferCoding,
            ),
        ];
        for (lines, refusal) in refusals {
            assert_eq!(out(&lines, Some(0)).unwrap_err(), refusal, "{lines:?}");
        }
        let dots = parts(Version::HTTP_11, "/a/%2e%2e/b", &[("host", "h")]);
        let dots = outgoing(&dots, Some(0), &ASKER, rules(&[]));
        assert_eq!(dots.unwrap_err(), Refusal::DotSegment);
    }

    #[test]
    fn the_host_of_the_target_counts() {
        let absolute = parts(Version::HTTP_11, "http://real/a", &[("host", "other")]);
        assert_eq!(asked_host(&absolute), Ok(Some("real")));
        let two = parts(Version::HTTP_2, "http://real/a", &[("host", "other")]);
        assert_eq!(asked_host(&two), Err(Refusal::Host));
        let old = parts(Version::HTTP_10, "/a", &[]);
        assert_eq!(asked_host(&old), Ok(None));
        // No part of the absolute form goes further.
        let out = outgoing(&absolute, Some(0), &ASKER, rules(&[])).unwrap();
        assert_eq!(
            written(&out, Wire::Http1, Some(0)),
            "GET /a | host: real | via: 1.1 sooner"
        );
    }

    #[test]
    fn headers_of_the_connection_and_about_the_client_stay_here() {
        let out = out(
            &[
                ("host", "h"),
                ("connection", "close, x-secret"),
                ("x-secret", "1"),
                ("x-kept", "1"),
                ("x_forwarded_for", "1.2.3.4"),
                ("x-real-ip", "1.2.3.4"),
                ("content_length", "9"),
                ("http2-settings", "AAA"),
                ("upgrade", "h2c"),
            ],
            Some(0),
        )
        .unwrap();
        assert_eq!(
            written(&out, Wire::Http1, Some(0)),
            "GET /a?b | host: h | via: 1.1 sooner | x-kept: 1"
        );
        assert_eq!(out.headers["x-forwarded-for"], "192.0.2.7");
    }

    #[test]
    fn only_protocols_the_route_names_are_switched_to() {
        let asked = |protocol| {
            let lines = [
                ("host", "h"),
                ("connection", "Upgrade"),
                ("upgrade", protocol),
            ];
            out(&lines, Some(0)).unwrap().upgrade
        };
        assert_eq!(asked("WebSocket").unwrap(), "WebSocket");
        assert_eq!(asked("h2c, websocket").unwrap(), "websocket");
        assert_eq!(asked("h2c"), None);
        let out = out(
            &[
                ("host", "h"),
                ("connection", "upgrade"),
                ("upgrade", "websocket"),
            ],
            Some(0),
        )
        .unwrap();
        assert_eq!(
            written(&out, Wire::Http1, Some(0)),
            "GET /a?b | connection: upgrade | host: h | upgrade: websocket | via: 1.1 sooner"
        );
    }

    #[test]
    fn pieces_of_a_cookie_become_one() {
        let parts = parts(
            Version::HTTP_2,
            "https://h/",
            &[("cookie", "a=1"), ("cookie", "b=2")],
        );
        let out = outgoing(&parts, Some(0), &ASKER, rules(&[])).unwrap();
        assert_eq!(out.headers["cookie"], "a=1; b=2");
        assert_eq!(out.headers.get_all("cookie").iter().count(), 1);
    }

    #[test]
    fn a_loop_ends() {
        let once = ("via", "1.1 sooner");
        let lines: Vec<_> = [("host", "h")]
            .into_iter()
            .chain([once; VISITS_MAX])
            .collect();
        assert_eq!(out(&lines, Some(0)).unwrap_err(), Refusal::Loop);
        assert!(out(&[("host", "h"), once, ("via", "1.1 soonerish")], Some(0)).is_ok());
    }

    #[test]
    fn trailers_and_expectations_go_through() {
        let out = out(
            &[
                ("host", "h"),
                ("te", "trailers"),
                ("expect", "100-Continue"),
                ("trailer", "x-sum"),
            ],
            None,
        )
        .unwrap();
        assert_eq!(
            written(&out, Wire::Http1, None),
            "GET /a?b | connection: te | expect: 100-continue | host: h | te: trailers | trailer: x-sum | transfer-encoding: chunked | via: 1.1 sooner"
        );
    }
}
