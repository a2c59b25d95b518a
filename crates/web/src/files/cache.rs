//! Files that were asked for lately, found by path; the least used make room (second chance).

use super::entry::File;
use super::root::{FileError, Opened, Root};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bounds of the cache.
#[derive(Debug, Clone, Copy)]
pub struct CacheLimits {
    /// How many files at most; those not in memory hold a descriptor each.
    pub files_max: usize,
    /// Longest file that is kept in memory.
    pub memory_file_bytes_max: u64,
    /// Bytes in memory, all files together.
    pub memory_bytes_max: u64,
    /// How long a file is taken to be unchanged without looking.
    pub valid_for: Duration,
}

impl Default for CacheLimits {
    /// 4096 files, 64 MiB in files of up to 256 KiB: a site's pages, scripts and images, little beside the memory of
    /// the smallest host. One second, as an owner who saves a file looks at it no sooner.
    fn default() -> Self {
        Self {
            files_max: 4096,
            memory_file_bytes_max: 256 << 10,
            memory_bytes_max: 64 << 20,
            valid_for: Duration::from_secs(1),
        }
    }
}

/// What a path leads to.
#[derive(Debug)]
pub enum Found {
    /// A regular file.
    File(Arc<File>),
    /// A directory.
    Directory,
}

/// The files below a root, each opened once.
#[derive(Debug)]
pub struct FileCache {
    root: Root,
    limits: CacheLimits,
    slots: HashMap<Rc<[u8]>, Slot>,
    /// Every key of `slots` once, in the order in which they are asked to go.
    queue: VecDeque<Rc<[u8]>>,
    memory_bytes: u64,
}

#[derive(Debug)]
struct Slot {
    file: Arc<File>,
    checked_at: Instant,
    was_used: bool,
}

impl FileCache {
    /// An empty cache of the files below `root`.
    pub fn new(root: Root, limits: CacheLimits) -> Self {
        Self {
            root,
            limits,
            slots: HashMap::new(),
            queue: VecDeque::new(),
            memory_bytes: 0,
        }
    }

    /// Finds what `path` (relative, without dot segments) leads to. No system call when it was checked lately.
    /// Directories and errors are never remembered.
    pub fn find(&mut self, path: &[u8], now: Instant) -> Result<Found, FileError> {
        if let Some(slot) = self.slots.get_mut(path)
            && now.saturating_duration_since(slot.checked_at) < self.limits.valid_for
        {
            slot.was_used = true;
            return Ok(Found::File(slot.file.clone()));
        }
        let opened = self.root.open_file(path);
        let Ok(Opened::File(descriptor, stat)) = opened else {
            self.forget(path);
            return opened.map(|_| Found::Directory);
        };
        if let Some(slot) = self.slots.get_mut(path)
            && slot.file.is_version(&stat)
        {
            (slot.checked_at, slot.was_used) = (now, true);
            return Ok(Found::File(slot.file.clone()));
        }
        let file = Arc::new(File::new(
            path,
            descriptor,
            &stat,
            self.limits.memory_file_bytes_max,
        )?);
        self.forget(path);
        self.remember(path.into(), file.clone(), now);
        Ok(Found::File(file))
    }

    fn remember(&mut self, key: Rc<[u8]>, file: Arc<File>, now: Instant) {
        self.memory_bytes += file.memory_bytes();
        self.slots.insert(
            key.clone(),
            Slot {
                file,
                checked_at: now,
                was_used: false,
            },
        );
        self.queue.push_back(key);
        while self.slots.len() > self.limits.files_max
            || self.memory_bytes > self.limits.memory_bytes_max
        {
            self.evict_one();
        }
    }

    /// Takes out the first in the queue that was not used since it was last asked.
    fn evict_one(&mut self) {
        while let Some(key) = self.queue.pop_front() {
            match self.slots.get_mut(&key) {
                Some(slot) if slot.was_used => {
                    slot.was_used = false;
                    self.queue.push_back(key);
                }
                _ => return self.take_out(&key),
            }
        }
    }

    fn forget(&mut self, path: &[u8]) {
        if self.slots.contains_key(path) {
            self.queue.retain(|key| key.as_ref() != path);
            self.take_out(path);
        }
    }

    fn take_out(&mut self, path: &[u8]) {
        if let Some(slot) = self.slots.remove(path) {
            self.memory_bytes -= slot.file.memory_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const VALID_FOR: Duration = Duration::from_secs(1);

    fn cache(folder: &Path, files_max: usize, memory_bytes_max: u64) -> FileCache {
        let limits = CacheLimits {
            files_max,
            memory_file_bytes_max: 100,
            memory_bytes_max,
            valid_for: VALID_FOR,
        };
        FileCache::new(Root::open(folder).unwrap(), limits)
    }

    fn file(found: Result<Found, FileError>) -> Arc<File> {
        match found {
            Ok(Found::File(file)) => file,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn looks_again_after_a_while() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "old").unwrap();
        let mut cache = cache(folder.path(), 10, 1000);
        let start = Instant::now();
        let old = file(cache.find(b"a", start));
        assert!(Arc::ptr_eq(
            &old,
            &file(cache.find(b"a", start + VALID_FOR))
        ));
        std::fs::write(folder.path().join("a"), "newer").unwrap();
        assert!(Arc::ptr_eq(
            &old,
            &file(cache.find(b"a", start + VALID_FOR))
        ));
        let new = file(cache.find(b"a", start + 2 * VALID_FOR));
        assert_eq!(new.in_memory().unwrap(), "newer");
        assert_ne!(old.etag, new.etag);
        std::fs::remove_file(folder.path().join("a")).unwrap();
        assert!(matches!(
            cache.find(b"a", start + 3 * VALID_FOR),
            Err(FileError::NotFound)
        ));
        assert_eq!(
            (cache.slots.len(), cache.queue.len(), cache.memory_bytes),
            (0, 0, 0)
        );
    }

    #[test]
    fn errors_and_directories_are_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = cache(folder.path(), 10, 1000);
        let now = Instant::now();
        assert!(matches!(cache.find(b"a", now), Err(FileError::NotFound)));
        std::fs::create_dir(folder.path().join("a")).unwrap();
        assert!(matches!(cache.find(b"a", now), Ok(Found::Directory)));
        std::fs::remove_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        assert_eq!(file(cache.find(b"a", now)).len, 0);
    }

    #[test]
    fn the_unused_make_room() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c", "d"] {
            std::fs::write(folder.path().join(name), [0; 100]).unwrap();
        }
        let now = Instant::now();
        for (files_max, memory_bytes_max) in [(2, 1000), (10, 250)] {
            let mut cache = cache(folder.path(), files_max, memory_bytes_max);
            for name in ["a", "b", "a", "c", "a", "d"] {
                file(cache.find(name.as_bytes(), now));
            }
            let mut kept: Vec<_> = cache
                .slots
                .keys()
                .map(|key| String::from_utf8_lossy(key).into_owned())
                .collect();
            kept.sort();
            assert_eq!(kept, ["a", "d"]);
            assert_eq!((cache.queue.len(), cache.memory_bytes), (2, 200));
        }
    }

    #[test]
    fn a_file_too_long_for_all_memory_is_still_served() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), [0; 100]).unwrap();
        let mut cache = cache(folder.path(), 10, 50);
        assert_eq!(file(cache.find(b"a", Instant::now())).len, 100);
        assert_eq!((cache.slots.len(), cache.memory_bytes), (0, 0));
    }
}
