//! A server that runs; it ends, with everything it started, when this is dropped.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::{PORT, PeerError};
use crate::hosts::Hosts;
use sooner_testbed::OwnedChild;

/// How long a server may take until it answers.
const START_WAIT: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(50);
/// How long one answer may take: it is small, and no other client asks.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// No head of a response is longer.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
/// How deep a file is looked for to ask the server for.
const DEPTH_MAX: u32 = 8;

/// A web server that answers.
#[derive(Debug)]
pub struct Running {
    /// What works beside the server; ended first.
    beside: Option<OwnedChild>,
    child: OwnedChild,
    label: String,
}

impl Running {
    /// Starts the command on the server's host and waits until it answers, with the first file of
    /// `root` where there is one.
    pub(super) fn start(
        command: &mut Command,
        label: String,
        hosts: &Hosts,
        root: &Path,
    ) -> Result<Running, PeerError> {
        let system = |source| PeerError::System {
            label: label.clone(),
            source,
        };
        let child = OwnedChild::spawn(command).map_err(system)?;
        let mut running = Running {
            beside: None,
            child,
            label,
        };
        running.wait_until_it_answers(hosts, root)?;
        Ok(running)
    }

    /// Starts something beside it, and waits until that says a line.
    pub(super) fn with_beside(mut self, mut command: Command) -> Result<Running, PeerError> {
        let system = |source| PeerError::System {
            label: self.label.clone(),
            source,
        };
        let mut beside = OwnedChild::spawn(&mut command).map_err(system)?;
        if beside.next_line(START_WAIT).is_err() {
            beside.end();
            let message = beside.message();
            return Err(self.failed(format!("has nothing beside it: {message}")));
        }
        self.beside = Some(beside);
        Ok(self)
    }

    /// The id of its first process, which is its process group's too.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// As it is shown in tables.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether it has ended by itself, which is an error while it is needed.
    pub fn has_ended(&self) -> bool {
        let beside = self.beside.as_ref();
        self.child.has_ended() || beside.is_some_and(OwnedChild::has_ended)
    }

    /// Ends it now.
    pub fn stop(mut self) {
        if let Some(beside) = &mut self.beside {
            beside.end();
        }
        self.child.end();
    }

    fn wait_until_it_answers(&mut self, hosts: &Hosts, root: &Path) -> Result<(), PeerError> {
        let address = SocketAddr::from((hosts.server_address(), PORT));
        let file = some_file(root, DEPTH_MAX);
        let path = file.as_deref().unwrap_or("/");
        let start = Instant::now();
        loop {
            if self.child.has_ended() {
                let status = self
                    .child
                    .end()
                    .map_or(String::new(), |status| format!(" ({status})"));
                let message = self.child.message();
                return Err(self.failed(format!("ended at once{status}: {message}")));
            }
            match hosts.in_server(|| status(address, path)) {
                Ok(200) => return Ok(()),
                Ok(_) if file.is_none() => return Ok(()),
                Ok(status) => {
                    let root = root.display();
                    return Err(self.failed(format!(
                        "answers {status} for {path}: everybody must be able to read {root} and enter the folders above it"
                    )));
                }
                Err(error) if start.elapsed() > START_WAIT => {
                    let waited = START_WAIT.as_secs();
                    return Err(self.failed(format!("does not answer after {waited} s: {error}")));
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    fn failed(&self, what: String) -> PeerError {
        PeerError::Start {
            label: self.label.clone(),
            what,
        }
    }
}

/// The status of the answer to one request over a connection of its own.
fn status(address: SocketAddr, path: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WAIT)?;
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    write!(
        stream,
        "HEAD {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut head = Vec::new();
    // To the end, so that this connection is over before one is measured.
    stream.take(HEAD_BYTES_MAX).read_to_end(&mut head)?;
    parse_status(&head).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the answer is not one of HTTP/1.1",
        )
    })
}

fn parse_status(head: &[u8]) -> Option<u16> {
    let digits = head.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The path of some file below `root`, for a request; only with letters that need no encoding.
fn some_file(root: &Path, depth: u32) -> Option<String> {
    let plain = |name: &str| {
        !name.starts_with('.')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    for entry in fs::read_dir(root).ok()?.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| plain(name)) else {
            continue;
        };
        let kind = entry.file_type().ok()?;
        if kind.is_file() {
            return Some(format!("/{name}"));
        }
        if kind.is_dir()
            && depth > 0
            && let Some(below) = some_file(&entry.path(), depth - 1)
        {
            return Some(format!("/{name}{below}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read() {
        assert_eq!(parse_status(b"HTTP/1.1 200"), Some(200));
        assert_eq!(parse_status(b"HTTP/1.0 403"), Some(403));
        assert_eq!(parse_status(b"HTTP/1.1"), None);
        assert_eq!(parse_status(b"hello world!"), None);
    }

    #[test]
    fn a_file_is_found_below() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(some_file(root.path(), DEPTH_MAX), None);
        fs::create_dir(root.path().join("a")).unwrap();
        fs::write(root.path().join("a/b c"), "").unwrap();
        assert_eq!(some_file(root.path(), DEPTH_MAX), None);
        fs::write(root.path().join("a/1.html"), "").unwrap();
        assert_eq!(
            some_file(root.path(), DEPTH_MAX).as_deref(),
            Some("/a/1.html")
        );
    }
}
