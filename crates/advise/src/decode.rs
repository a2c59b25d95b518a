//! Content by its first bytes: plain, gzip in any number of members, zstd in any number of frames.
//! What is in another form is refused with what reads it.

use flate2::bufread::GzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// Bytes that are read and decoded at a time.
const BUFFER_BYTES: usize = 1 << 17;
/// Of the beginning, so many tell what it is.
const HEAD_BYTES: usize = 8;

/// Forms that are known and not read: their first bytes, their name, what writes the content to
/// standard output.
const OTHERS: [(&[u8], &str, &str); 9] = [
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"\x5d\0\0", "lzma", "xz -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    (b"\x1f\x9d", "compress", "gzip -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip", "7z x -so"),
    (b"\xff\xfe", "UTF-16", "iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16", "iconv -f UTF-16 -t UTF-8"),
];

/// Content that can be read line by line, or why not.
pub enum Decoded<'a> {
    /// As it is, or decompressed.
    Content(Box<dyn BufRead + 'a>),
    /// In a form that is not read: its name, and the program that does.
    Other(&'static str, &'static str),
}

/// Looks at the beginning of `source`; also whether the content is as it is stored.
pub fn decoded<'a>(mut source: impl Read + 'a) -> io::Result<(Decoded<'a>, bool)> {
    // A pipe may give its first bytes one by one.
    let mut head = Vec::with_capacity(HEAD_BYTES);
    source
        .by_ref()
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)?;
    if let Some((_, name, program)) = OTHERS.iter().find(|(first, ..)| head.starts_with(first)) {
        return Ok((Decoded::Other(name, program), false));
    }
    let begin = head.clone();
    let reader = BufReader::with_capacity(BUFFER_BYTES, io::Cursor::new(head).chain(source));
    Ok(match *begin.as_slice() {
        [0x1f, 0x8b, ..] => (Decoded::Content(buffered(Members::new(reader))), false),
        // A frame, or one that is to be skipped.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            (Decoded::Content(buffered(Frames::new(reader))), false)
        }
        _ => (Decoded::Content(Box::new(reader)), true),
    })
}

fn buffered<'a>(reader: impl Read + 'a) -> Box<dyn BufRead + 'a> {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, reader))
}

/// The members of a gzip file, one after the other.
struct Members<R> {
    /// None only while it is replaced.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    fn new(source: R) -> Self {
        Self {
            member: Some(GzDecoder::new(source)),
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n = member.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            let Some(mut source) = self.member.take().map(GzDecoder::into_inner) else {
                break;
            };
            // Tapes and block devices pad with zeros.
            loop {
                let ahead = source.fill_buf()?;
                let zeros = ahead.iter().take_while(|byte| **byte == 0).count();
                match (ahead.get(zeros), zeros) {
                    (Some(0x1f), _) => {
                        source.consume(zeros);
                        self.member = Some(GzDecoder::new(source));
                        break;
                    }
                    (Some(_), _) => {
                        return Err(io::Error::other(
                            "bytes behind the end that are not gzip's, which gzip leaves out too",
                        ));
                    }
                    (None, 0) => return Ok(0),
                    (None, _) => source.consume(zeros),
                }
            }
        }
        Ok(0)
    }
}

/// The frames of a zstd file, one after the other.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    is_inside: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(source: R) -> Self {
        Self {
            source,
            decoder: FrameDecoder::new(),
            is_inside: false,
        }
    }

    /// Begins the next frame that has content; none at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.is_inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = self.source.by_ref().take(length.into());
                    if io::copy(&mut { skipped }, &mut io::sink())? < length.into() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(broken(&error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.is_inside && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let some = BlockDecodingStrategy::UptoBytes(buffer.len());
                self.decoder
                    .decode_blocks(&mut self.source, some)
                    .map_err(|error| broken(&error))?;
            }
            let n = self.decoder.read(buffer)?;
            if n > 0 {
                return Ok(n);
            }
            self.is_inside = false;
            let said = self.decoder.get_checksum_from_data();
            if said.is_some() && said != self.decoder.get_calculated_checksum() {
                return Err(io::Error::other("the checksum of a zstd frame is wrong"));
            }
        }
    }
}

/// What is wrong with a frame, with the remedy where there is one.
fn broken(error: &FrameDecoderError) -> io::Error {
    let text = match error {
        FrameDecoderError::WindowSizeTooBig { .. } => {
            "its window is above 100 MiB; unpack it with zstd -dc, and give - to read that from a pipe"
        }
        FrameDecoderError::DictNotProvided { .. } => {
            "it needs a dictionary; unpack it with zstd -D DICTIONARY -dc, and give - to read that from a pipe"
        }
        // The library's words are those of its own code.
        _ => "the zstd data break off or are damaged",
    };
    io::Error::other(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn of(stored: &[u8]) -> io::Result<Vec<u8>> {
        let (decoded, _) = decoded(stored)?;
        let Decoded::Content(mut content) = decoded else {
            return Err(io::Error::other("another form"));
        };
        let mut all = Vec::new();
        content.read_to_end(&mut all).map(|_| all)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn every_member_and_frame_is_read() {
        let two = [gzip(b"a\n"), gzip(b""), vec![0; 70], gzip(b"b\n")].concat();
        assert_eq!(of(&two).expect("gzip"), b"a\nb\n");
        let frame = |text: &[u8]| {
            ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
        };
        let skipped = b"\x50\x2a\x4d\x18\x03\0\0\0xyz".to_vec();
        let frames = [
            skipped.clone(),
            frame(b"a\n"),
            frame(b""),
            skipped,
            frame(b"b\n"),
        ]
        .concat();
        assert_eq!(of(&frames).expect("zstd"), b"a\nb\n");
        assert_eq!(of(b"plain\n").expect("plain"), b"plain\n");
        assert_eq!(of(b"").expect("nothing"), b"");
    }

    #[test]
    fn what_breaks_off_is_an_error() {
        let whole = gzip(b"some text, some text\n");
        assert!(of(&whole[..whole.len() - 9]).is_err());
        assert!(of(&[whole.clone(), b"garbage".to_vec()].concat()).is_err());
        let frame = ruzstd::encoding::compress_to_vec(
            &b"some text"[..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        for cut in 5..frame.len() {
            let said = of(&frame[..cut]).expect_err("cut").to_string();
            assert!(said.contains("break off"), "{cut}: {said}");
        }
        assert!(of(b"\x50\x2a\x4d\x18\x03\0\0\0x").is_err());
    }
}
