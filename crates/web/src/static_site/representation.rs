//! The answer with a file: which of its forms, all of it, some of it, or only that the client has
//! it already.

use crate::body::Source;
use crate::files::{File, Resource};
use crate::response::{Response, plain, plain_with, visible};
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    HeaderName, HeaderValue, RANGE,
};
use hyper::{HeaderMap, Method, Request, StatusCode};
use sooner_http::conditional::{self, Outcome, Validators};
use sooner_http::multipart::{Multipart, Piece};
use sooner_http::negotiation::AcceptEncoding;
use sooner_http::range::{self, ByteRange, Selection};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::SystemTime;

/// How files are sent.
#[derive(Debug)]
pub struct Delivery {
    /// Bytes read from a file at once.
    pub chunk_bytes: usize,
    /// Makes the boundaries of multipart bodies, so that none can be foreseen and put into a file.
    pub boundaries: RandomState,
}

/// An answer about a file.
#[derive(Debug)]
pub enum FileResponse {
    /// With the headers of the file, which hold all there is to say.
    Complete(Response, Arc<File>),
    /// A refusal: still to be made the site's own.
    Refusal(Response),
}

/// Answers a GET or HEAD at `now` with one of the forms of `resource`, where it `is_for_whole` with
/// no part of it.
pub fn response<B>(
    request: &Request<B>,
    resource: &Resource,
    delivery: &Delivery,
    is_for_whole: bool,
    now: SystemTime,
) -> FileResponse {
    let file = negotiate(request.headers(), resource);
    if !conditional::has_conditions_or_range(request.headers()) {
        return FileResponse::Complete(whole(file, StatusCode::OK, delivery), file.clone());
    }
    let validators = Validators {
        etag: &file.etag,
        modified: file.modified,
    };
    match conditional::evaluate(request.headers(), validators) {
        Outcome::Proceed => {}
        Outcome::NotModified => return FileResponse::Complete(not_modified(file), file.clone()),
        Outcome::Failed => {
            return FileResponse::Refusal(plain(
                StatusCode::PRECONDITION_FAILED,
                "the file is another version",
            ));
        }
    }
    let selection = match is_for_whole {
        true => Selection::Whole,
        false => selection(request, file, validators, now),
    };
    let response = match selection {
        Selection::Whole => whole(file, StatusCode::OK, delivery),
        Selection::Part(range) => part(file, range, delivery),
        Selection::Parts(ranges) => parts(file, &ranges, delivery),
        Selection::Unsatisfiable => {
            return FileResponse::Refusal(plain_with(
                StatusCode::RANGE_NOT_SATISFIABLE,
                "the file has no such bytes",
                CONTENT_RANGE,
                visible(format!("bytes */{}", file.len)),
            ));
        }
    };
    FileResponse::Complete(response, file.clone())
}

/// A complete file under any status.
pub fn whole(file: &Arc<File>, status: StatusCode, delivery: &Delivery) -> Response {
    Response {
        status,
        reason: None,
        headers: file.headers.clone(),
        source: Source::part(file, 0, file.len, delivery.chunk_bytes),
    }
}

/// The form the client wants; without a header it is the file itself.
fn negotiate<'a>(headers: &HeaderMap, resource: &'a Resource) -> &'a Arc<File> {
    if resource.encoded.is_empty() {
        return &resource.plain;
    }
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    let wanted = AcceptEncoding::parse(values.map(HeaderValue::as_bytes));
    let offered = resource.encoded.iter().map(|(coding, _)| *coding);
    let chosen = wanted.choose(offered);
    resource
        .encoded
        .iter()
        .find(|(coding, _)| Some(*coding) == chosen)
        .map_or(&resource.plain, |(_, file)| file)
}

fn selection<B>(
    request: &Request<B>,
    file: &File,
    validators: Validators<'_>,
    now: SystemTime,
) -> Selection {
    let headers = request.headers();
    let mut values = headers.get_all(RANGE).iter();
    let (Some(range), None) = (values.next(), values.next()) else {
        return Selection::Whole;
    };
    // A range has a meaning for GET alone (RFC 9110, 14.2).
    if request.method() != Method::GET || !conditional::range_applies(headers, validators, now) {
        return Selection::Whole;
    }
    range
        .to_str()
        .map_or(Selection::Whole, |range| range::parse(range, file.len))
}

fn part(file: &Arc<File>, range: ByteRange, delivery: &Delivery) -> Response {
    let ByteRange { first, last } = range;
    let mut headers = file.headers.clone();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(range.byte_count()));
    headers.insert(
        CONTENT_RANGE,
        visible(format!("bytes {first}-{last}/{}", file.len)),
    );
    Response {
        status: StatusCode::PARTIAL_CONTENT,
        reason: None,
        headers,
        source: Source::part(file, first, last + 1, delivery.chunk_bytes),
    }
}

/// Several parts; or everything where the file is compressed: a client could not tell whether the
/// coding is that of the whole body or of the parts in it. Parts that are longer than the file are
/// parts all the same, as with nginx: zsync takes nothing else.
fn parts(file: &Arc<File>, ranges: &[ByteRange], delivery: &Delivery) -> Response {
    if file.headers.contains_key(CONTENT_ENCODING) {
        return whole(file, StatusCode::OK, delivery);
    }
    let file_type = file.headers.get(CONTENT_TYPE);
    let file_type = file_type.and_then(|value| value.to_str().ok());
    let boundary = boundary(file, ranges, delivery);
    let multipart = Multipart::new(ranges, file_type, file.len, &boundary);
    let sources = multipart.pieces.into_iter().map(|piece| match piece {
        Piece::Text(text) => Source::Memory(text),
        Piece::Range(ByteRange { first, last }) => {
            Source::part(file, first, last + 1, delivery.chunk_bytes)
        }
    });
    let mut headers = file.headers.clone();
    headers.insert(CONTENT_TYPE, visible(multipart.content_type));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(multipart.byte_count));
    Response {
        status: StatusCode::PARTIAL_CONTENT,
        reason: None,
        headers,
        source: Source::Chain(sources.collect()),
    }
}

fn boundary(file: &File, ranges: &[ByteRange], delivery: &Delivery) -> String {
    let about = (file.etag.as_bytes(), ranges[0].first, ranges.len());
    let [one, two] = [0u8, 1].map(|salt| delivery.boundaries.hash_one((about, salt)));
    format!("{one:016x}{two:016x}")
}

fn not_modified(file: &File) -> Response {
    let mut headers = HeaderMap::with_capacity(file.headers.len());
    for (name, value) in &file.headers {
        if !describes_content(name) {
            headers.append(name, value.clone());
        }
    }
    Response {
        status: StatusCode::NOT_MODIFIED,
        reason: None,
        headers,
        source: Source::Empty,
    }
}

/// Whether a 304 leaves it out, because the content it is about is not sent (RFC 9110, 15.4.5).
fn describes_content(name: &HeaderName) -> bool {
    [
        CONTENT_TYPE,
        CONTENT_LENGTH,
        CONTENT_ENCODING,
        ACCEPT_RANGES,
    ]
    .contains(name)
}

#[cfg(test)]
mod tests {
    // The answers are looked at in the tests of the whole site; here is what they cannot see.
    use super::*;

    #[test]
    fn nobody_can_foresee_a_boundary() {
        let delivery = |boundaries| Delivery {
            chunk_bytes: 1,
            boundaries,
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "a").unwrap();
        let resource = super::super::tests::resource(folder.path(), "a");
        let ranges = [ByteRange { first: 0, last: 0 }];
        let (one, other) = (delivery(RandomState::new()), delivery(RandomState::new()));
        let of = |delivery| boundary(&resource.plain, &ranges, delivery);
        assert_eq!(of(&one), of(&one));
        assert_ne!(of(&one), of(&other));
        assert_eq!(of(&one).len(), 32);
    }
}
