//! Uploads that wait for a backend beside one that it reads.

use super::frames::*;
use super::support::Site;
use crate::site::PATIENCE;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;

/// SETTINGS_INITIAL_WINDOW_SIZE.
const INITIAL_WINDOW: u16 = 4;
/// Of each upload: more than a stream's window.
const BODY_BYTES: usize = 400_000;
const FRAME_BYTES: usize = 16_384;

/// Reads one request after the other on each connection, and says when one has begun.
fn backend() -> (SocketAddr, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, tell) = (stream.unwrap(), tell.clone());
            thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                loop {
                    let mut line = String::new();
                    let mut body = vec![0; BODY_BYTES];
                    while line != "\r\n" {
                        line.clear();
                        if reader.read_line(&mut line).unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let _ = tell.send(());
                    if reader.read_exact(&mut body).is_err() {
                        return;
                    }
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    reader.get_mut().write_all(answer).unwrap();
                }
            });
        }
    });
    (address, told)
}

/// A client that keeps within its windows.
struct Uploader {
    client: RawClient,
    connection_window: usize,
    windows: BTreeMap<u32, usize>,
    left: BTreeMap<u32, usize>,
    /// The longest frame that it sends.
    frame_bytes: usize,
    answered: usize,
}

impl Uploader {
    fn connect(address: SocketAddr) -> Self {
        Self {
            client: RawClient::connect(address, &[]),
            connection_window: 65_535,
            windows: BTreeMap::new(),
            left: BTreeMap::new(),
            frame_bytes: FRAME_BYTES,
            answered: 0,
        }
    }

    fn post(&mut self, stream: u32) {
        let length = BODY_BYTES.to_string();
        let block = request_block("POST", "/app", &[("content-length", &length)]);
        self.client.send(HEADERS, END_HEADERS, stream, &block);
        let settings = &self.client.server_settings;
        let initial = settings.iter().find(|(id, _)| *id == INITIAL_WINDOW);
        self.windows.insert(stream, initial.unwrap().1 as usize);
        self.left.insert(stream, BODY_BYTES);
    }

    /// Sends a frame on the first of these streams that may; whether one may.
    fn send_on(&mut self, streams: &[u32]) -> bool {
        for stream in streams {
            let (window, left) = (self.windows[stream], self.left[stream]);
            let bytes = left
                .min(window)
                .min(self.connection_window)
                .min(self.frame_bytes);
            if bytes > 0 {
                let flags = if bytes == left { END_STREAM } else { 0 };
                self.client.send(DATA, flags, *stream, &vec![b'x'; bytes]);
                self.connection_window -= bytes;
                *self.windows.get_mut(stream).unwrap() -= bytes;
                *self.left.get_mut(stream).unwrap() -= bytes;
                return true;
            }
        }
        false
    }

    fn hear(&mut self) {
        let frame = self.client.read_any().expect("the connection ended");
        match frame.kind {
            WINDOW_UPDATE => {
                let bytes = u32::from_be_bytes(frame.payload.try_into().unwrap()) as usize;
                match frame.stream {
                    0 => self.connection_window += bytes,
                    stream => *self.windows.get_mut(&stream).unwrap() += bytes,
                }
            }
            HEADERS => {
                assert_eq!(frame.payload[0], STATUS_200, "stream {}", frame.stream);
                self.answered += 1;
            }
            RST_STREAM | GOAWAY => panic!("{frame:?}"),
            _ => {}
        }
    }
}

/// A site before a backend that has room for one request.
fn site_before(address: SocketAddr) -> Site {
    Site::start_with(&format!(
        "[[upstream]]\nname = \"app\"\nservers = [\"http://{address}\"]\nlimit = 1\n\
         [[route]]\npath = \"/app\"\nupstream = \"app\""
    ))
}

#[test]
fn uploads_that_wait_leave_room_for_the_one_that_is_read() {
    let (address, begun) = backend();
    let site = site_before(address);
    let mut client = Uploader::connect(site.address);
    client.post(1);
    assert!(client.send_on(&[1]));
    begun.recv_timeout(PATIENCE).unwrap();
    // It is inside; the others wait, and send what they may before it sends its rest.
    for stream in [3, 5, 7, 9] {
        client.post(stream);
    }
    while client.answered < 5 {
        if !client.send_on(&[3, 5, 7, 9, 1]) {
            client.hear();
        }
    }
}

#[test]
fn an_upload_in_small_frames_waits_as_any_other() {
    let (address, begun) = backend();
    let site = site_before(address);
    let mut client = Uploader::connect(site.address);
    client.post(1);
    assert!(client.send_on(&[1]));
    begun.recv_timeout(PATIENCE).unwrap();
    client.post(3);
    // Messages, each in a frame: ten thousand of them.
    client.frame_bytes = 20;
    while client.left[&3] > BODY_BYTES - 200_000 {
        if !client.send_on(&[3]) {
            client.hear();
        }
    }
    client.frame_bytes = FRAME_BYTES;
    while client.answered < 2 {
        if !client.send_on(&[1, 3]) {
            client.hear();
        }
    }
}
