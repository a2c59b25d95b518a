//! The first retransmission timeout of SYN and SYN-ACK, for the processes of one control group.
//!
//! Linux has no parameter for it: it is 1 s (RFC 6298), unless a BPF program of type sock_ops on
//! the socket's control group (version 2) says otherwise. Ours is seven instructions, written down
//! here, so no compiler is needed. The kernel takes it away when the descriptor that holds it is
//! closed, also by a kill. Needs `CAP_BPF` and `CAP_NET_ADMIN`, and Linux 5.7 or newer.

use std::fs::{self, File};
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::raw;

/// `BPF_SOCK_OPS_TIMEOUT_INIT`: what the kernel asks for a connection's first timeout.
const ASKS_FOR_TIMEOUT: u32 = 1;

/// A first timeout that is in force until dropped.
#[derive(Debug)]
pub struct InitialTimeout {
    _link: OwnedFd,
}

impl InitialTimeout {
    /// Sets it for sockets that processes of this control group open from now on, and for
    /// connections their listeners take. It is rounded up to the kernel's tick.
    pub fn set(group: &Path, timeout: Duration) -> io::Result<InitialTimeout> {
        let ticks = ticks(timeout, ticks_per_sec()?);
        let group = File::open(group)?;
        let program = raw::load_sock_ops(&program(ticks))?;
        let link = raw::attach_sock_ops(program.as_raw_fd(), group.as_raw_fd())?;
        Ok(InitialTimeout { _link: link })
    }
}

/// Where control groups of version 2 are mounted; none where this system has no such mount.
pub fn groups() -> io::Result<Option<PathBuf>> {
    Ok(mount(&fs::read_to_string("/proc/self/mounts")?))
}

/// The first mount of this type in the text of /proc/self/mounts.
fn mount(text: &str) -> Option<PathBuf> {
    text.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let path = words.next()?;
        (words.next()? == "cgroup2").then(|| path.into())
    })
}

/// The instructions: answer `ticks` to the question for the timeout, -1 (as if there were no
/// program) to all others.
fn program(ticks: u32) -> [u64; 7] {
    [
        instruction(0x61, 2, 1, 0, 0),                // r2 = context.op
        instruction(0xb7, 3, 0, 0, u32::MAX),         // r3 = -1
        instruction(0x55, 2, 0, 1, ASKS_FOR_TIMEOUT), // if r2 != it, skip one
        instruction(0xb7, 3, 0, 0, ticks),            // r3 = ticks
        instruction(0x63, 1, 3, 4, 0),                // context.reply = r3
        instruction(0xb7, 0, 0, 0, 1),                // r0 = 1
        instruction(0x95, 0, 0, 0, 0),                // return r0
    ]
}

/// `struct bpf_insn` as the kernel reads it.
fn instruction(code: u8, to: u8, from: u8, offset: i16, value: u32) -> u64 {
    let registers = if cfg!(target_endian = "little") {
        from << 4 | to
    } else {
        to << 4 | from
    };
    let [o0, o1] = offset.to_ne_bytes();
    let [v0, v1, v2, v3] = value.to_ne_bytes();
    u64::from_ne_bytes([code, registers, o0, o1, v0, v1, v2, v3])
}

/// The kernel's own ticks a second (`CONFIG_HZ`), which it shows in a timeout of one tick.
fn ticks_per_sec() -> io::Result<u64> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    socket.set_read_timeout(Some(Duration::from_micros(1)))?;
    let tick = socket.read_timeout()?.unwrap_or_default();
    let ticks = 1_000_000_u128.checked_div(tick.as_micros());
    ticks
        .and_then(|ticks| u64::try_from(ticks).ok())
        .ok_or_else(|| io::Error::other("the kernel does not show its tick"))
}

fn ticks(timeout: Duration, per_sec: u64) -> u32 {
    let ticks = (timeout.as_micros() * u128::from(per_sec)).div_ceil(1_000_000);
    // The kernel takes the lesser of this and its longest timeout, and 0 for no answer.
    u32::try_from(ticks.max(1))
        .unwrap_or(u32::MAX)
        .min(i32::MAX.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_tick_is_one_a_kernel_can_have() {
        let ticks = ticks_per_sec().unwrap();
        assert!([100, 250, 300, 1000].contains(&ticks), "{ticks}");
    }

    #[test]
    fn timeouts_are_rounded_up() {
        assert_eq!(ticks(Duration::from_millis(500), 250), 125);
        assert_eq!(ticks(Duration::from_millis(3), 250), 1);
        assert_eq!(ticks(Duration::ZERO, 250), 1);
        assert_eq!(ticks(Duration::MAX, 1000), i32::MAX.cast_unsigned());
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_as_the_kernel_reads_them() {
        let bytes = program(750).map(u64::to_ne_bytes);
        assert_eq!(bytes[0], [0x61, 0x12, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[2], [0x55, 0x02, 1, 0, 1, 0, 0, 0]);
        assert_eq!(bytes[3], [0xb7, 0x03, 0, 0, 0xee, 0x02, 0, 0]);
        assert_eq!(bytes[4], [0x63, 0x31, 4, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_mount_is_found() {
        let text = "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mount(text), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mount("proc /proc proc rw 0 0"), None);
    }

    #[test]
    fn a_group_that_is_not_there_is_an_error() {
        let second = Duration::from_secs(1);
        assert!(InitialTimeout::set(Path::new("/nonexistent/group"), second).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = mount(&text);
        }
    }
}
