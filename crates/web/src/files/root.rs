//! Opening a path below the root, and nothing else: the kernel resolves it and refuses what leads
//! out. What it refuses because of a link that names the root itself is walked through here.

mod own_path;
mod walk;

use own_path::OwnPath;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use serde::Deserialize;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;
use walk::Below;

/// A rename somewhere on the way makes the kernel ask for another try.
const RESOLVE_TRIES: u32 = 4;

/// NONBLOCK: opening a pipe must not wait for its writer.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

/// To look at something without opening it.
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The directory all served files lie below. A clone is the same directory.
#[derive(Debug, Clone)]
pub struct Root {
    directory: Arc<OwnedFd>,
    /// Its device and inode.
    identity: (u64, u64),
    own_path: Arc<OwnPath>,
    symlinks: Symlinks,
    has_openat2: bool,
}

/// Which symbolic links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Symlinks {
    /// Those that lead to somewhere below the root.
    #[default]
    Inside,
    /// None.
    None,
}

/// What a path led to.
#[derive(Debug)]
pub enum Opened {
    /// A regular file, open for reading, with its metadata.
    File(OwnedFd, Stat),
    /// A directory, open for reading.
    Directory(OwnedFd),
}

/// Why there is no file to send.
#[derive(Debug, Error)]
pub enum FileError {
    /// Nothing by that name, or nothing that can be sent.
    #[error("no such file")]
    NotFound,
    /// Not readable for this process, or a symbolic link that is not followed.
    #[error("not readable, or a link that is not followed")]
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
    pub fn open(path: &Path, symlinks: Symlinks) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        // Old kernels lack the call, old containers forbid it.
        let has_openat2 = match open_beneath(&directory, b".", READ, symlinks) {
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(errno.into()),
            opened => opened.is_ok(),
        };
        Ok(Self {
            identity: identity_of(&rustix::fs::fstat(&directory)?),
            directory: Arc::new(directory),
            own_path: Arc::new(OwnPath::of(path)),
            symlinks,
            has_openat2,
        })
    }

    /// Whether `stat` describes this very directory: while it is open, no other has its inode.
    pub fn is(&self, stat: &Stat) -> bool {
        self.identity == identity_of(stat)
    }

    /// Opens `path`, relative and free of dot segments, if it is a regular file or a directory; the
    /// empty path is the root.
    pub fn open_file(&self, path: &[u8]) -> Result<Opened, FileError> {
        let descriptor = self.resolve(path, READ)?;
        let stat = rustix::fs::fstat(&descriptor)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Opened::File(descriptor, stat)),
            FileType::Directory => Ok(Opened::Directory(descriptor)),
            _ => Err(FileError::NotFound),
        }
    }

    /// Which symbolic links are followed.
    pub fn symlinks(&self) -> Symlinks {
        self.symlinks
    }

    /// The metadata of what `path` leads to, whatever it is, without opening it.
    pub fn look_at(&self, path: &[u8]) -> Result<Stat, FileError> {
        let stat = rustix::fs::fstat(self.resolve(path, LOOK)?)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => Err(FileError::Forbidden),
            _ => Ok(stat),
        }
    }

    /// Whether `path` leads to a regular file.
    pub fn has_file(&self, path: &[u8]) -> bool {
        let stat = self.look_at(path);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }

    fn resolve(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, FileError> {
        let path = if path.is_empty() { &b"."[..] } else { path };
        self.open_below(path, flags)
            .map_err(|errno| match (errno, self.symlinks) {
                (Errno::LOOP, Symlinks::None) => FileError::Forbidden,
                _ => errno.into(),
            })
    }

    fn open_below(&self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        if self.has_openat2 {
            match open_beneath(&self.directory, path, flags, self.symlinks) {
                Err(Errno::XDEV) if self.symlinks == Symlinks::Inside => {}
                opened => return opened,
            }
        }
        let below = Below {
            root: &self.directory,
            own_path: &self.own_path,
            symlinks: self.symlinks,
        };
        retried(|| below.open(path, flags))
    }
}

fn identity_of(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn open_beneath(
    directory: &OwnedFd,
    path: &[u8],
    flags: OFlags,
    symlinks: Symlinks,
) -> rustix::io::Result<OwnedFd> {
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if symlinks == Symlinks::None {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    retried(|| rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve))
}

fn retried(mut open: impl FnMut() -> rustix::io::Result<OwnedFd>) -> rustix::io::Result<OwnedFd> {
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..RESOLVE_TRIES {
        opened = open();
        if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    opened
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
        let kernel = Root::open(&root, Symlinks::Inside).unwrap();
        let mut steps = kernel.clone();
        steps.has_openat2 = false;
        (folder, [kernel, steps])
    }

    #[test]
    fn opens_files_and_tells_directories() {
        let (_folder, roots) = roots();
        for root in &roots {
            assert!(matches!(root.open_file(b"a"), Ok(Opened::File(_, stat)) if stat.st_size == 1));
            assert!(matches!(root.open_file(b"sub/b"), Ok(Opened::File(..))));
            assert!(matches!(root.open_file(b"sub"), Ok(Opened::Directory(_))));
            for missing in [&b"none"[..], b"a/b", b"sub/none", &[b'x'; 300]] {
                assert!(matches!(root.open_file(missing), Err(FileError::NotFound)));
            }
        }
        for root in &roots {
            assert!(matches!(root.open_file(b"in"), Ok(Opened::File(..))));
            assert!(matches!(root.open_file(b"loop"), Err(FileError::NotFound)));
        }
    }

    #[test]
    fn follows_links_that_name_the_root() {
        let (folder, roots) = roots();
        let at = |name: &str| folder.path().join("root").join(name);
        symlink(at("sub"), at("absolute")).unwrap();
        symlink(at("absolute/b"), at("sub/again")).unwrap();
        symlink("../root/sub", at("back")).unwrap();
        symlink(at("sub/../../secret"), at("up")).unwrap();
        symlink(folder.path().join("secret"), at("beside")).unwrap();
        symlink(at("turn"), at("turn")).unwrap();
        for root in &roots {
            for path in [&b"absolute/b"[..], b"absolute/again", b"back/b"] {
                assert!(matches!(root.open_file(path), Ok(Opened::File(..))));
                assert_eq!(root.look_at(path).unwrap().st_size, 1);
            }
            for path in [&b"absolute"[..], b"back"] {
                assert!(matches!(root.open_file(path), Ok(Opened::Directory(_))));
            }
            for path in [&b"up"[..], b"beside"] {
                assert!(matches!(root.open_file(path), Err(FileError::Forbidden)));
            }
            for path in [&b"turn"[..], b"absolute/none", b"absolute/b/c"] {
                assert!(matches!(root.open_file(path), Err(FileError::NotFound)));
            }
            assert!(!root.has_file(b"absolute") && root.has_file(b"absolute/b"));
        }
    }

    /// The other end of a link changes between the two while paths through it are opened.
    #[test]
    fn no_race_leads_out() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let (folder, roots) = roots();
        let at = |name: &str| folder.path().join("root").join(name);
        std::fs::create_dir(folder.path().join("b")).unwrap();
        std::fs::write(folder.path().join("b/b"), "outside").unwrap();
        let places = [at("sub"), folder.path().join("b"), folder.path().into()];
        symlink(at("hop"), at("begin")).unwrap();
        symlink(at("sub"), at("hop")).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for place in places.iter().cycle() {
                    symlink(place, at("beside")).unwrap();
                    std::fs::rename(at("beside"), at("hop")).unwrap();
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let mut opened = 0;
            for try_number in 0..5000 {
                let found = roots[try_number % 2].open_file(b"begin/b");
                if let Ok(Opened::File(_, stat)) = found {
                    assert_eq!(stat.st_size, 1);
                    opened += 1;
                }
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(opened > 0);
        });
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

    #[test]
    fn follows_no_link_when_told_so() {
        let (folder, _) = roots();
        let root = Root::open(&folder.path().join("root"), Symlinks::None).unwrap();
        assert!(matches!(root.open_file(b"sub/b"), Ok(Opened::File(..))));
        let mut steps = root.clone();
        steps.has_openat2 = false;
        symlink(folder.path().join("root/a"), folder.path().join("root/own")).unwrap();
        for link in [&b"in"[..], b"out", b"etc/passwd", b"loop", b"own"] {
            for root in [&root, &steps] {
                assert!(matches!(root.open_file(link), Err(FileError::Forbidden)));
                assert!(matches!(root.look_at(link), Err(FileError::Forbidden)));
            }
        }
    }

    #[test]
    fn looks_without_opening() {
        let (_folder, roots) = roots();
        for root in &roots {
            assert_eq!(root.look_at(b"sub/b").unwrap().st_size, 1);
            let stat = root.look_at(b"").unwrap();
            assert_eq!(FileType::from_raw_mode(stat.st_mode), FileType::Directory);
            assert!(matches!(root.look_at(b"none"), Err(FileError::NotFound)));
            assert!(matches!(root.look_at(b"out"), Err(FileError::Forbidden)));
        }
        for root in &roots {
            assert_eq!(root.look_at(b"in").unwrap().st_size, 1);
        }
    }
}
