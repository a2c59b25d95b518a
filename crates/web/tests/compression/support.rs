//! curl with all it says, and backends that say what they are told.

pub use crate::site::Site;
use crate::site::{CHUNK_BYTES, rooted};
use sooner_testbed::skip;
use sooner_uplink::{Mechanism, Uplink, UplinkConfig};
use sooner_web::config::Config;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;

/// A response as curl got it.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    /// In lower case, but for their values, in the order of the response.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// What curl ended with.
    pub exit: Option<i32>,
}

impl Got {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// Whether `Vary` names `Accept-Encoding`, once.
    pub fn varies(&self) -> bool {
        let vary = self.headers.iter().filter(|(name, _)| name == "vary");
        let names = vary.flat_map(|(_, value)| value.split(',').map(str::trim));
        let named = names.filter(|name| name.eq_ignore_ascii_case("accept-encoding"));
        match named.count() {
            0 => false,
            1 => true,
            count => panic!("said {count} times: {self:?}"),
        }
    }
}

/// Whether curl is there and reads `codings`; says so if not.
pub fn has_curl() -> bool {
    let version = Command::new("curl").arg("--version").output();
    let knows = version.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ["libz", "brotli", "zstd"]
            .iter()
            .all(|it| text.contains(it))
    });
    if !knows {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("compression");
        skip(test, "needs curl with gzip, brotli and zstd");
    }
    knows
}

/// What curl gets of `path` with these arguments.
pub fn curl(address: SocketAddr, path: &str, arguments: &[&str]) -> Got {
    let head = tempfile::NamedTempFile::new().unwrap();
    let output = Command::new("curl")
        .args(["--disable", "-sS", "--max-time", "60", "-D"])
        .arg(head.path())
        .args(arguments)
        .arg(format!("http://{address}{path}"))
        .output()
        .unwrap();
    let head = std::fs::read_to_string(head.path()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let headers = lines.filter_map(|line| line.split_once(": "));
    Got {
        status: status.map_or(0, |status| status.parse().unwrap()),
        headers: headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect(),
        body: output.stdout,
        exit: output.status.code(),
    }
}

/// The same with `Accept-Encoding: accept`, unpacked.
pub fn unpacked(address: SocketAddr, path: &str, accept: &str, more: &[&str]) -> Got {
    let accept = format!("accept-encoding: {accept}");
    curl(
        address,
        path,
        &[&["--compressed", "-H", &accept], more].concat(),
    )
}

/// A text of about so many bytes that shrinks to about a quarter.
pub fn text(bytes: usize) -> Vec<u8> {
    let lines = (0..).flat_map(|line: u32| {
        let number = line.wrapping_mul(2_654_435_761);
        format!("<li class=\"entry\">{number:x} line {line}</li>\n").into_bytes()
    });
    lines.take(bytes).collect()
}

/// A site that passes all paths on to a backend which `answer` plays for each request: it gets the
/// head of the request and writes what it likes.
pub fn before(config: &str, answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Site {
    before_over(config, |_| Uplink::unlimited(), answer)
}

/// A link on which a response of 50 KB takes a while.
pub fn slow(config: &Config) -> Uplink {
    let mut uplink = UplinkConfig::new(2_000_000, config.uplink.policy());
    uplink.mechanism = Mechanism::UserSpace;
    Uplink::start(&uplink).unwrap()
}

/// The same, and its responses leave through `uplink`.
pub fn before_over(
    config: &str,
    uplink: impl FnOnce(&Config) -> Uplink + Send + 'static,
    answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static,
) -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), answer.clone());
            std::thread::spawn(move || {
                let mut said = BufReader::new(stream.try_clone().unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if said.read_line(&mut head).unwrap_or(0) == 0 {
                        return;
                    }
                }
                answer(&head, &mut stream);
            });
        }
    });
    let config = format!(
        "{config}\n[[upstream]]\nname = 'app'\nservers = ['http://{address}']\nretries = 0\n\
         [[route]]\npath = '/'\nupstream = 'app'\n"
    );
    Site::run(&rooted(&config), CHUNK_BYTES, uplink)
}

/// Writes a response with these lines in its head, on a connection that ends behind it.
pub fn say(stream: &mut TcpStream, lines: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{lines}\r\n");
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

/// Writes one chunk of a chunked body.
pub fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let size = format!("{:x}\r\n", bytes.len());
    stream.write_all(&[size.as_bytes(), bytes, b"\r\n"].concat())
}
