//! What this process has made, kept in files so that a kill does not lose it.
//!
//! One file a set of hosts, in a folder only root may write, gone after a reboot as namespaces are.
//! Its owner holds a lock on it, which the kernel takes back when the process ends, however it
//! ends: an owner is alive exactly while the file is locked. A line is written before the thing is
//! made, so there may be lines without a thing, never a thing without a line.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where root keeps the records.
pub const FOLDER: &str = "/run/sooner";
/// What the names of all records, namespaces and control groups of the lab begin with.
const RECORD_PREFIX: &str = "lab-";
/// What the names of the lab's namespaces and control groups begin with; nothing else is ever
/// removed.
pub const NAME_PREFIX: &str = "sooner-lab-";

/// A thing that outlives the process that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// A network namespace, by its name below /run/netns.
    Namespace(String),
    /// A control group, by its path.
    ControlGroup(PathBuf),
}

/// The record of one set of hosts, locked.
#[derive(Debug)]
pub struct Record {
    file: File,
    path: PathBuf,
}

impl Record {
    /// Begins a record; fails when one of this name is there.
    pub fn create(folder: &Path, name: &str) -> io::Result<Record> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let path = folder.join(format!("{RECORD_PREFIX}{name}"));
        // A process that cleans up may take the file away between its making and its lock: then
        // once more.
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)?;
            file.lock()?;
            if is_at(&file, &path) {
                return Ok(Record { file, path });
            }
        }
    }

    /// Writes down what is about to be made.
    pub fn note(&mut self, made: &Made) -> io::Result<()> {
        self.file.write_all(line(made).as_bytes())
    }

    /// Forgets everything.
    pub fn delete(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// A record of a dead owner, locked by the process that cleans up after it.
#[derive(Debug)]
pub struct Orphan {
    record: Record,
    /// What its owner may have made, in that order.
    pub made: Vec<Made>,
}

impl Orphan {
    /// Forgets it.
    pub fn delete(&self) -> io::Result<()> {
        self.record.delete()
    }
}

/// The records of dead owners; a folder that is not there has none.
pub fn orphans(folder: &Path) -> io::Result<Vec<Orphan>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with(RECORD_PREFIX)
        {
            found.extend(orphan(entry.path())?);
        }
    }
    Ok(found)
}

fn orphan(path: PathBuf) -> io::Result<Option<Orphan>> {
    let mut file = match OpenOptions::new().read(true).write(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => (),
    }
    if !is_at(&file, &path) {
        return Ok(None);
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let record = Record { file, path };
    Ok(Some(Orphan {
        record,
        made: parse(&text),
    }))
}

/// Whether the open file is the one that has this name now.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |data: io::Result<fs::Metadata>| data.map(|data| (data.dev(), data.ino())).ok();
    number(file.metadata()).is_some_and(|own| number(fs::metadata(path)) == Some(own))
}

fn line(made: &Made) -> String {
    match made {
        Made::Namespace(name) => format!("namespace {name}\n"),
        Made::ControlGroup(path) => format!("control-group {}\n", path.display()),
    }
}

/// Reads what was written; lines that are cut short, or name something that is not the lab's, are
/// left out.
fn parse(text: &str) -> Vec<Made> {
    let of_ours = |name: &str| {
        name.starts_with(NAME_PREFIX) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let complete = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    complete
        .filter_map(|line| match line.split_once(' ')? {
            ("namespace", name) if of_ours(name) => Some(Made::Namespace(name.into())),
            ("control-group", path) => {
                let path = PathBuf::from(path);
                let name = path.file_name()?.to_str()?;
                of_ours(name).then(|| Made::ControlGroup(path.clone()))
            }
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_record_is_nobodys_once_its_owner_has_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::create(folder.path(), "1-a").unwrap();
        let made = Made::Namespace("sooner-lab-1-a-s".into());
        record.note(&made).unwrap();
        assert!(orphans(folder.path()).unwrap().is_empty());
        drop(record);
        let orphans_found = orphans(folder.path()).unwrap();
        assert_eq!(orphans_found[0].made, [made]);
        // one that cleans keeps others off
        assert!(orphans(folder.path()).unwrap().is_empty());
        orphans_found[0].delete().unwrap();
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    }

    #[test]
    fn two_of_the_same_name_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let _first = Record::create(folder.path(), "1-a").unwrap();
        let second = Record::create(folder.path(), "1-a").unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn other_files_and_folders_that_are_not_there_have_no_orphans() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("bands-1-2"),
            "namespace sooner-lab-1-a-s\n",
        )
        .unwrap();
        assert!(orphans(folder.path()).unwrap().is_empty());
        assert!(orphans(&folder.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn only_what_the_lab_made_is_read() {
        let text = "namespace sooner-lab-1-a-s\nnamespace host\nnamespace sooner-lab-../x\n\
                    control-group /sys/fs/cgroup/sooner-lab-1-a\ncontrol-group /sys/fs/cgroup/init\nnamespace sooner-lab-cut";
        let expected = [
            Made::Namespace("sooner-lab-1-a-s".into()),
            Made::ControlGroup("/sys/fs/cgroup/sooner-lab-1-a".into()),
        ];
        assert_eq!(parse(text), expected);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(name in "[a-z0-9-]{1,16}") {
            let made = [Made::Namespace(format!("sooner-lab-{name}")), Made::ControlGroup(format!("/a b/sooner-lab-{name}").into())];
            let text: String = made.iter().map(line).collect();
            prop_assert_eq!(parse(&text), made);
        }

        #[test]
        fn any_text_is_read(text: String) {
            let _ = parse(&text);
        }
    }
}
