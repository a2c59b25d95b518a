//! Responses to requests that get no file.

use super::location::FixedAnswer;
use crate::body::Source;
use crate::files::FileError;
use crate::response::{Response, plain, plain_with, visible};
use bytes::Bytes;
use hyper::header::{ALLOW, CONTENT_LENGTH, HeaderValue, LOCATION, RETRY_AFTER};
use hyper::{HeaderMap, StatusCode};
use sooner_http::target::{TargetError, directory_location};

/// The methods files have.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// A path that is not looked for.
pub fn of_target(error: TargetError) -> Response {
    match error {
        TargetError::Hidden => plain(StatusCode::FORBIDDEN, "hidden files are not served"),
        _ => plain(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

/// A file that cannot be sent.
pub fn of_file(error: &FileError) -> Response {
    match error {
        FileError::NotFound => not_found(),
        FileError::Forbidden => plain(StatusCode::FORBIDDEN, "not to be read"),
        FileError::Unreadable(_) => {
            plain(StatusCode::INTERNAL_SERVER_ERROR, "the file cannot be read")
        }
        FileError::Exhausted(_) => overloaded(),
    }
}

/// Nothing of that name.
pub fn not_found() -> Response {
    plain(StatusCode::NOT_FOUND, "no such file")
}

/// No descriptor or no memory for it now.
pub fn overloaded() -> Response {
    plain_with(
        StatusCode::SERVICE_UNAVAILABLE,
        "too much at once, try again",
        RETRY_AFTER,
        HeaderValue::from_static("1"),
    )
}

/// A method that files do not have.
pub fn of_method() -> Response {
    plain_with(
        StatusCode::METHOD_NOT_ALLOWED,
        "only GET and HEAD",
        ALLOW,
        HeaderValue::from_static(METHODS),
    )
}

/// The methods of files, in response to OPTIONS.
pub fn methods() -> Response {
    let mut headers = HeaderMap::with_capacity(1);
    headers.insert(ALLOW, HeaderValue::from_static(METHODS));
    Response {
        status: StatusCode::NO_CONTENT,
        reason: None,
        headers,
        source: Source::Empty,
    }
}

/// A redirect to the host of a request that names none.
pub fn without_host() -> Response {
    plain(StatusCode::BAD_REQUEST, "a request needs a host")
}

/// What every request for a location gets.
pub fn fixed(answer: &FixedAnswer) -> Response {
    let mut response = plain(answer.status, "nothing else is here");
    if answer.status == StatusCode::METHOD_NOT_ALLOWED {
        // No method is allowed, unless the site's headers say which are (RFC 9110, 10.2.1).
        response.headers.insert(ALLOW, HeaderValue::from_static(""));
    }
    let text = match (answer.status, &answer.text) {
        (StatusCode::NO_CONTENT, _) => {
            response.headers = HeaderMap::new();
            response.source = Source::Empty;
            return response;
        }
        (_, Some(text)) => Bytes::copy_from_slice(text.as_bytes()),
        (_, None) => return response,
    };
    let length = HeaderValue::from(text.len());
    response.headers.insert(CONTENT_LENGTH, length);
    response.source = Source::Memory(text);
    response
}

/// A directory without the slash at its end: relative links in it would go astray.
pub fn directory_without_slash(path: &[u8], query: Option<&str>) -> Response {
    let mut location = directory_location(path);
    if let Some(query) = query {
        location.push('?');
        location.push_str(query);
    }
    redirect_to(
        StatusCode::MOVED_PERMANENTLY,
        "a directory ends with a slash",
        location,
    )
}

/// A redirect.
pub fn redirect_to(status: StatusCode, what: &str, location: String) -> Response {
    plain_with(status, what, LOCATION, visible(location))
}
