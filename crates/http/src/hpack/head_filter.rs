//! The frames of a client on their way to the HTTP/2 library: heads that it would take for a broken
//! connection are replaced by ones that it takes for a malformed request (`block`), so that the
//! other requests go on.
//!
//! All else passes as it is. A head is held back until all of its frames are here, no longer than
//! the library would hold it. What breaks the rules of frames or of HPACK is left to the library,
//! which ends the connection.

use super::block::{Blocks, Checked};
use crate::frames::flag::{END_HEADERS, END_STREAM, PADDED, PRIORITY};
use crate::frames::kind::{CONTINUATION, DATA, HEADERS, RST_STREAM};
use crate::frames::{FrameHeader, HEADER_BYTES, PAYLOAD_BYTES_MAX, PREFACE};
use std::collections::BTreeSet;

/// The most streams that are known to be unfinished: more than a client may open.
const UNFINISHED_MAX: usize = 1 << 16;

/// The heads of one connection, from its first byte.
#[derive(Debug)]
pub struct HeadFilter {
    /// The beginning of a frame header, or of a head, that is not complete.
    held: Vec<u8>,
    /// What is left of a payload that passes.
    passing_bytes: usize,
    /// The frames after which a head is left to the library.
    frames_max: usize,
    last_stream: u32,
    /// The streams on which trailers may come: the client has begun them and not ended them.
    unfinished: BTreeSet<u32>,
    blocks: Blocks,
    /// The library will end the connection: nothing is looked at any more.
    is_over: bool,
    malformed: u32,
}

/// What stands at the beginning of some bytes.
enum Next<'a> {
    /// Not enough to say.
    Incomplete,
    /// A frame that passes.
    Frame(FrameHeader),
    /// A head.
    Head(Head<'a>),
    /// Something that the library refuses.
    Broken,
}

/// A head that is here as a whole.
struct Head<'a> {
    stream: u32,
    flags: u8,
    /// All of its frames, bytes.
    bytes: usize,
    fragments: Vec<&'a [u8]>,
}

/// Whether nothing follows this frame, which is not a head, on its stream.
fn ends_stream(frame: FrameHeader) -> bool {
    frame.kind == RST_STREAM || (frame.kind == DATA && frame.has(END_STREAM))
}

impl HeadFilter {
    /// The heads of a connection on which they may be up to `head_bytes_max` long; several times as
    /// much is held back.
    pub fn new(head_bytes_max: u32) -> Self {
        Self {
            held: Vec::new(),
            passing_bytes: PREFACE.len(),
            frames_max: 8 + head_bytes_max as usize / PAYLOAD_BYTES_MAX * 2,
            last_stream: 0,
            unfinished: BTreeSet::new(),
            blocks: Blocks::default(),
            is_over: false,
            malformed: 0,
        }
    }

    /// How many heads were malformed since this was last asked.
    pub fn take_malformed(&mut self) -> u32 {
        std::mem::take(&mut self.malformed)
    }

    /// Takes the next `bytes` of the connection; what the library is to get in their place, if that
    /// is not they themselves.
    pub fn pass(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.is_over {
            return None;
        }
        if self.held.is_empty() {
            let mut changed = None;
            self.walk(bytes, &mut changed);
            return changed;
        }
        self.held.extend_from_slice(bytes);
        let is_waiting = self.passing_bytes == 0
            && matches!(next(&self.held, self.frames_max), Next::Incomplete);
        let mut passed = Some(Vec::new());
        if !is_waiting {
            let held = std::mem::take(&mut self.held);
            self.walk(&held, &mut passed);
        }
        passed
    }

    /// Goes through `bytes`, of which nothing is held; `changed` is what passes, once that is not
    /// all of them as they are.
    fn walk(&mut self, bytes: &[u8], changed: &mut Option<Vec<u8>>) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let passed_bytes = if self.passing_bytes > 0 {
                rest.len().min(self.passing_bytes)
            } else {
                match next(rest, self.frames_max) {
                    Next::Incomplete => {
                        changed.get_or_insert_with(|| bytes[..at].to_vec());
                        self.held = rest.to_vec();
                        return;
                    }
                    Next::Frame(frame) => {
                        if ends_stream(frame) {
                            self.forget(frame.stream);
                        }
                        self.passing_bytes = HEADER_BYTES + frame.payload_bytes as usize;
                        continue;
                    }
                    Next::Head(head) => {
                        if let Some(instead) = self.check(&head) {
                            let changed = changed.get_or_insert_with(|| bytes[..at].to_vec());
                            changed.extend_from_slice(&instead);
                            at += head.bytes;
                            continue;
                        }
                        self.passing_bytes = if self.is_over { rest.len() } else { head.bytes };
                        self.passing_bytes
                    }
                    Next::Broken => {
                        self.is_over = true;
                        self.passing_bytes = rest.len();
                        rest.len()
                    }
                }
            };
            if let Some(changed) = changed {
                changed.extend_from_slice(&rest[..passed_bytes]);
            }
            self.passing_bytes -= passed_bytes;
            at += passed_bytes;
        }
    }

    /// No trailers come on `stream` any more: it was reset.
    pub fn forget(&mut self, stream: u32) {
        self.unfinished.remove(&stream);
    }

    /// Whether `head` is a trailer section. One on a stream that has ended is left to the library,
    /// which knows how to answer it (RFC 9113, 5.1).
    fn note(&mut self, head: &Head<'_>) -> bool {
        let is_trailers = self.unfinished.contains(&head.stream);
        if head.flags & END_STREAM != 0 {
            self.unfinished.remove(&head.stream);
        } else if head.stream > self.last_stream {
            self.unfinished.insert(head.stream);
            if self.unfinished.len() > UNFINISHED_MAX {
                self.unfinished.pop_first();
            }
        }
        self.last_stream = self.last_stream.max(head.stream);
        is_trailers
    }

    /// The frames to pass in place of a head, if it cannot pass.
    fn check(&mut self, head: &Head<'_>) -> Option<Vec<u8>> {
        let is_trailers = self.note(head);
        let joined;
        let block = match head.fragments[..] {
            [block] => block,
            _ => {
                joined = head.fragments.concat();
                &joined
            }
        };
        match self.blocks.check(block, is_trailers) {
            Checked::Readable => None,
            Checked::Rewritten(instead) => Some(frames(head, &instead)),
            Checked::Malformed(instead) => {
                self.malformed += 1;
                Some(frames(head, &instead))
            }
            Checked::Undecodable => {
                self.is_over = true;
                None
            }
        }
    }
}

/// The frames of `head` with another block; padding and old priorities are of no use to it.
fn frames(head: &Head<'_>, block: &[u8]) -> Vec<u8> {
    let mut frames = Vec::with_capacity(block.len() + HEADER_BYTES);
    let mut kind = HEADERS;
    let mut flags = head.flags & END_STREAM;
    let mut rest = block;
    loop {
        let (fragment, after) = rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX));
        if after.is_empty() {
            flags |= END_HEADERS;
        }
        let header = FrameHeader {
            payload_bytes: fragment.len() as u32,
            kind,
            flags,
            stream: head.stream,
        };
        frames.extend_from_slice(&header.write());
        frames.extend_from_slice(fragment);
        if after.is_empty() {
            return frames;
        }
        (kind, flags, rest) = (CONTINUATION, 0, after);
    }
}

/// What stands at the beginning of `bytes`.
fn next(bytes: &[u8], frames_max: usize) -> Next<'_> {
    let Some((first, mut rest)) = frame_header(bytes) else {
        return Next::Incomplete;
    };
    if first.kind != HEADERS {
        return Next::Frame(first);
    }
    let mut header = first;
    let mut fragments = Vec::new();
    loop {
        let payload_bytes = header.payload_bytes as usize;
        if payload_bytes > PAYLOAD_BYTES_MAX || fragments.len() >= frames_max {
            return Next::Broken;
        }
        let Some((payload, after)) = rest.split_at_checked(payload_bytes) else {
            return Next::Incomplete;
        };
        let fragment = if fragments.is_empty() {
            without_padding(payload, header)
        } else {
            Some(payload)
        };
        let Some(fragment) = fragment else {
            return Next::Broken;
        };
        fragments.push(fragment);
        if header.has(END_HEADERS) {
            return Next::Head(Head {
                stream: first.stream,
                flags: first.flags,
                bytes: bytes.len() - after.len(),
                fragments,
            });
        }
        let Some((following, after)) = frame_header(after) else {
            return Next::Incomplete;
        };
        if following.kind != CONTINUATION || following.stream != first.stream {
            return Next::Broken;
        }
        (header, rest) = (following, after);
    }
}

fn frame_header(bytes: &[u8]) -> Option<(FrameHeader, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    Some((FrameHeader::read(header), rest))
}

/// The part of a HEADERS frame's payload that is its head (RFC 9113, 6.2).
fn without_padding(mut payload: &[u8], header: FrameHeader) -> Option<&[u8]> {
    let mut padding_bytes = 0;
    if header.has(PADDED) {
        let (&first, rest) = payload.split_first()?;
        (padding_bytes, payload) = (usize::from(first), rest);
    }
    if header.has(PRIORITY) {
        payload = payload.get(5..)?;
    }
    payload.get(..payload.len().checked_sub(padding_bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::frame;
    use proptest::prelude::*;

    /// What the library gets of `bytes` that come in pieces.
    fn passed(bytes: &[u8], piece_bytes: usize) -> Vec<u8> {
        let mut heads = HeadFilter::new(16 << 10);
        let preface = [0; PREFACE.len()];
        assert_eq!(heads.pass(&preface), None);
        let mut passed = Vec::new();
        for piece in bytes.chunks(piece_bytes) {
            match heads.pass(piece) {
                None => passed.extend_from_slice(piece),
                Some(instead) => passed.extend_from_slice(&instead),
            }
        }
        passed
    }

    const READABLE: &[u8] = b"\x82\x86\x84";
    const MALFORMED: &[u8] = b"\x82\x86\x01\x02h\xe9";

    #[test]
    fn a_malformed_head_is_replaced_and_all_else_passes() {
        let before = [frame(4, 0, 0, b""), frame(HEADERS, 5, 1, READABLE)].concat();
        let after = [frame(0, 1, 5, b"data"), frame(6, 0, 0, b"12345678")].concat();
        let instead = frame(HEADERS, 5, 3, b"\x82\x86\x00\x0aconnection\x01x");
        for malformed in [
            frame(HEADERS, 5, 3, MALFORMED),
            frame(
                HEADERS,
                0x2d,
                3,
                b"\x02\0\0\0\x01\x10\x82\x86\x01\x02h\xe9\0\0",
            ),
            [
                frame(HEADERS, 1, 3, &MALFORMED[..4]),
                frame(CONTINUATION, 0, 3, b""),
                frame(CONTINUATION, 4, 3, &MALFORMED[4..]),
            ]
            .concat(),
        ] {
            let sent = [&before[..], &malformed, &after].concat();
            let expected = [&before[..], &instead, &after].concat();
            for piece_bytes in [1, 7, 1000] {
                assert_eq!(passed(&sent, piece_bytes), expected);
            }
        }
    }

    #[test]
    fn pseudo_header_fields_are_misplaced_in_trailers_of_open_streams_only() {
        let open = frame(HEADERS, END_HEADERS, 3, READABLE);
        let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 3, READABLE);
        let malformed = [READABLE, b"\x00\x0aconnection\x01x"].concat();
        let replaced = frame(HEADERS, END_HEADERS | END_STREAM, 3, &malformed);
        let body = frame(DATA, 0, 3, b"body");
        let sent = [&open[..], &body, &trailers].concat();
        assert_eq!(
            passed(&sent, 5),
            [&open[..], &body, &replaced].concat(),
            "the stream is open"
        );
        for ended in [
            trailers.clone(),
            [&open[..], &frame(HEADERS, END_HEADERS | END_STREAM, 3, b"")].concat(),
            [&open[..], &frame(DATA, END_STREAM, 3, b"")].concat(),
            [&open[..], &frame(RST_STREAM, 0, 3, &[0; 4])].concat(),
            frame(HEADERS, END_HEADERS | END_STREAM, 5, READABLE),
        ] {
            for flags in [END_HEADERS, END_HEADERS | END_STREAM] {
                let late = frame(HEADERS, flags, 3, READABLE);
                let sent = [&ended[..], &late].concat();
                for piece_bytes in [1, 1000] {
                    assert_eq!(passed(&sent, piece_bytes), sent, "the library answers");
                }
            }
        }
        let mut heads = HeadFilter::new(16 << 10);
        heads.pass(&[&[0; PREFACE.len()][..], &open].concat());
        heads.forget(3);
        assert_eq!(heads.pass(&trailers), None, "the server has reset it");
    }

    #[test]
    fn what_is_no_head_passes_and_nothing_is_looked_at_any_more() {
        for broken in [
            frame(HEADERS, 5, 1, b"\xff\xff\xff\xff\xff\xff"),
            frame(HEADERS, 0xd, 1, b"\x09"),
            [frame(HEADERS, 1, 1, READABLE), frame(0, 0, 1, b"")].concat(),
            frame(HEADERS, 1, 1, &[0; PAYLOAD_BYTES_MAX + 1]),
        ] {
            let sent = [broken, frame(HEADERS, 5, 3, MALFORMED)].concat();
            for piece_bytes in [3, 100_000] {
                assert_eq!(passed(&sent, piece_bytes), sent);
            }
        }
    }

    #[test]
    fn a_head_without_an_end_is_held_no_longer_than_the_library_does() {
        let mut heads = HeadFilter::new(16 << 10);
        heads.pass(&[0; PREFACE.len()]);
        heads.pass(&frame(HEADERS, 0, 1, &[0; PAYLOAD_BYTES_MAX]));
        let mut most_bytes = 0;
        for _ in 0..100 {
            heads.pass(&frame(CONTINUATION, 0, 1, &[0; PAYLOAD_BYTES_MAX]));
            most_bytes = most_bytes.max(heads.held.len());
        }
        assert!(heads.is_over && heads.held.is_empty());
        assert!(most_bytes <= 11 * (PAYLOAD_BYTES_MAX + HEADER_BYTES));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn how_the_bytes_are_cut_does_not_matter(
            frames in prop::collection::vec(
                (prop_oneof![3 => Just(HEADERS), 1 => Just(CONTINUATION), 1 => 0..12_u8], any::<u8>(), 1..6_u32,
                    prop_oneof![
                        Just(READABLE.to_vec()), Just(MALFORMED.to_vec()), prop::collection::vec(any::<u8>(), 0..30)
                    ]),
                0..12,
            ),
            piece_bytes in 1..50_usize,
        ) {
            let bytes: Vec<u8> = frames.iter().flat_map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, payload)).collect();
            let whole = passed(&bytes, bytes.len().max(1));
            let pieces = passed(&bytes, piece_bytes);
            // What is held at the end is the same, too.
            prop_assert_eq!(pieces, whole);
        }
    }
}
