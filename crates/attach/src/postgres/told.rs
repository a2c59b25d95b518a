//! What gates tell: which priority the transaction has that a server process runs.
//!
//! A gate connects to a socket file, and writes eight bytes whenever a process gets a transaction
//! of another priority than its last one: the process's number as the server has it, four bytes,
//! lowest first, then the priority, then three zeros. Priority 0 is that of no class. Nothing is
//! answered. When the gate goes, what it told counts no more.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};

pub use sooner_pooler::priorities::{FRAME_BYTES, Told};

/// The socket file at which gates tell; it goes when this is dropped.
#[derive(Debug)]
pub struct GateSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl GateSocket {
    /// Listens at `path`, where only this user and `user` may connect.
    pub fn listen(path: &Path, user: Option<u32>) -> io::Result<GateSocket> {
        match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // Of a killed one.
                fs::remove_file(path)?;
            }
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        let socket = GateSocket {
            listener,
            path: path.to_owned(),
        };
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        if user.is_some() {
            chown(path, user, None)?;
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

impl Drop for GateSocket {
    fn drop(&mut self) {
        // No caller is left to report an error to.
        let _ = fs::remove_file(&self.path);
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
