//! What comes to the client of an upstream's response: pure, like its counterpart for requests.

use super::headers::{self, Length};
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, Method, StatusCode, Version};

/// How the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none; `Content-Length`, if it is still there, says how long it would have been.
    NoBody,
    /// After so many bytes, which `Content-Length` says as well.
    Exact(u64),
    /// When it does; there is no `Content-Length`.
    UntilEnd,
}

/// Why a response is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadResponse {
    /// RFC 9112, 6.3: a proxy between may have been tricked.
    #[error("it has both Content-Length and Transfer-Encoding")]
    BothLengths,
    /// `Content-Length` contradicts itself or the body.
    #[error("its Content-Length is not one number")]
    ContentLength,
    /// The client could not read it.
    #[error("it has a transfer coding other than chunked")]
    TransferCoding,
    /// A switch of protocols that the client did not request, or a preliminary response as the last
    /// one.
    #[error("its status is not one of a final response")]
    Status,
}

/// The one protocol that a client may be told to switch to; `h2c` would bypass every rule here.
const SWITCHABLE: &str = "websocket";

/// Makes `headers` of a response the client's, and says how its body ends. `body_bytes` is its
/// length as the engine has understood it, `None` where only the end tells.
pub fn incoming(
    method: &Method,
    status: StatusCode,
    version: Version,
    headers: &mut HeaderMap,
    body_bytes: Option<u64>,
) -> Result<Framing, BadResponse> {
    if status.is_informational() {
        return Err(BadResponse::Status);
    }
    let length = headers::content_length(headers);
    // No coding at all (RFC 2616, 3.6): the body ends with the connection.
    if length == Length::Absent && headers::is_identity_alone(headers) {
        headers.remove(TRANSFER_ENCODING);
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        if length != Length::Absent {
            return Err(BadResponse::BothLengths);
        }
        if !headers::is_chunked_alone(headers) {
            return Err(BadResponse::TransferCoding);
        }
    }
    if length == Length::Conflicting {
        return Err(BadResponse::ContentLength);
    }
    let must_switch =
        status == StatusCode::UPGRADE_REQUIRED && headers::has_token(headers, &UPGRADE, SWITCHABLE);
    pass_on(headers, version);
    if must_switch {
        // RFC 9110, 15.5.22: it says to what.
        set_upgrade(headers, HeaderValue::from_static(SWITCHABLE));
    }
    let framing = framing(method, status, length, body_bytes)?;
    headers.remove(CONTENT_LENGTH);
    if framing != Framing::UntilEnd {
        headers.remove(TRAILER);
    }
    match (framing, length) {
        (Framing::Exact(bytes), _) => set_length(headers, bytes),
        (Framing::NoBody, Length::Exact(bytes))
            if *method == Method::HEAD && may_have_length(status) =>
        {
            set_length(headers, bytes);
        }
        _ => {}
    }
    Ok(framing)
}

/// Makes `headers` of a response with status 101 the client's, who has `requested` for a protocol.
/// It has no body.
pub fn switching(
    requested: Option<&HeaderValue>,
    version: Version,
    headers: &mut HeaderMap,
) -> Result<(), BadResponse> {
    let is_agreed = |protocol: &&HeaderValue| {
        protocol
            .to_str()
            .is_ok_and(|protocol| headers::has_token(headers, &UPGRADE, protocol))
    };
    let protocol = requested.filter(is_agreed).ok_or(BadResponse::Status)?;
    pass_on(headers, version);
    headers.remove(CONTENT_LENGTH);
    set_upgrade(headers, protocol.clone());
    Ok(())
}

fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

fn pass_on(headers: &mut HeaderMap, version: Version) {
    headers::remove_hop_by_hop(headers);
    headers::add_via(headers, version);
}

fn framing(
    method: &Method,
    status: StatusCode,
    length: Length,
    body_bytes: Option<u64>,
) -> Result<Framing, BadResponse> {
    let has_no_body = *method == Method::HEAD || !may_have_length(status);
    if has_no_body {
        return Ok(Framing::NoBody);
    }
    match (body_bytes, length) {
        (Some(bytes), Length::Exact(length)) if bytes != length => Err(BadResponse::ContentLength),
        (None, Length::Exact(_)) => Err(BadResponse::ContentLength),
        (Some(bytes), _) => Ok(Framing::Exact(bytes)),
        (None, _) => Ok(Framing::UntilEnd),
    }
}

/// RFC 9110, 8.6 and 15.3.6: not these. For 304 it may, and would only say what the client's copy
/// has already.
fn may_have_length(status: StatusCode) -> bool {
    !matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    )
}

fn set_length(headers: &mut HeaderMap, bytes: u64) {
    headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::tests::map;

    /// The framing and the `Content-Length` a client sees.
    fn seen(
        method: Method,
        status: u16,
        lines: &[(&str, &str)],
        body_bytes: Option<u64>,
    ) -> Result<(Framing, Option<String>), BadResponse> {
        let mut headers = map(lines);
        let status = StatusCode::from_u16(status).unwrap();
        let framing = incoming(&method, status, Version::HTTP_11, &mut headers, body_bytes)?;
        assert!(!headers.contains_key(TRANSFER_ENCODING));
        let length = headers
            .get(CONTENT_LENGTH)
            .map(|value| value.to_str().unwrap().to_owned());
        Ok((framing, length))
    }

    #[test]
    fn a_length_that_is_known_is_said_and_one_that_is_not_is_not() {
        let get = |lines: &[(&str, &str)], bytes| seen(Method::GET, 200, lines, bytes);
        let five = Ok((Framing::Exact(5), Some("5".into())));
        assert_eq!(get(&[("content-length", "5")], Some(5)), five);
        assert_eq!(
            get(&[("content-length", "5"), ("content-length", "5")], Some(5)),
            five
        );
        assert_eq!(
            get(&[("transfer-encoding", "chunked")], None),
            Ok((Framing::UntilEnd, None))
        );
        assert_eq!(get(&[], None), Ok((Framing::UntilEnd, None)));
        assert_eq!(get(&[], Some(0)), Ok((Framing::Exact(0), Some("0".into()))));
    }

    #[test]
    fn responses_without_body_have_none_whatever_they_say() {
        let length = [("content-length", "5")];
        assert_eq!(
            seen(Method::HEAD, 200, &length, Some(0)),
            Ok((Framing::NoBody, Some("5".into())))
        );
        for status in [204, 205, 304] {
            assert_eq!(
                seen(Method::GET, status, &length, Some(0)),
                Ok((Framing::NoBody, None))
            );
        }
    }

    #[test]
    fn the_identity_is_no_transfer_coding() {
        let get = |lines: &[(&str, &str)]| seen(Method::GET, 200, lines, None);
        let identity = ("transfer-encoding", "Identity");
        assert_eq!(get(&[identity]), Ok((Framing::UntilEnd, None)));
        assert_eq!(get(&[identity, identity]), Err(BadResponse::TransferCoding));
        assert_eq!(
            get(&[identity, ("content-length", "5")]),
            Err(BadResponse::BothLengths)
        );
    }

    #[test]
    fn two_lengths_are_none() {
        let get = |lines: &[(&str, &str)], bytes| seen(Method::GET, 200, lines, bytes).unwrap_err();
        assert_eq!(
            get(
                &[("content-length", "5"), ("transfer-encoding", "chunked")],
                None
            ),
            BadResponse::BothLengths
        );
        assert_eq!(
            get(&[("content-length", "5"), ("content-length", "6")], Some(5)),
            BadResponse::ContentLength
        );
        assert_eq!(
            get(&[("content-length", "5")], Some(6)),
            BadResponse::ContentLength
        );
        assert_eq!(
            get(&[("transfer-encoding", "gzip, chunked")], None),
            BadResponse::TransferCoding
        );
        assert_eq!(
            seen(Method::GET, 101, &[], Some(0)).unwrap_err(),
            BadResponse::Status
        );
    }

    #[test]
    fn headers_of_the_connection_stay_here_and_the_rest_comes() {
        let mut headers = map(&[
            ("connection", "x-mine"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=5"),
            ("set-cookie", "a"),
            ("set-cookie", "b"),
            ("priority", "u=1"),
        ]);
        incoming(
            &Method::GET,
            StatusCode::OK,
            Version::HTTP_2,
            &mut headers,
            None,
        )
        .unwrap();
        let kept = [
            ("set-cookie", "a"),
            ("set-cookie", "b"),
            ("priority", "u=1"),
            ("via", "2 sooner"),
        ];
        assert_eq!(headers, map(&kept));
    }

    #[test]
    fn a_client_that_must_switch_is_told_to_what() {
        let seen = |status, protocols| {
            let mut headers = map(&[("connection", "upgrade"), ("upgrade", protocols)]);
            incoming(&Method::GET, status, Version::HTTP_11, &mut headers, None).unwrap();
            headers
        };
        let via = ("via", "1.1 sooner");
        let told = [via, ("connection", "upgrade"), ("upgrade", "websocket")];
        let required = StatusCode::UPGRADE_REQUIRED;
        assert_eq!(seen(required, "h2c, WebSocket"), map(&told));
        assert_eq!(seen(required, "h2c"), map(&[via]));
        assert_eq!(seen(StatusCode::OK, "websocket"), map(&[via]));
    }

    #[test]
    fn a_switch_that_was_agreed_on_is_passed_on() {
        let length = [
            ("connection", "Upgrade, x-mine"),
            ("x-mine", "1"),
            ("upgrade", "websocket"),
            ("content-length", "0"),
            ("sec-websocket-accept", "x"),
        ];
        let websocket = HeaderValue::from_static("WebSocket");
        let mut headers = map(&length);
        switching(Some(&websocket), Version::HTTP_11, &mut headers).unwrap();
        let kept = [
            ("sec-websocket-accept", "x"),
            ("via", "1.1 sooner"),
            ("connection", "upgrade"),
            ("upgrade", "WebSocket"),
        ];
        assert_eq!(headers, map(&kept));
        let other = HeaderValue::from_static("x");
        for requested in [None, Some(&other)] {
            let refused = switching(requested, Version::HTTP_11, &mut map(&length));
            assert_eq!(refused, Err(BadResponse::Status));
        }
    }
}
