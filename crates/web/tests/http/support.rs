//! A client that sees every byte, and a server to ask.

pub use crate::site::Site;
use crate::site::{CHUNK_BYTES, PATIENCE, rooted};
use sooner_uplink::Uplink;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

impl Site {
    /// Serves an empty folder; so many bytes of its files are read at once.
    pub fn start_with_chunks(config: &str, chunk_bytes: usize) -> Self {
        Self::run(&rooted(config), chunk_bytes, |_| Uplink::unlimited())
    }

    /// Serves an empty folder as a site with these settings.
    pub fn start_site(settings: &str) -> Self {
        let config = format!("[[site]]\nroot = \"FOLDER/root\"\n{settings}");
        Self::run(&config, CHUNK_BYTES, |_| Uplink::unlimited())
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// One request on a connection of its own.
    pub fn get(&self, target: &str, headers: &str) -> Response {
        self.request("GET", target, headers)
    }

    pub fn request(&self, method: &str, target: &str, headers: &str) -> Response {
        let mut client = self.connect();
        client.send(&format!(
            "{method} {target} HTTP/1.1\r\nhost: x\r\n{headers}\r\n"
        ));
        client.response(method)
    }
}

/// One response as it came.
#[derive(Debug)]
pub struct Response {
    pub version: String,
    pub status: u16,
    /// Behind the status.
    pub words: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// One connection.
pub struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            reader: BufReader::new(stream),
        }
    }

    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub fn send(&mut self, text: &str) {
        self.reader.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// A GET that keeps the connection.
    pub fn send_get(&mut self, target: &str) {
        self.send(&format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n"));
    }

    /// The head of the next response, its body still to come.
    pub fn head(&mut self) -> Response {
        let status_line = self.line();
        let mut parts = status_line.splitn(3, ' ');
        let version = parts.next().unwrap().to_owned();
        let status = parts
            .next()
            .unwrap_or_else(|| panic!("no status in {status_line:?}"))
            .parse()
            .unwrap();
        let words = parts.next().unwrap_or_default().to_owned();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                return Response {
                    version,
                    status,
                    words,
                    headers,
                    body: Vec::new(),
                };
            }
            let (name, value) = line.split_once(": ").unwrap();
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }

    /// The next response to a request with `method`.
    pub fn response(&mut self, method: &str) -> Response {
        let mut response = self.head();
        let has_body = method != "HEAD" && response.status != 304;
        if let Some(length) = response.header("content-length").filter(|_| has_body) {
            response.body = vec![0; length.parse().unwrap()];
            self.reader.read_exact(&mut response.body).unwrap();
        }
        response
    }

    /// Everything up to the end of the connection; `Err` when it was reset.
    pub fn rest(&mut self) -> std::io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest)?;
        Ok(rest)
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.reader.read(buffer)
    }

    /// Whether the server has ended the connection, and sent nothing before.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.rest(), Ok(rest) if rest.is_empty())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        assert!(
            line.ends_with("\r\n"),
            "the connection ended within a head: {line:?}"
        );
        line.trim_end().to_owned()
    }
}

/// A body out of its chunks.
pub fn unchunked(chunks: &[u8]) -> Vec<u8> {
    let (mut body, mut rest) = (Vec::new(), chunks);
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n");
        let (line, more) = rest.split_at(line.expect("the length of a chunk"));
        let bytes = usize::from_str_radix(std::str::from_utf8(line).unwrap(), 16).unwrap();
        if bytes == 0 {
            return body;
        }
        body.extend_from_slice(&more[2..2 + bytes]);
        rest = &more[bytes + 4..];
    }
}
