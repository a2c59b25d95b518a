//! Chunked bodies, read without I/O (RFC 9112, section 7.1): what counts of them is the data, not
//! their framing.
//!
//! Like curl it takes a line that ends with LF alone.

use crate::failure::Failure;

/// Most bytes of extensions and trailers together: no server needs more, and none may send them
/// without end.
const ASIDE_MAX_BYTES: usize = 16 * 1024;

/// How far a chunked body has come.
#[derive(Clone, Debug, Default)]
pub struct Chunked {
    at: At,
    aside_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// Before the first digit of a chunk's size.
    #[default]
    Size,
    /// Within the digits.
    Digits(u64),
    /// Between the digits and the end of their line.
    Extension(u64),
    /// So many bytes of data are missing.
    Data(u64),
    /// After the data, before the end of its line.
    DataEnd,
    /// At the beginning of a line after the last chunk.
    Trailer,
    /// Within such a line.
    TrailerField,
    /// After all of it.
    End,
}

impl Chunked {
    /// Takes the next bytes of the stream; returns how many of them were data. Fails on broken
    /// framing, or on bytes past the end.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Result<u64, Failure> {
        let mut data_bytes = 0;
        while let Some((&byte, rest)) = bytes.split_first() {
            if let At::Data(missing) = self.at {
                let taken = missing.min(bytes.len() as u64);
                data_bytes += taken;
                bytes = &bytes[taken as usize..];
                self.at = match missing - taken {
                    0 => At::DataEnd,
                    missing => At::Data(missing),
                };
                continue;
            }
            self.at = self.step(byte)?;
            bytes = rest;
        }
        Ok(data_bytes)
    }

    fn step(&mut self, byte: u8) -> Result<At, Failure> {
        let digit = char::from(byte).to_digit(16).map(u64::from);
        Ok(match (self.at, byte) {
            (At::Size, _) => At::Digits(digit.ok_or(Failure::BadChunk)?),
            (At::Digits(size), _) if digit.is_some() => {
                let size = size.checked_mul(16).ok_or(Failure::BadChunk)?;
                At::Digits(size + digit.unwrap_or(0))
            }
            (At::Digits(size) | At::Extension(size), b'\n') => match size {
                0 => At::Trailer,
                size => At::Data(size),
            },
            (At::Digits(size), b'\r' | b';' | b' ' | b'\t') => At::Extension(size),
            (At::Digits(_), _) => return Err(Failure::BadChunk),
            (At::Extension(size), _) => self.aside(At::Extension(size))?,
            (At::DataEnd, b'\r') => self.aside(At::DataEnd)?,
            (At::DataEnd, b'\n') => At::Size,
            (At::DataEnd, _) => return Err(Failure::BadChunk),
            (At::Trailer, b'\n') => At::End,
            (At::Trailer, b'\r') => self.aside(At::Trailer)?,
            (At::TrailerField, b'\n') => At::Trailer,
            (At::Trailer | At::TrailerField, _) => self.aside(At::TrailerField)?,
            (At::Data(_) | At::End, _) => return Err(Failure::LongBody),
        })
    }

    fn aside(&mut self, next: At) -> Result<At, Failure> {
        self.aside_bytes += 1;
        if self.aside_bytes > ASIDE_MAX_BYTES {
            Err(Failure::BadChunk)
        } else {
            Ok(next)
        }
    }

    /// Whether the last chunk and the trailers have come.
    pub fn is_complete(&self) -> bool {
        self.at == At::End
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(body: &str) -> (Result<u64, Failure>, bool) {
        let mut chunked = Chunked::default();
        let data_bytes = chunked.receive(body.as_bytes());
        (data_bytes, chunked.is_complete())
    }

    #[test]
    fn data_counts_and_framing_does_not() {
        for (body, data_bytes, is_complete) in [
            ("5\r\nhello\r\n0\r\n\r\n", 5, true),
            ("5;name=value\r\nhello\r\n1\r\n!\r\n000\r\n\r\n", 6, true),
            ("5\nhello\n0\n\n", 5, true),
            ("0\r\nexpires: never\r\nx: y\r\n\r\n", 0, true),
            ("A\r\n0123456789\r\na \r\n0123456789\r\n0\r\n\r\n", 20, true),
            ("5\r\nhel", 3, false),
            ("5\r\nhello\r\n0\r\n", 5, false),
            ("0\r\nx: y\r\n", 0, false),
            ("", 0, false),
        ] {
            assert_eq!(read(body), (Ok(data_bytes), is_complete), "{body:?}");
        }
    }

    #[test]
    fn broken_framing_is_refused() {
        for (body, failure) in [
            ("x\r\n", Failure::BadChunk),
            ("\r\n", Failure::BadChunk),
            ("-1\r\n", Failure::BadChunk),
            ("5x\r\nhello", Failure::BadChunk),
            ("5\r\nhelloo\r\n", Failure::BadChunk),
            ("11111111111111111\r\n", Failure::BadChunk),
            ("0\r\n\r\nHTTP/1.1", Failure::LongBody),
        ] {
            assert_eq!(read(body).0, Err(failure), "{body:?}");
        }
        let endless = format!("0\r\n{}", "x: y\r\n".repeat(ASIDE_MAX_BYTES));
        assert_eq!(read(&endless).0, Err(Failure::BadChunk));
    }

    proptest! {
        #[test]
        fn the_cuts_between_reads_do_not_matter(
            chunks in proptest::collection::vec("[a-z\r\n]{1,40}", 0..6),
            mut cuts in proptest::collection::vec(0usize..300, 0..8),
        ) {
            let chunk = |data: &String| format!("{:x}\r\n{data}\r\n", data.len());
            let stream = format!("{}0\r\nt: v\r\n\r\n", chunks.iter().map(chunk).collect::<String>());
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(stream.len()));
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let mut chunked = Chunked::default();
            let mut data_bytes = 0;
            for pair in cuts.windows(2) {
                data_bytes += chunked.receive(&stream.as_bytes()[pair[0]..pair[1]]).unwrap();
            }
            prop_assert!(chunked.is_complete());
            prop_assert_eq!(data_bytes as usize, chunks.concat().len());
        }

        #[test]
        fn any_bytes_are_survived(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..10)) {
            let mut chunked = Chunked::default();
            for piece in &pieces {
                if chunked.receive(piece).is_err() {
                    break;
                }
            }
        }
    }
}
