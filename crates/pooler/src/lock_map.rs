//! Tells the extension `sooner_locks` which priority the transaction has that a server process
//! runs, so that those that wait for a lock stand in that order.
//!
//! Nothing is waited for: eight bytes into a file of this machine that the server has mapped, and
//! only when a process gets a transaction of another priority than its last one. Its layout is in
//! `extension/sooner_locks/src/sooner_locks_map.h`.

use crate::log::log;
use crate::pool::ServerConnection;
use crate::pool::lease::{COMMAND_PATIENCE, in_time};
use crate::pool::server_session::LoginError;
use crate::pool::upstream::Upstream;
use sooner_postgres::wire::message_of_error;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::rc::Rc;

const MAGIC: &[u8; 8] = b"SOONERLK";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 64;
const SLOT_BYTES: u32 = 8;
/// What its state is while a server uses it.
const IN_USE: u32 = 1;

/// The file.
#[derive(Debug)]
pub struct LockMap {
    file: File,
    /// Where the slots begin.
    header_bytes: u32,
    slots: u32,
    /// By which it is told from one that a later start of the server made.
    inode: (u64, u64),
}

impl LockMap {
    /// That of the server that runs.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // A FIFO is not waited for.
        let options = options.read(true).write(true);
        let file = options.custom_flags(0o4000).open(path)?;
        let known = file.metadata()?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0)?;
        let number = |at: usize| -> u32 {
            let bytes = header[at..].first_chunk();
            bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
        };
        let wrong = |words: &str| io::Error::new(ErrorKind::InvalidData, words);
        if !known.is_file() || !header.starts_with(MAGIC) {
            return Err(wrong("it is not a file of sooner_locks"));
        }
        if (number(8), number(20)) != (VERSION, SLOT_BYTES) {
            return Err(wrong("it is of another version of sooner_locks"));
        }
        if number(40) != IN_USE {
            return Err(wrong("its server has ended"));
        }
        Ok(Self {
            file,
            header_bytes: number(12),
            slots: number(16),
            inode: (known.dev(), known.ino()),
        })
    }

    /// Whether the file of this name is another one by now.
    fn is_old(&self, path: &Path) -> bool {
        let now = path.metadata();
        now.is_ok_and(|now| (now.dev(), now.ino()) != self.inode)
    }

    fn set(&self, slot: u32, process_id: i32, priority: u8) -> io::Result<()> {
        let value = u64::from(process_id.cast_unsigned()) | u64::from(priority) << 32;
        let at = u64::from(self.header_bytes) + u64::from(slot) * u64::from(SLOT_BYTES);
        self.file.write_all_at(&value.to_ne_bytes(), at)
    }
}

/// A server connection's place in it.
#[derive(Debug)]
pub struct LockSlot {
    map: Rc<LockMap>,
    number: u32,
    last: Cell<u8>,
}

impl LockSlot {
    /// Its process begins a transaction of this priority; 0 is that of no class.
    pub fn tell(&self, process_id: i32, priority: u8) {
        if self.last.replace(priority) != priority
            && self.map.set(self.number, process_id, priority).is_err()
        {
            // It is told anew at the next transaction.
            self.last.set(u8::MAX);
        }
    }
}

/// The place of a new server connection; none where the server has no such extension, which is
/// said.
pub async fn slot_of(
    path: &Path,
    upstream: &Upstream,
    server: &mut ServerConnection,
) -> Option<LockSlot> {
    match find(path, upstream, server).await {
        Ok(slot) => Some(slot),
        Err(why) => {
            let (place, address) = (path.display(), &upstream.address);
            upstream.lock_map_failures.log(1, |_| {
                format!("lock_map {place}, {address}: {why}; lock queues stay as they are")
            });
            None
        }
    }
}

/// Where the extension's functions are. Anyone may have one of the same name elsewhere.
const SCHEMA: &str = "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension AS e \
     JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace \
     WHERE e.extname OPERATOR(pg_catalog.=) 'sooner_locks'";

/// The first field of what the server answers.
async fn ask(server: &mut ServerConnection, sql: &str) -> Result<Option<String>, String> {
    let rows = in_time(COMMAND_PATIENCE, server.query(sql.as_bytes())).await;
    let rows = rows.map_err(|error| match error {
        LoginError::Refused(message) => message_of_error(&message),
        error => error.to_string(),
    })?;
    let first = rows.into_iter().next();
    Ok(first.and_then(|row| row.into_iter().next()?))
}

async fn find(
    path: &Path,
    upstream: &Upstream,
    server: &mut ServerConnection,
) -> Result<LockSlot, String> {
    let known = upstream.lock_map.borrow().clone();
    let map = match known.filter(|map| !map.is_old(path)) {
        Some(map) => map,
        None => {
            let map = Rc::new(LockMap::open(path).map_err(|error| error.to_string())?);
            upstream.lock_map.replace(Some(map.clone()));
            log(&format!(
                "{}: lock queues are in the order of priorities",
                upstream.address
            ));
            map
        }
    };
    let schema = ask(server, SCHEMA).await?;
    let schema = schema.ok_or("CREATE EXTENSION sooner_locks belongs into each database")?;
    let number = ask(server, &format!("SELECT {schema}.sooner_slot()")).await?;
    let number = number.and_then(|number| number.parse().ok());
    match number {
        Some(number) if number < map.slots => Ok(LockSlot {
            map,
            number,
            last: Cell::new(0),
        }),
        _ => Err("sooner_slot() gives a number that is not in the file".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, change: impl FnOnce(&mut Vec<u8>)) -> std::path::PathBuf {
        let mut bytes = vec![0; HEADER_BYTES + 4 * SLOT_BYTES as usize];
        bytes[..8].copy_from_slice(MAGIC);
        let numbers = [
            (8, VERSION),
            (12, HEADER_BYTES as u32),
            (16, 4),
            (20, SLOT_BYTES),
            (40, 1),
        ];
        for (at, number) in numbers {
            bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        change(&mut bytes);
        let path = folder.join("sooner_locks.map");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_slot_has_a_process_and_its_priority() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), |_| {});
        let map = Rc::new(LockMap::open(&path).unwrap());
        let slot = LockSlot {
            map: map.clone(),
            number: 3,
            last: Cell::new(0),
        };
        slot.tell(70_000, 5);
        let read = || {
            let bytes = std::fs::read(&path).unwrap();
            u64::from_ne_bytes(bytes[HEADER_BYTES + 24..].try_into().unwrap())
        };
        assert_eq!(read(), 70_000 | 5 << 32);
        slot.tell(70_000, 0);
        assert_eq!(read(), 70_000);
        assert!(!map.is_old(&path));
        std::fs::remove_file(&path).unwrap();
        file(folder.path(), |_| {});
        assert!(map.is_old(&path) || cfg!(not(target_os = "linux")));
    }

    #[test]
    fn what_is_no_such_file_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for (at, says) in [(0, "not a file"), (8, "another version"), (40, "has ended")] {
            let path = file(folder.path(), |bytes| bytes[at] = 9);
            let error = LockMap::open(&path).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let path = file(folder.path(), |bytes| bytes.truncate(20));
        assert!(LockMap::open(&path).is_err());
    }
}
