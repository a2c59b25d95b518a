//! Why a request failed, told apart finely enough to say whose
//! fault it was: the server's, the network's or this generator's own.

use sooner_stats::ErrorKind;
use std::io;

/// How one request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Nobody listens, or the accept queue answers with RST.
    #[error("connection refused")]
    Refused,
    /// The connection was reset.
    #[error("connection reset")]
    Reset,
    /// The kernel gave up on the connection (SYN or data retransmitted too often).
    #[error("connection timed out")]
    TimedOut,
    /// The server closed or reset the connection before the first byte of the response.
    #[error("connection closed before the response")]
    ClosedBeforeResponse,
    /// The stream ended before the body's announced length.
    #[error("body cut before its announced length")]
    CutBody,
    /// More bytes came than the body's announced length.
    #[error("body longer than announced")]
    LongBody,
    /// A whole body whose length is not the trace's.
    #[error("body of {received_bytes} bytes instead of {expected_bytes}")]
    WrongLength {
        /// Length received.
        received_bytes: u64,
        /// Length in the trace.
        expected_bytes: u64,
    },
    /// A status other than 200.
    #[error("status {0} instead of 200")]
    Status(u16),
    /// Not an HTTP/1.x response head, or one with contradictory lengths.
    #[error("not a valid HTTP/1.x response head")]
    BadHead,
    /// A chunked body, which this generator does not count.
    #[error("chunked body: only Content-Length or connection: close bodies can be counted")]
    Chunked,
    /// This process has no descriptor left.
    #[error("no file descriptor left in this process")]
    Descriptors,
    /// This host has no local port left for the address.
    #[error("no local port left")]
    Ports,
    /// No way to the host, or another error of the system.
    #[error("system error {0}")]
    System(i32),
}

impl Failure {
    /// Classifies an error of a socket call.
    pub fn from_io(error: &io::Error) -> Failure {
        use rustix::io::Errno;
        match Errno::from_io_error(error) {
            Some(Errno::CONNREFUSED) => Failure::Refused,
            Some(Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED) => Failure::Reset,
            Some(Errno::TIMEDOUT) => Failure::TimedOut,
            Some(Errno::MFILE | Errno::NFILE) => Failure::Descriptors,
            Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => Failure::Ports,
            Some(errno) => Failure::System(errno.raw_os_error()),
            None => Failure::System(0),
        }
    }

    /// The kind under which reports count this failure.
    pub fn kind(self) -> ErrorKind {
        match self {
            Failure::Refused | Failure::System(_) => ErrorKind::Connect,
            Failure::Reset | Failure::ClosedBeforeResponse | Failure::CutBody => ErrorKind::Reset,
            Failure::TimedOut => ErrorKind::Timeout,
            Failure::Status(_) => ErrorKind::Status,
            Failure::BadHead | Failure::Chunked | Failure::LongBody => ErrorKind::Protocol,
            Failure::WrongLength { .. } => ErrorKind::Body,
            Failure::Descriptors | Failure::Ports => ErrorKind::Local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_errors_keep_their_kind() {
        let kind = |errno: rustix::io::Errno| Failure::from_io(&io::Error::from(errno));
        assert_eq!(kind(rustix::io::Errno::CONNREFUSED), Failure::Refused);
        assert_eq!(kind(rustix::io::Errno::MFILE), Failure::Descriptors);
        assert_eq!(kind(rustix::io::Errno::ADDRNOTAVAIL), Failure::Ports);
        assert_eq!(kind(rustix::io::Errno::HOSTUNREACH), Failure::System(113));
    }
}
