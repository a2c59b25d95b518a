//! What this side may run out of when it connects to a server. It says nothing of the server, which may be well.

use rustix::io::Errno;
use std::io;

/// Something a connection takes and there is none left of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lack {
    /// EMFILE.
    #[error("this process has no descriptor left; a higher `ulimit -n` helps")]
    Descriptors,
    /// ENFILE.
    #[error("the system has no descriptor left; a higher fs.file-max helps")]
    SystemDescriptors,
    /// EADDRNOTAVAIL: all ports towards the server are in use, or no address of this machine leads there.
    #[error(
        "no local address and port is left to connect from; a wider net.ipv4.ip_local_port_range or a `limit` helps"
    )]
    Ports,
    /// ENOBUFS, ENOMEM.
    #[error("the system has no memory left for a connection")]
    Memory,
}

impl Lack {
    /// What was lacking where connecting ended with `error`; `None` if it ended for another reason.
    pub fn of(error: &io::Error) -> Option<Self> {
        match Errno::from_io_error(error)? {
            Errno::MFILE => Some(Self::Descriptors),
            Errno::NFILE => Some(Self::SystemDescriptors),
            Errno::ADDRNOTAVAIL => Some(Self::Ports),
            Errno::NOBUFS | Errno::NOMEM => Some(Self::Memory),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_ours_is_our_lack() {
        let of = |errno: Errno| Lack::of(&io::Error::from(errno));
        assert_eq!(of(Errno::MFILE), Some(Lack::Descriptors));
        assert_eq!(of(Errno::NFILE), Some(Lack::SystemDescriptors));
        assert_eq!(of(Errno::ADDRNOTAVAIL), Some(Lack::Ports));
        assert_eq!(of(Errno::NOMEM), Some(Lack::Memory));
        for of_the_server in [Errno::CONNREFUSED, Errno::HOSTUNREACH, Errno::TIMEDOUT] {
            assert_eq!(of(of_the_server), None);
        }
        assert_eq!(Lack::of(&io::Error::other("no such name")), None);
    }
}
