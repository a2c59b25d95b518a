//! Listening sockets, and what to tell the owner of an address that cannot be had.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// Connections that wait to be accepted; the kernel cuts it to net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// The longest that the kernel takes: 25 days.
const STALL_TIMEOUT_MAX: Duration = Duration::from_millis(i32::MAX as u64);

/// An address that cannot be listened on.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Another socket listens there already.
    #[error("cannot listen on {address}: the port is in use; `ss -ltnp 'sport = :{port}'` shows the process; stop it, or choose another port", port = address.port())]
    InUse {
        /// The requested address.
        address: SocketAddr,
    },
    /// A port below 1024, or one that a security policy guards.
    #[error(
        "cannot listen on {address}: no permission; a port below 1024 needs the capability CAP_NET_BIND_SERVICE (or root), any other port does not"
    )]
    NotPermitted {
        /// The requested address.
        address: SocketAddr,
    },
    /// No interface has this address.
    #[error(
        "cannot listen on {address}: this machine does not have that address; `ip address` shows those it has, 0.0.0.0 stands for all"
    )]
    NoSuchAddress {
        /// The requested address.
        address: SocketAddr,
    },
    /// Anything else the system said.
    #[error("cannot listen on {address}: {error}")]
    Other {
        /// The requested address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

impl ListenError {
    fn new(address: SocketAddr, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address },
            io::ErrorKind::PermissionDenied => Self::NotPermitted { address },
            io::ErrorKind::AddrNotAvailable => Self::NoSuchAddress { address },
            _ => Self::Other { address, error },
        }
    }
}

/// Binds and listens, without blocking; a connection with a client that takes nothing for
/// `stall_timeout` is aborted.
///
/// An IPv6 address takes IPv6 alone, so `0.0.0.0` and `[::]` go together.
pub fn listen(
    address: SocketAddr,
    stall_timeout: Option<Duration>,
) -> Result<std::net::TcpListener, ListenError> {
    open(address, stall_timeout, false).map_err(|error| ListenError::new(address, error))
}

/// The same `count` times on one address: the kernel shares connections out among them (by
/// SO_REUSEPORT, where there are several). Port 0 stands for the same port in all.
pub fn listen_together(
    address: SocketAddr,
    stall_timeout: Option<Duration>,
    count: usize,
) -> Result<Vec<std::net::TcpListener>, ListenError> {
    let only = listen(address, stall_timeout)?;
    if count == 1 {
        return Ok(vec![only]);
    }
    // One that shares its port would be let in beside another program's that does the same, so the
    // first look was by one that does not.
    let failed = |error| ListenError::new(address, error);
    let found = only.local_addr().map_err(failed)?;
    drop(only);
    let each = (0..count).map(|_| open(found, stall_timeout, true).map_err(failed));
    each.collect()
}

fn open(
    address: SocketAddr,
    stall_timeout: Option<Duration>,
    shares_port: bool,
) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shares_port)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    prepare(&socket, stall_timeout)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Whether this process could listen on `address` now; the port is free again when this returns.
pub fn may_listen(address: SocketAddr) -> Result<(), ListenError> {
    listen(address, None).map(drop)
}

/// Sets what accepted sockets inherit, and that accepting does not block.
pub(crate) fn prepare(socket: &Socket, stall_timeout: Option<Duration>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(stall_timeout.map(|stall| stall.min(STALL_TIMEOUT_MAX)))?;
    socket.set_nonblocking(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_wrong_with_an_address() {
        let taken = listen("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let address = taken.local_addr().unwrap();
        assert!(matches!(
            listen(address, None),
            Err(ListenError::InUse { .. })
        ));
        let elsewhere = "192.0.2.1:0".parse().unwrap();
        assert!(matches!(
            listen(elsewhere, None),
            Err(ListenError::NoSuchAddress { .. })
        ));
    }

    #[test]
    fn several_share_a_port_and_no_other_does() {
        let all = listen_together("127.0.0.1:0".parse().unwrap(), None, 3).unwrap();
        let address = all[0].local_addr().unwrap();
        for listener in &all {
            assert_eq!(listener.local_addr().unwrap(), address);
        }
        for count in [1, 3] {
            assert!(matches!(
                listen_together(address, None, count),
                Err(ListenError::InUse { .. })
            ));
        }
    }

    #[test]
    fn a_client_may_stall_for_a_year() {
        let year = Duration::from_secs(31_536_000);
        for stall_timeout in [Duration::from_secs(2_147_484), year, Duration::MAX] {
            listen("127.0.0.1:0".parse().unwrap(), Some(stall_timeout)).unwrap();
        }
    }

    #[test]
    fn both_families_on_one_port() {
        let four = listen("0.0.0.0:0".parse().unwrap(), None).unwrap();
        let six = SocketAddr::new("::".parse().unwrap(), four.local_addr().unwrap().port());
        match listen(six, None) {
            Ok(_) | Err(ListenError::NoSuchAddress { .. } | ListenError::Other { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
