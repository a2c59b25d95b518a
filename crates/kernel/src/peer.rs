//! Which process is at the other end of a socket file's connection, as the kernel says.

use std::io;
use std::os::fd::AsFd;

use crate::raw;

/// What `SO_PEERCRED` has: three numbers of four bytes.
const CREDENTIALS_BYTES: usize = 12;

/// A process when it connected, or began to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its number here; none where it is in a PID namespace that is not visible from here.
    pub pid: Option<u32>,
    /// Its user.
    pub uid: u32,
}

impl Peer {
    /// At the other end of a connection.
    pub fn of(socket: impl AsFd) -> io::Result<Peer> {
        let mut bytes = [0; CREDENTIALS_BYTES];
        let length = raw::socket_option(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut bytes)?;
        let ([pid, uid, _], []) = bytes.as_chunks::<4>() else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        if length != CREDENTIALS_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Peer {
            pid: Some(u32::from_ne_bytes(*pid)).filter(|pid| *pid != 0),
            uid: u32::from_ne_bytes(*uid),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_other_end_of_a_pair_is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let own = Peer {
            pid: Some(std::process::id()),
            uid: rustix::process::geteuid().as_raw(),
        };
        assert_eq!(Peer::of(&one).unwrap(), own);
    }

    #[test]
    fn a_process_that_is_not_seen_has_no_number() {
        // As the kernel tells of one in another PID namespace.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(Peer::of(&stream).is_ok_and(|peer| peer.pid.is_none()));
    }
}
