//! Finds PRIORITY_UPDATE frames (RFC 9218, 7.1) in what a client sends.
//!
//! The HTTP/2 library skips frames it does not know, and this is one of them. So the bytes are
//! looked through on their way to it: frame headers are followed, everything but PRIORITY_UPDATE is
//! passed over. At most one such frame is held, and no more of it than a Priority field can need.
//! Whatever else is wrong with the bytes is for the library to find.

use super::{FrameHeader, HEADER_BYTES, PREFACE, kind, stream_id};
use crate::priority::Priority;

/// The stream that is spoken of, before the field value.
const STREAM_ID_BYTES: usize = 4;
/// Longer field values count as malformed. `u=0, i` has 6 bytes; the rest is room for parameters
/// that may be invented.
const FIELD_BYTES_MAX: usize = 256;

/// A frame that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityUpdate {
    /// The stream that is spoken of; not 0.
    pub stream: u32,
    /// What is said; `None` if it was malformed, and is to be ignored.
    pub priority: Option<Priority>,
}

/// Why a connection has to be ended because of a PRIORITY_UPDATE, or of the frame that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// It came on a stream of its own.
    NotOnStreamZero,
    /// It speaks of stream 0, or of a push that was never promised.
    NoSuchStream,
    /// It is too short to say of which stream it speaks.
    TooShort,
    /// It speaks of yet another stream that was not opened.
    TooManyIdle,
    /// It is one of too many frames that ask for nothing, of whatever type.
    TooManyFrames,
}

/// A frame that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameStart {
    /// Its type.
    pub kind: u8,
    /// The length of its payload.
    pub payload_bytes: u32,
}

/// The scanner of one connection, from its first byte.
#[derive(Debug)]
pub struct FrameScanner {
    state: State,
}

#[derive(Debug)]
enum State {
    /// Bytes to be passed over.
    Skipping { left: usize },
    /// The header of a frame, as far as it is here.
    InHeader {
        header: [u8; HEADER_BYTES],
        filled: usize,
    },
    /// The payload of a PRIORITY_UPDATE, as far as it is here and kept.
    InUpdate { kept: Vec<u8>, left: usize },
}

impl Default for FrameScanner {
    fn default() -> Self {
        Self {
            state: State::Skipping {
                left: PREFACE.len(),
            },
        }
    }
}

impl FrameScanner {
    /// Looks through the next `bytes` of the connection; `found` is called for every
    /// PRIORITY_UPDATE that ends in them.
    pub fn feed(&mut self, bytes: &[u8], found: impl FnMut(Result<PriorityUpdate, Violation>)) {
        self.feed_counting(bytes, found, |_| {});
    }

    /// The same; `begun` is called for every frame header that ends in them.
    pub fn feed_counting(
        &mut self,
        mut bytes: &[u8],
        mut found: impl FnMut(Result<PriorityUpdate, Violation>),
        mut begun: impl FnMut(FrameStart),
    ) {
        while !bytes.is_empty() {
            let used = match &mut self.state {
                State::Skipping { left } => {
                    let used = bytes.len().min(*left);
                    *left -= used;
                    used
                }
                State::InHeader { header, filled } => {
                    let used = bytes.len().min(HEADER_BYTES - *filled);
                    header[*filled..*filled + used].copy_from_slice(&bytes[..used]);
                    *filled += used;
                    used
                }
                State::InUpdate { kept, left } => {
                    let used = bytes.len().min(*left);
                    let room = STREAM_ID_BYTES + FIELD_BYTES_MAX + 1 - kept.len();
                    kept.extend_from_slice(&bytes[..used.min(room)]);
                    *left -= used;
                    used
                }
            };
            bytes = &bytes[used..];
            self.advance(&mut found, &mut begun);
        }
    }

    /// Goes on to the next state if the present one has all its bytes.
    fn advance(
        &mut self,
        found: &mut impl FnMut(Result<PriorityUpdate, Violation>),
        begun: &mut impl FnMut(FrameStart),
    ) {
        match &self.state {
            State::Skipping { left: 0 } => self.expect_header(),
            State::InHeader { header, filled } if *filled == HEADER_BYTES => {
                let header = FrameHeader::read(header);
                let left = header.payload_bytes as usize;
                begun(FrameStart {
                    kind: header.kind,
                    payload_bytes: header.payload_bytes,
                });
                let is_update = header.kind == kind::PRIORITY_UPDATE;
                if is_update && header.stream != 0 {
                    found(Err(Violation::NotOnStreamZero));
                } else if is_update && left < STREAM_ID_BYTES {
                    found(Err(Violation::TooShort));
                } else if is_update {
                    let kept = Vec::with_capacity(left.min(64));
                    self.state = State::InUpdate { kept, left };
                    return;
                }
                self.state = State::Skipping { left };
                if left == 0 {
                    self.expect_header();
                }
            }
            State::InUpdate { kept, left: 0 } => {
                found(read_update(kept));
                self.expect_header();
            }
            _ => {}
        }
    }

    fn expect_header(&mut self) {
        self.state = State::InHeader {
            header: [0; HEADER_BYTES],
            filled: 0,
        };
    }
}

fn read_update(payload: &[u8]) -> Result<PriorityUpdate, Violation> {
    let (id, field) = payload
        .split_first_chunk::<STREAM_ID_BYTES>()
        .ok_or(Violation::TooShort)?;
    let stream = stream_id(*id);
    // Even numbers are a server's own streams, and this server opens none.
    if stream.is_multiple_of(2) {
        return Err(Violation::NoSuchStream);
    }
    let priority = (field.len() <= FIELD_BYTES_MAX)
        .then(|| Priority::parse(field))
        .flatten();
    Ok(PriorityUpdate { stream, priority })
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::kind::PRIORITY_UPDATE;
    use super::*;
    use proptest::prelude::*;

    fn update(stream: u32, field: &[u8]) -> Vec<u8> {
        frame(
            PRIORITY_UPDATE,
            0,
            0,
            &[&stream.to_be_bytes()[..], field].concat(),
        )
    }

    fn scan(pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<Result<PriorityUpdate, Violation>> {
        let mut scanner = FrameScanner::default();
        let mut all = Vec::new();
        scanner.feed(&[0; PREFACE.len()], |found| all.push(found));
        for piece in pieces {
            scanner.feed(&piece, |found| all.push(found));
        }
        all
    }

    fn urgency(found: &Result<PriorityUpdate, Violation>) -> Option<u8> {
        found.unwrap().priority?.urgency
    }

    #[test]
    fn finds_updates_among_other_frames() {
        let found = scan([
            frame(4, 0, 0, &[]),
            update(5, b"u=1"),
            frame(0, 0, 5, &[PRIORITY_UPDATE; 40]),
            update(0x8000_0007, b"u=6, i"),
            update(9, b""),
            update(11, b"u=,"),
        ]);
        assert_eq!(found.len(), 4);
        assert_eq!((found[0].unwrap().stream, urgency(&found[0])), (5, Some(1)));
        assert_eq!((found[1].unwrap().stream, urgency(&found[1])), (7, Some(6)));
        assert_eq!(found[2].unwrap().priority, Some(Priority::default()));
        assert_eq!(found[3].unwrap().priority, None);
    }

    #[test]
    fn names_what_the_rfc_forbids_and_goes_on() {
        let found = scan([
            frame(PRIORITY_UPDATE, 0, 3, b"\0\0\0\x05u=1"),
            frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0"),
            frame(PRIORITY_UPDATE, 0, 0, b""),
            update(0, b"u=1"),
            update(2, b"u=1"),
            update(3, b"u=2"),
        ]);
        assert_eq!(found[0], Err(Violation::NotOnStreamZero));
        assert_eq!(found[1], Err(Violation::TooShort));
        assert_eq!(found[2], Err(Violation::TooShort));
        assert_eq!(found[3], Err(Violation::NoSuchStream));
        assert_eq!(found[4], Err(Violation::NoSuchStream));
        assert_eq!(urgency(&found[5]), Some(2));
    }

    #[test]
    fn holds_no_more_than_a_field_can_need() {
        let mut field = b"u=1, x=\"".to_vec();
        field.resize(10_000, b'x');
        field.push(b'"');
        let found = scan([update(3, &field), update(5, b"u=4")]);
        assert_eq!(found[0].unwrap().priority, None);
        assert_eq!(urgency(&found[1]), Some(4));
    }

    proptest! {
        #[test]
        fn how_the_bytes_are_cut_does_not_matter(
            frames in proptest::collection::vec(
                (prop_oneof![Just(PRIORITY_UPDATE), any::<u8>()], 0..3_u32, proptest::collection::vec(any::<u8>(), 0..300)),
                0..8,
            ),
            piece_bytes in 1..50_usize,
        ) {
            let bytes: Vec<u8> = frames.iter().flat_map(|(kind, stream, payload)| frame(*kind, 0, *stream, payload)).collect();
            let pieces = bytes.chunks(piece_bytes).map(<[u8]>::to_vec);
            prop_assert_eq!(scan(pieces), scan([bytes.clone()]));
        }
    }
}
