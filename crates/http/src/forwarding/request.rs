//! What goes to the upstream for a client's request: pure, because what is left in or out here is
//! what smuggling needs.
//!
//! Nothing of the client's framing is passed on: the body has been read by its length or its
//! chunks, and is framed anew for the upstream. Headers of the connection go, those that say who
//! the client is are ours, and a request that the upstream might understand otherwise is refused.

mod head;

pub use head::Protocol;

use crate::fastcgi::Parameters;
use crate::forwarding::forwarded;
use crate::forwarding::headers::{self, Length, PSEUDONYM};
use crate::forwarding::routes::{has_dot_segment, without_prefix};
use crate::host;
use http::header::{
    CONNECTION, COOKIE, EXPECT, HOST, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, Method, StatusCode, Uri, Version};
use std::net::IpAddr;

/// How often a request may have been here before: more is a loop.
const HOPS_MAX: usize = 8;

/// Why a request is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// RFC 9112, 3.2: no Host, or two, or one that is none.
    #[error("a request needs exactly one valid Host")]
    Host,
    /// A coding of the transfer that is not undone here, so that the upstream would read something
    /// else.
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
pub struct Client {
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
    /// What a server over FastCGI is told beside the headers, which the head adds: together an
    /// extension of it.
    pub parameters: Option<Parameters>,
}

/// The authority a request is for, with its port if it names one (RFC 9112, 3.2 and 3.3; RFC 9113,
/// 8.3.1).
pub fn requested_authority(parts: &Parts) -> Result<Option<&str>, Refusal> {
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
    host::parse(authority.as_bytes()).is_some() && Authority::try_from(authority).is_ok()
}

/// What goes out for `parts`; `body_bytes` is how long the body is, if that is known.
pub fn outgoing(
    parts: &Parts,
    body_bytes: Option<u64>,
    client: &Client,
    rules: Rules<'_>,
) -> Result<Outgoing, Refusal> {
    if matches!(parts.method, Method::CONNECT | Method::TRACE) {
        return Err(Refusal::Method);
    }
    let host = requested_authority(parts)?;
    check_framing(parts, body_bytes)?;
    if hops(&parts.headers) >= HOPS_MAX {
        return Err(Refusal::Loop);
    }
    let target = target(&parts.uri, rules.strip_prefix)?;
    let mut out = end_to_end_headers(&parts.headers);
    if parts.version == Version::HTTP_2 {
        join_cookies(&mut out);
    }
    headers::add_via(&mut out, parts.version);
    forwarded::add_forwarded(&mut out, &parts.headers, client, host, rules.strip_prefix);
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
        parameters: None,
    })
}

/// The engine has read the body by one framing; here it must be the only one by which it can be
/// read.
fn check_framing(parts: &Parts, body_bytes: Option<u64>) -> Result<(), Refusal> {
    if parts.headers.contains_key(TRANSFER_ENCODING) && !headers::is_chunked_alone(&parts.headers) {
        return Err(Refusal::TransferCoding);
    }
    match (headers::content_length(&parts.headers), body_bytes) {
        (Length::Conflicting, _) => Err(Refusal::ContentLength),
        (Length::Exact(length), Some(bytes)) if length != bytes => Err(Refusal::ContentLength),
        _ => Ok(()),
    }
}

fn hops(headers: &HeaderMap) -> usize {
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
        // Behind an authority the path may be left out, and here there is none (RFC 9112, 3.2.1).
        return match whole.as_str() {
            "/" => Ok(PathAndQuery::from_static("/")),
            written if written.starts_with('/') => Ok(whole.clone()),
            written => PathAndQuery::try_from(format!("/{written}")).map_err(|_| Refusal::Target),
        };
    };
    let path = without_prefix(path, prefix);
    let target = match whole.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.into_owned(),
    };
    PathAndQuery::try_from(target).map_err(|_| Refusal::Target)
}

/// The end-to-end headers.
fn end_to_end_headers(received: &HeaderMap) -> HeaderMap {
    let named = headers::connection_options(received);
    let mut kept = HeaderMap::with_capacity(received.keys_len() + 8);
    for (name, value) in received {
        let stays = !headers::is_set_by_proxy(name)
            && !headers::is_hop_by_hop(name)
            && !forwarded::describes_client(name)
            && !named.contains(name);
        if stays {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

/// HTTP/2 may cut a cookie header into pieces; others take the first piece for all of it (RFC 9113,
/// 8.2.3).
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

#[cfg(test)]
mod tests;
