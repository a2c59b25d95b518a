//! The bytes of a sealed file as memory that is only read.
#![expect(
    unsafe_code,
    reason = "this module checks the bounds, the life and the constancy of a mapping, which the compiler cannot"
)]

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{NonNull, null_mut};

use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// With these no process can change the bytes of a file or cut it short, not even one that has it
/// open; they cannot be taken off.
pub const CONSTANT: SealFlags = SealFlags::WRITE.union(SealFlags::SHRINK);

/// A file's first bytes, mapped for reading.
#[derive(Debug)]
pub struct Mapping {
    address: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its addresses as a vector does, and nothing ever writes to them.
unsafe impl Send for Mapping {}
// SAFETY: the same; what is constant may be read by any number of threads.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of `file`, not none. Refused (`InvalidInput`) when the file is
    /// shorter or not sealed as [`CONSTANT`] says.
    pub fn of_sealed(file: &OwnedFd, bytes: usize) -> io::Result<Self> {
        let is_constant = fcntl_get_seals(file)?.contains(CONSTANT);
        let is_long_enough =
            u64::try_from(fstat(file)?.st_size).is_ok_and(|len| len >= bytes as u64);
        if bytes == 0 || !is_constant || !is_long_enough {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the kernel chooses addresses that nothing else has.
        let address = unsafe {
            mmap(
                null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                file,
                0,
            )
        }?;
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { address, bytes })
    }

    /// Where it begins.
    pub fn address(&self) -> usize {
        self.address.as_ptr().addr()
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped for reading until `self` is dropped, and the seals keep
        // them there and as they are.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `of_sealed`, as long, and every borrow from it has ended. It
        // cannot fail for a whole mapping.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};

    use super::*;

    fn file(content: &[u8], seals: SealFlags) -> OwnedFd {
        let file = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::io::write(&file, content).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    }

    #[test]
    fn maps_what_is_sealed() {
        let file = file(b"content", CONSTANT);
        let mapping = Mapping::of_sealed(&file, 7).unwrap();
        drop(file);
        assert_eq!(mapping.as_ref(), b"content");
    }

    #[test]
    fn refuses_what_may_change_or_is_not_there() {
        let kind = |file: &OwnedFd, bytes| Mapping::of_sealed(file, bytes).unwrap_err().kind();
        for seals in [SealFlags::empty(), SealFlags::WRITE, SealFlags::SHRINK] {
            assert_eq!(
                kind(&file(b"content", seals), 7),
                io::ErrorKind::InvalidInput
            );
        }
        let sealed = file(b"content", CONSTANT);
        assert_eq!(kind(&sealed, 8), io::ErrorKind::InvalidInput);
        assert_eq!(kind(&sealed, 0), io::ErrorKind::InvalidInput);
        let other = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        assert!(Mapping::of_sealed(&other, 1).is_err());
    }
}
