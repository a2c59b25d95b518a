//! One HTTP/1.1 response, read without I/O: bytes in, "how far" out.
//!
//! The head is parsed by httparse; of the body only the length is kept, because a load generator
//! that stored or copied bodies would measure itself. A body ends by Content-Length, by its chunks
//! or at the end of the stream. Interim responses (100, 102, 103) are passed over; their bytes
//! count as part of the head.

use crate::chunked::Chunked;
use crate::failure::Failure;
use std::mem::MaybeUninit;

/// Longest response head accepted, in bytes.
pub const HEAD_MAX_BYTES: usize = 16 * 1024;
/// Most header fields accepted in one head.
pub const FIELDS_MAX: usize = 512;

/// How the end of the body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    EndOfStream,
}

/// What the head said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// Length of the head with its empty line, and of the interim responses before it, in bytes.
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
    interim_bytes: u32,
    chunked: Chunked,
    body_bytes: u64,
    to_head: bool,
}

impl Response {
    /// The response to a HEAD, or to another request.
    pub fn to(head: bool) -> Response {
        Response {
            to_head: head,
            ..Response::default()
        }
    }

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
        let behind_head = match self.head {
            Some(_) => bytes.len(),
            None => self.receive_head(bytes)?,
        };
        let rest = &bytes[bytes.len() - behind_head..];
        let body_bytes = match self.head {
            Some(head) if head.framing == Framing::Chunked => self.chunked.receive(rest)?,
            _ => rest.len() as u64,
        };
        self.body_bytes += body_bytes;
        match self.head {
            Some(Head {
                framing: Framing::Length(length),
                ..
            }) if self.body_bytes > length => Err(Failure::LongBody),
            _ => Ok(body_bytes),
        }
    }

    /// Returns how many bytes at the end of `bytes` are behind the head.
    fn receive_head(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        if self.partial_head.is_empty() {
            let read = self.take_heads(bytes)?;
            if self.head.is_some() {
                return Ok(bytes.len() - read);
            }
            self.partial_head.extend_from_slice(&bytes[read..]);
            return Ok(0);
        }
        let mut heads = std::mem::take(&mut self.partial_head);
        heads.extend_from_slice(bytes);
        let read = self.take_heads(&heads)?;
        if self.head.is_some() {
            return Ok(heads.len() - read);
        }
        heads.drain(..read);
        self.partial_head = heads;
        Ok(0)
    }

    /// Reads interim heads, and the final one if it is there; returns how many bytes they have.
    fn take_heads(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        let mut read = 0;
        while let Some(head) = parse_head(&bytes[read..], self.to_head)? {
            read += head.bytes as usize;
            if head.is_interim() {
                self.interim_bytes = self.interim_bytes.saturating_add(head.bytes);
                continue;
            }
            let bytes = head.bytes.saturating_add(self.interim_bytes);
            self.head = Some(Head { bytes, ..head });
            return Ok(read);
        }
        if bytes.len() - read > HEAD_MAX_BYTES {
            Err(Failure::LongHead)
        } else {
            Ok(read)
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

    /// Whether all that came so far was interim responses.
    pub fn is_interim(&self) -> bool {
        self.head.is_none() && self.partial_head.is_empty() && self.interim_bytes > 0
    }

    /// True when the announced length or the last chunk has been received; false while only the end
    /// of the stream can tell.
    pub fn is_complete(&self) -> bool {
        match self.head.map(|head| head.framing) {
            Some(Framing::Length(length)) => self.body_bytes == length,
            Some(Framing::Chunked) => self.chunked.is_complete(),
            Some(Framing::EndOfStream) | None => false,
        }
    }

    /// Takes the end of the stream: fine after a body without a length, otherwise the response was
    /// cut.
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

impl Head {
    /// Whether another head follows. 101 is final: the client did not request another protocol.
    fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

fn parse_head(bytes: &[u8], to_head: bool) -> Result<Option<Head>, Failure> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut []);
    // Fields may be folded, and have a space before the colon (RFC 9112, sections 5.1 and 5.2).
    let mut rules = httparse::ParserConfig::default();
    rules
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true);
    let read = rules.parse_response_with_uninit_headers(&mut parsed, bytes, &mut fields);
    let head_bytes = match read {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Failure::ManyFields),
        Err(_) => return Err(Failure::BadHead),
    };
    let status = parsed.code.ok_or(Failure::BadHead)?;
    let mut keep_alive = parsed.version == Some(1);
    let (mut length, mut transfer_coding) = (None, None);
    for field in parsed.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            length = Some(content_length(field.value, length)?);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            transfer_coding = last_coding(field.value).or(transfer_coding);
        } else if field.name.eq_ignore_ascii_case("connection") {
            keep_alive = says_keep_alive(field.value, keep_alive);
        }
    }
    let framing = match length {
        _ if to_head || status < 200 || status == 204 || status == 304 => Framing::Length(0),
        // It goes before a length (RFC 9112, section 6.3).
        _ if transfer_coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")) => {
            Framing::Chunked
        }
        Some(length) if transfer_coding.is_none() => Framing::Length(length),
        _ => Framing::EndOfStream,
    };
    // A server of HTTP/1.0 that chunks, or one that says both, may mean anything by the next byte.
    let is_doubtful = transfer_coding.is_some() && (length.is_some() || parsed.version == Some(0));
    keep_alive &= framing != Framing::EndOfStream && !is_doubtful && status != 101;
    Ok(Some(Head {
        status,
        bytes: head_bytes as u32,
        keep_alive,
        framing,
    }))
}

/// The last coding of a Transfer-Encoding, which says how the body ends.
fn last_coding(value: &[u8]) -> Option<&[u8]> {
    let mut codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    codings.rfind(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
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
    fn an_answer_to_head_ends_with_its_head() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let mut response = Response::to(true);
        assert_eq!(response.receive(bytes), Ok(0));
        assert!(response.is_complete() && response.head().unwrap().keep_alive);
        assert!(!read(bytes).unwrap().is_complete());
        let mut endless = Response::to(true);
        assert_eq!(endless.receive(b"HTTP/1.1 200 OK\r\n\r\n"), Ok(0));
        assert!(endless.is_complete() && endless.head().unwrap().keep_alive);
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
            fails("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nhello"),
            Failure::BadChunk
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

    /// Status, length of the heads, length of the body, whether the response is over, whether the
    /// connection goes on.
    fn told(text: &str) -> (u16, u32, u64, bool, bool) {
        let response = read(text.as_bytes()).unwrap();
        let head = response.head().unwrap();
        let is_over = response.is_complete();
        (
            head.status,
            head.bytes,
            response.body_bytes(),
            is_over,
            head.keep_alive,
        )
    }

    #[test]
    fn interim_responses_are_passed_over() {
        let last = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n";
        for interim in [
            "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 199 x\r\ncontent-length: 9\r\n\r\n",
        ] {
            let heads = (interim.len() + last.len()) as u32;
            assert_eq!(
                told(&format!("{interim}{last}ok")),
                (200, heads, 2, true, true)
            );
            let mut waiting = Response::default();
            waiting.receive(interim.as_bytes()).unwrap();
            assert!(waiting.is_interim() && !waiting.is_complete());
            assert_eq!(waiting.end_of_stream(), Err(Failure::ClosedBeforeResponse));
            for byte in format!("{last}ok").bytes() {
                waiting.receive(&[byte]).unwrap();
            }
            assert!(waiting.is_complete());
        }
        let (status, _, _, is_over, keeps) = told("HTTP/1.1 101 Switching Protocols\r\n\r\n");
        assert_eq!((status, is_over, keeps), (101, true, false));
    }

    #[test]
    fn chunked_bodies_count() {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n";
        let heads = head.len() as u32 + 2;
        let all = told(&format!("{head}\r\n5\r\nhello\r\n0\r\nt: v\r\n\r\n"));
        assert_eq!(all, (200, heads, 5, true, true));
        let part = told(&format!("{head}\r\n5\r\nhello\r\n0\r\n"));
        assert_eq!(part, (200, heads, 5, false, true));
        let cut = read(format!("{head}\r\n5\r\nhel").as_bytes()).unwrap();
        assert_eq!(cut.end_of_stream(), Err(Failure::CutBody));
        let both = told(&format!(
            "{head}content-length: 3\r\n\r\n1\r\nx\r\n0\r\n\r\n"
        ));
        assert_eq!((both.2, both.3, both.4), (1, true, false));
        let old = told(
            "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ntransfer-encoding: Chunked\r\n\r\n0\r\n\r\n",
        );
        assert_eq!((old.2, old.3, old.4), (0, true, false));
        let packed =
            told("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nzz\r\n0\r\n\r\n");
        assert_eq!((packed.2, packed.3, packed.4), (2, true, true));
        let unknown = told("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nzz");
        assert_eq!((unknown.2, unknown.3, unknown.4), (2, false, false));
        let none = told("HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n");
        assert_eq!((none.2, none.3, none.4), (0, true, true));
    }

    #[test]
    fn an_endless_head_is_refused() {
        let mut response = Response::default();
        response.receive(b"HTTP/1.1 200 OK\r\nx: ").unwrap();
        let failure = (0..2 * HEAD_MAX_BYTES).find_map(|_| response.receive(b"y").err());
        assert_eq!(failure, Some(Failure::LongHead));
        assert!(Failure::LongHead.to_string().contains("16384 bytes"));
    }

    #[test]
    fn many_folded_and_spaced_fields_are_read() {
        let fields: String = (0..500).map(|n| format!("x-{n}: {n}\r\n")).collect();
        let head = format!("HTTP/1.1 200 OK\r\n{fields}content-length: 2\r\n\r\n");
        assert_eq!(told(&format!("{head}ok")).2, 2);
        let more = format!("HTTP/1.1 200 OK\r\n{fields}{fields}\r\n");
        let failure = read(more.as_bytes()).unwrap_err();
        assert_eq!(failure, Failure::ManyFields);
        assert!(failure.to_string().contains("512"), "{failure}");
        for field in [
            "x: a\r\n b\r\n\tc\r\ncontent-length: 2",
            "x : a\r\ncontent-length : 2",
            "content-length:\r\n 2",
            "content-length:\r\n\t2 ",
            "content-length: 2\r\n  \r\nx:",
        ] {
            let read = told(&format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\nok"));
            assert_eq!((read.2, read.3, read.4), (2, true, true), "{field:?}");
        }
        for codings in ["gzip,\r\n chunked", "\r\n\tchunked", "gzip ,\r\n\tchunked"] {
            let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding : {codings}\r\n\r\n");
            let read = told(&format!("{head}2\r\nzz\r\n0\r\n\r\n"));
            assert_eq!((read.2, read.3, read.4), (2, true, true), "{codings:?}");
        }
        let close = told("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection:\r\n close\r\n\r\n");
        assert!(!close.4);
    }

    proptest! {
        #[test]
        fn the_cuts_between_reads_do_not_matter(
            fields in proptest::collection::vec("[a-z]{1,8}: [ -~]{0,20}\r\n", 0..6),
            body in proptest::collection::vec(any::<u8>(), 0..200),
            mut cuts in proptest::collection::vec(0usize..600, 0..8),
        ) {
            let mut stream = format!("HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\nHTTP/1.1 200 OK\r\n{}content-length: {}\r\n\r\n", fields.concat(), body.len()).into_bytes();
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
