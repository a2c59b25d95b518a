//! Several ranges of a file as one body: `multipart/byteranges` (RFC 9110, 14.6).

use crate::answer::visible;
use crate::body::Source;
use crate::files::File;
use crate::range::ByteRange;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use std::collections::VecDeque;
use std::sync::Arc;

/// Several parts of a file.
#[derive(Debug)]
pub struct Multipart {
    /// The value of `Content-Type`.
    pub content_type: HeaderValue,
    /// The parts with what stands between them.
    pub source: Source,
    /// How long that is.
    pub byte_count: u64,
}

/// Puts the `ranges` of `file` into one body; a part on disk is read `chunk_bytes` at a time. The `boundary` must be
/// nothing that a file is likely to hold.
pub fn build(
    file: &Arc<File>,
    ranges: &[ByteRange],
    boundary: &str,
    chunk_bytes: usize,
) -> Multipart {
    let content_type = file.headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or("application/octet-stream");
    let mut sources = VecDeque::with_capacity(2 * ranges.len() + 1);
    let mut byte_count = 0;
    // Also before the first boundary, as nginx and Apache send it: zsync reads a line there.
    let line_end = "\r\n";
    for &range in ranges {
        let ByteRange { first, last } = range;
        let heading = format!(
            "{line_end}--{boundary}\r\ncontent-type: {content_type}\r\ncontent-range: bytes {first}-{last}/{}\r\n\r\n",
            file.len
        );
        byte_count += heading.len() as u64 + range.byte_count();
        sources.push_back(Source::Memory(Bytes::from(heading)));
        sources.push_back(Source::part(file, first, last + 1, chunk_bytes));
    }
    let end = format!("{line_end}--{boundary}--\r\n");
    byte_count += end.len() as u64;
    sources.push_back(Source::Memory(Bytes::from(end)));
    Multipart {
        content_type: visible(format!("multipart/byteranges; boundary={boundary}")),
        source: Source::Chain(sources),
        byte_count,
    }
}
