//! A backend that is busy with computing: `backend ADDRESS ROOT RATE_MBIT`.
//!
//! Every request for a file takes the processor time that its response would take on a link of that
//! rate, counted as the load generator counts it: so a trace replayed at load 0.9 of that rate is a
//! load of 0.9 of one core. Requests that are inside at the same time share the core as the kernel
//! shares it among threads. Each connection has a thread, as in many application servers.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

/// A response head as long as that of a common server, bytes: part of the work.
const HEAD_BYTES: u64 = 200;
const SEGMENT_BYTES: u64 = 1_448;
const PACKET_HEADER_BYTES: u64 = 66;

/// Serves until it is ended.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let [address, root, rate_mbit] = arguments else {
        anyhow::bail!("backend ADDRESS ROOT RATE_MBIT")
    };
    let backend = Arc::new(Backend {
        root: root.into(),
        rate_mbit: rate_mbit.parse()?,
    });
    for stream in TcpListener::bind(address)?.incoming() {
        let (stream, backend) = (stream?, backend.clone());
        // A client that has gone ends its own thread only.
        std::thread::spawn(move || backend.serve(stream).ok());
    }
    Ok(())
}

struct Backend {
    root: PathBuf,
    rate_mbit: u64,
}

impl Backend {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let Some(head) = read_head(&mut reader)? else {
                return Ok(());
            };
            let path = head.split(' ').nth(1).unwrap_or_default();
            let close = head.to_ascii_lowercase().contains("connection: close");
            match std::fs::read(file_of(&self.root, path)) {
                Ok(body) => {
                    compute_ns(self.work_ns(body.len() as u64));
                    answer(&mut stream, "200 OK", close, &body)?;
                }
                Err(_) => answer(&mut stream, "404 Not Found", close, b"")?,
            }
            if close {
                return Ok(());
            }
        }
    }

    /// Processor time of a response.
    fn work_ns(&self, body_bytes: u64) -> u64 {
        let payload_bytes = body_bytes + HEAD_BYTES;
        let packets = payload_bytes.div_ceil(SEGMENT_BYTES);
        (payload_bytes + packets * PACKET_HEADER_BYTES) * 8_000 / self.rate_mbit.max(1)
    }
}

/// Below `root`, whatever stands before `/objects/`: routes are told apart by it.
fn file_of(root: &Path, path: &str) -> PathBuf {
    let place = path.find("/objects/").unwrap_or(path.len());
    let name = path[place..].trim_start_matches("/objects/");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
    if name.starts_with('.') || !name.bytes().all(is_plain) {
        return root.join("none");
    }
    root.join("objects").join(name)
}

/// A request head, without looking at it; `None` at the end of the connection.
fn read_head(reader: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(head))
}

fn answer(stream: &mut TcpStream, status: &str, close: bool, body: &[u8]) -> std::io::Result<()> {
    let connection = if close { "connection: close\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{connection}\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())
}

/// Keeps the processor busy until this thread has had so much of it.
fn compute_ns(work_ns: u64) {
    let end_ns = thread_cpu_ns() + work_ns;
    while thread_cpu_ns() < end_ns {
        std::hint::spin_loop();
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
