//! Files that were requested lately, found by path; the least used make room (second chance).
//!
//! One cache holds the files of all sites, so that its bounds hold for the server and the busiest
//! site has the most of it.

use super::folder::{Folder, Lookup};
use super::resource::Resource;
use super::root::FileError;
use crate::clock::Moment;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Bounds of the cache.
#[derive(Debug, Clone, Copy)]
pub struct CacheLimits {
    /// How many files at most; those not in memory hold a descriptor each, and of those in memory
    /// the long ones. One that comes into memory holds both for a moment.
    pub files_max: usize,
    /// Longest file that is kept in memory.
    pub memory_file_bytes_max: u64,
    /// Bytes in memory, all files together.
    pub memory_bytes_max: u64,
    /// How long a file is taken to be unchanged without looking.
    pub valid_for: Duration,
}

impl Default for CacheLimits {
    /// 4096 files, 64 MiB in files of up to 256 KiB: a site's pages, scripts and images, little
    /// beside the memory of the smallest host. One second, as an owner who saves a file looks at it
    /// no sooner.
    fn default() -> Self {
        Self {
            files_max: 4096,
            memory_file_bytes_max: 256 << 10,
            memory_bytes_max: 64 << 20,
            valid_for: Duration::from_secs(1),
        }
    }
}

/// One of the folders of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderId(u32);

/// The files of several folders, each opened once.
#[derive(Debug)]
pub struct FileCache {
    folders: Vec<Kept>,
    limits: CacheLimits,
    slots: HashMap<Rc<[u8]>, Slot>,
    /// Every key of `slots` once, in the order in which they are asked to go.
    queue: VecDeque<Rc<[u8]>>,
    files: usize,
    memory_bytes: u64,
    /// The key of the search under way: kept, so that no search allocates.
    key: Vec<u8>,
}

#[derive(Debug)]
struct Kept {
    folder: Folder,
    /// Of its root, when its files were looked up.
    root_version: u64,
}

#[derive(Debug)]
struct Slot {
    resource: Rc<Resource>,
    checked_at: Instant,
    was_used: bool,
}

impl FileCache {
    /// A cache of no folder yet. A file that is too long for all memory is not kept there by itself
    /// either.
    pub fn new(limits: CacheLimits) -> Self {
        let memory_file_bytes_max = limits.memory_file_bytes_max.min(limits.memory_bytes_max);
        Self {
            folders: Vec::new(),
            limits: CacheLimits {
                memory_file_bytes_max,
                ..limits
            },
            slots: HashMap::new(),
            queue: VecDeque::new(),
            files: 0,
            memory_bytes: 0,
            key: Vec::new(),
        }
    }

    /// Its bounds.
    pub fn limits(&self) -> CacheLimits {
        self.limits
    }

    /// From now on files of `folder` can be found as well.
    pub fn add(&mut self, folder: Folder) -> FolderId {
        self.folders.push(Kept {
            folder,
            root_version: 0,
        });
        FolderId(self.folders.len() as u32 - 1)
    }

    /// From now on only names that `keeps` likes stand for directories of `folder`; all that did
    /// until now.
    pub fn keep_index(
        &mut self,
        folder: FolderId,
        keeps: impl Fn(&[u8]) -> bool,
    ) -> Vec<Box<[u8]>> {
        let folder = &mut self.folders[folder.0 as usize].folder;
        let all = folder.index.clone();
        folder.index.retain(|name| keeps(name));
        all
    }

    /// Finds what `path` (relative, without dot segments) leads to; requested as a directory it is
    /// the directory's index. No system call when that was checked lately and is in memory.
    /// Directories and errors are never remembered, files only while their root is the one there.
    pub fn find(
        &mut self,
        folder: FolderId,
        path: &[u8],
        as_directory: bool,
        now: Moment,
    ) -> Result<Lookup, FileError> {
        let kept = &mut self.folders[folder.0 as usize];
        let root_version = kept.folder.root.version(now.instant);
        if root_version != kept.root_version {
            kept.root_version = root_version;
            self.forget_all(folder);
        }
        self.set_key(folder, path, as_directory);
        let known = match self.slots.get_mut(self.key.as_slice()) {
            Some(slot) => {
                let age = now.instant.saturating_duration_since(slot.checked_at);
                if age < self.limits.valid_for && slot.resource.is_current() {
                    slot.was_used = true;
                    return Ok(Lookup::Resource(slot.resource.clone()));
                }
                Some(slot.resource.clone())
            }
            None => None,
        };
        let folder = &self.folders[folder.0 as usize].folder;
        let found = folder.look_up(path, as_directory, known.as_ref(), now);
        match (&found, known) {
            (Ok(Lookup::Resource(resource)), Some(known)) if Rc::ptr_eq(resource, &known) => {
                self.confirm(now.instant);
            }
            (Ok(Lookup::Resource(resource)), known) => {
                if known.is_some() {
                    self.forget();
                }
                self.remember(resource.clone(), now.instant);
            }
            (_, Some(_)) => self.forget(),
            (_, None) => {}
        }
        found
    }

    fn set_key(&mut self, folder: FolderId, path: &[u8], as_directory: bool) {
        self.key.clear();
        self.key.extend_from_slice(&folder.0.to_ne_bytes());
        self.key.extend_from_slice(path);
        if as_directory {
            self.key.push(b'/');
        }
    }

    fn confirm(&mut self, now: Instant) {
        if let Some(slot) = self.slots.get_mut(self.key.as_slice()) {
            (slot.checked_at, slot.was_used) = (now, true);
        }
    }

    fn remember(&mut self, resource: Rc<Resource>, now: Instant) {
        self.memory_bytes += resource.memory_bytes();
        self.files += resource.file_count();
        let key: Rc<[u8]> = self.key.as_slice().into();
        let slot = Slot {
            resource,
            checked_at: now,
            was_used: false,
        };
        self.slots.insert(key.clone(), slot);
        self.queue.push_back(key);
        while self.files > self.limits.files_max || self.memory_bytes > self.limits.memory_bytes_max
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

    fn forget(&mut self) {
        let key = std::mem::take(&mut self.key);
        self.queue.retain(|other| other[..] != key[..]);
        self.take_out(&key);
        self.key = key;
    }

    fn forget_all(&mut self, folder: FolderId) {
        let start = folder.0.to_ne_bytes();
        let (gone, kept) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition::<Vec<_>, _>(|key| key.starts_with(&start));
        self.queue = kept.into();
        for key in gone {
            self.take_out(&key);
        }
    }

    fn take_out(&mut self, key: &[u8]) {
        if let Some(slot) = self.slots.remove(key) {
            self.memory_bytes -= slot.resource.memory_bytes();
            self.files -= slot.resource.file_count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::File;
    use super::super::extra_headers::ExtraHeaders;
    use super::super::resource::ResourceMaker;
    use super::super::root::Symlinks;
    use super::super::root_path::RootPath;
    use super::*;
    use sooner_http::negotiation::Coding;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::SystemTime;

    const VALID_FOR: Duration = Duration::from_secs(1);

    fn folder(path: &Path) -> Folder {
        Folder {
            index: vec![b"index.html"[..].into(), b"index.htm"[..].into()],
            root: RootPath::open(path, Symlinks::Inside, VALID_FOR).unwrap(),
            maker: ResourceMaker {
                codings: vec![Coding::Br, Coding::Gzip],
                expires: crate::files::Expires::default(),
                extra: ExtraHeaders::default(),
                memory_file_bytes_max: 100,
            },
        }
    }

    fn cache(path: &Path, files_max: usize, memory_bytes_max: u64) -> (FileCache, FolderId) {
        let mut cache = FileCache::new(CacheLimits {
            files_max,
            memory_file_bytes_max: 100,
            memory_bytes_max,
            valid_for: VALID_FOR,
        });
        let id = cache.add(folder(path));
        (cache, id)
    }

    fn resource(found: Result<Lookup, FileError>) -> Rc<Resource> {
        match found {
            Ok(Lookup::Resource(resource)) => resource,
            other => panic!("{other:?}"),
        }
    }

    fn file(found: Result<Lookup, FileError>) -> Arc<File> {
        resource(found).plain.clone()
    }

    /// What is in memory of it, if need be from now on.
    fn content(file: &File) -> bytes::Bytes {
        file.read_at(0, 1).unwrap();
        file.in_memory().unwrap().clone()
    }

    fn date(path: &Path, seconds: u64) {
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(date).unwrap();
    }

    #[test]
    fn looks_again_after_a_while() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "old").unwrap();
        let (mut cache, id) = cache(folder.path(), 10, 1000);
        let start = Moment::now();
        let old = file(cache.find(id, b"a", false, start));
        // One that is not in memory would be looked at each time.
        assert_eq!(content(&old), "old");
        let same = file(cache.find(id, b"a", false, start + VALID_FOR));
        assert!(Arc::ptr_eq(&old, &same));
        std::fs::write(folder.path().join("a"), "newer").unwrap();
        let same = file(cache.find(id, b"a", false, start + VALID_FOR));
        assert!(Arc::ptr_eq(&old, &same));
        let new = file(cache.find(id, b"a", false, start + 2 * VALID_FOR));
        assert_eq!(content(&new), "newer");
        assert_ne!(old.etag, new.etag);
        std::fs::remove_file(folder.path().join("a")).unwrap();
        assert!(matches!(
            cache.find(id, b"a", false, start + 3 * VALID_FOR),
            Err(FileError::NotFound)
        ));
        assert_eq!((cache.slots.len(), cache.queue.len()), (0, 0));
        assert_eq!((cache.files, cache.memory_bytes), (0, 0));
    }

    #[test]
    fn a_file_that_is_not_in_memory_is_never_announced_in_an_old_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, [0; 200]).unwrap();
        date(&path, 1_000_000_000);
        let (mut cache, id) = cache(folder.path(), 10, 1000);
        let now = Moment::now();
        assert_eq!(file(cache.find(id, b"a", false, now)).len, 200);
        std::fs::write(&path, [0; 300]).unwrap();
        assert_eq!(file(cache.find(id, b"a", false, now)).len, 300);
        assert_eq!((cache.slots.len(), cache.queue.len()), (1, 1));
    }

    #[test]
    fn errors_and_directories_are_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let (mut cache, id) = cache(folder.path(), 10, 1000);
        let now = Moment::now();
        let missing = cache.find(id, b"a", false, now);
        assert!(matches!(missing, Err(FileError::NotFound)));
        std::fs::create_dir(folder.path().join("a")).unwrap();
        let directory = cache.find(id, b"a", false, now);
        assert!(matches!(directory, Ok(Lookup::Directory(_))));
        std::fs::remove_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        assert_eq!(file(cache.find(id, b"a", false, now)).len, 0);
    }

    #[test]
    fn a_directory_is_the_first_index_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("d")).unwrap();
        std::fs::write(folder.path().join("f"), "").unwrap();
        let (mut cache, id) = cache(folder.path(), 10, 1000);
        let mut now = Moment::now();
        for path in [&b""[..], b"d"] {
            let bare = cache.find(id, path, true, now);
            assert!(matches!(bare, Ok(Lookup::Directory(_))));
        }
        let not_a_directory = cache.find(id, b"f", true, now);
        assert!(matches!(not_a_directory, Err(FileError::NotFound)));
        for (name, content) in [("index.htm", "second"), ("index.html", "first")] {
            std::fs::write(folder.path().join(name), content).unwrap();
            std::fs::write(folder.path().join("d").join(name), content).unwrap();
            now = now + VALID_FOR;
            for path in [&b""[..], b"d"] {
                let index = file(cache.find(id, path, true, now));
                assert_eq!(self::content(&index), content);
                assert_eq!(index.headers["content-type"], "text/html; charset=utf-8");
            }
        }
        assert_eq!(cache.slots.len(), 2);
    }

    #[test]
    fn folders_do_not_see_each_other() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(one.path().join("a"), "one").unwrap();
        std::fs::write(two.path().join("a"), "two").unwrap();
        let (mut cache, first) = cache(one.path(), 10, 1000);
        let second = cache.add(folder(two.path()));
        let now = Moment::now();
        for _ in 0..2 {
            for (id, content) in [(first, "one"), (second, "two")] {
                let found = file(cache.find(id, b"a", false, now));
                assert_eq!(self::content(&found), content);
            }
        }
    }

    #[test]
    fn nothing_of_a_root_that_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (root, length) in [("old", 10), ("new", 20)] {
            std::fs::create_dir(at(root)).unwrap();
            for (name, times) in [("short", 1), ("long", 20)] {
                std::fs::write(at(root).join(name), vec![0; length * times]).unwrap();
            }
        }
        std::os::unix::fs::symlink("old", at("root")).unwrap();
        let (mut cache, id) = cache(&at("root"), 10, 1000);
        let other = cache.add(self::folder(&at("new")));
        let start = Moment::now();
        let mut lengths = |now| {
            ["short", "long"].map(|name| file(cache.find(id, name.as_bytes(), false, now)).len)
        };
        assert_eq!(lengths(start), [10, 200]);
        std::fs::remove_file(at("root")).unwrap();
        std::os::unix::fs::symlink("new", at("root")).unwrap();
        let almost = start + (VALID_FOR - Duration::from_millis(1));
        assert_eq!(lengths(almost), [10, 200]);
        assert_eq!(lengths(start + VALID_FOR), [20, 400]);
        file(cache.find(other, b"short", false, start));
        // The files of one root alone are let go.
        std::fs::remove_file(at("root")).unwrap();
        let gone = cache.find(id, b"short", false, start + 2 * VALID_FOR);
        assert!(matches!(gone, Err(FileError::NotFound)));
        assert_eq!((cache.slots.len(), cache.queue.len()), (1, 1));
        assert_eq!((cache.files, cache.memory_bytes), (1, 20));
    }

    #[test]
    fn compressed_forms_that_are_not_older_belong_to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, seconds) in [("a.js", 1000), ("a.js.br", 1000), ("a.js.gz", 999)] {
            std::fs::write(path(name), name).unwrap();
            date(&path(name), seconds);
        }
        let (mut cache, id) = cache(folder.path(), 10, 1000);
        let start = Moment::now();
        let forms = |resource: &Resource| -> Vec<Coding> {
            resource.encoded.iter().map(|(coding, _)| *coding).collect()
        };
        let found = resource(cache.find(id, b"a.js", false, start));
        assert_eq!(forms(&found), [Coding::Br]);
        assert_eq!(content(&found.encoded[0].1), "a.js.br");
        assert_eq!(found.encoded[0].1.headers["content-encoding"], "br");
        assert_eq!((cache.files, cache.memory_bytes), (2, 4 + 7));
        // A form that appears or goes is noticed when the file is looked at again.
        date(&path("a.js.gz"), 1001);
        let same = resource(cache.find(id, b"a.js", false, start));
        assert!(Rc::ptr_eq(&found, &same));
        let both = resource(cache.find(id, b"a.js", false, start + VALID_FOR));
        assert_eq!(forms(&both), [Coding::Br, Coding::Gzip]);
        let same = resource(cache.find(id, b"a.js", false, start + 2 * VALID_FOR));
        assert!(Rc::ptr_eq(&both, &same));
        date(&path("a.js"), 2000);
        let plain = resource(cache.find(id, b"a.js", false, start + 3 * VALID_FOR));
        assert!(forms(&plain).is_empty());
        assert!(!plain.plain.headers.contains_key("vary"));
        assert_eq!((cache.files, cache.memory_bytes), (1, 4));
    }

    #[test]
    fn the_unused_make_room() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c", "d"] {
            std::fs::write(folder.path().join(name), [0; 100]).unwrap();
        }
        let now = Moment::now();
        for (files_max, memory_bytes_max) in [(2, 1000), (10, 250)] {
            let (mut cache, id) = cache(folder.path(), files_max, memory_bytes_max);
            for name in ["a", "b", "a", "c", "a", "d"] {
                file(cache.find(id, name.as_bytes(), false, now));
            }
            let mut kept: Vec<_> = cache
                .slots
                .keys()
                .map(|key| String::from_utf8_lossy(&key[4..]).into_owned())
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
        let (mut cache, id) = cache(folder.path(), 10, 50);
        assert_eq!(file(cache.find(id, b"a", false, Moment::now())).len, 100);
        assert_eq!((cache.slots.len(), cache.memory_bytes), (0, 0));
    }
}
