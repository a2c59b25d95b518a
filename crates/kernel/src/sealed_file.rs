//! Bytes in memory that are a file as well, so that the kernel can send them without copying them
//! (`sendfile`).
//!
//! The code that writes them to a socket needs to know nothing of it: from any slice of them
//! [`find`] finds the file and the place in it. The file has no name and is sealed
//! (memfd_create(2)): its bytes never change, as those of a slice must not.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, retry_on_intr};

use crate::descriptors;
use crate::mapping::{CONSTANT, Mapping};

/// From here on `sendfile` costs no more than a copy (measured by hand with bodies of 16, 32 and
/// 100 KiB).
pub const WORTHWHILE_BYTES_MIN: usize = 16 << 10;
/// Sealed files at a time, each of which holds a descriptor: more than a site has files that are
/// both long and often requested.
const FILES_MAX: usize = 1024;
/// The part of the process's descriptors that sealed files may take; connections, backends and
/// files on the disk have the rest.
const DESCRIPTORS_SHARE: u64 = 8;

/// Those there are, by the address of their first byte.
static FILES: RwLock<BTreeMap<usize, Listed>> = RwLock::new(BTreeMap::new());

struct Listed {
    bytes: usize,
    file: Arc<OwnedFd>,
}

/// Bytes that never change, and the file they are.
#[derive(Debug)]
pub struct SealedFile {
    mapping: Mapping,
}

impl SealedFile {
    /// A file of its own with this content, which must not be empty. `QuotaExceeded` when there are
    /// too many of them; else what the kernel says, for instance that it is out of descriptors, or
    /// lacks such files.
    pub fn new(content: &[u8]) -> io::Result<Self> {
        let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
        let affordable =
            usize::try_from(descriptors::limit() / DESCRIPTORS_SHARE).unwrap_or(usize::MAX);
        if files.len() >= FILES_MAX.min(affordable) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let file = create()?;
        write_all(&file, content)?;
        fcntl_add_seals(&file, CONSTANT | SealFlags::GROW | SealFlags::SEAL)?;
        let mapping = Mapping::of_sealed(&file, content.len())?;
        let listed = Listed {
            bytes: content.len(),
            file: Arc::new(file),
        };
        files.insert(mapping.address(), listed);
        Ok(Self { mapping })
    }
}

impl AsRef<[u8]> for SealedFile {
    fn as_ref(&self) -> &[u8] {
        self.mapping.as_ref()
    }
}

impl Drop for SealedFile {
    // Before it is unmapped, when others may get its addresses.
    fn drop(&mut self) {
        let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
        files.remove(&self.mapping.address());
    }
}

/// A place in a sealed file, which it keeps open.
#[derive(Debug, Clone)]
pub struct FileSlice {
    file: Arc<OwnedFd>,
    offset: u64,
}

/// Where in a sealed file `slice` lies; none when it does not lie in one with all its bytes.
pub fn find(slice: &[u8]) -> Option<FileSlice> {
    // As the slice is borrowed no code can unmap what it lies in, so addresses are enough.
    let start = slice.as_ptr().addr();
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let (&address, listed) = files.range(..=start).next_back()?;
    let offset = start - address;
    let end = offset.checked_add(slice.len())?;
    (offset < listed.bytes && end <= listed.bytes).then(|| FileSlice {
        file: listed.file.clone(),
        offset: offset as u64,
    })
}

/// Sends up to `bytes` from `place` on to a socket that does not block; how many it took.
/// `WouldBlock` when it took none, `Unsupported` when the kernel does not do this, and the bytes
/// should be written from memory. On a broken connection it raises SIGPIPE, which Rust's programs
/// ignore.
pub fn send(socket: impl AsFd, place: &FileSlice, bytes: usize) -> io::Result<usize> {
    let mut offset = place.offset;
    match retry_on_intr(|| rustix::fs::sendfile(&socket, &place.file, Some(&mut offset), bytes)) {
        Ok(0) | Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
            Err(io::ErrorKind::Unsupported.into())
        }
        result => Ok(result?),
    }
}

fn create() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create("sooner", flags | MemfdFlags::NOEXEC_SEAL) {
        // Before Linux 6.3.
        Err(Errno::INVAL) => memfd_create("sooner", flags),
        result => result,
    }
}

fn write_all(file: &OwnedFd, mut content: &[u8]) -> io::Result<()> {
    while !content.is_empty() {
        match retry_on_intr(|| rustix::io::write(file, content))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => content = &content[written..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at ^ (at >> 8)) as u8).collect()
    }

    fn offset(slice: &[u8]) -> Option<u64> {
        find(slice).map(|place| place.offset)
    }

    #[test]
    fn holds_what_it_was_given() {
        for bytes in [1, 4096, 100_001] {
            let file = SealedFile::new(&content(bytes)).unwrap();
            assert_eq!(file.as_ref(), content(bytes));
        }
        assert!(SealedFile::new(&[]).is_err());
    }

    #[test]
    fn nobody_can_change_it() {
        let sealed = SealedFile::new(&content(5000)).unwrap();
        let place = find(sealed.as_ref()).unwrap();
        let file = place.file.as_ref();
        assert_eq!(rustix::io::pwrite(file, b"x", 0), Err(Errno::PERM));
        assert_eq!(rustix::io::pwrite(file, b"x", 5000), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(file, 4999), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(file, 5001), Err(Errno::PERM));
        assert_eq!(
            fcntl_add_seals(file, SealFlags::FUTURE_WRITE),
            Err(Errno::PERM)
        );
        assert_eq!(sealed.as_ref(), content(5000));
    }

    #[test]
    fn finds_slices_of_it_and_no_others() {
        let first = SealedFile::new(&content(10_000)).unwrap();
        let second = SealedFile::new(&content(5000)).unwrap();
        let all = first.as_ref();
        assert_eq!(offset(all), Some(0));
        assert_eq!(offset(&all[1234..5678]), Some(1234));
        assert_eq!(offset(&all[9999..]), Some(9999));
        assert_eq!(offset(second.as_ref()), Some(0));
        assert_eq!(offset(&content(10_000)), None);
        assert_eq!(offset(b"static"), None);
        // The end of one may be where another begins.
        assert!(offset(&all[10_000..]).is_none_or(|offset| offset == 0));
    }

    #[test]
    fn is_forgotten_when_it_is_dropped() {
        let sealed = SealedFile::new(&content(5000)).unwrap();
        let address = sealed.as_ref().as_ptr().addr();
        let place = find(sealed.as_ref()).unwrap();
        let is_listed = |file: &Arc<OwnedFd>| {
            let files = FILES.read().unwrap();
            files
                .get(&address)
                .is_some_and(|listed| Arc::ptr_eq(&listed.file, file))
        };
        assert!(is_listed(&place.file));
        drop(sealed);
        assert!(!is_listed(&place.file));
        assert_eq!(Arc::strong_count(&place.file), 1);
    }

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        server.set_nonblocking(true).unwrap();
        (server, client)
    }

    #[test]
    fn sends_a_part_of_it() {
        let (server, mut client) = pair();
        let sealed = SealedFile::new(&content(50_000)).unwrap();
        let place = find(&sealed.as_ref()[1000..]).unwrap();
        assert_eq!(send(&server, &place, 20_000).unwrap(), 20_000);
        let mut received = vec![0; 20_000];
        client.read_exact(&mut received).unwrap();
        assert_eq!(received, content(50_000)[1000..21_000]);
    }

    #[test]
    fn a_full_socket_takes_none() {
        let (server, client) = pair();
        let sealed = SealedFile::new(&content(200_000)).unwrap();
        let place = find(sealed.as_ref()).unwrap();
        let refused = loop {
            if let Err(error) = send(&server, &place, 200_000) {
                break error;
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(client);
    }

    #[test]
    fn what_the_kernel_will_not_send_is_told_apart() {
        let sealed = SealedFile::new(&content(100)).unwrap();
        let place = find(sealed.as_ref()).unwrap();
        let past_the_end = FileSlice {
            offset: 100,
            ..place
        };
        let (server, _client) = pair();
        let kind = send(&server, &past_the_end, 1).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::Unsupported);
    }
}
