//! Listening sockets that a service manager opened: which of them speak TLS, and whether they are
//! what they should be.
//!
//! With them a port below 1024 needs no privilege, and clients that come while the server restarts
//! wait instead of being refused.

use crate::listen::prepare;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::time::Duration;
use thiserror::Error;

/// Names (`FileDescriptorName=`) of sockets that speak TLS.
const TLS_NAMES: [&str; 2] = ["https", "tls"];

/// Listeners that were passed, by what they speak.
#[derive(Debug, Default)]
pub struct PassedListeners {
    /// HTTP.
    pub clear: Vec<TcpListener>,
    /// TLS.
    pub tls: Vec<TcpListener>,
}

impl PassedListeners {
    /// Whether none was passed.
    pub fn is_empty(&self) -> bool {
        self.clear.is_empty() && self.tls.is_empty()
    }
}

/// A passed socket that cannot be accepted from.
#[derive(Debug, Error)]
pub enum PassedError {
    /// It is something else.
    #[error(
        "the socket {name} that the service manager passed is not a listening TCP socket; ListenStream= must name a port, with Accept=no"
    )]
    NotAListener {
        /// Its name.
        name: String,
    },
    /// An option cannot be set.
    #[error("the socket {name} that the service manager passed cannot be used: {error}")]
    Other {
        /// Its name.
        name: String,
        /// What the system said.
        error: io::Error,
    },
}

/// Takes passed sockets, each with its name, for listeners; those named `https` or `tls` speak TLS.
/// A connection with a client that takes nothing for `stall_timeout` is aborted.
pub fn passed_listeners(
    passed: impl IntoIterator<Item = (String, OwnedFd)>,
    stall_timeout: Duration,
) -> Result<PassedListeners, PassedError> {
    let mut listeners = PassedListeners::default();
    for (name, socket) in passed {
        let socket = Socket::from(socket);
        if !is_tcp_listener(&socket) {
            return Err(PassedError::NotAListener { name });
        }
        if let Err(error) = prepare(&socket, Some(stall_timeout)) {
            return Err(PassedError::Other { name, error });
        }
        if TLS_NAMES.contains(&name.as_str()) {
            listeners.tls.push(socket.into());
        } else {
            listeners.clear.push(socket.into());
        }
    }
    Ok(listeners)
}

fn is_tcp_listener(socket: &Socket) -> bool {
    let is_internet = socket
        .domain()
        .is_ok_and(|domain| [Domain::IPV4, Domain::IPV6].contains(&domain));
    is_internet
        && socket.r#type().is_ok_and(|kind| kind == Type::STREAM)
        && socket.is_listener().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpStream, UdpSocket};
    use std::os::unix::net::UnixListener;

    const STALL_TIMEOUT: Duration = Duration::from_secs(60);

    fn passed(name: &str, socket: impl Into<OwnedFd>) -> [(String, OwnedFd); 1] {
        [(name.to_owned(), socket.into())]
    }

    #[test]
    fn the_name_says_what_is_spoken() {
        for (name, clear, tls) in [
            ("http", 1, 0),
            ("https", 0, 1),
            ("tls", 0, 1),
            ("unknown", 1, 0),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let sorted = passed_listeners(passed(name, listener), STALL_TIMEOUT).unwrap();
            assert_eq!((sorted.clear.len(), sorted.tls.len()), (clear, tls));
        }
    }

    #[test]
    fn only_listening_tcp_sockets_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for socket in [
            OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap()),
            OwnedFd::from(UnixListener::bind(folder.path().join("x")).unwrap()),
            OwnedFd::from(stream),
            OwnedFd::from(std::fs::File::open("/dev/null").unwrap()),
        ] {
            let error = passed_listeners(passed("https", socket), STALL_TIMEOUT).unwrap_err();
            assert!(matches!(error, PassedError::NotAListener { .. }), "{error}");
        }
    }
}
