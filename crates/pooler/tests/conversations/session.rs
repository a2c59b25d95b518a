//! One client in bytes: what it sends, and what it hears in a form that can be compared.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// After so long without an answer that should come none will.
const PATIENCE: Duration = Duration::from_secs(15);

/// PQ_SEND_BUFFER_SIZE in PostgreSQL's `pqcomm.c`.
const SEND_BUFFER_BYTES: usize = 8192;

/// A session of PostgreSQL's protocol.
pub struct Session {
    stream: UnixStream,
    path: PathBuf,
    input: Vec<u8>,
    /// Number and key, as cancel requests have them.
    key: Vec<u8>,
    /// What was heard since the beginning.
    pub heard: Vec<String>,
    /// Settings that were reported, as `TimeZone=UTC`, since the beginning.
    pub reported: Vec<String>,
    /// How much had been heard when the server last sent all that it had.
    flushed: usize,
    /// Bytes since the server sent all that it had.
    unflushed_bytes: usize,
    /// Whether nothing more can be heard.
    pub is_over: bool,
}

impl Session {
    /// Begins one in this database.
    pub fn begin(path: &Path, database: &str) -> Result<Self, String> {
        Self::begin_as("postgres", path, database)
    }

    /// The same, as this user.
    pub fn begin_as(user: &str, path: &Path, database: &str) -> Result<Self, String> {
        let stream = UnixStream::connect(path).map_err(|error| error.to_string())?;
        stream
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut session = Self {
            stream,
            path: path.to_owned(),
            input: Vec::new(),
            key: Vec::new(),
            heard: Vec::new(),
            reported: Vec::new(),
            flushed: 0,
            unflushed_bytes: 0,
            is_over: false,
        };
        let fields = format!("\0\x03\0\0user\0{user}\0database\0{database}\0\0");
        let length = (4 + fields.len() as i32).to_be_bytes();
        session.send(&[&length, fields.as_bytes()].concat());
        session.until("it is let in", |session| {
            session.heard.last().is_some_and(|last| last == "Z I")
        })?;
        if session.is_over {
            return Err(format!("it is not let in: {:?}", session.heard));
        }
        session.heard.clear();
        session.flushed = 0;
        Ok(session)
    }

    /// The number of the server process, where no gate is before it.
    pub fn process_id(&self) -> u32 {
        u32::from_be_bytes(self.key[..4].try_into().unwrap())
    }

    /// Sends bytes; that nothing is taken any more is heard.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Says that nothing more comes.
    pub fn close(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Asks for the cancellation of what runs, and waits until that was taken.
    pub fn cancel(&self) {
        self.cancel_by(UnixStream::connect(&self.path).unwrap());
    }

    /// The same, on a connection that is there already.
    pub fn cancel_by(&self, mut stream: UnixStream) {
        let length = (12 + self.key.len() as i32 - 4).to_be_bytes();
        let number = 80_877_102_i32.to_be_bytes();
        stream
            .write_all(&[&length, &number, &self.key[..]].concat())
            .unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }

    /// Hears what there is, or waits for a moment.
    pub fn hear(&mut self) {
        let mut bytes = [0; 1 << 14];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => self.is_over = true,
                Ok(count) => {
                    self.input.extend_from_slice(&bytes[..count]);
                    continue;
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => self.is_over = true,
            }
            break;
        }
        let mut rest = &self.input[..];
        while let Some((header, _)) = rest.split_first_chunk::<5>() {
            let length = 1 + u32::from_be_bytes(header[1..].try_into().unwrap()) as usize;
            let Some((one, behind)) = rest.split_at_checked(length) else {
                break;
            };
            match one[0] {
                b'K' => self.key = one[5..].to_vec(),
                b'S' => self.reported.push(setting(&one[5..])),
                b'R' => {}
                tag => {
                    self.heard.push(shown(tag, &one[5..]));
                    self.unflushed_bytes += one.len();
                    if b"ZENGW".contains(&tag) {
                        (self.flushed, self.unflushed_bytes) = (self.heard.len(), 0);
                    }
                }
            }
            rest = behind;
        }
        let left = rest.len();
        self.input.drain(..self.input.len() - left);
    }

    /// How much was heard for sure: how much a server sends because its buffer is full depends on
    /// all that is in there.
    pub fn sure(&self) -> usize {
        if self.unflushed_bytes + self.input.len() < SEND_BUFFER_BYTES {
            self.heard.len()
        } else {
            self.flushed
        }
    }

    /// Hears until it is so, or until nothing more can come.
    pub fn until(
        &mut self,
        what: &str,
        mut is_so: impl FnMut(&Self) -> bool,
    ) -> Result<(), String> {
        let begin = Instant::now();
        while !is_so(self) {
            if self.is_over {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(format!("waits in vain: {what}; heard {:?}", self.heard));
            }
            self.hear();
        }
        Ok(())
    }

    /// What a query returns in its only column and row, or the error.
    pub fn ask(&mut self, sql: &str) -> Result<String, String> {
        self.heard.clear();
        let length = (5 + sql.len() as i32).to_be_bytes();
        self.send(&[b"Q", &length[..], sql.as_bytes(), b"\0"].concat());
        self.until(sql, |session| {
            session
                .heard
                .last()
                .is_some_and(|last| last.starts_with('Z'))
        })?;
        if self.is_over {
            return Err(format!("{sql}: the session is over"));
        }
        let find = |tag: &str| self.heard.iter().find_map(|one| one.strip_prefix(tag));
        match (find("E "), find("D ")) {
            (Some(error), _) => Err(format!("{sql}: {error}")),
            (None, row) => Ok(row.unwrap_or_default().to_owned()),
        }
    }
}

fn setting(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    text.trim_end_matches('\0').replace('\0', "=")
}

/// A message of the server's, without what may differ from run to run: numbers of objects, places
/// in the source, names that a gate gives to statements, and what it was that ended a COPY.
fn shown(tag: u8, body: &[u8]) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let what = match tag {
        b'E' | b'N' => {
            let fields = body
                .split(|byte| *byte == 0)
                .filter(|field| !field.is_empty());
            let said = fields.filter(|field| b"VCM".contains(&field[0]));
            let said: Vec<String> = said.map(|field| text(&field[1..])).collect();
            let mut said = said.join(" ");
            let ends_copy = ["unexpected message type", "unexpected EOF on client"];
            if ends_copy.iter().any(|what| said.contains(what)) {
                "ends a COPY".clone_into(&mut said);
            }
            said = said.replace("unnamed prepared statement", "prepared statement \"\"");
            if let Some((before, name)) = said.split_once("prepared statement \"") {
                let behind = name.split_once('"').map_or("", |(_, behind)| behind);
                said = format!("{before}prepared statement{behind}");
            }
            said
        }
        b'D' => {
            let mut values = Vec::new();
            let mut rest = &body[2..];
            while let Some((length, behind)) = rest.split_first_chunk::<4>() {
                let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
                values.push(text(&behind[..length]));
                rest = &behind[length..];
            }
            values.join("|")
        }
        b'T' => {
            let mut names = Vec::new();
            let mut rest = &body[2..];
            while let Some(end) = rest.iter().position(|byte| *byte == 0) {
                names.push(text(&rest[..end]));
                rest = &rest[end + 1 + 18..];
            }
            names.join("|")
        }
        b'A' => text(&body[4..]).trim_end_matches('\0').replace('\0', " "),
        b'C' | b'd' | b'Z' => text(body).trim_end_matches(['\0', '\n']).to_owned(),
        _ => String::new(),
    };
    format!("{} {what}", char::from(tag))
}
