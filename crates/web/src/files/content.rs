//! The bytes of a file: in memory, or behind a descriptor.

use super::file_systems::is_in_memory;
use super::identity::Identity;
use super::root::FileError;
use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags};
use sooner_kernel::sealed_file::{self, SealedFile};
use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What memory is given out in where it is a file as well.
const PAGE_BYTES: u64 = 4096;

/// Where the bytes of a file are.
#[derive(Debug)]
pub enum Content {
    /// All of them are here; the descriptor is not needed any more. Those of a long file are in a
    /// [`SealedFile`], if that is possible, so that the kernel can send them without copying them.
    Memory(Bytes),
    /// In the page cache, or on the disk.
    Disk(OnDisk),
    /// On the disk; here from the first read on that waits for it.
    Wanted(WantedFile),
}

/// A file that comes into memory when it is first read.
#[derive(Debug)]
pub struct WantedFile {
    len: u64,
    /// There until its bytes are: nothing holds a descriptor longer than it is needed.
    file: Mutex<Option<Arc<OnDisk>>>,
    bytes: OnceLock<Bytes>,
}

/// A file that is read on demand.
#[derive(Debug)]
pub struct OnDisk {
    descriptor: OwnedFd,
    /// The version that is meant.
    identity: Identity,
    /// Whether it can be read at once though its file system does not say so.
    never_waits: bool,
}

/// What became of an attempt to read a file without waiting for the disk.
#[derive(Debug)]
enum Attempt {
    /// All of it.
    Whole(Vec<u8>),
    /// It has another length by now.
    Changed,
    /// The disk is needed.
    Waits,
}

impl Content {
    /// Reads the file into memory if it is no longer than `memory_bytes_max`, and is still the
    /// version `identity` when it has been read. Never waits for the disk: the bytes that are there
    /// come into memory when they are first read.
    pub fn new(
        descriptor: OwnedFd,
        identity: &Identity,
        memory_bytes_max: u64,
    ) -> Result<Self, FileError> {
        let never_waits = is_in_memory(&descriptor, identity.device());
        let file = OnDisk {
            descriptor,
            identity: *identity,
            never_waits,
        };
        if identity.len() > memory_bytes_max {
            return Ok(Self::Disk(file));
        }
        Ok(match file.read_whole_cached()? {
            Attempt::Whole(content) if file.is_current() => Self::Memory(kept(content)),
            Attempt::Whole(_) | Attempt::Changed => Self::Disk(file),
            Attempt::Waits => Self::Wanted(WantedFile::new(file)),
        })
    }

    /// All bytes, where they are in memory.
    pub fn in_memory(&self) -> Option<&Bytes> {
        match self {
            Self::Memory(bytes) => Some(bytes),
            Self::Disk(_) => None,
            Self::Wanted(wanted) => wanted.bytes.get(),
        }
    }

    /// How many bytes of memory it takes, or will take.
    pub fn memory_bytes(&self) -> u64 {
        let len = match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk(_) => return 0,
            Self::Wanted(wanted) => wanted.len,
        };
        if is_long(len) {
            len.next_multiple_of(PAGE_BYTES)
        } else {
            len
        }
    }

    /// Whether what it would give now is still the version that was opened. No system call for what
    /// is in memory.
    pub fn is_current(&self) -> bool {
        match self {
            Self::Memory(_) => true,
            Self::Disk(file) => file.is_current(),
            Self::Wanted(wanted) => wanted.is_current(),
        }
    }

    /// Reads up to `len` bytes from `offset` if that needs no disk, else nothing. Fails with
    /// `UnexpectedEof` when the file has been changed since it was opened.
    pub fn read_cached(&self, offset: u64, len: usize) -> io::Result<Option<Bytes>> {
        match (self.in_memory(), self) {
            (Some(bytes), _) | (None, Self::Memory(bytes)) => Ok(Some(part(bytes, offset, len))),
            (None, Self::Disk(file)) => file.read_cached(offset, len),
            // One read that waits brings all of it into memory.
            (None, Self::Wanted(_)) => Ok(None),
        }
    }

    /// Reads like [`Self::read_cached`], and waits for the disk.
    pub fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        match (self.in_memory(), self) {
            (Some(bytes), _) | (None, Self::Memory(bytes)) => Ok(part(bytes, offset, len)),
            (None, Self::Disk(file)) => file.read_at(offset, len),
            (None, Self::Wanted(wanted)) => Ok(part(wanted.read()?, offset, len)),
        }
    }
}

impl WantedFile {
    fn new(file: OnDisk) -> Self {
        Self {
            len: file.identity.len(),
            file: Mutex::new(Some(Arc::new(file))),
            bytes: OnceLock::new(),
        }
    }

    fn is_current(&self) -> bool {
        // Where there is no file any more, its bytes are here.
        self.bytes.get().is_some() || self.file().as_ref().is_none_or(|file| file.is_current())
    }

    /// Reads all of it, and waits for the disk, unless others have meanwhile.
    fn read(&self) -> io::Result<&Bytes> {
        // Not locked while it is read: the event loop asks whether it is current.
        let file = self.file().clone();
        if let Some(file) = file {
            let content = file.read_whole()?;
            // Several may read it at a time: the same version, as it says. One of them keeps it.
            self.bytes.get_or_init(|| kept(content));
            self.file().take();
        }
        Ok(self.bytes.get().expect("set before the file goes"))
    }

    fn file(&self) -> MutexGuard<'_, Option<Arc<OnDisk>>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OnDisk {
    fn is_current(&self) -> bool {
        let stat = rustix::fs::fstat(&self.descriptor);
        stat.is_ok_and(|stat| Identity::of(&stat) == self.identity)
    }

    fn read_cached(&self, offset: u64, len: usize) -> io::Result<Option<Bytes>> {
        let mut buffer = vec![0; len];
        match self.read_into_cached(&mut buffer, offset) {
            Ok(count) => {
                buffer.truncate(count);
                Ok(Some(self.if_unchanged(buffer)?.into()))
            }
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let mut buffer = Vec::with_capacity(len);
        read_into(&mut buffer, &self.descriptor, offset)?;
        // A vector may have more room than was requested.
        buffer.truncate(len);
        Ok(self.if_unchanged(buffer)?.into())
    }

    /// Reads all of it, as far as that needs no disk.
    fn read_whole_cached(&self) -> rustix::io::Result<Attempt> {
        let mut content = vec![0; self.identity.len() as usize];
        let mut read_bytes = 0;
        while read_bytes < content.len() {
            match self.read_into_cached(&mut content[read_bytes..], read_bytes as u64) {
                Ok(0) => return Ok(Attempt::Changed),
                Ok(count) => read_bytes += count,
                Err(Errno::AGAIN) => return Ok(Attempt::Waits),
                Err(error) => return Err(error),
            }
        }
        Ok(Attempt::Whole(content))
    }

    /// Reads all of it, and waits for the disk.
    fn read_whole(&self) -> io::Result<Vec<u8>> {
        let len = self.identity.len() as usize;
        let mut content = Vec::with_capacity(len);
        while content.len() < len {
            let offset = content.len() as u64;
            if read_into(&mut content, &self.descriptor, offset)? == 0 {
                return Err(changed());
            }
        }
        content.truncate(len);
        self.if_unchanged(content)
    }

    /// Fails with `AGAIN` where it would wait for the disk, or might: a file system that cannot tell
    /// is as well one of a container (overlayfs) or of another machine (NFS).
    fn read_into_cached(&self, buffer: &mut [u8], offset: u64) -> rustix::io::Result<usize> {
        let descriptor = &self.descriptor;
        let read = retried(|| {
            let buffers = &mut [IoSliceMut::new(&mut *buffer)];
            rustix::io::preadv2(descriptor, buffers, offset, ReadWriteFlags::NOWAIT)
        });
        match read {
            Err(Errno::OPNOTSUPP) if self.never_waits => {
                retried(|| rustix::io::pread(descriptor, &mut *buffer, offset))
            }
            Err(Errno::OPNOTSUPP) => Err(Errno::AGAIN),
            read => read,
        }
    }

    /// What was read, if it is of the version that is meant. Asked after the read: the system sets
    /// the date of a change before it changes the first byte.
    fn if_unchanged(&self, read: Vec<u8>) -> io::Result<Vec<u8>> {
        if read.is_empty() || !self.is_current() {
            return Err(changed());
        }
        Ok(read)
    }
}

fn changed() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the file has been changed while it was being sent",
    )
}

/// Up to `len` of `bytes`, from `offset`.
fn part(bytes: &Bytes, offset: u64, len: usize) -> Bytes {
    let start = usize::try_from(offset)
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    bytes.slice(start..start.saturating_add(len).min(bytes.len()))
}

/// The bytes as they are kept. Where no sealed file can be had (no descriptors left, an old kernel)
/// they are sent from ordinary memory.
pub fn kept(content: Vec<u8>) -> Bytes {
    if is_long(content.len() as u64)
        && let Ok(file) = SealedFile::new(&content)
    {
        return Bytes::from_owner(file);
    }
    content.into()
}

/// Whether it pays to keep so many bytes as a file.
fn is_long(len: u64) -> bool {
    len >= sealed_file::WORTHWHILE_BYTES_MIN as u64
}

/// Reads as much as `buffer` has room for.
fn read_into(buffer: &mut Vec<u8>, descriptor: &OwnedFd, offset: u64) -> rustix::io::Result<usize> {
    retried(|| rustix::io::pread(descriptor, rustix::buffer::spare_capacity(buffer), offset))
}

fn retried<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::time::{Duration, SystemTime};

    fn open(memory_bytes_max: u64) -> (tempfile::NamedTempFile, Content) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0123456789").unwrap();
        let content = content_of(&file, memory_bytes_max);
        (file, content)
    }

    fn content_of(file: &tempfile::NamedTempFile, memory_bytes_max: u64) -> Content {
        let descriptor = OwnedFd::from(file.reopen().unwrap());
        let identity = Identity::of(&rustix::fs::fstat(&descriptor).unwrap());
        Content::new(descriptor, &identity, memory_bytes_max).unwrap()
    }

    #[test]
    fn reads_from_memory_and_from_disk_alike() {
        for (memory_bytes_max, is_in_memory) in [(10, true), (9, false)] {
            let (_file, content) = open(memory_bytes_max);
            content.read_at(0, 1).unwrap();
            assert_eq!(content.in_memory().is_some(), is_in_memory);
            assert_eq!(content.read_at(3, 4).unwrap(), "3456");
            assert_eq!(content.read_at(8, 64).unwrap(), "89");
            assert!(
                content
                    .read_cached(3, 4)
                    .unwrap()
                    .is_none_or(|bytes| bytes == "3456")
            );
        }
    }

    #[test]
    fn long_ones_can_be_sent_as_a_file() {
        for (len, is_file, memory_bytes) in [
            (sealed_file::WORTHWHILE_BYTES_MIN - 1, false, 16_383),
            (sealed_file::WORTHWHILE_BYTES_MIN, true, 16_384),
            (100_000, true, 102_400),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let bytes: Vec<u8> = (0..len).map(|at| (at ^ (at >> 8)) as u8).collect();
            std::fs::write(file.path(), &bytes).unwrap();
            let content = content_of(&file, 1 << 20);
            assert_eq!(content.memory_bytes(), memory_bytes);
            content.read_at(0, 1).unwrap();
            assert_eq!(content.memory_bytes(), memory_bytes);
            let part = content.read_at(100, len).unwrap();
            assert_eq!(part, bytes[100..]);
            assert_eq!(sealed_file::find(&part).is_some(), is_file);
        }
    }

    #[test]
    fn no_byte_of_another_version() {
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let changes: [fn(&std::fs::File); 4] = [
            |file| file.set_len(4).unwrap(),
            |file| file.set_len(20).unwrap(),
            |file| file.write_all_at(b"x", 9).unwrap(),
            |file| file.set_len(0).unwrap(),
        ];
        for change in changes {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), "0123456789").unwrap();
            // Far in the past, so that any change shows however coarse the clock is.
            file.as_file().set_modified(date).unwrap();
            let content = content_of(&file, 0);
            assert_eq!(content.read_at(0, 4).unwrap(), "0123");
            assert!(content.is_current());
            change(file.as_file());
            assert!(!content.is_current());
            let kind = io::ErrorKind::UnexpectedEof;
            assert_eq!(content.read_at(0, 4).unwrap_err().kind(), kind);
            // Where the file system cannot tell whether it would wait, nothing is read at all.
            let cached = content.read_cached(0, 4);
            let is_refused = |error: io::Error| error.kind() == kind;
            assert!(cached.map_or_else(is_refused, |read| read.is_none()));
        }
    }

    #[test]
    fn a_file_that_is_removed_can_be_read_on() {
        let (file, content) = open(0);
        file.close().unwrap();
        assert!(content.is_current());
        assert_eq!(content.read_at(4, 6).unwrap(), "456789");
    }

    /// A file of a file system that says of no read whether it would wait, as overlayfs, NFS and
    /// FUSE do not.
    fn open_uncertain(memory_bytes_max: u64) -> Option<(Vec<u8>, Content)> {
        let path = "/sys/kernel/notes";
        let (Ok(all), Ok(file)) = (std::fs::read(path), std::fs::File::open(path)) else {
            eprintln!("skipped: open_uncertain: {path} cannot be read here; mount sysfs");
            return None;
        };
        let descriptor = OwnedFd::from(file);
        let identity = Identity::of(&rustix::fs::fstat(&descriptor).unwrap());
        assert_eq!(identity.len(), all.len() as u64);
        let content = Content::new(descriptor, &identity, memory_bytes_max).unwrap();
        Some((all, content))
    }

    #[test]
    fn what_may_have_to_wait_is_not_read_at_once() {
        let Some((all, content)) = open_uncertain(10) else {
            return;
        };
        assert!(content.read_cached(3, 20).unwrap().is_none());
        assert_eq!(content.read_at(3, 20).unwrap(), all[3..23]);
        assert!(content.read_cached(3, 20).unwrap().is_none());
    }

    #[test]
    fn a_small_file_that_may_have_to_wait_is_in_memory_once_it_was_read() {
        let Some((all, content)) = open_uncertain(1 << 20) else {
            return;
        };
        assert_eq!(content.in_memory(), None);
        assert!(content.read_cached(3, 20).unwrap().is_none());
        assert!(content.is_current());
        let memory_bytes = content.memory_bytes();
        assert_eq!(content.read_at(3, 20).unwrap(), all[3..23]);
        assert_eq!(content.in_memory().unwrap(), &all[..]);
        assert_eq!(content.read_cached(3, 20).unwrap().unwrap(), all[3..23]);
        assert_eq!(content.memory_bytes(), memory_bytes);
        assert!(content.is_current());
        let Content::Wanted(wanted) = &content else {
            panic!("{content:?}");
        };
        assert!(wanted.file().is_none(), "its descriptor is closed");
    }

    #[test]
    fn those_who_read_it_first_at_the_same_time_share_its_bytes() {
        let Some((all, content)) = open_uncertain(1 << 20) else {
            return;
        };
        let read = || content.read_at(0, all.len()).unwrap();
        let parts = std::thread::scope(|scope| {
            let readers = [(); 8].map(|()| scope.spawn(read));
            readers.map(|reader| reader.join().unwrap())
        });
        for part in &parts {
            assert_eq!(part, &all[..]);
            assert_eq!(part.as_ptr(), parts[0].as_ptr());
        }
    }

    #[test]
    fn files_that_live_in_memory_are_read_at_once() {
        let Ok(mut file) = tempfile::NamedTempFile::new_in("/dev/shm") else {
            eprintln!("skipped: files_that_live_in_memory_are_read_at_once: no /dev/shm to write");
            return;
        };
        std::io::Write::write_all(&mut file, b"0123456789").unwrap();
        assert_eq!(content_of(&file, 10).in_memory().unwrap(), "0123456789");
        let content = content_of(&file, 9);
        assert_eq!(content.read_cached(3, 4).unwrap().unwrap(), "3456");
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_not_kept() {
        let (file, _) = open(10);
        let descriptor = OwnedFd::from(file.reopen().unwrap());
        let old = Identity::of(&rustix::fs::fstat(&descriptor).unwrap());
        file.as_file().set_len(20).unwrap();
        let content = Content::new(descriptor, &old, 10).unwrap();
        assert!(!matches!(content, Content::Memory(_)));
        // Wanted, where the file system cannot tell whether it would wait.
        let kind = io::ErrorKind::UnexpectedEof;
        assert_eq!(content.read_at(0, 4).unwrap_err().kind(), kind);
        assert_eq!(content.in_memory(), None);
    }
}
