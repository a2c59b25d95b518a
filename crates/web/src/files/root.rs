//! Opening a path below the root, and nothing else: the kernel resolves it and refuses what leads out.

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use thiserror::Error;

/// A rename somewhere on the way makes the kernel ask for another try.
const RESOLVE_TRIES: u32 = 4;

/// NONBLOCK: opening a pipe must not wait for its writer.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

/// The directory all served files lie below.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    has_openat2: bool,
}

/// What a path led to.
#[derive(Debug)]
pub enum Opened {
    /// A regular file, open for reading, with its metadata.
    File(OwnedFd, Stat),
    /// A directory.
    Directory,
}

/// Why there is no file to send.
#[derive(Debug, Error)]
pub enum FileError {
    /// Nothing by that name, or nothing that can be sent.
    #[error("no such file")]
    NotFound,
    /// Not readable for this process, or a symbolic link that leads out of the root.
    #[error("not readable, or a link that leads out of the served directory")]
    Forbidden,
    /// Out of descriptors or memory; another try may succeed.
    #[error("out of descriptors or memory: {0}")]
    Exhausted(io::Error),
    /// Anything else the system said.
    #[error("the file cannot be read: {0}")]
    Unreadable(io::Error),
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::NAMETOOLONG
            | Errno::LOOP
            | Errno::INVAL
            | Errno::NXIO => Self::NotFound,
            Errno::ACCESS | Errno::PERM | Errno::XDEV => Self::Forbidden,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => {
                Self::Exhausted(errno.into())
            }
            other => Self::Unreadable(other.into()),
        }
    }
}

impl Root {
    /// Opens the root itself; the error is the system's, `NotADirectory` when it is a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        // Old kernels lack the call, old containers forbid it.
        let has_openat2 = open_beneath(&directory, b".").is_ok();
        Ok(Self {
            directory,
            has_openat2,
        })
    }

    /// Opens `path`, relative and free of dot segments, if it is a regular file or a directory.
    pub fn open_file(&self, path: &[u8]) -> Result<Opened, FileError> {
        let opened = if self.has_openat2 {
            open_beneath(&self.directory, path)
        } else {
            open_by_steps(&self.directory, path)
        };
        let descriptor = opened?;
        let stat = rustix::fs::fstat(&descriptor)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Opened::File(descriptor, stat)),
            FileType::Directory => Ok(Opened::Directory),
            _ => Err(FileError::NotFound),
        }
    }
}

fn open_beneath(directory: &OwnedFd, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..RESOLVE_TRIES {
        opened = rustix::fs::openat2(directory, path, READ, Mode::empty(), resolve);
        if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    opened
}

/// Without openat2: one component after the other, no symbolic links at all.
fn open_by_steps(directory: &OwnedFd, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = READ | OFlags::NOFOLLOW;
    let step =
        |from: &OwnedFd, name: &[u8]| match rustix::fs::openat(from, name, flags, Mode::empty()) {
            Err(Errno::LOOP) => Err(Errno::ACCESS),
            opened => opened,
        };
    let mut components = path.split(|&byte| byte == b'/');
    let first = components.next().unwrap_or_default();
    components.try_fold(step(directory, first)?, |opened, name| step(&opened, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn roots() -> (tempfile::TempDir, [Root; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        std::fs::write(root.join("a"), "a").unwrap();
        std::fs::write(root.join("sub/b"), "b").unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("sub/b", root.join("in")).unwrap();
        let kernel = Root::open(&root).unwrap();
        let mut steps = Root::open(&root).unwrap();
        steps.has_openat2 = false;
        (folder, [kernel, steps])
    }

    #[test]
    fn opens_files_and_tells_directories() {
        let (_folder, roots) = roots();
        for root in &roots {
            assert!(matches!(root.open_file(b"a"), Ok(Opened::File(_, stat)) if stat.st_size == 1));
            assert!(matches!(root.open_file(b"sub/b"), Ok(Opened::File(..))));
            assert!(matches!(root.open_file(b"sub"), Ok(Opened::Directory)));
            for missing in [&b"none"[..], b"a/b", b"sub/none", &[b'x'; 300]] {
                assert!(matches!(root.open_file(missing), Err(FileError::NotFound)));
            }
        }
        assert!(matches!(roots[0].open_file(b"in"), Ok(Opened::File(..))));
        assert!(matches!(
            roots[0].open_file(b"loop"),
            Err(FileError::NotFound)
        ));
    }

    #[test]
    fn refuses_links_that_lead_out() {
        let (_folder, roots) = roots();
        for root in &roots {
            for path in [&b"out"[..], b"etc", b"etc/passwd"] {
                assert!(
                    matches!(root.open_file(path), Err(FileError::Forbidden)),
                    "{path:?}"
                );
            }
        }
        assert!(matches!(
            roots[0].open_file(b"../secret"),
            Err(FileError::Forbidden)
        ));
    }

    #[test]
    fn a_pipe_is_not_a_file() {
        let (folder, roots) = roots();
        let pipe = folder.path().join("root/pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR).unwrap();
        assert!(matches!(
            roots[0].open_file(b"pipe"),
            Err(FileError::NotFound)
        ));
    }
}
