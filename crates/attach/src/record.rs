//! What is changed of other processes, written down before it is, and put back: at the end, or after
//! a kill at the next start.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::control::{self, Folder, named};
use crate::process_id::is_gone;
use crate::turn::Turn;

/// Of a record: some thousand processes.
const RECORD_BYTES_MAX: u64 = 1 << 20;
/// For how long a change is tried that the kernel takes later, and how often: without
/// `CAP_SYS_ADMIN` it takes one of an autogroup in 100 ms.
const PATIENCE: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(20);

/// What has to be put back of one server.
pub trait Record: Serialize + DeserializeOwned {
    /// What the names of attachments of its kind begin with.
    const NAME_BEGIN: &'static str;
    /// What they are attached to, for messages.
    const KIND: &'static str;

    /// The server's first process.
    fn server(&self) -> u32;

    /// Puts everything back that still runs: tries all, and says what went wrong first.
    fn restore(&self) -> io::Result<()>;

    /// Of a record that another user wrote: what remains can put no process behind others.
    fn without_trust(self) -> Self;

    /// Writes it down, before anything is changed.
    fn write(&self) -> io::Result<()> {
        write_at(self, &path::<Self>(self.server())?)
    }

    /// Puts everything back that still runs, and forgets it; what cannot be put back is an error,
    /// and stays written down.
    fn put_back(&self) -> io::Result<()> {
        self.restore()?;
        let path = path::<Self>(self.server())?;
        remove(&path).map_err(named(&path))
    }
}

/// What an attachment to the server with this first process is called.
pub fn name_of<R: Record>(server: u32) -> String {
    format!("{}{server}", R::NAME_BEGIN)
}

pub(crate) fn file_of<R: Record>(server: u32) -> String {
    format!("{}.json", name_of::<R>(server))
}

fn path<R: Record>(server: u32) -> io::Result<PathBuf> {
    Ok(control::own_folder()?.join(file_of::<R>(server)))
}

/// The record of a server that an earlier attachment left, where it could not be put back.
pub fn left<R: Record>(server: u32) -> io::Result<Option<PathBuf>> {
    let path = path::<R>(server)?;
    Ok(path.exists().then_some(path))
}

pub(crate) fn write_at<R: Record>(record: &R, path: &Path) -> io::Result<()> {
    let beside = path.with_extension("new");
    let text = serde_json::to_vec(record)?;
    let folder = path.parent().unwrap_or(path);
    let write = || {
        // A new file, so that no link of this name leads elsewhere.
        let _ = fs::remove_file(&beside);
        let mut file = fs::File::create_new(&beside)?;
        file.write_all(&text)
    };
    fs::create_dir_all(folder)
        .and_then(|()| write())
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|error| {
            // On a full disk it is there, and empty.
            let _ = fs::remove_file(&beside);
            named(path)(error)
        })
}

/// Tries until it is done, for some seconds: one that has gone meanwhile has nothing to put back; what the kernel takes later is repeated.
pub fn patiently(begin: Instant, mut put_back: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match put_back() {
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && begin.elapsed() < PATIENCE =>
            {
                thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What came of putting back what killed ones left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// The servers' first processes.
    pub servers: Vec<u32>,
    /// What could not be read or put back, a line each; it stays written down.
    pub problems: Vec<String>,
}

/// Puts back what killed ones left. For every start.
pub fn clean<R: Record>() -> io::Result<Cleaned> {
    clean_of::<R>(None)
}

/// The same, or only of the server with this first process.
pub fn clean_of<R: Record>(server: Option<u32>) -> io::Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    for folder in control::folders() {
        clean_in::<R>(&folder, server, &mut cleaned)?;
    }
    Ok(cleaned)
}

/// The first processes of servers of which killed ones have left a record. Changes nothing.
pub fn servers_left_changed<R: Record>() -> io::Result<Vec<u32>> {
    let mut left = Vec::new();
    for folder in control::folders() {
        for server in servers_in::<R>(&folder)? {
            // One that cannot be seen from here is there.
            if matches!(control::holder(&name_of::<R>(server)), Ok(None)) {
                left.push(server);
            }
        }
    }
    left.sort_unstable();
    left.dedup();
    Ok(left)
}

/// The servers with a record in this folder.
fn servers_in<R: Record>(folder: &Folder) -> io::Result<Vec<u32>> {
    let entries = match fs::read_dir(&folder.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(named(&folder.path))?,
    };
    let mut servers = Vec::new();
    for entry in entries {
        let name = entry?.file_name().into_string().unwrap_or_default();
        let server = name.strip_prefix(R::NAME_BEGIN);
        servers.extend(server.and_then(|rest| rest.strip_suffix(".json")?.parse::<u32>().ok()));
    }
    Ok(servers)
}

pub(crate) fn clean_in<R: Record>(
    folder: &Folder,
    wanted: Option<u32>,
    cleaned: &mut Cleaned,
) -> io::Result<()> {
    let mut servers = servers_in::<R>(folder)?;
    servers.retain(|server| wanted.is_none_or(|wanted| wanted == *server));
    for server in servers {
        let done = match control::holder(&name_of::<R>(server)) {
            Ok(Some(_)) => continue,
            Ok(None) => clean_one::<R>(folder, server),
            Err(error) => Err(error),
        };
        match done {
            Ok(true) => cleaned.servers.push(server),
            // Another process has begun to answer for it, or has cleaned.
            Ok(false) => {}
            Err(error) => {
                let path = folder.path.join(file_of::<R>(server));
                cleaned
                    .problems
                    .push(format!("{}: {error}", path.display()));
            }
        }
    }
    Ok(())
}

/// Whether there was something left behind.
fn clean_one<R: Record>(folder: &Folder, server: u32) -> io::Result<bool> {
    // In the folder of another user its processes have turns of their own.
    let turn = folder.other.is_none().then(|| Turn::wait(&folder.path));
    let _turn = turn.transpose()?;
    let path = folder.file(&file_of::<R>(server))?;
    if !path.exists() || control::holder(&name_of::<R>(server))?.is_some() {
        return Ok(false);
    }
    let left: R = serde_json::from_slice(&read(&path, folder.other)?)?;
    let left = match folder.other {
        Some(_) => left.without_trust(),
        None => left,
    };
    left.restore()?;
    remove(&path)?;
    control::remove_leftover_in(folder, &name_of::<R>(server))?;
    Ok(true)
}

/// A record, which is `other`'s where another user may write in its folder.
fn read(path: &Path, other: Option<u32>) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() || other.is_some_and(|other| other != found.uid()) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut text = Vec::new();
    file.take(RECORD_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn only_what_has_gone_is_no_error() {
        let begin = Instant::now();
        let of = |errno: Errno| move || Err(io::Error::from(errno));
        assert!(patiently(begin, of(Errno::SRCH)).is_ok());
        assert!(patiently(begin, of(Errno::NOENT)).is_ok());
        assert!(patiently(begin, of(Errno::PERM)).is_err());
        let mut times = 0;
        let later = || {
            times += 1;
            match times {
                1 => Err(Errno::AGAIN.into()),
                _ => Ok(()),
            }
        };
        assert!(patiently(begin, later).is_ok());
        assert_eq!(times, 2);
    }
}
