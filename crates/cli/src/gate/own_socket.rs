//! The socket file through which the user who runs a gate finds it, wherever else it listens.

use super::listen::{SocketFiles, listen_at_path};
use sooner_pooler::Listener;
use std::env;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;

/// With its port behind it, the name of a socket file; PostgreSQL's.
pub const NAME_BEGIN: &str = ".s.PGSQL.";
/// The folder's name; that of `sooner-gate.service`, too.
const FOLDER: &str = "sooner-gate";
/// How long a gate has between making its socket file and listening there.
const MAKING: Duration = Duration::from_secs(10);

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Where gates of this user put it: first where this environment has one put it.
fn candidates() -> Vec<PathBuf> {
    let run = Path::new("/run").join(FOLDER);
    let of_login = format!("/run/user/{}/{FOLDER}", own_user());
    let mut all = Vec::new();
    if let Some(folder) = env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        all.push(PathBuf::from(folder).join(FOLDER));
    }
    match own_user() {
        0 => all.extend([run, of_login.into()]),
        _ => all.extend([of_login.into(), run]),
    }
    all
}

/// Whether no other user can enter it: where others may write, another may have made it.
fn is_own(folder: &Path) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && is_of_own_user(&found) && found.mode() & 0o077 == 0)
}

/// Root's may be that of the user whom a gate became (`system_user`).
fn is_of_own_user(found: &Metadata) -> bool {
    found.uid() == own_user() || own_user() == 0
}

/// The folder for a gate that starts, made where it is missing; `None` where there is none.
pub fn folder() -> Option<PathBuf> {
    let folder = candidates().into_iter().next()?;
    if !folder.exists() {
        let _ = DirBuilder::new().mode(0o700).create(&folder);
    }
    is_own(&folder).then_some(folder)
}

/// Listens there besides, if it can: a gate that cannot serves all the same. Its name has the first
/// port that the gate listens at.
pub async fn listen(others: &[Listener], files: &mut SocketFiles) -> Option<Listener> {
    let port = others.iter().find_map(|listener| match listener {
        Listener::Tcp(listener) => Some(listener.local_addr().ok()?.port()),
        Listener::Unix(_) => None,
    })?;
    let folder = folder()?;
    remove_dead(&folder).await;
    let path = folder.join(format!("{NAME_BEGIN}{port}"));
    listen_at_path(&path.display().to_string(), files)
        .await
        .ok()
}

/// Socket files in a folder of this user.
fn socket_files(folder: &Path) -> Vec<(PathBuf, Metadata)> {
    // One that cannot be read has none.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| {
        let name = entry.file_name();
        let port = name.to_str().and_then(|name| name.strip_prefix(NAME_BEGIN));
        port.is_some_and(|port| port.parse::<u16>().is_ok())
    });
    let found = named.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)));
    let sockets = found.filter(|(_, file)| file.file_type().is_socket() && is_of_own_user(file));
    let mut sockets: Vec<_> = sockets.collect();
    sockets.sort_by(|(one, _), (other, _)| one.cmp(other));
    sockets
}

/// Removes what gates left that were killed.
async fn remove_dead(folder: &Path) {
    for (path, file) in socket_files(folder) {
        let age = file.modified().ok().and_then(|made| made.elapsed().ok());
        if age.is_none_or(|age| age < MAKING) {
            continue;
        }
        let refused = io::ErrorKind::ConnectionRefused;
        let tried = UnixStream::connect(&path).await;
        if tried.is_err_and(|error| error.kind() == refused) {
            // Another gate that starts may have been first.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a process listens there; one that is too busy to accept does.
async fn is_alive(path: &Path) -> bool {
    match UnixStream::connect(path).await {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// The socket files of the gates of this user that run, of the first folder that has any.
pub async fn running() -> Vec<PathBuf> {
    for folder in candidates().iter().filter(|folder| is_own(folder)) {
        let mut alive = Vec::new();
        for (path, _) in socket_files(folder) {
            if is_alive(&path).await {
                alive.push(path);
            }
        }
        if !alive.is_empty() {
            return alive;
        }
    }
    Vec::new()
}
