//! What is in a directory, as far as it is served.

use crate::files::{FileError, Root, Symlinks};
use crate::proxy::is_script;
use rustix::fs::{AtFlags, Dir, FileType, Stat};
use sooner_http::target::DotFiles;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name as the file system has it.
    pub name: Vec<u8>,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Its size in bytes; of no meaning for a directory.
    pub size_bytes: u64,
    /// When it was last changed, since 1970.
    pub modified: Duration,
}

/// The names in a directory, directories first, each group by its bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Entries {
    /// The names.
    pub list: Vec<Entry>,
    /// Whether there are more than were read.
    pub is_cut: bool,
}

/// Where and how to look.
#[derive(Debug)]
pub struct ListedDirectory {
    /// The directory, open.
    pub directory: OwnedFd,
    /// Its path below the root.
    pub path: Vec<u8>,
    /// The root.
    pub root: Root,
    /// Whether names that begin with a dot are listed.
    pub dot_files: DotFiles,
    /// Whether scripts are not, because they are neither run nor sent.
    pub hides_scripts: bool,
}

/// Reads at most `entries_max` names; waits for the disk. Listed is what a client could get:
/// regular files, directories, and links to those that are followed. Fails with `NotFound` when the
/// directory has been removed.
pub fn read(listed: ListedDirectory, entries_max: usize) -> Result<Entries, FileError> {
    let mut directory = Dir::new(listed.directory)?;
    let (mut list, mut count) = (Vec::new(), 0);
    let mut is_cut = false;
    while let Some(entry) = directory.read() {
        let entry = entry?;
        count += 1;
        // Every directory has itself and its parent.
        if count > entries_max + 2 {
            is_cut = true;
            break;
        }
        let name = entry.file_name().to_bytes();
        if !is_listed(name, listed.dot_files) {
            continue;
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        // What cannot be looked at has gone meanwhile.
        let Ok(stat) = rustix::fs::statat(directory.fd()?, entry.file_name(), flags) else {
            continue;
        };
        let stat = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => look_behind(&listed.root, &listed.path, name),
            _ => Some(stat),
        };
        let entry = stat.and_then(|stat| entry_of(name, &stat));
        let is_hidden =
            |entry: &Entry| listed.hides_scripts && !entry.is_directory && is_script(&entry.name);
        list.extend(entry.filter(|entry| !is_hidden(entry)));
    }
    if count == 0 {
        return Err(FileError::NotFound);
    }
    list.sort_unstable_by(|one, other| {
        let key = |entry: &Entry| !entry.is_directory;
        (key(one), &one.name).cmp(&(key(other), &other.name))
    });
    Ok(Entries { list, is_cut })
}

fn is_listed(name: &[u8], dot_files: DotFiles) -> bool {
    let is_hidden = match name {
        b"." | b".." => true,
        [b'.', ..] => dot_files == DotFiles::Refused,
        _ => false,
    };
    // A client cannot request a backslash.
    !is_hidden && !name.contains(&b'\\')
}

fn look_behind(root: &Root, path: &[u8], name: &[u8]) -> Option<Stat> {
    if root.symlinks() == Symlinks::None {
        return None;
    }
    let link = match path {
        b"" => name.to_vec(),
        _ => [path, b"/", name].concat(),
    };
    root.look_at(&link).ok()
}

fn entry_of(name: &[u8], stat: &Stat) -> Option<Entry> {
    let is_directory = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => true,
        FileType::RegularFile => false,
        _ => return None,
    };
    Some(Entry {
        name: name.to_vec(),
        is_directory,
        size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified: Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn listed(folder: &Path, symlinks: Symlinks, dot_files: DotFiles) -> ListedDirectory {
        ListedDirectory {
            directory: std::fs::File::open(folder.join("root/d")).unwrap().into(),
            path: b"d".into(),
            root: Root::open(&folder.join("root"), symlinks).unwrap(),
            dot_files,
            hides_scripts: false,
        }
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("root/d/sub")).unwrap();
        std::fs::write(folder.path().join("root/target"), "1234567").unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        let directory = folder.path().join("root/d");
        for name in [&b"b"[..], b"a", b"Z", b".hidden", b"a\\b", b"\xff"] {
            std::fs::write(directory.join(OsStr::from_bytes(name)), "12").unwrap();
        }
        symlink("../target", directory.join("inside")).unwrap();
        symlink("../../secret", directory.join("outside")).unwrap();
        symlink("nothing", directory.join("broken")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(directory.join("socket")).unwrap();
        folder
    }

    fn names(entries: &Entries) -> Vec<&[u8]> {
        entries
            .list
            .iter()
            .map(|entry| entry.name.as_slice())
            .collect()
    }

    #[test]
    fn lists_what_could_be_had() {
        let folder = folder();
        let inside = listed(folder.path(), Symlinks::Inside, DotFiles::Refused);
        let entries = read(inside, 100).unwrap();
        let expected: [&[u8]; 6] = [b"sub", b"Z", b"a", b"b", b"inside", b"\xff"];
        assert_eq!(names(&entries), expected);
        assert!(entries.list[0].is_directory && !entries.is_cut);
        assert_eq!(entries.list[2].size_bytes, 2);
        assert_eq!(entries.list[4].size_bytes, 7);
        assert!(entries.list[2].modified > Duration::from_secs(1_000_000_000));
        let none = listed(folder.path(), Symlinks::None, DotFiles::Served);
        let expected: [&[u8]; 6] = [b"sub", b".hidden", b"Z", b"a", b"b", b"\xff"];
        assert_eq!(names(&read(none, 100).unwrap()), expected);
    }

    #[test]
    fn lists_no_script_that_cannot_be_had() {
        let folder = folder();
        let directory = folder.path().join("root/d");
        std::fs::write(directory.join("a.php"), "").unwrap();
        std::fs::write(directory.join("B.PHP"), "").unwrap();
        std::fs::create_dir(directory.join("dir.php")).unwrap();
        symlink("a.php", directory.join("link.php")).unwrap();
        for (hides_scripts, expected) in [
            (true, &["dir.php", "sub"][..]),
            (false, &["dir.php", "sub", "B.PHP", "a.php", "link.php"]),
        ] {
            let listed = ListedDirectory {
                hides_scripts,
                ..listed(folder.path(), Symlinks::Inside, DotFiles::Refused)
            };
            let entries = read(listed, 100).unwrap();
            let mut names = names(&entries);
            names.retain(|name| name.to_ascii_lowercase().ends_with(b".php") || *name == b"sub");
            let expected: Vec<&[u8]> = expected.iter().map(|name| name.as_bytes()).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn reads_no_more_than_it_may() {
        let folder = folder();
        let listed = || listed(folder.path(), Symlinks::Inside, DotFiles::Served);
        let entries = read(listed(), 3).unwrap();
        assert!(entries.is_cut && entries.list.len() <= 3);
        assert!(!read(listed(), 11).unwrap().is_cut);
        assert!(read(listed(), 10).unwrap().is_cut);
    }

    #[test]
    fn a_directory_that_has_gone_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("root/d")).unwrap();
        let listed = listed(folder.path(), Symlinks::Inside, DotFiles::Refused);
        std::fs::remove_dir(folder.path().join("root/d")).unwrap();
        assert!(matches!(read(listed, 10), Err(FileError::NotFound)));
    }
}
