//! A small HTTP server on real sockets; a thread a connection. The test decides every answer.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How to answer one request.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// Status 200 and so many bytes, after a while.
    Body { bytes: usize, after: Duration },
    /// The same, then the connection is closed though nothing said so.
    BodyThenClose { bytes: usize },
    /// A body that ends with the connection.
    UntilClose { bytes: usize },
    /// A head that announces more than comes.
    Cut {
        announced_bytes: usize,
        bytes: usize,
    },
    /// An error without a body.
    Status(u16),
    /// Early hints, then so many bytes in two chunks, then a trailer.
    Hinted { bytes: usize },
    /// These bytes; whether the connection stays open.
    Raw { text: &'static str, keep: bool },
    /// No answer, ever.
    Silence,
    /// A body that never ends.
    Endless,
}

/// A running server; it lives as long as the test process.
pub struct TestServer {
    pub address: SocketAddr,
    connections: Arc<AtomicU64>,
    requests: Arc<AtomicU64>,
    closes: Closes,
    peers: Arc<Mutex<Vec<IpAddr>>>,
    segments: Arc<Mutex<Vec<u32>>>,
    paths: Arc<Mutex<Vec<String>>>,
}

/// For every request of every connection, whether it asked the server to close.
type Closes = Arc<Mutex<Vec<Vec<bool>>>>;

impl TestServer {
    /// Answers as `reply` says for a path and the number of the request, from 0.
    pub fn start(reply: impl Fn(&str, u64) -> Reply + Send + Sync + 'static) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (accepted, asked, reply) = (connections.clone(), requests.clone(), Arc::new(reply));
        let closes = Closes::default();
        let seen = closes.clone();
        let peers = Arc::<Mutex<Vec<IpAddr>>>::default();
        let segments = Arc::<Mutex<Vec<u32>>>::default();
        let paths = Arc::<Mutex<Vec<String>>>::default();
        let (known, sizes, told) = (peers.clone(), segments.clone(), paths.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let nth = accepted.fetch_add(1, Ordering::Relaxed) as usize;
                seen.lock().unwrap().push(Vec::new());
                let peer = stream.peer_addr().map(|address| address.ip());
                known.lock().unwrap().extend(peer);
                let segment_bytes = socket2::SockRef::from(&stream).tcp_mss();
                sizes.lock().unwrap().extend(segment_bytes);
                let (asked, reply, seen) = (asked.clone(), reply.clone(), seen.clone());
                let told = told.clone();
                let note = move |path: &str, close| {
                    seen.lock().unwrap()[nth].push(close);
                    told.lock().unwrap().push(path.to_owned());
                };
                // A client that has gone ends its own thread only.
                thread::spawn(move || serve(stream, &asked, &*reply, note).ok());
            }
        });
        TestServer {
            address,
            connections,
            requests,
            closes,
            peers,
            segments,
            paths,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Connection by connection, in the order they were accepted: which requests asked to close it.
    pub fn closes(&self) -> Vec<Vec<bool>> {
        self.closes.lock().unwrap().clone()
    }

    /// Address of the client of each connection, in the order they were accepted.
    pub fn peers(&self) -> Vec<IpAddr> {
        self.peers.lock().unwrap().clone()
    }

    /// Payload of a full segment to each client, in bytes, in that order.
    pub fn segments(&self) -> Vec<u32> {
        self.segments.lock().unwrap().clone()
    }

    /// The requested paths, in the order of the requests.
    pub fn paths(&self) -> Vec<String> {
        self.paths.lock().unwrap().clone()
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

fn serve(
    mut stream: TcpStream,
    asked: &AtomicU64,
    reply: &dyn Fn(&str, u64) -> Reply,
    note: impl Fn(&str, bool),
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut request = String::new();
        while !request.ends_with("\r\n\r\n") {
            if reader.read_line(&mut request)? == 0 {
                return Ok(());
            }
        }
        let close = request.contains("connection: close");
        let path = request.split(' ').nth(1).unwrap_or_default();
        note(path, close);
        let keep = answer(
            &mut stream,
            reply(path, asked.fetch_add(1, Ordering::Relaxed)),
        )?;
        if !keep || close {
            return Ok(());
        }
    }
}

/// Writes an answer; true if the connection stays open.
fn answer(stream: &mut TcpStream, reply: Reply) -> std::io::Result<bool> {
    let mut body = |announced_bytes: usize, bytes: usize| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {announced_bytes}\r\n\r\n");
        stream.write_all(&[head.into_bytes(), vec![b'x'; bytes]].concat())
    };
    match reply {
        Reply::Body { bytes, after } => {
            thread::sleep(after);
            body(bytes, bytes)?;
            return Ok(true);
        }
        Reply::BodyThenClose { bytes } => body(bytes, bytes)?,
        Reply::Cut {
            announced_bytes,
            bytes,
        } => body(announced_bytes, bytes)?,
        Reply::UntilClose { bytes } => {
            stream.write_all(&[b"HTTP/1.0 200 OK\r\n\r\n".to_vec(), vec![b'x'; bytes]].concat())?;
        }
        Reply::Status(status) => {
            let head = format!("HTTP/1.1 {status} Other\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes())?;
            return Ok(true);
        }
        Reply::Hinted { bytes } => {
            stream.write_all(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n")?;
            let head =
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: t\r\n\r\n1\r\nx\r\n";
            let (rest, last) = (bytes - 1, "\r\n0\r\nt: v\r\n\r\n");
            let text = match rest {
                0 => format!("{head}{}", &last[2..]),
                _ => format!("{head}{rest:x}\r\n{}{last}", "x".repeat(rest)),
            };
            stream.write_all(text.as_bytes())?;
            return Ok(true);
        }
        Reply::Raw { text, keep } => {
            stream.write_all(text.as_bytes())?;
            return Ok(keep);
        }
        Reply::Silence => loop {
            thread::park();
        },
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n")?;
            loop {
                stream.write_all(&[b'x'; 4096])?;
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    Ok(false)
}
