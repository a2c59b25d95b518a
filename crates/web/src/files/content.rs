//! The bytes of a file: in memory, or behind a descriptor.

use super::identity::Identity;
use super::root::FileError;
use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags};
use sooner_kernel::sealed_file::{self, SealedFile};
use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;

/// What memory is given out in where it is a file as well.
const PAGE_BYTES: u64 = 4096;

/// Where the bytes of a file are.
#[derive(Debug)]
pub enum Content {
    /// All of them are here; the descriptor is not needed any more. Those of a long file are in a
    /// [`SealedFile`], if that is possible, so that the kernel can send them without copying them.
    Memory(Bytes),
    /// In the page cache, or on the disk; and the version that is meant.
    Disk(OwnedFd, Identity),
}

impl Content {
    /// Reads the file into memory if it is no longer than `memory_bytes_max`, and is still the
    /// version `identity` when it has been read.
    pub fn new(
        descriptor: OwnedFd,
        identity: &Identity,
        memory_bytes_max: u64,
    ) -> Result<Self, FileError> {
        if identity.len() > memory_bytes_max {
            return Ok(Self::Disk(descriptor, *identity));
        }
        Ok(match read_whole(&descriptor, identity)? {
            Some(content) => Self::Memory(kept(content)),
            None => Self::Disk(descriptor, *identity),
        })
    }

    /// How many bytes of memory it takes.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Memory(bytes) if is_long(bytes) => {
                (bytes.len() as u64).next_multiple_of(PAGE_BYTES)
            }
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk(..) => 0,
        }
    }

    /// Whether what it would give now is still the version that was opened. No system call for what
    /// is in memory.
    pub fn is_current(&self) -> bool {
        match self {
            Self::Memory(_) => true,
            Self::Disk(descriptor, identity) => is_version(descriptor, identity),
        }
    }

    /// Reads up to `len` bytes from `offset` if that needs no disk, else nothing. Fails with
    /// `UnexpectedEof` when the file has been changed since it was opened.
    pub fn read_cached(&self, offset: u64, len: usize) -> io::Result<Option<Bytes>> {
        let Self::Disk(descriptor, identity) = self else {
            return self.read_at(offset, len).map(Some);
        };
        let mut buffer = vec![0; len];
        match retried(|| {
            let buffers = &mut [IoSliceMut::new(&mut buffer)];
            rustix::io::preadv2(descriptor, buffers, offset, ReadWriteFlags::NOWAIT)
        }) {
            Ok(count) => {
                buffer.truncate(count);
                if_unchanged(buffer, descriptor, identity).map(Some)
            }
            Err(Errno::AGAIN) => Ok(None),
            // File systems that cannot tell are mostly those that live in memory.
            Err(Errno::OPNOTSUPP) => self.read_at(offset, len).map(Some),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads like [`Self::read_cached`], and waits for the disk.
    pub fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let (descriptor, identity) = match self {
            Self::Disk(descriptor, identity) => (descriptor, identity),
            Self::Memory(bytes) => {
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                return Ok(bytes.slice(start..start.saturating_add(len).min(bytes.len())));
            }
        };
        let mut buffer = Vec::with_capacity(len);
        read_into(&mut buffer, descriptor, offset)?;
        // A vector may have more room than was requested.
        buffer.truncate(len);
        if_unchanged(buffer, descriptor, identity)
    }
}

/// What was read, if it is of the version that is meant. Asked after the read: the system sets the
/// date of a change before it changes the first byte.
fn if_unchanged(read: Vec<u8>, descriptor: &OwnedFd, identity: &Identity) -> io::Result<Bytes> {
    if read.is_empty() || !is_version(descriptor, identity) {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file has been changed while it was being sent",
        ));
    }
    Ok(read.into())
}

fn is_version(descriptor: &OwnedFd, identity: &Identity) -> bool {
    rustix::fs::fstat(descriptor).is_ok_and(|stat| Identity::of(&stat) == *identity)
}

/// The content, or nothing when it has changed while it was read.
fn read_whole(descriptor: &OwnedFd, identity: &Identity) -> Result<Option<Vec<u8>>, FileError> {
    let len = identity.len() as usize;
    let mut content = Vec::with_capacity(len);
    while content.len() < len {
        let offset = content.len() as u64;
        if read_into(&mut content, descriptor, offset)? == 0 {
            return Ok(None);
        }
    }
    let is_unchanged = content.len() == len && is_version(descriptor, identity);
    Ok(is_unchanged.then_some(content))
}

/// The bytes as they are kept. Where no sealed file can be had (no descriptors left, an old kernel)
/// they are sent from ordinary memory.
pub fn kept(content: Vec<u8>) -> Bytes {
    if is_long(&content)
        && let Ok(file) = SealedFile::new(&content)
    {
        return Bytes::from_owner(file);
    }
    content.into()
}

/// Whether it pays to keep the bytes as a file.
fn is_long(content: &[u8]) -> bool {
    content.len() >= sealed_file::WORTHWHILE_BYTES_MIN
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
            assert_eq!(matches!(content, Content::Memory(_)), is_in_memory);
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
            assert_eq!(content.read_cached(0, 4).unwrap_err().kind(), kind);
        }
    }

    #[test]
    fn a_file_that_is_removed_can_be_read_on() {
        let (file, content) = open(0);
        file.close().unwrap();
        assert!(content.is_current());
        assert_eq!(content.read_at(4, 6).unwrap(), "456789");
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_not_kept() {
        let (file, _) = open(10);
        let descriptor = OwnedFd::from(file.reopen().unwrap());
        let old = Identity::of(&rustix::fs::fstat(&descriptor).unwrap());
        file.as_file().set_len(20).unwrap();
        assert!(matches!(
            Content::new(descriptor, &old, 10),
            Ok(Content::Disk(..))
        ));
    }
}
