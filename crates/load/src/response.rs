//! One HTTP/1.1 response, read without I/O: bytes in, "how far" out.
//!
//! The head is parsed by httparse; of the body only the length is kept, because a load generator
//! that stored or copied bodies would measure itself. A body ends by Content-Length or at the end of
//! the stream; chunked bodies are refused, because the trace's sizes are lengths on the wire and
//! chunk framing would add to them unseen.

use crate::failure::Failure;

/// Longest response head accepted, in bytes.
pub const HEAD_MAX_BYTES: usize = 16 * 1024;
/// Most header fields accepted in one head.
const FIELDS_MAX: usize = 64;

/// How the end of the body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    EndOfStream,
}

/// What the head said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// Length of the head with its empty line, in bytes.
    pub bytes: u32,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
    framing: Framing,
}

/// A response being read.
#[derive(Debug, Default)]
pub struct Response {
    head: Option<Head>,
    partial_head: Vec<u8>,
    body_bytes: u64,
}

impl Response {
    /// Whatever still comes after a finished response, up to the end of the stream.
    pub fn rest_of_stream() -> Response {
        let head = Head {
            status: 200,
            bytes: 0,
            keep_alive: false,
            framing: Framing::EndOfStream,
        };
        Response {
            head: Some(head),
            ..Response::default()
        }
    }

    /// Takes the next bytes of the stream; returns how many of them were body. Fails on a broken
    /// head or on bytes past the body's end.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<u64, Failure> {
        let body = if self.head.is_some() {
            bytes.len()
        } else {
            self.receive_head(bytes)?
        };
        self.body_bytes += body as u64;
        match self.head {
            Some(Head {
                framing: Framing::Length(length),
                ..
            }) if self.body_bytes > length => Err(Failure::LongBody),
            _ => Ok(body as u64),
        }
    }

    /// Returns how many bytes at the end of `bytes` belong to the body.
    fn receive_head(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        if self.partial_head.is_empty() {
            self.head = parse_head(bytes)?;
            if let Some(head) = self.head {
                return Ok(bytes.len() - head.bytes as usize);
            }
        }
        self.partial_head.extend_from_slice(bytes);
        self.head = parse_head(&self.partial_head)?;
        match self.head {
            Some(head) => Ok(self.partial_head.len() - head.bytes as usize),
            None if self.partial_head.len() > HEAD_MAX_BYTES => Err(Failure::BadHead),
            None => Ok(0),
        }
    }

    /// The head, once it is complete.
    pub fn head(&self) -> Option<Head> {
        self.head
    }

    /// Body bytes received so far.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// True when the announced length has been received; false while only the end of the stream can tell.
    pub fn is_complete(&self) -> bool {
        matches!(self.head, Some(Head { framing: Framing::Length(length), .. }) if self.body_bytes == length)
    }

    /// Takes the end of the stream: fine after a body without a length, otherwise the response was cut.
    pub fn end_of_stream(&self) -> Result<(), Failure> {
        match self.head {
            Some(Head {
                framing: Framing::EndOfStream,
                ..
            }) => Ok(()),
            _ if self.is_complete() => Ok(()),
            Some(_) => Err(Failure::CutBody),
            None if self.partial_head.is_empty() => Err(Failure::ClosedBeforeResponse),
            None => Err(Failure::BadHead),
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Failure> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut fields);
    let head_bytes = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Failure::BadHead),
    };
    let status = parsed.code.ok_or(Failure::BadHead)?;
    let mut keep_alive = parsed.version == Some(1);
    let mut length = None;
    for field in parsed.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            length = Some(content_length(field.value, length)?);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(Failure::Chunked);
        } else if field.name.eq_ignore_ascii_case("connection") {
            keep_alive = says_keep_alive(field.value, keep_alive);
        }
    }
    let framing = match length {
        _ if status == 204 || status == 304 => Framing::Length(0),
        Some(length) => Framing::Length(length),
        None => Framing::EndOfStream,
    };
    keep_alive &= framing != Framing::EndOfStream;
    Ok(Some(Head {
        status,
        bytes: head_bytes as u32,
        keep_alive,
        framing,
    }))
}

/// Parses a Content-Length; a second one must agree with the first (RFC 9112, section 6.3).
fn content_length(value: &[u8], earlier: Option<u64>) -> Result<u64, Failure> {
    let digits = value.trim_ascii();
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let length = std::str::from_utf8(digits)
        .ok()
        .filter(|_| all_digits)
        .and_then(|text| text.parse().ok());
    match (length, earlier) {
        (Some(length), None) => Ok(length),
        (Some(length), Some(earlier)) if length == earlier => Ok(length),
        _ => Err(Failure::BadHead),
    }
}

fn says_keep_alive(value: &[u8], default: bool) -> bool {
    let mut options = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    if options
        .clone()
        .any(|option| option.eq_ignore_ascii_case(b"close"))
    {
        return false;
    }
    default || options.any(|option| option.eq_ignore_ascii_case(b"keep-alive"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<Response, Failure> {
        let mut response = Response::default();
        response.receive(bytes)?;
        Ok(response)
    }

    #[test]
    fn counts_head_and_body() {
        let response = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
        assert_eq!(response.head().unwrap().bytes, 38);
        assert_eq!(response.body_bytes(), 5);
        assert!(response.is_complete() && response.head().unwrap().keep_alive);
    }

    #[test]
    fn connection_close_and_http_1_0_end_the_connection() {
        let keeps = |head: &str| read(head.as_bytes()).unwrap().head().unwrap().keep_alive;
        assert!(!keeps(
            "HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n"
        ));
        assert!(!keeps("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"));
        assert!(keeps(
            "HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 0\r\n\r\n"
        ));
        assert!(
            !keeps("HTTP/1.1 200 OK\r\n\r\n"),
            "a body that ends with the stream ends the connection"
        );
    }

    #[test]
    fn a_cut_response_is_told_apart() {
        assert_eq!(
            read(b"").unwrap().end_of_stream(),
            Err(Failure::ClosedBeforeResponse)
        );
        assert_eq!(
            read(b"HTTP/1.1 2").unwrap().end_of_stream(),
            Err(Failure::BadHead)
        );
        assert_eq!(
            read(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell")
                .unwrap()
                .end_of_stream(),
            Err(Failure::CutBody)
        );
        assert_eq!(
            read(b"HTTP/1.1 200 OK\r\n\r\nhell")
                .unwrap()
                .end_of_stream(),
            Ok(())
        );
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let fails = |text: &str| read(text.as_bytes()).unwrap_err();
        assert_eq!(
            fails("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello"),
            Failure::Chunked
        );
        assert_eq!(
            fails("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n"),
            Failure::BadHead
        );
        assert_eq!(
            fails("HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\n"),
            Failure::BadHead
        );
        assert_eq!(fails("SSH-2.0-OpenSSH\r\n\r\n"), Failure::BadHead);
        assert_eq!(
            fails("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nhello"),
            Failure::LongBody
        );
    }

    #[test]
    fn an_endless_head_is_refused() {
        let mut response = Response::default();
        response.receive(b"HTTP/1.1 200 OK\r\nx: ").unwrap();
        let failure = (0..2 * HEAD_MAX_BYTES).find_map(|_| response.receive(b"y").err());
        assert_eq!(failure, Some(Failure::BadHead));
    }

    proptest! {
        #[test]
        fn the_cuts_between_reads_do_not_matter(
            fields in proptest::collection::vec("[a-z]{1,8}: [ -~]{0,20}\r\n", 0..6),
            body in proptest::collection::vec(any::<u8>(), 0..200),
            mut cuts in proptest::collection::vec(0usize..600, 0..8),
        ) {
            let mut stream = format!("HTTP/1.1 200 OK\r\n{}content-length: {}\r\n\r\n", fields.concat(), body.len()).into_bytes();
            let head_bytes = stream.len() as u32;
            stream.extend(&body);
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(stream.len()));
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let mut response = Response::default();
            let mut counted = 0;
            for pair in cuts.windows(2) {
                counted += response.receive(&stream[pair[0]..pair[1]]).unwrap();
            }
            prop_assert!(response.is_complete());
            prop_assert_eq!(response.head().unwrap().bytes, head_bytes);
            prop_assert_eq!(counted, body.len() as u64);
        }

        #[test]
        fn any_bytes_are_survived(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..10)) {
            let mut response = Response::default();
            for piece in &pieces {
                if response.receive(piece).is_err() {
                    break;
                }
            }
        }
    }
}
