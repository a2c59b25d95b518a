//! A TUN device: packets that the kernel sends through it are read by this process, and what this
//! process writes arrives from it.
//!
//! The device exists as long as the descriptor behind [`Tun`] does: it is gone, with its addresses
//! and routes, when that is dropped and when the process ends, however it ends, so there is nothing
//! to clean up. It belongs to the network namespace its thread was in when it was opened, and stays
//! there when the thread moves on. It carries bare IP packets: no link header, no packet
//! information, and because it offers no offloading, no super-packets and no unfinished checksums
//! either.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use thiserror::Error;

use crate::raw;

const CONTROL_FILE: &str = "/dev/net/tun";
/// IFF_TUN | IFF_NO_PI | IFF_TUN_EXCL: bare IP packets, and never another program's device of that
/// name.
const FLAGS: u16 = 0x0001 | 0x1000 | 0x8000;
/// Longest name of a device, bytes.
const NAME_BYTES_MAX: usize = libc::IFNAMSIZ - 1;

/// Why there is no TUN device.
#[derive(Debug, Error)]
pub enum TunError {
    /// Not a name for a device.
    #[error(
        "`{name}` is not a name for a device; use 1 to {NAME_BYTES_MAX} letters, digits, `-` or `_`"
    )]
    Name {
        /// The name as given.
        name: String,
    },
    /// The kernel or the container has no TUN devices.
    #[error(
        "{CONTROL_FILE}: {source}; it needs the kernel's module `tun`, and in a container the file"
    )]
    Missing {
        /// What opening it said.
        source: io::Error,
    },
    /// This process may not make devices.
    #[error("TUN device `{name}`: not allowed; it needs root with CAP_NET_ADMIN")]
    NotAllowed {
        /// The name as given.
        name: String,
    },
    /// A device of this name exists.
    #[error("TUN device `{name}`: the namespace has a device of that name; choose another")]
    Taken {
        /// The name as given.
        name: String,
    },
    /// Anything else.
    #[error("TUN device `{name}`: {source}")]
    Kernel {
        /// The name as given.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// An open TUN device; it disappears when this is dropped.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
}

impl Tun {
    /// Makes the device `name` in the calling thread's network namespace; it is down and has no
    /// address yet. Needs `CAP_NET_ADMIN`.
    pub fn open(name: &str) -> Result<Tun, TunError> {
        let name_bytes = name_bytes(name).ok_or_else(|| TunError::Name {
            name: name.to_owned(),
        })?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(CONTROL_FILE)
            .map_err(|source| TunError::Missing { source })?;
        raw::set_tun_interface(&file, name_bytes, FLAGS.cast_signed())
            .map_err(|source| refused(name.to_owned(), source))?;
        Ok(Tun { fd: file.into() })
    }

    /// Takes the next packet the kernel sent through the device; gives its length, `None` while
    /// there is none. What does not fit into the buffer is lost.
    pub fn read_packet(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.fd, &mut *buffer)) {
            Ok(length) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Has an IP packet arrive from the device, at once. Fails when the device is down (EIO) or the
    /// packet is not IP (EINVAL).
    pub fn write_packet(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::retry_on_intr(|| rustix::io::write(&self.fd, packet))?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The name with zeros behind it; `None` for what the kernel would refuse, or fill in by itself
/// (`%d`).
fn name_bytes(name: &str) -> Option<[u8; libc::IFNAMSIZ]> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.as_bytes().iter().all(allowed) {
        return None;
    }
    let mut bytes = [0; libc::IFNAMSIZ];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    Some(bytes)
}

fn refused(name: String, source: io::Error) -> TunError {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => TunError::NotAllowed { name },
        Some(libc::EBUSY | libc::EEXIST) => TunError::Taken { name },
        _ => TunError::Kernel { name, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_kernel_would_refuse_or_change_are_refused() {
        for name in ["", "sixteen-letters-", "a b", "a/b", "tun%d", "..", "é"] {
            let error = Tun::open(name).unwrap_err();
            assert!(
                error.to_string().starts_with(&format!("`{name}`")),
                "{error}"
            );
        }
        assert_eq!(&name_bytes("wan0").unwrap()[..6], b"wan0\0\0");
        assert!(name_bytes("fifteen-letters").is_some());
    }

    #[test]
    fn refusals_say_what_would_help() {
        let said =
            |code| refused("wan0".to_owned(), io::Error::from_raw_os_error(code)).to_string();
        assert!(said(libc::EPERM).contains("CAP_NET_ADMIN"));
        assert!(said(libc::EBUSY).contains("choose another"));
        assert!(said(libc::ENOMEM).starts_with("TUN device `wan0`: "));
    }
}
