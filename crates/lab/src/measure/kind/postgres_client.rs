//! A client of PostgreSQL's that throws away what it reads, in pieces, so that it can be given more
//! than fits into memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

const VERSION: i32 = 196_608;
/// A client that is not answered by then is not answered.
const DEADLINE: Duration = Duration::from_secs(120);
const PIECE_BYTES: usize = 1 << 16;
const HEADER_BYTES: usize = 5;

/// A session in the database postgres.
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Logs in as the user postgres.
    pub fn new(socket: &Path) -> Result<Self> {
        Self::of_user(socket, "postgres")
    }

    /// Logs in as this user.
    pub fn of_user(socket: &Path, user: &str) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        let stream = BufReader::with_capacity(PIECE_BYTES, stream);
        let mut client = Self { stream };
        let said = format!("user\0{user}\0database\0postgres\0\0");
        let length = 8 + said.len() as i32;
        let packet = [
            &length.to_be_bytes()[..],
            &VERSION.to_be_bytes(),
            said.as_bytes(),
        ]
        .concat();
        client.stream.get_mut().write_all(&packet)?;
        client.read_to(b'Z')?;
        Ok(client)
    }

    /// Sends a command and reads nothing.
    pub fn say(&mut self, sql: &str) -> Result<()> {
        Ok(self
            .stream
            .get_mut()
            .write_all(&message(b'Q', &[sql.as_bytes(), b"\0"].concat()))?)
    }

    /// Sends a command and reads all of its answer: bytes.
    pub fn ask(&mut self, sql: &str) -> Result<u64> {
        self.say(sql)?;
        self.read_to(b'Z')
    }

    /// Sends at least so many bytes, in rows of this text, to a COPY FROM STDIN.
    pub fn copy_in(&mut self, sql: &str, row: &str, bytes: u64) -> Result<()> {
        self.say(sql)?;
        self.read_to(b'G')?;
        let rows = (PIECE_BYTES / row.len()).max(1);
        let piece = message(b'd', row.repeat(rows).as_bytes());
        let mut sent_bytes = 0;
        while sent_bytes < bytes {
            self.stream.get_mut().write_all(&piece)?;
            sent_bytes += piece.len() as u64;
        }
        self.stream.get_mut().write_all(&message(b'c', b""))?;
        self.read_to(b'Z')?;
        Ok(())
    }

    /// Reads up to and with a message of this kind: bytes.
    fn read_to(&mut self, last: u8) -> Result<u64> {
        let mut all_bytes = 0;
        loop {
            let mut header = [0; HEADER_BYTES];
            self.stream.read_exact(&mut header)?;
            let [tag, length @ ..] = header;
            let body_bytes = u64::from(u32::from_be_bytes(length)) - 4;
            if tag == b'E' {
                let mut error = Vec::new();
                self.stream
                    .by_ref()
                    .take(body_bytes)
                    .read_to_end(&mut error)?;
                bail!("{}", String::from_utf8_lossy(&error).replace('\0', " "));
            }
            let mut left_bytes = body_bytes as usize;
            while left_bytes > 0 {
                let piece_bytes = self.stream.fill_buf()?.len().min(left_bytes);
                ensure!(piece_bytes > 0, "the connection was closed");
                self.stream.consume(piece_bytes);
                left_bytes -= piece_bytes;
            }
            all_bytes += HEADER_BYTES as u64 + body_bytes;
            if tag == last {
                return Ok(all_bytes);
            }
        }
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as i32 + 4).to_be_bytes();
    [&[tag], &length[..], body].concat()
}
