//! The socket on which a running attachment answers: whoever connects gets one snapshot as JSON, and the connection ends.
//!
//! It lies in `/run/sooner`, by network namespace and device, so that `attach top` finds it without being told. Only its own user may connect.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sooner_kernel::device::Device;
use sooner_kernel::netns;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::time::timeout;

use crate::snapshot::Snapshot;

const FOLDER: &str = "/run/sooner";
/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where the attachment of a device answers, in the calling thread's network namespace.
pub fn path(device: &Device) -> io::Result<PathBuf> {
    let namespace = netns::current_id()?;
    Ok(Path::new(FOLDER).join(format!("attach-{namespace}-{}.sock", device.index)))
}

/// A place to answer at; it goes when this is dropped.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Listens for the attachment of a device, which the caller owns: what a killed one left there gives way.
    pub fn listen(device: &Device) -> io::Result<Control> {
        Control::listen_at(path(device)?)
    }

    fn listen_at(path: PathBuf) -> io::Result<Control> {
        if let Some(folder) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(Control { listener, path })
    }

    /// Answers the next one who asks; an asker who does not read is left.
    pub async fn answer(&self, snapshot: impl FnOnce() -> io::Result<Snapshot>) -> io::Result<()> {
        let (mut asker, _) = self.listener.accept().await?;
        let text = serde_json::to_vec(&snapshot()?)?;
        let _ = timeout(PATIENCE, asker.write_all(&text)).await;
        Ok(())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Nobody is left to tell; the next start makes room for itself.
        let _ = fs::remove_file(&self.path);
    }
}

/// Asks the attachment of a device; not found where there is none.
pub fn ask(device: &Device) -> io::Result<Snapshot> {
    ask_at(&path(device)?)
}

fn ask_at(path: &Path) -> io::Result<Snapshot> {
    let mut stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => io::ErrorKind::NotFound.into(),
        _ => error,
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_gets_a_snapshot_and_a_place_left_behind_gives_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/x.sock");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        assert_eq!(ask_at(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let left = Control::listen_at(path.clone()).unwrap();
        std::mem::forget(left);
        let control = Control::listen_at(path.clone()).unwrap();
        let asker = std::thread::spawn({
            let path = path.clone();
            move || ask_at(&path)
        });
        let snapshot = Snapshot {
            pid: 7,
            ..Snapshot::default()
        };
        runtime
            .block_on(control.answer(|| Ok(snapshot.clone())))
            .unwrap();
        assert_eq!(asker.join().unwrap().unwrap(), snapshot);
        drop(control);
        assert!(!path.exists());
    }
}
