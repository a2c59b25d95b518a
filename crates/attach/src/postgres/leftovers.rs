//! What is changed of a server's processes, written down before it is, and put back: at the end,
//! or after a kill at the next start.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sooner_kernel::process_table::{self, Birth};

use super::mechanism::Mechanism;
use super::turn::Turn;
use crate::control::{self, Folder, named};

/// What the names of attachments to servers begin with.
pub const NAME_BEGIN: &str = "postgres-";
/// Of a record: a few gates.
const RECORD_BYTES_MAX: u64 = 1 << 20;
/// For how long a change is tried that the kernel takes later, and how often: without
/// `CAP_SYS_ADMIN` it takes one of an autogroup in 100 ms.
const PATIENCE: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(20);

/// A process by its number and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// In ticks.
    pub began: u64,
}

impl ProcessId {
    /// Of a process that runs.
    pub fn of(pid: u32) -> io::Result<ProcessId> {
        let began = process_table::began_ticks(pid)?;
        Ok(ProcessId { pid, began })
    }

    /// Of a process that is a child of `parent`; none of any other.
    pub fn of_child(pid: u32, parent: u32) -> Option<ProcessId> {
        let birth = process_table::birth(pid).ok()?;
        (birth.parent == parent).then_some(ProcessId {
            pid,
            began: birth.began_ticks,
        })
    }

    /// Whether it still runs.
    pub fn is_there(self) -> bool {
        self.birth().is_some()
    }

    /// Whether it still runs, as a child of `parent`.
    pub fn is_child_of(self, parent: u32) -> bool {
        self.birth().is_some_and(|birth| birth.parent == parent)
    }

    fn birth(self) -> Option<Birth> {
        let birth = process_table::birth(self.pid).ok()?;
        (birth.began_ticks == self.began).then_some(birth)
    }
}

/// Whether an error says that the process is gone.
pub fn is_gone(error: &io::Error) -> bool {
    let gone = Errno::SRCH.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(gone)
}

/// What has to be put back of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// The server's first process: all of its children may have been changed.
    pub server: ProcessId,
    /// By which means.
    pub mechanism: Mechanism,
    /// What they have otherwise: a nice value, or of real time the number of a policy.
    #[serde(alias = "nice")]
    pub usual: i32,
    /// The highest level; 0 is not known.
    #[serde(default)]
    pub top: u8,
    /// Gates that were put above them, each with what it has otherwise.
    #[serde(default)]
    pub gates: Vec<(ProcessId, i32)>,
}

/// What an attachment to the server with this first process is called.
pub fn name_of(server: u32) -> String {
    format!("{NAME_BEGIN}{server}")
}

fn file_of(server: u32) -> String {
    format!("{}.json", name_of(server))
}

impl Leftovers {
    fn path(server: u32) -> io::Result<PathBuf> {
        Ok(control::own_folder()?.join(file_of(server)))
    }

    /// Writes it down, before anything is changed.
    pub fn write(&self) -> io::Result<()> {
        self.write_at(&Leftovers::path(self.server.pid)?)
    }

    fn write_at(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension("new");
        let text = serde_json::to_vec(self)?;
        let folder = path.parent().unwrap_or(path);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&beside, text));
        written
            .and_then(|()| fs::rename(&beside, path))
            .map_err(|error| {
                // On a full disk it is there, and empty.
                let _ = fs::remove_file(&beside);
                named(path)(error)
            })
    }

    /// Puts everything back that still runs, and forgets it; what cannot be put back is an error,
    /// and stays written down.
    pub fn put_back(&self) -> io::Result<()> {
        self.restore()?;
        let path = Leftovers::path(self.server.pid)?;
        remove(&path).map_err(named(&path))
    }

    /// Tries all, and says what went wrong first.
    fn restore(&self) -> io::Result<()> {
        let begin = Instant::now();
        let mut first = Ok(());
        let mut back = |pid, usual| {
            let done = patiently(begin, || self.mechanism.put_back(pid, self.top, usual));
            let named = done
                .map_err(|error| io::Error::new(error.kind(), format!("process {pid}: {error}")));
            if first.is_ok() {
                first = named;
            }
        };
        if self.server.is_there() {
            for pid in process_table::children(self.server.pid)? {
                back(pid, self.usual);
            }
        }
        for (gate, usual) in self.gates.iter().filter(|(gate, _)| gate.is_there()) {
            back(gate.pid, *usual);
        }
        first
    }

    /// Of a record that another user wrote: no process is lowered below what is usual for it.
    fn without_trust(mut self) -> Leftovers {
        let trusted = |usual| self.mechanism.usual_without_trust(usual);
        self.usual = trusted(self.usual);
        for (_, usual) in &mut self.gates {
            *usual = trusted(*usual);
        }
        self
    }
}

/// One that has gone meanwhile has nothing to put back; what the kernel takes later is repeated.
fn patiently(begin: Instant, mut put_back: impl FnMut() -> io::Result<()>) -> io::Result<()> {
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
pub fn clean() -> io::Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    for folder in control::folders() {
        clean_in(&folder, &mut cleaned)?;
    }
    Ok(cleaned)
}

fn clean_in(folder: &Folder, cleaned: &mut Cleaned) -> io::Result<()> {
    let entries = match fs::read_dir(&folder.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(named(&folder.path))?,
    };
    for entry in entries {
        let name = entry?.file_name().into_string().unwrap_or_default();
        let server = name.strip_prefix(NAME_BEGIN);
        let server = server.and_then(|rest| rest.strip_suffix(".json")?.parse().ok());
        let Some(server) = server else { continue };
        let done = match control::holder(&name_of(server)) {
            Ok(Some(_)) => continue,
            Ok(None) => clean_one(folder, server),
            Err(error) => Err(error),
        };
        match done {
            Ok(true) => cleaned.servers.push(server),
            // Another process has begun to answer for it, or has cleaned.
            Ok(false) => {}
            Err(error) => {
                let path = folder.path.join(name);
                cleaned
                    .problems
                    .push(format!("{}: {error}", path.display()));
            }
        }
    }
    Ok(())
}

/// Whether there was something left behind.
fn clean_one(folder: &Folder, server: u32) -> io::Result<bool> {
    // In the folder of another user its processes have turns of their own.
    let turn = folder.other.is_none().then(|| Turn::wait(&folder.path));
    let _turn = turn.transpose()?;
    let path = folder.file(&file_of(server))?;
    if !path.exists() || control::holder(&name_of(server))?.is_some() {
        return Ok(false);
    }
    let left: Leftovers = serde_json::from_slice(&read(&path, folder.other)?)?;
    let left = match folder.other {
        Some(_) => left.without_trust(),
        None => left,
    };
    left.restore()?;
    remove(&path)?;
    control::remove_leftover_in(folder, &name_of(server))?;
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

    fn left(server: ProcessId) -> Leftovers {
        Leftovers {
            server,
            mechanism: Mechanism::Nice,
            usual: 0,
            top: 1,
            gates: Vec::new(),
        }
    }

    #[test]
    fn a_record_that_cannot_be_read_is_named_and_stops_no_other() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder {
            path: temporary.path().to_owned(),
            other: None,
        };
        let gone = ProcessId {
            pid: 4_000_000,
            began: 1,
        };
        let path = |server| folder.path.join(file_of(server));
        fs::write(path(4_000_001), "{").unwrap();
        let good = serde_json::to_string(&left(gone)).unwrap();
        fs::write(path(gone.pid), good).unwrap();
        // As it was written before it said how many levels there are.
        let older =
            r#"{"server":{"pid":4000002,"began":1},"mechanism":"round-robin","nice":0,"gates":[]}"#;
        fs::write(path(4_000_002), older).unwrap();
        let mut cleaned = Cleaned::default();
        clean_in(&folder, &mut cleaned).unwrap();
        cleaned.servers.sort_unstable();
        assert_eq!(cleaned.servers, [4_000_000, 4_000_002]);
        assert!(cleaned.problems[0].contains("postgres-4000001.json"));
        assert!(path(4_000_001).exists() && !path(gone.pid).exists());
    }

    #[test]
    fn a_record_that_cannot_be_written_is_named_and_leaves_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("postgres-7.json");
        // Renaming fails.
        fs::create_dir(&path).unwrap();
        let own = ProcessId::of(std::process::id()).unwrap();
        let told = left(own).write_at(&path).unwrap_err().to_string();
        assert!(told.contains("postgres-7.json"), "{told}");
        let found = fs::read_dir(temporary.path()).unwrap();
        assert_eq!(found.count(), 1, "nothing beside it");
    }

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

    #[test]
    fn a_number_that_another_process_got_is_another_process() {
        let own = ProcessId::of(std::process::id()).unwrap();
        let parent = process_table::parent(own.pid).unwrap();
        assert!(own.is_child_of(parent) && !own.is_child_of(own.pid));
        let before = ProcessId {
            began: own.began - 1,
            ..own
        };
        assert!(!before.is_there() && !before.is_child_of(parent));
        assert_eq!(ProcessId::of_child(own.pid, parent), Some(own));
        assert_eq!(ProcessId::of_child(own.pid, own.pid), None);
    }
}
