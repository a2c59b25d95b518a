//! HTTP/2 frames (RFC 9113, 4) below the protocol library: what it hides and the server must know.
//!
//! Headers of frames are followed and payloads passed over. Whatever is wrong with the bytes is for
//! the library to find.

mod flood;
mod priority_updates;
mod settings;
mod stream_ends;

pub use flood::{FrameBudget, ResetBudget};
pub use priority_updates::{FrameScanner, FrameStart, PriorityUpdate, Violation};
pub use settings::{Settings, amend_settings};
pub use stream_ends::{DataCount, StreamEnd, StreamEnds};

/// What a client sends first (RFC 9113, 3.4); on a clear-text port this tells HTTP/2 from HTTP/1.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame's header.
pub(crate) const HEADER_BYTES: usize = 9;
/// The longest payload of a frame: the default, as no other is announced.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 16 << 10;

/// The types of frames (RFC 9113, 6; RFC 9218, 7.1).
pub(crate) mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const CONTINUATION: u8 = 9;
    pub const PRIORITY_UPDATE: u8 = 0x10;
}

/// The flags of frames (RFC 9113, 6).
pub(crate) mod flag {
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub payload_bytes: u32,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl FrameHeader {
    /// Reads the header that `bytes` are.
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [high, middle, low, kind, flags, stream @ ..] = *bytes;
        Self {
            payload_bytes: u32::from_be_bytes([0, high, middle, low]),
            kind,
            flags,
            stream: stream_id(stream),
        }
    }

    /// The header as it is written.
    pub fn write(self) -> [u8; HEADER_BYTES] {
        let [_, high, middle, low] = self.payload_bytes.to_be_bytes();
        let [s3, s2, s1, s0] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, s3, s2, s1, s0]
    }

    /// Whether it has all the bits of `flag`.
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag == flag
    }
}

/// The number of a stream, which has 31 bits; the first bit is reserved.
pub(crate) fn stream_id(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes) & 0x7fff_ffff
}

/// A frame of these parts.
#[cfg(test)]
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader {
        payload_bytes: payload.len() as u32,
        kind,
        flags,
        stream,
    };
    [&header.write()[..], payload].concat()
}
