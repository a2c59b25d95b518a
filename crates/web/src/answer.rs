//! What to answer to a request: status, headers and where the bytes come from. Nothing is sent here.

use crate::body::Source;
use crate::conditional::{self, Outcome, Version};
use crate::files::{File, FileCache, FileError, Found};
use crate::range::{self, Selection};
use crate::target::{self, TargetError};
use bytes::Bytes;
use hyper::header::{
    ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HOST, HeaderValue, LAST_MODIFIED,
    LOCATION, RANGE, RETRY_AFTER,
};
use hyper::{HeaderMap, Method, Request, StatusCode};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// The file that stands for a directory.
const INDEX: &[u8] = b"index.html";

/// A response that has not been sent.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// All headers but those that depend on the connection and on the clock.
    pub headers: HeaderMap,
    /// The body.
    pub source: Source,
}

/// Answers a request for a file out of `files`; a body from disk is read `chunk_bytes` at a time.
pub fn answer<B>(
    request: &Request<B>,
    files: &mut FileCache,
    chunk_bytes: usize,
    now: Instant,
) -> Answer {
    let mut answer = match *request.method() {
        Method::GET | Method::HEAD => answer_get(request, files, chunk_bytes, now),
        _ => method_not_allowed(),
    };
    if request.method() == Method::HEAD {
        answer.source = Source::Empty;
    }
    answer
}

fn answer_get<B>(
    request: &Request<B>,
    files: &mut FileCache,
    chunk_bytes: usize,
    now: Instant,
) -> Answer {
    if !names_one_host(request) {
        return plain(
            StatusCode::BAD_REQUEST,
            "a request of HTTP/1.1 needs exactly one Host header",
        );
    }
    let target = match target::parse(request.uri().path()) {
        Ok(target) => target,
        Err(error) => return refuse_target(error),
    };
    let path = if target.is_directory {
        index_of(&target.path)
    } else {
        target.path
    };
    match files.find(&path, now) {
        Ok(Found::File(file)) => answer_file(request, &file, chunk_bytes),
        Ok(Found::Directory) if !target.is_directory => {
            redirect_to_directory(&path, request.uri().query())
        }
        Ok(Found::Directory) => refuse_file(&FileError::NotFound),
        Err(error) => refuse_file(&error),
    }
}

/// RFC 9112, 3.2: without it, or with two, the request is not to be answered.
fn names_one_host<B>(request: &Request<B>) -> bool {
    if request.version() != hyper::Version::HTTP_11 {
        return true;
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    hosts.next().is_some() && hosts.next().is_none()
}

fn index_of(directory: &[u8]) -> Cow<'static, [u8]> {
    match directory {
        b"" => Cow::Borrowed(INDEX),
        _ => Cow::Owned([directory, b"/", INDEX].concat()),
    }
}

fn answer_file<B>(request: &Request<B>, file: &Arc<File>, chunk_bytes: usize) -> Answer {
    let version = Version {
        etag: &file.etag,
        modified: file.modified,
    };
    match conditional::evaluate(request.headers(), version) {
        Outcome::NotModified => return not_modified(file),
        Outcome::Failed => {
            return plain(
                StatusCode::PRECONDITION_FAILED,
                "the file is another version",
            );
        }
        Outcome::Proceed => {}
    }
    match selection(request, file, version) {
        Selection::Whole => Answer {
            status: StatusCode::OK,
            headers: file.headers.clone(),
            source: Source::part(file, 0, file.len, chunk_bytes),
        },
        Selection::Part { first, last } => partial(file, first, last, chunk_bytes),
        Selection::Unsatisfiable => unsatisfiable(file),
    }
}

fn selection<B>(request: &Request<B>, file: &File, version: Version<'_>) -> Selection {
    let Some(range) = request.headers().get(RANGE) else {
        return Selection::Whole;
    };
    // A range has a meaning for GET alone (RFC 9110, 14.2).
    if request.method() != Method::GET || !conditional::range_applies(request.headers(), version) {
        return Selection::Whole;
    }
    range
        .to_str()
        .map_or(Selection::Whole, |range| range::parse(range, file.len))
}

fn partial(file: &Arc<File>, first: u64, last: u64, chunk_bytes: usize) -> Answer {
    let mut headers = file.headers.clone();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(last - first + 1));
    headers.insert(
        CONTENT_RANGE,
        visible(format!("bytes {first}-{last}/{}", file.len)),
    );
    Answer {
        status: StatusCode::PARTIAL_CONTENT,
        headers,
        source: Source::part(file, first, last + 1, chunk_bytes),
    }
}

fn unsatisfiable(file: &File) -> Answer {
    let mut answer = plain(
        StatusCode::RANGE_NOT_SATISFIABLE,
        "the file has no such bytes",
    );
    answer
        .headers
        .insert(CONTENT_RANGE, visible(format!("bytes */{}", file.len)));
    answer
}

fn not_modified(file: &File) -> Answer {
    let mut headers = HeaderMap::with_capacity(2);
    for name in [ETAG, LAST_MODIFIED] {
        if let Some(value) = file.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    Answer {
        status: StatusCode::NOT_MODIFIED,
        headers,
        source: Source::Empty,
    }
}

fn redirect_to_directory(path: &[u8], query: Option<&str>) -> Answer {
    let mut location = target::directory_location(path);
    if let Some(query) = query {
        location.push('?');
        location.push_str(query);
    }
    let mut answer = plain(
        StatusCode::MOVED_PERMANENTLY,
        "a directory ends with a slash",
    );
    answer.headers.insert(LOCATION, visible(location));
    answer
}

fn method_not_allowed() -> Answer {
    let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
    answer
        .headers
        .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    answer
}

fn refuse_target(error: TargetError) -> Answer {
    match error {
        TargetError::Hidden => plain(StatusCode::FORBIDDEN, "hidden files are not served"),
        _ => plain(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

fn refuse_file(error: &FileError) -> Answer {
    match error {
        FileError::NotFound => plain(StatusCode::NOT_FOUND, "no such file"),
        FileError::Forbidden => plain(StatusCode::FORBIDDEN, "not to be read"),
        FileError::Unreadable(_) => {
            plain(StatusCode::INTERNAL_SERVER_ERROR, "the file cannot be read")
        }
        FileError::Exhausted(_) => {
            let mut answer = plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "too much at once, try again",
            );
            answer
                .headers
                .insert(RETRY_AFTER, HeaderValue::from_static("1"));
            answer
        }
    }
}

/// A small body of plain text: the status and what is wrong.
fn plain(status: StatusCode, what: &str) -> Answer {
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

/// A value of our own making, or of a URI's characters: visible ASCII.
fn visible(value: String) -> HeaderValue {
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static(""))
}
