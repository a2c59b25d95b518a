//! The calls of ours that no safe wrapper has: an integer by ioctl, an option's bytes, a thread's
//! scheduling policy, a descriptor on tokio's reactor, users and becoming one.
#![expect(
    unsafe_code,
    reason = "ioctl, getsockopt, scheduling and the ids of a whole process, which rustix and socket2 do not have; tokio asks for a promise"
)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Asks a socket for a count of bytes by `ioctl`; `OPCODE` is one of `SIOCOUTQ` and `SIOCOUTQNSD`.
pub fn ioctl_count<const OPCODE: u32>(fd: impl AsFd) -> io::Result<u32> {
    // SAFETY: for both opcodes the kernel writes exactly one int through the pointer, or fails and writes nothing.
    let count: libc::c_int =
        unsafe { rustix::ioctl::ioctl(fd, rustix::ioctl::Getter::<OPCODE, libc::c_int>::new()) }?;
    Ok(u32::try_from(count).unwrap_or(0))
}

/// Reads a socket option into `buffer`, gives how many bytes the kernel wrote.
pub fn socket_option(fd: impl AsFd, level: i32, name: i32, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(buffer.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the buffer is valid for `length` bytes of writing, the kernel writes no more than that, and any bytes are valid u8.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            buffer.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(buffer.len().min(length as usize))
}

/// Sets the calling thread's scheduling policy and static priority.
pub fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the kernel only reads the structure; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the current tokio runtime watch a descriptor for being readable.
pub fn watch_readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned by what is returned, which closes it only after it has been taken off the reactor.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// User and group id of the user of this name, from wherever this machine keeps its users; none if there is none.
pub fn user_ids(name: &CStr) -> io::Result<Option<(u32, u32)>> {
    let mut buffer: Vec<libc::c_char> = vec![0; 1 << 10];
    loop {
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
        let mut found = std::ptr::null_mut();
        // SAFETY: the name ends with a NUL, the buffer is valid for its length, and the two results are valid for writing.
        let error = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &mut found,
            )
        };
        match error {
            // Entries with very many members; the bound is far above any.
            libc::ERANGE if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 4, 0),
            0 | libc::ENOENT | libc::ESRCH if found.is_null() => return Ok(None),
            0 => {
                // SAFETY: success and a pointer that is not null: it points to `entry`, which has been filled.
                let entry = unsafe { entry.assume_init() };
                return Ok(Some((entry.pw_uid, entry.pw_gid)));
            }
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Gives all threads the groups and ids of a user; needs `CAP_SETGID` and `CAP_SETUID`, and stops at the first refusal.
pub fn become_user(name: &CStr, uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: the name ends with a NUL and is only read.
    checked(unsafe { libc::initgroups(name.as_ptr(), gid) })?;
    // SAFETY: no memory is involved.
    checked(unsafe { libc::setgid(gid) })?;
    // SAFETY: no memory is involved.
    checked(unsafe { libc::setuid(uid) })
}

fn checked(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
