//! Finds where streams end in what either side of a connection sends.
//!
//! What was given to the HTTP/2 library is not sent yet, and it drops what it holds of a stream
//! that is reset. Whether the last frame of a response was written can be seen below the library
//! only. Pure: frame headers are followed, payloads passed over.

use super::{FrameHeader, HEADER_BYTES, PREFACE, flag, kind};

/// The end of a stream in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// With everything before it: the last byte of the last frame.
    Whole(u32),
    /// By RST_STREAM.
    Reset(u32),
}

/// Follows the frames of one direction from its first byte.
#[derive(Debug, Default)]
pub struct StreamEnds {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    payload_left: usize,
    /// What ends with the payload.
    ending: Option<StreamEnd>,
    /// The stream that ends with a head of which more comes.
    in_head: Option<u32>,
    data: DataCount,
}

/// How much DATA has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataCount {
    /// Frames.
    pub frames: u32,
    /// Their payloads, bytes.
    pub bytes: u64,
}

impl StreamEnds {
    /// Of what a server sends.
    pub fn of_server() -> Self {
        Self::default()
    }

    /// Of what a client sends.
    pub fn of_client() -> Self {
        Self {
            payload_left: PREFACE.len(),
            ..Self::default()
        }
    }

    /// Looks through the next `bytes`; `found` is called for every end of a stream in them.
    pub fn feed(&mut self, mut bytes: &[u8], mut found: impl FnMut(StreamEnd)) {
        while !bytes.is_empty() {
            let used = match self.payload_left {
                0 => self.take_header(bytes),
                left => {
                    let used = bytes.len().min(left);
                    self.payload_left -= used;
                    used
                }
            };
            bytes = &bytes[used..];
            if self.payload_left == 0
                && let Some(ending) = self.ending.take()
            {
                found(ending);
            }
        }
    }

    /// The DATA that has begun since this was last asked.
    pub fn take_data(&mut self) -> DataCount {
        std::mem::take(&mut self.data)
    }

    /// Takes of `bytes` what belongs to the header of a frame; returns how much that is.
    fn take_header(&mut self, bytes: &[u8]) -> usize {
        let used = bytes.len().min(HEADER_BYTES - self.header_bytes);
        self.header[self.header_bytes..self.header_bytes + used].copy_from_slice(&bytes[..used]);
        self.header_bytes += used;
        if self.header_bytes == HEADER_BYTES {
            self.header_bytes = 0;
            self.begin_payload();
        }
        used
    }

    fn begin_payload(&mut self) {
        let header = FrameHeader::read(&self.header);
        let stream = header.stream;
        self.payload_left = header.payload_bytes as usize;
        if header.kind == kind::DATA {
            self.data.frames = self.data.frames.saturating_add(1);
            self.data.bytes += u64::from(header.payload_bytes);
        }
        let ends_stream = header.has(flag::END_STREAM);
        let ends_head = header.has(flag::END_HEADERS);
        self.ending = match header.kind {
            kind::DATA if ends_stream => Some(StreamEnd::Whole(stream)),
            kind::HEADERS if ends_stream && ends_head => Some(StreamEnd::Whole(stream)),
            kind::HEADERS if ends_stream => {
                self.in_head = Some(stream);
                None
            }
            kind::CONTINUATION if ends_head => self.in_head.take().map(StreamEnd::Whole),
            kind::RST_STREAM => Some(StreamEnd::Reset(stream)),
            _ => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::StreamEnd::{Reset, Whole};
    use super::flag::{END_HEADERS, END_STREAM};
    use super::kind::{CONTINUATION, DATA, HEADERS, RST_STREAM};
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload_bytes: usize) -> Vec<u8> {
        super::super::frame(kind, flags, stream, &vec![END_STREAM; payload_bytes])
    }

    fn ends(bytes: &[u8], piece_bytes: usize) -> Vec<StreamEnd> {
        let mut all = Vec::new();
        let mut ends = StreamEnds::of_server();
        for piece in bytes.chunks(piece_bytes) {
            ends.feed(piece, |end| all.push(end));
        }
        all
    }

    #[test]
    fn streams_end_with_their_last_frame() {
        let frames = [
            frame(4, 1, 0, 0),
            frame(HEADERS, END_HEADERS, 1, 20),
            frame(DATA, 0, 1, 100),
            frame(HEADERS, END_HEADERS | END_STREAM, 3, 20),
            frame(DATA, END_STREAM, 1, 0),
            frame(HEADERS, END_STREAM, 0x8000_0005, 9),
            frame(CONTINUATION, 0, 5, 9),
            frame(CONTINUATION, END_HEADERS, 5, 9),
            frame(CONTINUATION, END_HEADERS, 5, 9),
            frame(RST_STREAM, 0, 7, 4),
            frame(6, END_STREAM, 0, 8),
        ];
        let expected = [Whole(3), Whole(1), Whole(5), Reset(7)];
        assert_eq!(ends(&frames.concat(), 1 << 20), expected);
        let mut ends = StreamEnds::of_server();
        ends.feed(&frames.concat(), |_| {});
        let data = DataCount {
            frames: 2,
            bytes: 100,
        };
        assert_eq!(
            (ends.take_data(), ends.take_data()),
            (data, DataCount::default())
        );
    }

    #[test]
    fn a_stream_ends_with_the_last_byte_and_not_before() {
        let last = frame(DATA, END_STREAM, 1, 5);
        assert!(ends(&last[..HEADER_BYTES + 4], 3).is_empty());
        assert_eq!(ends(&last, 3), [Whole(1)]);
    }

    #[test]
    fn a_client_begins_with_its_preface() {
        let mut found = Vec::new();
        let mut ends = StreamEnds::of_client();
        ends.feed(PREFACE, |end| found.push(end));
        ends.feed(&frame(RST_STREAM, 0, 1, 4), |end| found.push(end));
        assert_eq!(found, [Reset(1)]);
    }

    proptest! {
        #[test]
        fn how_the_bytes_are_cut_does_not_matter(
            frames in prop::collection::vec((0..10_u8, any::<u8>(), 0..4_u32, 0..30_usize), 0..20),
            piece_bytes in 1..50_usize,
        ) {
            let bytes: Vec<u8> = frames
                .iter()
                .flat_map(|&(kind, flags, stream, payload_bytes)| frame(kind, flags, stream, payload_bytes))
                .collect();
            prop_assert_eq!(ends(&bytes, piece_bytes), ends(&bytes, bytes.len().max(1)));
        }
    }
}
