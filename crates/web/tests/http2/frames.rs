//! HTTP/2 frame by frame, as no library would send them.

use crate::site::PATIENCE;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const PRIORITY_UPDATE: u8 = 0x10;

/// The status as the first field of a head (RFC 7541, Appendix A).
pub const STATUS_200: u8 = 0x88;
pub const STATUS_400: u8 = 0x8c;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const PROTOCOL_ERROR: u32 = 1;
pub const FRAME_SIZE_ERROR: u32 = 6;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;
pub const ENHANCE_YOUR_CALM: u32 = 11;

#[derive(Debug, Clone)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// The error code of GOAWAY or RST_STREAM.
    pub fn error(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// A connection on which anything can be sent.
pub struct RawClient {
    stream: TcpStream,
    pub server_settings: Vec<(u16, u32)>,
}

impl RawClient {
    /// Connects, exchanges settings, and announces `settings`.
    pub fn connect(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        Self::over(TcpStream::connect(address).unwrap(), settings)
    }

    /// The same on a connection that is there.
    pub fn over(stream: TcpStream, settings: &[(u16, u32)]) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self {
            stream,
            server_settings: Vec::new(),
        };
        client.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        client.send(SETTINGS, 0, 0, &payload);
        let first = client.read_any().unwrap();
        assert_eq!((first.kind, first.flags), (SETTINGS, 0));
        client.server_settings = first
            .payload
            .chunks(6)
            .map(|setting| {
                let id = u16::from_be_bytes([setting[0], setting[1]]);
                let value = u32::from_be_bytes(setting[2..].try_into().unwrap());
                (id, value)
            })
            .collect();
        client.send(SETTINGS, ACK, 0, b"");
        client
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Writes as much as the server takes before it ends the connection.
    pub fn try_write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.write(&frame(kind, flags, stream, payload));
    }

    /// A GET of `path` on `stream`.
    pub fn get(&mut self, stream: u32, path: &str, fields: &[(&str, &str)]) {
        let block = request_block("GET", path, fields);
        self.send(HEADERS, END_STREAM | END_HEADERS, stream, &block);
    }

    pub fn open_window(&mut self, stream: u32, bytes: u32) {
        self.send(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    }

    pub fn update_priority(&mut self, stream: u32, field: &str) {
        let payload = [&stream.to_be_bytes()[..], field.as_bytes()].concat();
        self.send(PRIORITY_UPDATE, 0, 0, &payload);
    }

    /// The next frame of a response, or about the connection's end; `None` at the end.
    pub fn read(&mut self) -> Option<Frame> {
        loop {
            let frame = self.read_any()?;
            if !matches!(frame.kind, SETTINGS | WINDOW_UPDATE) {
                return Some(frame);
            }
        }
    }

    /// Reads on to a frame of this kind.
    pub fn read_until(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.read().expect("the connection ended before");
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// The error code with which the server ends the connection.
    pub fn read_end(&mut self) -> u32 {
        let mut error = None;
        while let Some(frame) = self.read() {
            if frame.kind == GOAWAY {
                error = Some(frame.error());
            }
        }
        error.expect("it ended without GOAWAY")
    }

    /// Whether nothing of a response comes for a while.
    pub fn is_silent(&mut self) -> bool {
        let a_while = Some(Duration::from_millis(200));
        self.stream.set_read_timeout(a_while).unwrap();
        let silent = loop {
            let mut header = [0; 9];
            match self.stream.peek(&mut header) {
                Ok(9) if matches!(header[3], SETTINGS | WINDOW_UPDATE) => self.read_any(),
                Ok(_) => break false,
                Err(error) => {
                    break matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                }
            };
        };
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }

    /// The streams in the order in which they ended, and the bytes of data each got.
    pub fn read_responses(&mut self, count: usize) -> Vec<(u32, usize)> {
        let mut got: Vec<(u32, usize)> = Vec::new();
        let mut ended = Vec::new();
        while ended.len() < count {
            let frame = self.read().expect("the connection ended before");
            if frame.kind == DATA {
                match got.iter_mut().find(|(stream, _)| *stream == frame.stream) {
                    Some((_, bytes)) => *bytes += frame.payload.len(),
                    None => got.push((frame.stream, frame.payload.len())),
                }
            }
            if frame.ends_stream() {
                let bytes = got.iter().find(|(stream, _)| *stream == frame.stream);
                ended.push((frame.stream, bytes.map_or(0, |(_, bytes)| *bytes)));
            }
        }
        ended
    }

    /// The next frame, whatever it is about; `None` at the end.
    pub fn read_any(&mut self) -> Option<Frame> {
        let mut header = [0; 9];
        match self.stream.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("nothing came"),
            Err(_) => return None,
        }
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some(Frame {
            kind: header[3],
            flags: header[4],
            stream: u32::from_be_bytes(header[5..].try_into().unwrap()),
            payload,
        })
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A request's head, every field written out (RFC 7541, 6.2.2).
pub fn request_block(method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [
        (":method", method),
        (":scheme", "http"),
        (":authority", "localhost"),
        (":path", path),
    ];
    block(&[&pseudo[..], fields].concat())
}

/// Fields written out.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        for text in [name, value] {
            push_length(&mut bytes, text.len());
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    bytes
}

/// An integer with a prefix of 7 bits (RFC 7541, 5.1).
fn push_length(bytes: &mut Vec<u8>, mut length: usize) {
    if length < 127 {
        bytes.push(length as u8);
        return;
    }
    bytes.push(127);
    length -= 127;
    while length >= 128 {
        bytes.push((length % 128) as u8 | 128);
        length /= 128;
    }
    bytes.push(length as u8);
}
