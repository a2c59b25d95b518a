//! PostgreSQL's protocol as a client speaks it, by hand: real clients neither send half a message
//! nor reset a connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::messages::query;

/// A client that is not answered by then hangs.
pub const DEADLINE: Duration = Duration::from_secs(60);
const VERSION: i32 = 196_608;
const CANCEL: i32 = 80_877_102;

/// Where a server listens.
#[derive(Clone)]
pub enum ServerAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection.
pub struct Wire {
    stream: Stream,
    input: Vec<u8>,
    /// What a cancel request has to say.
    pub key: (i32, Vec<u8>),
}

/// What a server says that something failed.
#[derive(Clone, Debug)]
pub struct Complaint {
    pub severity: String,
    pub code: String,
    pub words: String,
}

/// Everything up to ReadyForQuery.
#[derive(Debug, Default)]
pub struct Answer {
    pub tags: Vec<String>,
    /// First columns.
    pub values: Vec<String>,
    pub complaint: Option<Complaint>,
    /// `I`, `T` or `E`.
    pub status: u8,
}

/// There is no answer.
#[derive(Debug)]
pub struct Lost {
    /// The server said nothing for as long as `DEADLINE`.
    pub is_late: bool,
    /// What was said last before the connection ended.
    pub complaint: Option<Complaint>,
    pub why: String,
}

impl Lost {
    fn of(error: &io::Error, complaint: Option<Complaint>) -> Self {
        Self {
            is_late: is_late(error),
            complaint,
            why: error.to_string(),
        }
    }
}

impl Answer {
    /// Whether nothing failed and the last command was this.
    pub fn is_done(&self, tag: &str) -> bool {
        self.complaint.is_none() && self.tags.last().is_some_and(|last| last == tag)
    }
}

impl Wire {
    fn open(place: &ServerAddress) -> io::Result<Self> {
        let stream = match place {
            ServerAddress::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(DEADLINE))?;
                stream.set_write_timeout(Some(DEADLINE))?;
                Stream::Tcp(stream)
            }
            ServerAddress::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(DEADLINE))?;
                stream.set_write_timeout(Some(DEADLINE))?;
                Stream::Unix(stream)
            }
        };
        Ok(Self {
            stream,
            input: Vec::new(),
            key: (0, Vec::new()),
        })
    }

    /// A session; `None` if no server listens.
    pub fn log_in(place: &ServerAddress, user: &str, name: &str) -> Option<Result<Self, Lost>> {
        let mut wire = Self::open(place).ok()?;
        let mut body = VERSION.to_be_bytes().to_vec();
        let said = [
            "user",
            user,
            "database",
            "postgres",
            "application_name",
            name,
        ];
        said.iter()
            .for_each(|word| body.extend_from_slice(&[word.as_bytes(), b"\0"].concat()));
        body.push(0);
        let mut bytes = (body.len() as i32 + 4).to_be_bytes().to_vec();
        bytes.extend(body);
        wire.send(&bytes);
        Some(wire.answer().map(|_| wire))
    }

    /// Asks to cancel whatever `key` stands for; `waits` until the server has closed the
    /// connection.
    pub fn cancel(place: &ServerAddress, key: &(i32, Vec<u8>), waits: bool) -> io::Result<()> {
        let mut wire = Self::open(place)?;
        let mut bytes = (12 + key.1.len() as i32).to_be_bytes().to_vec();
        bytes.extend(CANCEL.to_be_bytes());
        bytes.extend(key.0.to_be_bytes());
        bytes.extend(&key.1);
        wire.send(&bytes);
        if waits {
            wire.more()?;
        }
        Ok(())
    }

    /// Sends as much as the other side takes: one that has closed may have said why, which is to be
    /// read.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        };
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        let count = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(&mut buffer)?,
            Stream::Unix(stream) => stream.read(&mut buffer)?,
        };
        self.input.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        loop {
            if self.input.len() >= 5 {
                let length = i32::from_be_bytes(self.input[1..5].try_into().unwrap()) as usize;
                if self.input.len() > length {
                    let message: Vec<u8> = self.input.drain(..=length).collect();
                    return Ok((message[0], message[5..].to_vec()));
                }
            }
            if self.more()? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed"));
            }
        }
    }

    /// Reads everything up to ReadyForQuery.
    pub fn answer(&mut self) -> Result<Answer, Lost> {
        let mut answer = Answer::default();
        loop {
            let message = self.message();
            let (tag, body) =
                message.map_err(|error| Lost::of(&error, answer.complaint.clone()))?;
            match tag {
                b'C' => answer.tags.push(text(&body)),
                b'D' => answer.values.push(first_column(&body)),
                b'E' => answer.complaint = Some(complaint(&body)),
                b'K' => self.key = (number(&body), body[4..].to_vec()),
                b'Z' => {
                    answer.status = body[0];
                    return Ok(answer);
                }
                _ => {}
            }
        }
    }

    /// Both.
    pub fn ask(&mut self, sql: &str) -> Result<Answer, Lost> {
        self.send(&query(sql));
        self.answer()
    }

    /// Whether something of the answer, or the end, is there within this time.
    pub fn is_answered_within(&mut self, patience: Duration) -> bool {
        self.set_read_timeout(patience);
        let heard = self.more();
        self.set_read_timeout(DEADLINE);
        heard.map_err(|error| is_late(&error)) != Err(true)
    }

    fn set_read_timeout(&self, timeout: Duration) {
        let set = match &self.stream {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(timeout)),
            Stream::Unix(stream) => stream.set_read_timeout(Some(timeout)),
        };
        set.unwrap();
    }

    /// Says that nothing more will come.
    pub fn half_close(&self) {
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Ends it as a crash of the machine would: the other side reads an error, where sockets can do
    /// that.
    pub fn reset(self) {
        if let Stream::Tcp(stream) = &self.stream {
            let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind())
}

fn number(body: &[u8]) -> i32 {
    i32::from_be_bytes(body[..4].try_into().unwrap())
}

fn text(body: &[u8]) -> String {
    let end = body.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&body[..end.unwrap_or(body.len())]).into_owned()
}

fn first_column(body: &[u8]) -> String {
    match number(&body[2..]) {
        ..0 => String::new(),
        length => String::from_utf8_lossy(&body[6..6 + length as usize]).into_owned(),
    }
}

fn complaint(body: &[u8]) -> Complaint {
    let field = |wanted: u8| {
        let mut fields = body.split(|byte| *byte == 0);
        let found = fields.find(|field| field.first() == Some(&wanted));
        found.map_or(String::new(), |field| text(&field[1..]))
    };
    Complaint {
        severity: field(b'V'),
        code: field(b'C'),
        words: field(b'M'),
    }
}
