//! A root by its path: a link may lead to another directory by now, or one may have taken the place
//! of the other, as when a new release of a site is put there.
//!
//! Looked at as seldom as a file at hand, so that a request costs no more than a comparison of two
//! times. What holds a [`Root`] goes on with the directory that it was.

use super::root::{FileError, Root, Symlinks};
use rustix::fs::Stat;
use rustix::io::Errno;
use sooner_operate::say;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A path, and the directory there. A clone looks together with the first.
#[derive(Debug, Clone)]
pub struct RootPath(Arc<Mutex<Looked>>);

#[derive(Debug)]
struct Looked {
    path: PathBuf,
    symlinks: Symlinks,
    valid_for: Duration,
    /// `None` while there is no directory.
    root: Option<Root>,
    /// Another for each root.
    version: u64,
    looked_at: Option<Instant>,
    /// Whether it was said that nothing can be seen there.
    is_said: bool,
}

impl RootPath {
    /// Opens the directory at `path` and takes it to be there for `valid_for` without looking;
    /// fails as [`Root::open`] does.
    pub fn open(path: &Path, symlinks: Symlinks, valid_for: Duration) -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Looked {
            root: Some(Root::open(path, symlinks)?),
            path: path.to_owned(),
            symlinks,
            valid_for,
            version: 0,
            looked_at: None,
            is_said: false,
        }))))
    }

    /// Whether it is the same path, opened for the same links.
    pub fn is_for(&self, path: &Path, symlinks: Symlinks) -> bool {
        let looked = self.lock();
        looked.path == path && looked.symlinks == symlinks
    }

    /// The directory there; `NotFound` while there is none.
    pub fn root(&self, now: Instant) -> Result<Root, FileError> {
        let mut looked = self.lock();
        looked.look(now);
        looked.root.clone().ok_or(FileError::NotFound)
    }

    /// What tells the directory there from those that were there before.
    pub fn version(&self, now: Instant) -> u64 {
        let mut looked = self.lock();
        looked.look(now);
        looked.version
    }

    fn lock(&self) -> MutexGuard<'_, Looked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Looked {
    fn look(&mut self, now: Instant) {
        let is_fresh = |at: Instant| now.saturating_duration_since(at) < self.valid_for;
        if self.looked_at.is_some_and(is_fresh) {
            return;
        }
        self.looked_at = Some(now);
        if let Err(error) = self.follow(rustix::fs::stat(&self.path))
            && !self.is_said
        {
            self.is_said = true;
            say(self.unseen(&error));
        }
    }

    /// Takes the root that is there now, none where there is none; fails where that cannot be seen,
    /// and keeps what it has.
    fn follow(&mut self, found: rustix::io::Result<Stat>) -> io::Result<()> {
        let opened = match found {
            Ok(stat) if self.root.as_ref().is_some_and(|root| root.is(&stat)) => {
                self.is_said = false;
                return Ok(());
            }
            Ok(_) => Root::open(&self.path, self.symlinks),
            Err(errno) => Err(errno.into()),
        };
        let root = match opened {
            Ok(root) => Some(root),
            Err(error) if is_nothing(&error) => None,
            Err(error) => return Err(error),
        };
        self.is_said = false;
        if root.is_some() || self.root.is_some() {
            self.version += 1;
        }
        self.root = root;
        Ok(())
    }

    fn unseen(&self, error: &io::Error) -> String {
        let kept = match self.root {
            Some(_) => "serving the one that was opened there",
            None => "there is nothing to serve",
        };
        let path = self.path.display();
        format!("cannot look at the directory {path} again: {error}; {kept}")
    }
}

/// Whether there is no directory at a path, rather than one that is not shown.
fn is_nothing(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

#[cfg(test)]
mod tests {
    use super::super::root::Opened;
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const VALID_FOR: Duration = Duration::from_secs(1);

    /// A folder with the releases `old` and `new`, a file in each, and `at` that leads to `old`.
    fn releases() -> (tempfile::TempDir, RootPath) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["old", "new"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join(name), name).unwrap();
        }
        symlink("old", folder.path().join("at")).unwrap();
        let path = folder.path().join("at");
        let root = RootPath::open(&path, Symlinks::Inside, VALID_FOR).unwrap();
        (folder, root)
    }

    fn lead(folder: &Path, target: &str) {
        let _ = std::fs::remove_file(folder.join("at"));
        symlink(target, folder.join("at")).unwrap();
    }

    fn has(root: &RootPath, name: &str, now: Instant) -> bool {
        root.root(now)
            .is_ok_and(|root| root.has_file(name.as_bytes()))
    }

    #[test]
    fn looks_no_more_than_once_a_second() {
        let (folder, root) = releases();
        let start = Instant::now();
        assert!(has(&root, "old", start));
        let version = root.version(start);
        lead(folder.path(), "new");
        let almost = start + VALID_FOR - Duration::from_millis(1);
        assert!(has(&root, "old", almost) && !has(&root, "new", almost));
        assert_eq!(root.version(almost), version);
        let held = root.root(almost).unwrap();
        let after = start + VALID_FOR;
        assert!(has(&root, "new", after) && !has(&root, "old", after));
        assert_ne!(root.version(after), version);
        assert!(matches!(held.open_file(b"old"), Ok(Opened::File(..))));
        // Clones look together.
        let clone = root.clone();
        lead(folder.path(), "old");
        assert!(has(&clone, "old", after + VALID_FOR));
        lead(folder.path(), "new");
        assert!(has(&root, "old", after + VALID_FOR));
    }

    #[test]
    fn what_changed_before_the_first_look_is_seen() {
        let (folder, root) = releases();
        lead(folder.path(), "new");
        assert!(has(&root, "new", Instant::now()));
    }

    #[test]
    fn the_same_directory_is_the_same_root() {
        let (folder, root) = releases();
        let start = Instant::now();
        let version = root.version(start);
        lead(folder.path(), "./old");
        assert_eq!(root.version(start + VALID_FOR), version);
    }

    #[test]
    fn a_root_that_is_gone_has_nothing_until_it_is_back() {
        let (folder, root) = releases();
        let start = Instant::now();
        let at = folder.path().join("at");
        for (number, gone) in ["none", "new/new", "at"].into_iter().enumerate() {
            let now = start + 2 * number as u32 * VALID_FOR;
            lead(folder.path(), gone);
            let found = root.root(now);
            assert!(matches!(found, Err(FileError::NotFound)), "{gone}");
            lead(folder.path(), "new");
            assert!(!has(&root, "new", now));
            assert!(has(&root, "new", now + VALID_FOR));
        }
        std::fs::remove_file(&at).unwrap();
        std::fs::create_dir(&at).unwrap();
        std::fs::write(at.join("other"), "").unwrap();
        assert!(has(&root, "other", start + 9 * VALID_FOR));
    }

    #[test]
    fn what_may_not_be_seen_is_kept_and_said_once() {
        let (folder, root) = releases();
        let start = Instant::now();
        let version = root.version(start);
        let forbid = |mode| {
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
        };
        lead(folder.path(), "new");
        forbid(0);
        let is_said = |root: &RootPath| root.lock().is_said;
        as_another_user(|| {
            for second in 1..4 {
                assert!(has(&root, "old", start + second * VALID_FOR));
                assert!(is_said(&root));
            }
            assert_eq!(root.version(start + 3 * VALID_FOR), version);
        });
        forbid(0o755);
        assert!(has(&root, "new", start + 4 * VALID_FOR));
        assert!(!is_said(&root));
        let line = root.lock().unseen(&Errno::ACCESS.into());
        assert!(line.ends_with("; serving the one that was opened there"));
        assert!(line.contains("Permission denied"));
    }

    /// Calls `look` without the rights of root, if this thread has them.
    fn as_another_user(look: impl FnOnce()) {
        use rustix::thread::set_thread_res_uid;
        let (own, other) = (
            rustix::process::geteuid(),
            rustix::process::Uid::from_raw(65534),
        );
        if own.is_root() {
            set_thread_res_uid(None, other, None).unwrap();
        }
        look();
        if own.is_root() {
            set_thread_res_uid(None, own, None).unwrap();
        }
    }
}
