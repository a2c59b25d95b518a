//! What clients send of HTTP/1 and servers commonly take, in the form the protocol library takes.
//!
//! The library refuses a request target with a raw `"`, `<`, `>`, backtick or byte above 0x7f in
//! it, and takes trailers that end with a bare LF for the beginning of longer ones, the next
//! request included. nginx takes both. So the bytes are changed on their way: what may not stand in
//! a target is percent-encoded, and a bare LF in trailers gets its CR. To find targets and trailers
//! the framing of messages is followed; after anything unusual in it no byte of the connection is
//! changed any more. Nor is any behind a request that asks for another protocol, until it is known
//! that the connection stays with HTTP.

mod fields;
mod method;
#[cfg(test)]
mod tests;

use fields::{Fields, Framing};
use memchr::{memchr, memchr2, memchr3};
use method::Method;
use std::borrow::Cow;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether a byte may not stand in a request target as it is, before its `?` or behind.
fn is_escaped(byte: u8, in_query: bool) -> bool {
    match byte {
        b'<' | b'>' | 0x80.. => true,
        b'`' => !in_query,
        b'"' => in_query,
        _ => false,
    }
}

fn escape(byte: u8) -> [u8; 3] {
    let digit = |digit: u8| HEX[usize::from(digit)];
    [b'%', digit(byte >> 4), digit(byte & 15)]
}

/// A request target with everything percent-encoded that may not stand in it as it is; `None` where
/// all may.
pub fn escaped_target(target: &[u8]) -> Option<Vec<u8>> {
    let (mut in_query, mut changed) = (false, None::<Vec<u8>>);
    for (at, &byte) in target.iter().enumerate() {
        if is_escaped(byte, in_query) {
            let changed = changed.get_or_insert_with(|| target[..at].to_vec());
            changed.extend_from_slice(&escape(byte));
        } else if let Some(changed) = &mut changed {
            changed.push(byte);
        }
        in_query |= byte == b'?';
    }
    changed
}

/// Rewrites the requests of one connection. Pure, and the same however the bytes are cut.
#[derive(Debug, Default)]
pub struct Rewriter {
    state: State,
    fields: Fields,
    method: Method,
    /// The last digit of the version.
    minor: u8,
    /// Whether the last request asks for another protocol, and may have got it.
    may_switch: bool,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Method,
    Path,
    Query,
    Version,
    FieldStart,
    HeadCr,
    Name,
    Value,
    Body(u64),
    ChunkSize {
        size: Option<u64>,
        is_over: bool,
    },
    Chunk(u64),
    ChunkEnd,
    TrailerStart,
    Trailer {
        after_cr: bool,
    },
    TrailersCr,
    /// Nothing is changed any more.
    Unclear,
}

/// What becomes of a byte.
enum Step {
    Stays,
    IsEscaped,
    GetsCr,
}

impl Rewriter {
    /// The last request was answered, and not with another protocol: what follows is a request.
    pub fn stays_with_http(&mut self) {
        self.may_switch = false;
    }

    /// The next bytes of the connection as the engine is to have them.
    pub fn rewrite<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut changed: Option<Vec<u8>> = None;
        let mut at = 0;
        while at < bytes.len() {
            let length = self.skip(&bytes[at..]);
            if let Some(changed) = &mut changed {
                changed.extend_from_slice(&bytes[at..at + length]);
            }
            at += length;
            let Some(&byte) = bytes.get(at) else { break };
            let fate = self.step(byte);
            match (fate, &mut changed) {
                (Step::Stays, None) => {}
                (Step::Stays, Some(changed)) => changed.push(byte),
                (fate, _) => {
                    let changed = changed.get_or_insert_with(|| bytes[..at].to_vec());
                    match fate {
                        Step::IsEscaped => changed.extend_from_slice(&escape(byte)),
                        Step::GetsCr | Step::Stays => changed.extend_from_slice(&[b'\r', byte]),
                    }
                }
            }
            at += 1;
        }
        changed.map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    /// How many bytes at the beginning of `bytes` stay and leave the state as it is, or are all of a
    /// body that are there; they are taken note of.
    fn skip(&mut self, bytes: &[u8]) -> usize {
        let (left, next): (u64, fn(u64) -> State) = match self.state {
            State::Unclear => return bytes.len(),
            State::Body(left) => (left, |left| match left {
                0 => State::Start,
                _ => State::Body(left),
            }),
            State::Chunk(left) => (left, |left| match left {
                0 => State::ChunkEnd,
                _ => State::Chunk(left),
            }),
            _ => return self.skip_in_head(bytes),
        };
        let length = left.min(bytes.len() as u64);
        self.state = next(left - length);
        length as usize
    }

    /// As [`Self::skip`], of a request line or a field.
    fn skip_in_head(&mut self, bytes: &[u8]) -> usize {
        let until = |end: Option<usize>| end.unwrap_or(bytes.len());
        match self.state {
            State::Method => {
                let length = until(memchr3(b' ', b'\r', b'\n', bytes));
                self.method.push(&bytes[..length]);
                length
            }
            State::Path => until(bytes.iter().position(|&byte| {
                matches!(byte, b' ' | b'?' | b'\r' | b'\n') || is_escaped(byte, false)
            })),
            State::Query => {
                until(bytes.iter().position(|&byte| {
                    matches!(byte, b' ' | b'\r' | b'\n') || is_escaped(byte, true)
                }))
            }
            State::Name => {
                let length = until(memchr2(b':', b'\n', bytes));
                self.fields.push_name(&bytes[..length]);
                length
            }
            State::Value => {
                let length = until(memchr(b'\n', bytes));
                self.fields.push_value(&bytes[..length]);
                length
            }
            _ => 0,
        }
    }

    fn step(&mut self, byte: u8) -> Step {
        let mut fate = Step::Stays;
        self.state = match (self.state, byte) {
            (State::Start, b'\r' | b'\n') => State::Start,
            (State::Start, _) if self.may_switch => State::Unclear,
            (State::Start, _) => {
                *self = Self::default();
                self.method.push(&[byte]);
                State::Method
            }
            (State::Method, b' ') => State::Path,
            (State::Path | State::Query, b' ') => State::Version,
            // A line that is no request's: the engine refuses it.
            (State::Method | State::Path | State::Query, b'\r' | b'\n') => State::Unclear,
            (State::Path, b'?') => State::Query,
            (State::Path | State::Query, _) if is_escaped(byte, self.state == State::Query) => {
                fate = Step::IsEscaped;
                self.state
            }
            (State::Method | State::Path | State::Query, _) => self.state,
            (State::Version, b'\n') => State::FieldStart,
            (State::Version, b'\r') => State::Version,
            (State::Version, _) => {
                self.minor = byte;
                State::Version
            }
            (State::FieldStart | State::HeadCr, b'\n') => self.body(),
            (State::FieldStart, b'\r') => State::HeadCr,
            // A line that goes on, or a CR alone.
            (State::FieldStart, b' ' | b'\t') | (State::HeadCr, _) => State::Unclear,
            (State::Name, b'\n') => State::Unclear,
            (State::Name, b':') => State::Value,
            (State::FieldStart | State::Name, _) => {
                self.fields.push_name(&[byte]);
                State::Name
            }
            (State::Value, b'\n') => {
                self.fields.end_field();
                State::FieldStart
            }
            (State::Value, _) => {
                self.fields.push_value(&[byte]);
                State::Value
            }
            (State::ChunkSize { size, is_over }, _) => chunk_size(size, is_over, byte),
            (State::ChunkEnd, b'\r') => State::ChunkEnd,
            (State::ChunkEnd, b'\n') => State::CHUNK_SIZE,
            (State::ChunkEnd, _) => State::Unclear,
            (state, _) => {
                let (state, needs_cr) = trailer(state, byte);
                if needs_cr {
                    fate = Step::GetsCr;
                }
                state
            }
        };
        fate
    }

    /// What follows the head.
    fn body(&mut self) -> State {
        self.may_switch = self.fields.asks_to_switch();
        match self.fields.framing(self.minor == b'1') {
            _ if self.method.is_connect() => State::Unclear,
            Framing::Length(0) => State::Start,
            Framing::Length(bytes) => State::Body(bytes),
            Framing::Chunked => State::CHUNK_SIZE,
            Framing::Unclear => State::Unclear,
        }
    }
}

impl State {
    const CHUNK_SIZE: Self = Self::ChunkSize {
        size: None,
        is_over: false,
    };
}

/// A byte of the line with a chunk's size, which may have an extension.
fn chunk_size(size: Option<u64>, is_over: bool, byte: u8) -> State {
    let digit = char::from(byte).to_digit(16).filter(|_| !is_over);
    match (byte, digit, size) {
        (b'\n', _, Some(0)) => State::TrailerStart,
        (b'\n', _, Some(size)) => State::Chunk(size),
        (b'\n', _, None) => State::Unclear,
        (_, Some(digit), _) => {
            let size = size.unwrap_or(0).checked_mul(16);
            match size.and_then(|size| size.checked_add(digit.into())) {
                Some(size) => State::ChunkSize {
                    size: Some(size),
                    is_over,
                },
                None => State::Unclear,
            }
        }
        (b'\r' | b';' | b' ' | b'\t', _, Some(_)) => State::ChunkSize {
            size,
            is_over: true,
        },
        _ if is_over => State::ChunkSize { size, is_over },
        _ => State::Unclear,
    }
}

/// A byte of trailers, and whether it is an LF that lacks its CR.
fn trailer(state: State, byte: u8) -> (State, bool) {
    match (state, byte) {
        (State::TrailerStart, b'\n') => (State::Start, true),
        (State::TrailerStart, b'\r') => (State::TrailersCr, false),
        (State::TrailersCr, b'\n') => (State::Start, false),
        (State::Trailer { after_cr }, b'\n') => (State::TrailerStart, !after_cr),
        (State::TrailerStart | State::Trailer { .. }, _) => (
            State::Trailer {
                after_cr: byte == b'\r',
            },
            false,
        ),
        _ => (State::Unclear, false),
    }
}
