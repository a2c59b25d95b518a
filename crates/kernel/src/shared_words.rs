//! The words of a BPF map that programs and this process share, read and written without a call.
#![expect(
    unsafe_code,
    reason = "this module checks the bounds and the life of a mapping, which the compiler cannot"
)]

use std::io;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

/// A map of the kind array, with flags that let it be mapped.
#[derive(Debug)]
pub struct SharedWords {
    address: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its addresses as a vector does; what is behind them is only used as atomics.
unsafe impl Send for SharedWords {}
// SAFETY: the same.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// The first `words` of 8 bytes of a map. The kernel refuses more than the map has.
    pub fn of_map(map: impl AsFd, words: usize) -> io::Result<SharedWords> {
        let bytes = (words * size_of::<u64>()).next_multiple_of(page_size());
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses addresses that nothing else has.
        let address = unsafe { mmap(null_mut(), bytes, protection, MapFlags::SHARED, map, 0) }?;
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(SharedWords { address, bytes })
    }

    /// The word of 8 bytes at this place, counted in words.
    pub fn load(&self, at: usize) -> u64 {
        let end = (at + 1) * size_of::<u64>();
        assert!(end <= self.bytes, "word {at} of {} bytes", self.bytes);
        // SAFETY: it lies in the mapping, which begins at a page, so that it is aligned; programs
        // write it whole.
        let word = unsafe { self.address.cast::<AtomicU64>().add(at).as_ref() };
        word.load(Ordering::Acquire)
    }

    /// The word of 4 bytes at this place, counted in such words.
    fn half(&self, at: usize) -> &AtomicU32 {
        let end = (at + 1) * size_of::<u32>();
        assert!(end <= self.bytes, "half {at} of {} bytes", self.bytes);
        // SAFETY: as above.
        unsafe { self.address.cast::<AtomicU32>().add(at).as_ref() }
    }

    /// The word of 4 bytes at this place, counted in such words.
    pub fn load_half(&self, at: usize) -> u32 {
        self.half(at).load(Ordering::Acquire)
    }

    /// Takes one from the word of 4 bytes at this place, counted in such words.
    pub fn decrease_half(&self, at: usize) {
        self.half(at).fetch_sub(1, Ordering::SeqCst);
    }

    /// Sets the word of 4 bytes at this place, counted in such words.
    pub fn store_half(&self, at: usize, value: u32) {
        self.half(at).store(value, Ordering::SeqCst);
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `of_map`, as long, and every borrow from it has ended. It cannot
        // fail for a whole mapping.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.bytes) };
    }
}
