//! Which files live in memory, where nothing waits for a disk.

use rustix::fs::fstatfs;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// What statfs(2) calls tmpfs and ramfs: their files have no disk to wait for.
const MEMORY_FILE_SYSTEMS: [u32; 2] = [0x0102_1994, 0x8584_58f6];
/// Devices that are remembered. The files of a server lie on a few.
const ON_DISK_MAX: usize = 64;

thread_local! {
    /// Devices of which the files do not live in memory, the one that was asked first in front.
    static ON_DISK: RefCell<VecDeque<u64>> = const { RefCell::new(VecDeque::new()) };
}

/// Whether a file on `device` (`st_dev`) lives in memory.
///
/// That is asked of a device once, because another machine may have to answer (NFS, FUSE). Of
/// memory it is asked each time, which never waits: the kernel gives the number of a file system
/// that is gone to the next one, and a disk must not be taken for memory. Memory that is taken for
/// a disk is only read by another thread.
pub fn is_in_memory(descriptor: &OwnedFd, device: u64) -> bool {
    if ON_DISK.with_borrow(|devices| devices.contains(&device)) {
        return false;
    }
    let Ok(system) = fstatfs(descriptor) else {
        return false;
    };
    // The numbers have 32 bits, whatever the system's type for them.
    let is_in_memory = MEMORY_FILE_SYSTEMS.contains(&(system.f_type as u32));
    if !is_in_memory {
        ON_DISK.with_borrow_mut(|devices| remember(devices, device));
    }
    is_in_memory
}

fn remember(devices: &mut VecDeque<u64>, device: u64) {
    if devices.len() == ON_DISK_MAX {
        devices.pop_front();
    }
    devices.push_back(device);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_asked_once_and_memory_each_time() {
        let test = "a_disk_is_asked_once_and_memory_each_time";
        let open = |path| std::fs::File::open(path).ok().map(OwnedFd::from);
        let (Some(memory), Some(other)) = (open("/dev/shm"), open("/sys")) else {
            return sooner_testbed::skip(test, "needs /dev/shm and /sys");
        };
        if fstatfs(&memory).unwrap().f_type as u32 != MEMORY_FILE_SYSTEMS[0] {
            return sooner_testbed::skip(test, "needs a tmpfs at /dev/shm");
        }
        // Numbers that no device of this machine has.
        let [first, second] = [u64::MAX, u64::MAX - 1];
        assert!(is_in_memory(&memory, first));
        assert!(!is_in_memory(&other, first));
        assert!(!is_in_memory(&memory, first), "it is remembered");
        assert!(is_in_memory(&memory, second));
        assert!(is_in_memory(&memory, second));
    }

    #[test]
    fn the_first_is_forgotten_for_one_more() {
        let mut devices = VecDeque::new();
        for device in 0..=ON_DISK_MAX as u64 {
            remember(&mut devices, device);
        }
        assert_eq!(devices.len(), ON_DISK_MAX);
        assert_eq!((devices.front(), devices.back()), (Some(&1), Some(&64)));
    }
}
