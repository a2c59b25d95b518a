//! Several ranges of a file as one body: `multipart/byteranges` (RFC 9110, 14.6).

use crate::range::ByteRange;
use bytes::Bytes;

/// The content type of a file of which none is known.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// A body that consists of several ranges of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Multipart {
    /// The value of `Content-Type`.
    pub content_type: String,
    /// The body, piece by piece.
    pub pieces: Vec<Piece>,
    /// The length of the body.
    pub byte_count: u64,
}

/// A piece of the body.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// A heading, or the end.
    Text(Bytes),
    /// Bytes of the file.
    Range(ByteRange),
}

impl Multipart {
    /// The body of `ranges` of a file of `file_bytes`. The `boundary` must be nothing that a file
    /// is likely to hold.
    pub fn new(
        ranges: &[ByteRange],
        file_type: Option<&str>,
        file_bytes: u64,
        boundary: &str,
    ) -> Self {
        let file_type = file_type.unwrap_or(UNKNOWN_TYPE);
        let mut pieces = Vec::with_capacity(2 * ranges.len() + 1);
        let mut byte_count = 0;
        // Also before the first boundary, as nginx and Apache send it: zsync reads a line there.
        let line_end = "\r\n";
        for &range in ranges {
            let ByteRange { first, last } = range;
            let heading = format!(
                "{line_end}--{boundary}\r\n\
                 content-type: {file_type}\r\n\
                 content-range: bytes {first}-{last}/{file_bytes}\r\n\r\n"
            );
            byte_count += heading.len() as u64 + range.byte_count();
            pieces.push(Piece::Text(Bytes::from(heading)));
            pieces.push(Piece::Range(range));
        }
        let end = format!("{line_end}--{boundary}--\r\n");
        byte_count += end.len() as u64;
        pieces.push(Piece::Text(Bytes::from(end)));
        Self {
            content_type: format!("multipart/byteranges; boundary={boundary}"),
            pieces,
            byte_count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_has_its_heading_and_the_length_is_that_of_all_pieces() {
        let range = |first, last| ByteRange { first, last };
        let ranges = [range(0, 1), range(8, 8)];
        let multipart = Multipart::new(&ranges, Some("text/plain"), 9, "B");
        let texts: Vec<_> = multipart
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                Piece::Range(range) => "x".repeat(range.byte_count() as usize),
            })
            .collect();
        assert_eq!(multipart.content_type, "multipart/byteranges; boundary=B");
        assert_eq!(texts.concat().len() as u64, multipart.byte_count);
        assert_eq!(
            texts.concat(),
            "\r\n--B\r\ncontent-type: text/plain\r\ncontent-range: bytes 0-1/9\r\n\r\nxx\
             \r\n--B\r\ncontent-type: text/plain\r\ncontent-range: bytes 8-8/9\r\n\r\nx\
             \r\n--B--\r\n"
        );
    }
}
