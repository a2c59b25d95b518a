//! The socket on which a running attachment answers: a client that connects gets one snapshot as
//! JSON, and the connection ends.
//!
//! It lies where the bands keep what to restore (`/run/sooner` for root), by what it is attached to,
//! so that `attach top` finds it without being told. Only its own user may connect. The packaged
//! service keeps its own in [`SERVICE_FOLDER`], where its user and root look as well.

use std::fs::{self, DirBuilder, Permissions};
use std::future::pending;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, geteuid};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sooner_kernel::bands::runtime_folder;
use sooner_kernel::peer::Peer;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::time::{sleep, timeout};

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// How the names of all sockets begin and end.
const NAME_BEGIN: &str = "attach-";
const NAME_END: &str = ".sock";

/// Where the packaged service keeps what root keeps in its own folder.
pub const SERVICE_FOLDER: &str = "/run/sooner-attach";

/// Root's own.
const ROOT_FOLDER: &str = "/run/sooner";

/// A folder in which attachments are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Where.
    pub path: PathBuf,
    /// Its user, where that is another one than this: nothing but what is that user's
    /// counts in it.
    pub other: Option<u32>,
}

impl Folder {
    /// A file of it that may be trusted; not found where there is none.
    pub fn file(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let Some(other) = self.other else {
            return Ok(path);
        };
        let found = fs::symlink_metadata(&path)?;
        let kind = found.file_type();
        if found.uid() == other && (kind.is_file() || kind.is_socket()) {
            Ok(path)
        } else {
            let words = "it does not belong to the user that owns its directory";
            Err(io::Error::new(io::ErrorKind::NotFound, words))
        }
    }
}

/// This user's folder, then the service's where that is this user's or this is root.
pub fn folders() -> Vec<Folder> {
    let own = runtime_folder();
    let service = Path::new(SERVICE_FOLDER);
    let user = geteuid();
    let found = fs::symlink_metadata(service).ok();
    let found = found.filter(|found| found.is_dir() && own.as_deref() != Some(service));
    let found = found.filter(|found| user.is_root() || found.uid() == user.as_raw());
    let service = found.map(|found| Folder {
        path: service.to_owned(),
        other: (found.uid() != user.as_raw()).then_some(found.uid()),
    });
    let own = own.map(|path| Folder { path, other: None });
    own.into_iter().chain(service).collect()
}

/// A folder of another user's in which attachments may be that this user cannot see; none where
/// there is none.
pub fn unseen_folder() -> Option<PathBuf> {
    if geteuid().is_root() {
        return None;
    }
    let seen = folders();
    let is_seen = |path: &Path| seen.iter().any(|folder| folder.path == path);
    let others = [ROOT_FOLDER, SERVICE_FOLDER].map(Path::new);
    let mut others = others.into_iter().filter(|path| !is_seen(path));
    others.find(|path| path.is_dir()).map(Path::to_owned)
}

fn file_name(name: &str) -> String {
    format!("{NAME_BEGIN}{name}{NAME_END}")
}

/// This user's folder; an error where there is none.
pub fn own_folder() -> io::Result<PathBuf> {
    runtime_folder().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "no folder for the control socket; set XDG_RUNTIME_DIR",
        )
    })
}

/// Where the attachment to what has this name answers.
pub fn path(name: &str) -> io::Result<PathBuf> {
    Ok(own_folder()?.join(file_name(name)))
}

/// Puts the path before what the system says of it.
pub(crate) fn named(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Names of all attachments with sockets that begin so, living or not.
pub fn names(beginning: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in folders() {
        let entries = match fs::read_dir(&folder.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(named(&folder.path))?,
        };
        let name = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let name = name.strip_prefix(NAME_BEGIN)?.strip_suffix(NAME_END)?;
            name.starts_with(beginning).then(|| name.to_owned())
        };
        names.extend(entries.filter_map(name));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// A place to answer at; it goes when this is dropped.
#[derive(Debug)]
pub struct Control {
    /// None where there is no folder for it.
    place: Option<(UnixListener, PathBuf)>,
}

impl Control {
    /// Listens for the attachment of this name, which the caller owns: what a killed one left there
    /// gives way.
    pub fn listen(name: &str) -> io::Result<Control> {
        let path = path(name)?;
        Control::listen_at(path.clone()).map_err(named(&path))
    }

    /// The same for an attachment that changes nothing; without a folder it has no place to answer
    /// at, and goes on.
    pub fn listen_if_possible(name: &str) -> io::Result<Control> {
        match runtime_folder() {
            Some(_) => Control::listen(name),
            None => Ok(Control { place: None }),
        }
    }

    /// Why no process can ask it; none where one can.
    pub fn problem(&self) -> Option<&'static str> {
        let words = "`sooner attach top` and `status` cannot show this one: there is no folder for \
                     its control socket; set XDG_RUNTIME_DIR";
        self.place.is_none().then_some(words)
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
        Ok(Control {
            place: Some((listener, path)),
        })
    }

    /// Answers the next one who asks; an asker who does not read is left, and one whom nothing can
    /// be told gets nothing.
    pub async fn answer<T: Serialize>(&self, snapshot: impl FnOnce() -> io::Result<T>) {
        let Some((listener, _)) = &self.place else {
            return pending().await;
        };
        let Ok((mut asker, _)) = listener.accept().await else {
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
        if let Some((_, path)) = &self.place {
            let _ = fs::remove_file(path);
        }
    }
}

/// Asks the attachment of this name; not found where there is none. Its process is told by the
/// number that it has here, which is another one in a container.
pub fn ask<T: DeserializeOwned>(name: &str) -> io::Result<T> {
    match found(name)? {
        Some(stream) => {
            let pid = Peer::of(&stream)?.pid;
            let mut answer: Value = ask_over(stream)?;
            if let (Some(own), Some(pid)) = (answer.get_mut("pid"), pid) {
                *own = pid.into();
            }
            Ok(serde_json::from_value(answer)?)
        }
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The process that answers for this name; none where there is no attachment, an error where it is
/// in a PID namespace that is not visible from here.
pub fn holder(name: &str) -> io::Result<Option<Pid>> {
    let Some(stream) = found(name)? else {
        return Ok(None);
    };
    let pid = Peer::of(&stream)?.pid;
    let pid = pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let hidden = || {
        let words = "what answers for it is in a PID namespace that is not visible from here";
        io::Error::other(format!("{name}: {words}"))
    };
    pid.ok_or_else(hidden).map(Some)
}

/// The first that answers, in the order of the folders.
fn found(name: &str) -> io::Result<Option<UnixStream>> {
    for folder in folders() {
        match connect_in(&folder, name) {
            Ok(stream) => return Ok(Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Not found where no process listens, or another user's than the folder's.
fn connect_in(folder: &Folder, name: &str) -> io::Result<UnixStream> {
    let stream = connect(&folder.file(&file_name(name))?)?;
    let peer = Peer::of(&stream)?.uid;
    if folder.other.is_some_and(|other| other != peer) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(stream)
}

/// Removes the socket that a killed one of this user left.
pub fn remove_leftover(name: &str) -> io::Result<()> {
    remove(&path(name)?)
}

/// The same in one of the folders.
pub fn remove_leftover_in(folder: &Folder, name: &str) -> io::Result<()> {
    remove(&folder.path.join(file_name(name)))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
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

fn ask_over<T: DeserializeOwned>(mut stream: UnixStream) -> io::Result<T> {
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

    fn ask_at<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
        ask_over(connect(path)?)
    }

    #[test]
    fn in_the_folder_of_another_user_only_what_is_that_users_counts() {
        let folder = tempfile::tempdir().unwrap();
        let own = geteuid().as_raw();
        let at = |name: &str| folder.path().join(file_name(name));
        let _living = std::os::unix::net::UnixListener::bind(at("living")).unwrap();
        std::os::unix::fs::symlink(at("living"), at("link")).unwrap();
        let of = |other| Folder {
            path: folder.path().to_owned(),
            other,
        };
        let answers = |other, name| connect_in(&of(other), name).is_ok();
        assert!(answers(None, "living") && answers(None, "link"));
        assert!(answers(Some(own), "living") && !answers(Some(own), "link"));
        assert!(!answers(Some(own + 1), "living"));
    }

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
