//! The head of a response as HTTP/2 sends it.

use crate::response::Response;
use hyper::StatusCode;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, DATE, HeaderMap, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
};
use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

thread_local! {
    static DATE_WRITTEN: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
}

/// The present time as HTTP writes it (RFC 9110, 5.6.7), written once a second.
fn date_now() -> HeaderValue {
    let now = SystemTime::now();
    let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    DATE_WRITTEN.with_borrow_mut(|written| match written {
        Some((second, date)) if *second == since_1970.as_secs() => date.clone(),
        stale => {
            let date = HeaderValue::from_str(&httpdate::fmt_http_date(now))
                .unwrap_or(HeaderValue::from_static(""));
            *stale = Some((since_1970.as_secs(), date.clone()));
            date
        }
    })
}

/// Removes what HTTP/2 has no use for (RFC 9113, 8.2.2), adds the date, and the length of a body
/// that is `body_bytes` long.
pub fn complete_head(response: &mut Response, is_to_head: bool) {
    let headers = &mut response.headers;
    remove_connection_fields(headers);
    if !headers.contains_key(DATE) {
        headers.insert(DATE, date_now());
    }
    let has_length = !is_to_head && may_have_body(response.status);
    if let Some(body_bytes) = response.source.len()
        && has_length
        && !headers.contains_key(CONTENT_LENGTH)
    {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body_bytes));
    }
}

/// Removes fields that speak of one connection of HTTP/1; a message with one of them is malformed
/// in HTTP/2.
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
pub fn head_of(status: StatusCode, headers: HeaderMap) -> hyper::Response<()> {
    let mut response = hyper::Response::new(());
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
        let mut response = Response {
            status,
            reason: None,
            headers,
            source,
        };
        complete_head(&mut response, is_to_head);
        response.headers
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

    #[test]
    fn the_date_is_a_date() {
        let date = date_now();
        let read = httpdate::parse_http_date(date.to_str().unwrap()).unwrap();
        let age = SystemTime::now().duration_since(read).unwrap();
        assert!(age.as_secs() < 60);
    }
}
