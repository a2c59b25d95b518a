//! The calls of ours that no safe wrapper has: an integer by ioctl, a TUN device's name, an
//! option's bytes or int, a thread's scheduling policy, a module of the kernel, a descriptor on
//! tokio's reactor, inherited descriptors, becoming another user, and BPF.
#![expect(
    unsafe_code,
    reason = "ioctl, getsockopt, scheduling, modules, the ids of a whole process and bpf, which rustix and socket2 do not have; tokio asks for a promise"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Asks a socket for a count of bytes by `ioctl`; `OPCODE` is one of `SIOCOUTQ` and `SIOCOUTQNSD`.
pub fn ioctl_count<const OPCODE: u32>(fd: impl AsFd) -> io::Result<u32> {
    // SAFETY: for both opcodes the kernel writes exactly one int through the pointer, or fails and
    // writes nothing.
    let count: libc::c_int =
        unsafe { rustix::ioctl::ioctl(fd, rustix::ioctl::Getter::<OPCODE, libc::c_int>::new()) }?;
    Ok(u32::try_from(count).unwrap_or(0))
}

/// What `TUNSETIFF` reads: the first fields of the kernel's `struct ifreq`, and as many bytes as
/// that has at most.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    unused: [u8; 22],
}

/// Makes an open `/dev/net/tun` the other end of a new device of that name, which ends with zeros.
pub fn set_tun_interface(
    fd: impl AsFd,
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
) -> io::Result<()> {
    const TUNSETIFF: rustix::ioctl::Opcode = rustix::ioctl::opcode::write::<libc::c_int>(b'T', 202);
    let mut request = InterfaceRequest {
        name,
        flags,
        unused: [0; 22],
    };
    // SAFETY: the kernel reads and writes no more than a `struct ifreq`, which is at most as long
    // as the request, and any bytes are valid for all of its fields.
    unsafe {
        rustix::ioctl::ioctl(
            fd,
            rustix::ioctl::Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request),
        )
    }?;
    Ok(())
}

/// What `SIOCETHTOOL` reads: an interface's name, and where the question lies.
#[repr(C)]
struct EthtoolRequest {
    name: [u8; libc::IFNAMSIZ],
    question: *mut EthtoolSettings,
    unused: [u8; 16],
}

/// `struct ethtool_cmd`.
#[repr(C)]
#[derive(Default)]
struct EthtoolSettings {
    command: u32,
    supported_advertised: [u32; 2],
    speed: u16,
    ports: [u8; 6],
    packets_max: [u32; 2],
    speed_high: u16,
    rest: [u8; 14],
}

/// What a device of the calling thread's network namespace says it carries, Mbit/s; all ones where
/// it does not know.
pub fn ethtool_speed_mbit(name: &str) -> io::Result<u32> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    const ETHTOOL_GSET: u32 = 1;
    let socket = std::net::UdpSocket::bind(("127.0.0.1", 0))
        .or_else(|_| std::net::UdpSocket::bind(("::1", 0)))?;
    let mut settings = EthtoolSettings {
        command: ETHTOOL_GSET,
        ..EthtoolSettings::default()
    };
    let mut request = EthtoolRequest {
        name: [0; libc::IFNAMSIZ],
        question: &raw mut settings,
        unused: [0; 16],
    };
    let bytes = name.as_bytes();
    // The last byte stays zero.
    let length = bytes.len().min(libc::IFNAMSIZ - 1);
    request.name[..length].copy_from_slice(&bytes[..length]);
    // SAFETY: the kernel reads and writes one `struct ethtool_cmd` through the pointer in the
    // request, which is as long as `settings` and lives until the call returns; any bytes are valid
    // for all of its fields.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })?;
    Ok(u32::from(settings.speed_high) << 16 | u32::from(settings.speed))
}

/// Reads a socket option into `buffer`, gives how many bytes the kernel wrote.
pub fn socket_option(fd: impl AsFd, level: i32, name: i32, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(buffer.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the buffer is valid for `length` bytes of writing, the kernel writes no more than
    // that, and any bytes are valid u8.
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

/// Sets a socket option that is an int.
pub fn set_socket_option(
    fd: impl AsFd,
    level: i32,
    name: i32,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the kernel reads exactly one int through the pointer, which is valid for that.
    checked(unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
}

/// Which of these sockets the peer sends nothing more on, or has reset. A number that is no
/// descriptor is none of them.
pub fn peers_gone(sockets: &[RawFd]) -> io::Result<Vec<bool>> {
    let asked = |socket: &RawFd| libc::pollfd {
        fd: *socket,
        events: libc::POLLRDHUP,
        revents: 0,
    };
    let mut polled: Vec<libc::pollfd> = sockets.iter().map(asked).collect();
    // SAFETY: the pointer and the count are those of a vector that outlives the call, which waits
    // for nothing; the kernel only looks at the descriptors.
    let count = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    let gone = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;
    Ok(polled.iter().map(|one| one.revents & gone != 0).collect())
}

/// Moves the calling thread into a network namespace made for it.
pub fn leave_network() -> io::Result<()> {
    // SAFETY: of all that threads of a process share, only the file descriptor table could make
    // this unsound, and that stays shared.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }?;
    Ok(())
}

/// Loads a module of the kernel from its file, without parameters.
pub fn load_module(file: impl AsFd) -> io::Result<()> {
    let file = file.as_fd().as_raw_fd();
    // SAFETY: the kernel only reads the parameters, which end with a zero, and the file.
    let done = unsafe { libc::syscall(libc::SYS_finit_module, file, c"".as_ptr(), 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Sets a thread's scheduling policy and static priority; 0 is the calling one.
pub fn set_scheduler(
    thread: libc::pid_t,
    policy: libc::c_int,
    priority: libc::c_int,
) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the kernel only reads the structure.
    checked(unsafe { libc::sched_setscheduler(thread, policy, &parameters) })
}

/// Sets a thread's ordinary policy and its nice value. What it begins has a nice value of 0 at the
/// lowest.
pub fn set_ordinary_attributes(
    thread: libc::pid_t,
    policy: libc::c_int,
    nice: i32,
) -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy.cast_unsigned(),
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice: nice,
        sched_priority: 0,
        // The usual slice.
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel only reads the structure, as long as its first field says.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            thread,
            &raw const attributes,
            0 as libc::c_uint,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A thread's scheduling policy with its flags, and its static priority.
pub fn scheduler(thread: libc::pid_t) -> io::Result<(libc::c_int, libc::c_int)> {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel writes one structure through the pointer, which is valid for that.
    let (policy, read) = unsafe {
        (
            libc::sched_getscheduler(thread),
            libc::sched_getparam(thread, &raw mut parameters),
        )
    };
    match (policy, read) {
        (0.., 0) => Ok((policy, parameters.sched_priority)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the current tokio runtime watch a descriptor for being readable.
pub fn watch_readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned by what is returned, which closes it only after it has been
    // taken off the reactor.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// Takes over `count` descriptors from `first` on, which the process that started this one left
/// open for it; `None` at the second call. They are closed in programs that this one starts. Fails,
/// and takes none, when one of them is not open.
///
/// The caller must know from the environment that they are meant for this process.
pub fn inherit(first: RawFd, count: usize) -> io::Result<Option<Vec<OwnedFd>>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let numbers = || (first..).take(count);
    for number in numbers() {
        // SAFETY: no memory is involved; the call fails for a number that is no descriptor.
        if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(None);
    }
    // SAFETY: they are open, they were opened before this process began, so nothing in it owns
    // them, and they are taken over once.
    let owned = numbers().map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    Ok(Some(owned.collect()))
}

/// Sets the supplementary groups of all threads of this process.
pub fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the pointer is valid for reading as many groups as are announced.
    checked(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })
}

/// Sets the real, effective and saved group of all threads of this process.
pub fn set_group(gid: u32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::setresgid(gid, gid, gid) })
}

/// Sets the real, effective and saved user of all threads of this process.
pub fn set_user(uid: u32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::setresuid(uid, uid, uid) })
}

/// The beginning of `union bpf_attr` for loading a program; the rest of it may be left out.
#[repr(C)]
struct LoadProgram {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
}

/// The beginning of `union bpf_attr` for attaching one.
#[repr(C)]
struct CreateLink {
    program: u32,
    target: u32,
    attach_kind: u32,
    flags: u32,
}

/// Loads a BPF program of type sock_ops; the kernel refuses one it cannot prove harmless.
pub fn load_sock_ops(instructions: &[u64]) -> io::Result<OwnedFd> {
    const BPF_PROG_LOAD: libc::c_long = 5;
    const BPF_PROG_TYPE_SOCK_OPS: u32 = 13;
    let attributes = LoadProgram {
        kind: BPF_PROG_TYPE_SOCK_OPS,
        instruction_count: u32::try_from(instructions.len()).unwrap_or(u32::MAX),
        instructions: instructions.as_ptr() as u64,
        license: c"MIT".as_ptr() as u64,
    };
    // SAFETY: both pointers are valid for reading as much as the kernel reads: the announced
    // instructions, a text up to its zero.
    unsafe { bpf(BPF_PROG_LOAD, &attributes) }
}

/// Attaches a program of type sock_ops to a control group for as long as what is returned is open.
pub fn attach_sock_ops(program: RawFd, group: RawFd) -> io::Result<OwnedFd> {
    const BPF_LINK_CREATE: libc::c_long = 28;
    const BPF_CGROUP_SOCK_OPS: u32 = 3;
    let attributes = CreateLink {
        program: program.cast_unsigned(),
        target: group.cast_unsigned(),
        attach_kind: BPF_CGROUP_SOCK_OPS,
        flags: 0,
    };
    // SAFETY: the structure holds numbers only; the kernel refuses those that are no descriptors of
    // the right kind.
    unsafe { bpf(BPF_LINK_CREATE, &attributes) }
}

/// A call of bpf(2) that answers with a descriptor.
///
/// # Safety
/// What the attributes point to must be valid for what the command reads and writes through it.
unsafe fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    let pointer: *const T = attributes;
    // SAFETY: the structure is valid for reading its size; the caller vouches for what it points
    // to.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, size_of::<T>()) };
    match RawFd::try_from(result) {
        // SAFETY: the kernel has just opened it for this process, with close-on-exec, and no other
        // code knows of it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ticks of the clock in which the kernel tells when a process began, in a second.
pub fn ticks_per_second() -> u64 {
    // SAFETY: takes and gives numbers.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(0).max(1)
}

/// Ends this process as a write to a pipe without a reader does, though its runtime ignores that
/// signal; returns where it could not.
pub fn raise_sigpipe() {
    // SAFETY: the default action is no function of ours, and raise takes a number.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::raise(libc::SIGPIPE);
    }
}

/// Signals that a thread does not take.
pub struct SignalMask(libc::sigset_t);

/// Lets all signals of the calling thread wait; gives those that did before.
pub fn block_signals() -> io::Result<SignalMask> {
    let mut all = SignalMask(no_signals());
    // SAFETY: the set is valid for writing.
    checked(unsafe { libc::sigfillset(&raw mut all.0) })?;
    let mut before = SignalMask(no_signals());
    // SAFETY: one set is valid for reading, the other for writing.
    let result =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all.0, &raw mut before.0) };
    match result {
        0 => Ok(before),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// From now on these signals of the calling thread wait, and no others.
pub fn set_blocked_signals(mask: &SignalMask) {
    // SAFETY: the set is valid for reading, and none is to be written.
    let result = unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask.0, std::ptr::null_mut())
    };
    assert_eq!(result, 0, "a mask that was there before is valid");
}

fn no_signals() -> libc::sigset_t {
    let mut none = std::mem::MaybeUninit::uninit();
    // SAFETY: the set is valid for writing, and whole afterwards; it cannot fail.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        none.assume_init()
    }
}

/// Sends a signal to one thread of this process, by its number.
#[cfg(test)]
pub fn signal_thread(thread: i32, signal: libc::c_int) {
    let process = std::process::id();
    // SAFETY: takes numbers; a thread that has ended gets nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
}

fn checked(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
