//! What gates tell: which priority the transaction has that a server process runs.
//!
//! A gate connects to a socket file, and writes eight bytes whenever a process gets a transaction
//! of another priority than its last one: the process's number as the server has it, four bytes,
//! lowest first, then the priority, then three zeros. Priority 0 is that of no class. Nothing is
//! answered. When the gate goes, what it told counts no more.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};

pub use sooner_pooler::priorities::{FRAME_BYTES, Told};

/// Who may connect besides this user and root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Guests {
    /// The user to whom the socket file is given; needs `CAP_CHOWN`.
    pub user: Option<u32>,
    /// The group to which it is given; one of this user's own needs no capability.
    pub group: Option<u32>,
}

/// The socket file at which gates tell; it goes when this is dropped.
#[derive(Debug)]
pub struct GateSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode, so that no other file goes with it.
    file: (u64, u64),
}

impl GateSocket {
    /// Listens at `path`. A socket file there without a listener gives way, and nothing else.
    pub fn listen(path: &Path, guests: Guests) -> io::Result<GateSocket> {
        make_room(path)?;
        let listener = UnixListener::bind(path)?;
        let socket = GateSocket {
            listener,
            path: path.to_owned(),
            file: file_of(&fs::symlink_metadata(path)?),
        };
        let mode = if guests.group.is_some() { 0o660 } else { 0o600 };
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        if guests != Guests::default() {
            chown(path, guests.user, guests.group).map_err(|error| {
                let words = format!(
                    "it cannot be given to the gate's user or group ({error}); another user needs CAP_CHOWN, --gate-group with a group of this user needs nothing"
                );
                io::Error::new(error.kind(), words)
            })?;
        }
        Ok(socket)
    }

    /// The next gate, with its process.
    pub async fn accept(&self) -> io::Result<(Gate, Option<u32>)> {
        let (stream, _) = self.listener.accept().await?;
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let gate = Gate {
            stream,
            buffer: Vec::new(),
        };
        Ok((gate, pid.map(i32::cast_unsigned)))
    }
}

/// Takes away the socket file of a killed one.
fn make_room(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let words = "a file that is not a socket is already there";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, words));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

fn file_of(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

impl Drop for GateSocket {
    fn drop(&mut self) {
        let is_own = |found: Metadata| file_of(&found) == self.file;
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            // No caller is left to report an error to.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A gate that tells.
#[derive(Debug)]
pub struct Gate {
    stream: UnixStream,
    /// A frame that has not come to its end.
    buffer: Vec<u8>,
}

impl Gate {
    /// What it tells next; none when it is gone.
    pub async fn told(&mut self) -> Option<Vec<Told>> {
        let mut chunk = [0; 64 * FRAME_BYTES];
        let count = self.stream.read(&mut chunk).await.ok()?;
        if count == 0 {
            return None;
        }
        self.buffer.extend_from_slice(&chunk[..count]);
        let whole = self.buffer.len() / FRAME_BYTES * FRAME_BYTES;
        let frames = self.buffer[..whole].chunks_exact(FRAME_BYTES);
        let told = frames.filter_map(|frame| Told::read(frame.try_into().ok()?));
        let told = told.collect();
        self.buffer.drain(..whole);
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    }

    #[test]
    fn only_a_socket_of_a_killed_one_gives_way() {
        let runtime = runtime();
        let _inside = runtime.enter();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.sock");
        let listen = || GateSocket::listen(&path, Guests::default());
        fs::write(&path, "of value").unwrap();
        let refused = listen().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "of value");
        let behind_a_link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &behind_a_link).unwrap();
        assert!(GateSocket::listen(&behind_a_link, Guests::default()).is_err());
        fs::remove_file(&path).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let socket = listen().unwrap();
        assert_eq!(listen().unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // What came to its place meanwhile stays.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        drop(socket);
        assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
        fs::remove_file(&path).unwrap();
        drop(listen().unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn a_group_may_connect() {
        let runtime = runtime();
        let _inside = runtime.enter();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.sock");
        let group = rustix::process::getegid().as_raw();
        for (group, mode) in [(None, 0o600), (Some(group), 0o660)] {
            let guests = Guests { user: None, group };
            let _socket = GateSocket::listen(&path, guests).unwrap();
            let found = fs::metadata(&path).unwrap();
            assert_eq!(found.mode() & 0o777, mode);
        }
    }
}
