//! The head of a response as HTTP/2 sends it.

use super::date::date_now;
use crate::message::Answer;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, DATE, HeaderMap, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Response, StatusCode};

/// Removes what HTTP/2 has no use for (RFC 9113, 8.2.2), adds the date, and the length of a body that is `body_bytes` long.
pub fn complete_head(answer: &mut Answer, is_to_head: bool) {
    let headers = &mut answer.headers;
    remove_connection_fields(headers);
    if !headers.contains_key(DATE) {
        headers.insert(DATE, date_now());
    }
    let has_length = !is_to_head && may_have_body(answer.status);
    if let Some(body_bytes) = answer.source.len()
        && has_length
        && !headers.contains_key(CONTENT_LENGTH)
    {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body_bytes));
    }
}

/// Removes fields that speak of one connection of HTTP/1; a message with one of them is malformed in HTTP/2.
pub fn remove_connection_fields(headers: &mut HeaderMap) {
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE, TE] {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}

/// Whether a response with `status` has a body (RFC 9110, 6.4.1).
pub fn may_have_body(status: StatusCode) -> bool {
    !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED
}

/// The head alone, as the library takes it.
pub fn head_of(status: StatusCode, headers: HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Source;
    use bytes::Bytes;

    fn completed(status: StatusCode, source: Source, is_to_head: bool) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for name in ["connection", "keep-alive", "transfer-encoding", "etag"] {
            headers.insert(name, HeaderValue::from_static("x"));
        }
        let mut answer = Answer {
            status,
            headers,
            source,
        };
        complete_head(&mut answer, is_to_head);
        answer.headers
    }

    #[test]
    fn a_head_is_completed() {
        let body = || Source::Memory(Bytes::from_static(b"abc"));
        let headers = completed(StatusCode::OK, body(), false);
        assert_eq!(headers[CONTENT_LENGTH], "3");
        assert_eq!(headers["etag"], "x");
        assert!(headers.contains_key(DATE));
        assert_eq!(headers.len(), 3);
        let to_head = completed(StatusCode::OK, Source::Empty, true);
        assert!(!to_head.contains_key(CONTENT_LENGTH));
        let not_modified = completed(StatusCode::NOT_MODIFIED, Source::Empty, false);
        assert!(!not_modified.contains_key(CONTENT_LENGTH));
        let empty = completed(StatusCode::OK, Source::Empty, false);
        assert_eq!(empty[CONTENT_LENGTH], "0");
    }
}
