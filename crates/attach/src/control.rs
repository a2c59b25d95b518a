//! The socket on which a running attachment answers: a client that connects gets one snapshot as
//! JSON, and the connection ends.
//!
//! It lies where the bands keep what to restore (`/run/sooner` for root), by what it is attached to,
//! so that `attach top` finds it without being told. Only its own user may connect.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use rustix::process::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sooner_kernel::bands::runtime_folder;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::time::{sleep, timeout};

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// How the names of all sockets begin and end.
const NAME_BEGIN: &str = "attach-";
const NAME_END: &str = ".sock";

/// Where the attachment to what has this name answers.
pub fn path(name: &str) -> io::Result<PathBuf> {
    let folder = runtime_folder().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "no folder for the control socket; set XDG_RUNTIME_DIR",
        )
    })?;
    Ok(folder.join(format!("{NAME_BEGIN}{name}{NAME_END}")))
}

/// Names of all attachments whose sockets are there and begin so, living or not.
pub fn names(beginning: &str) -> io::Result<Vec<String>> {
    let Some(folder) = runtime_folder() else {
        return Ok(Vec::new());
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let name = |entry: io::Result<fs::DirEntry>| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let name = name.strip_prefix(NAME_BEGIN)?.strip_suffix(NAME_END)?;
        name.starts_with(beginning).then(|| name.to_owned())
    };
    Ok(entries.filter_map(name).collect())
}

/// A place to answer at; it goes when this is dropped.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Listens for the attachment of this name, which the caller owns: what a killed one left there
    /// gives way.
    pub fn listen(name: &str) -> io::Result<Control> {
        let path = path(name)?;
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        Control::listen_at(path.clone()).map_err(named)
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

    /// Answers the next one who asks; an asker who does not read is left, and one whom nothing can
    /// be told gets nothing.
    pub async fn answer<T: Serialize>(&self, snapshot: impl FnOnce() -> io::Result<T>) {
        let Ok((mut asker, _)) = self.listener.accept().await else {
            // Descriptors are short; they may come back.
            return sleep(PAUSE).await;
        };
        let text = snapshot().and_then(|snapshot| Ok(serde_json::to_vec(&snapshot)?));
        if let Ok(text) = text {
            let _ = timeout(PATIENCE, asker.write_all(&text)).await;
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // No caller is left to report an error to; the next start makes room for itself.
        let _ = fs::remove_file(&self.path);
    }
}

/// Asks the attachment of this name; not found where there is none.
pub fn ask<T: DeserializeOwned>(name: &str) -> io::Result<T> {
    ask_at(&path(name)?)
}

/// The process that answers for this name; none where there is no attachment.
pub fn holder(name: &str) -> io::Result<Option<Pid>> {
    match connect(&path(name)?) {
        Ok(stream) => Ok(Some(socket_peercred(&stream)?.pid)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the socket that a killed one left.
pub fn remove_leftover(name: &str) -> io::Result<()> {
    match fs::remove_file(path(name)?) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the sockets of processes that are gone, whatever device and namespace they were of: a
/// device may be gone too, or moved.
pub fn remove_dead() -> io::Result<()> {
    match runtime_folder() {
        Some(folder) => remove_dead_in(&folder),
        None => Ok(()),
    }
}

fn remove_dead_in(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !(name.starts_with(NAME_BEGIN) && name.ends_with(NAME_END)) {
            continue;
        }
        let is_dead = || {
            let refused = UnixStream::connect(&path).err();
            refused.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        // A process that begins has its socket for a moment before it listens there.
        if is_dead() {
            std::thread::sleep(PAUSE);
            if is_dead() {
                fs::remove_file(&path)?;
            }
        }
    }
    Ok(())
}

/// Not found where no process listens any more.
fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => io::ErrorKind::NotFound.into(),
        _ => error,
    })
}

fn ask_at<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let mut stream = connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        // It ends while it is asked: what it had attached is gone by then.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => text.clear(),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let words = "its process does not answer; it may be ending";
            return Err(io::Error::new(io::ErrorKind::TimedOut, words));
        }
        read => drop(read?),
    }
    if text.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::snapshot::Snapshot;

    #[test]
    fn only_sockets_of_dead_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let living = std::os::unix::net::UnixListener::bind(at("attach-1-2.sock")).unwrap();
        for name in ["attach-1-3.sock", "other.sock"] {
            drop(std::os::unix::net::UnixListener::bind(at(name)).unwrap());
        }
        fs::write(at("attach-bands"), "").unwrap();
        remove_dead_in(folder.path()).unwrap();
        assert!(!at("attach-1-3.sock").exists());
        for name in ["attach-1-2.sock", "other.sock", "attach-bands"] {
            assert!(at(name).exists(), "{name}");
        }
        drop(living);
        remove_dead_in(&at("nowhere")).unwrap();
    }

    #[test]
    fn who_asks_one_that_ends_finds_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let asker = std::thread::spawn({
            let path = path.clone();
            move || ask_at::<Snapshot>(&path)
        });
        drop(listener.accept().unwrap());
        drop(listener);
        let error = asker.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn who_asks_gets_a_snapshot_and_a_place_left_behind_gives_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/x.sock");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        let none = ask_at::<Snapshot>(&path).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // A socket file stays when its process is gone.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let control = Control::listen_at(path.clone()).unwrap();
        let asker = std::thread::spawn({
            let path = path.clone();
            move || ask_at::<Snapshot>(&path)
        });
        let snapshot = Snapshot {
            pid: 7,
            ..Snapshot::default()
        };
        runtime.block_on(control.answer(|| Ok(snapshot.clone())));
        assert_eq!(asker.join().unwrap().unwrap(), snapshot);
        drop(control);
        assert!(!path.exists());
    }
}
