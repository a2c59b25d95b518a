//! Why a request failed, told apart finely enough to say which party was at fault: the server, the
//! network or this generator itself.

use crate::response::{FIELDS_MAX, HEAD_MAX_BYTES};
use sooner_stats::ErrorKind;
use std::io;

/// How one request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No socket listens, or the accept queue answers with RST.
    #[error("connection refused")]
    Refused,
    /// The connection was reset.
    #[error("connection reset")]
    Reset,
    /// The kernel gave up on the connection (SYN or data retransmitted too often).
    #[error("connection timed out")]
    TimedOut,
    /// No whole response within the time that a request may take.
    #[error("no whole response within the timeout")]
    Late,
    /// The server closed or reset the connection before the first byte of the response.
    #[error("connection closed before the response")]
    ClosedBeforeResponse,
    /// The stream ended before the body's announced length.
    #[error("body cut before its announced length")]
    CutBody,
    /// More bytes came than the body's announced length.
    #[error("body longer than announced")]
    LongBody,
    /// A whole body of another length than the trace's.
    #[error("body of {received_bytes} bytes instead of {expected_bytes}")]
    WrongLength {
        /// Length received.
        received_bytes: u64,
        /// Length in the trace.
        expected_bytes: u64,
    },
    /// A status that is no success.
    #[error("status {0} instead of 200")]
    Status(u16),
    /// Not an HTTP/1.x response head, or one with contradictory lengths.
    #[error("not a valid HTTP/1.x response head")]
    BadHead,
    /// A response head with more fields than are read.
    #[error("a response head with more than {FIELDS_MAX} fields")]
    ManyFields,
    /// A response head longer than is read.
    #[error("a response head of more than {HEAD_MAX_BYTES} bytes")]
    LongHead,
    /// A chunked body with broken framing.
    #[error("not a valid chunked body")]
    BadChunk,
    /// The server's certificate leads to no trusted authority.
    #[error(
        "the server's certificate is not trusted: give --ca FILE, or --insecure for a test server"
    )]
    Certificate,
    /// The server's certificate is for other names.
    #[error(
        "the server's certificate is trusted, but not for the name in the URL: use a name that it has, give --ca FILE with the certificate itself, or --insecure for a test server"
    )]
    CertificateName,
    /// The server's certificate has expired, or is not valid yet.
    #[error(
        "the server's certificate has expired or is not valid yet: look at its dates and at this host's clock, or give --insecure for a test server"
    )]
    CertificateDate,
    /// The TLS handshake or a record failed for another reason.
    #[error("TLS failed")]
    Tls,
    /// The server did not agree to HTTP/2.
    #[error("the server does not speak HTTP/2 on this port")]
    NoHttp2,
    /// The server reset the stream or gave up the connection (RFC 9113, section 7).
    #[error("HTTP/2 error code {0}")]
    Http2(u32),
    /// Frames that this client did not understand, or that it may not send.
    #[error("not valid HTTP/2")]
    BadHttp2,
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
    /// Classifies an error of a socket call, or one that TLS reports in its place.
    pub fn from_io(error: &io::Error) -> Failure {
        use rustix::io::Errno;
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        if let Some(error) = inner {
            return Failure::from_tls(error);
        }
        match Errno::from_io_error(error) {
            Some(Errno::CONNREFUSED) => Failure::Refused,
            Some(Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED) => Failure::Reset,
            Some(Errno::TIMEDOUT) => Failure::TimedOut,
            Some(Errno::MFILE | Errno::NFILE) => Failure::Descriptors,
            Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => Failure::Ports,
            Some(errno) => Failure::System(errno.raw_os_error()),
            None => Failure::from_kind(error.kind()),
        }
    }

    /// Classifies an error that a library passed on without its number.
    fn from_kind(kind: io::ErrorKind) -> Failure {
        match kind {
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected => Failure::Reset,
            io::ErrorKind::UnexpectedEof => Failure::CutBody,
            io::ErrorKind::TimedOut => Failure::TimedOut,
            _ => Failure::System(0),
        }
    }

    fn from_tls(error: &rustls::Error) -> Failure {
        match error {
            rustls::Error::InvalidCertificate(why) => Failure::from_certificate(why),
            rustls::Error::NoApplicationProtocol
            | rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol) => {
                Failure::NoHttp2
            }
            _ => Failure::Tls,
        }
    }

    fn from_certificate(why: &rustls::CertificateError) -> Failure {
        use rustls::CertificateError as Why;
        match why {
            Why::NotValidForName | Why::NotValidForNameContext { .. } => Failure::CertificateName,
            Why::Expired
            | Why::ExpiredContext { .. }
            | Why::NotValidYet
            | Why::NotValidYetContext { .. } => Failure::CertificateDate,
            _ => Failure::Certificate,
        }
    }

    /// Classifies an error of an HTTP/2 connection or stream.
    pub fn from_http2(error: &h2::Error) -> Failure {
        match (error.get_io(), error.reason()) {
            (Some(error), _) => Failure::from_io(error),
            (None, Some(reason)) if error.is_remote() => Failure::Http2(reason.into()),
            _ => Failure::BadHttp2,
        }
    }

    /// The same before the first byte of a response: there the peer's going is what an orderly
    /// close says.
    pub fn before_response(self) -> Failure {
        match self {
            Failure::Reset | Failure::CutBody => Failure::ClosedBeforeResponse,
            Failure::Http2(code) if h2::Reason::NO_ERROR == code.into() => {
                Failure::ClosedBeforeResponse
            }
            other => other,
        }
    }

    /// The kind under which reports count this failure.
    pub fn kind(self) -> ErrorKind {
        match self {
            Failure::Refused
            | Failure::Certificate
            | Failure::CertificateName
            | Failure::CertificateDate
            | Failure::Tls
            | Failure::System(_) => ErrorKind::Connect,
            Failure::Reset
            | Failure::ClosedBeforeResponse
            | Failure::CutBody
            | Failure::Http2(_) => ErrorKind::Reset,
            Failure::TimedOut | Failure::Late => ErrorKind::Timeout,
            Failure::Status(_) => ErrorKind::Status,
            Failure::BadHead
            | Failure::ManyFields
            | Failure::LongHead
            | Failure::BadChunk
            | Failure::LongBody
            | Failure::NoHttp2
            | Failure::BadHttp2 => ErrorKind::Protocol,
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

    #[test]
    fn errors_of_tls_are_found_inside_those_of_sockets() {
        let within = |error: rustls::Error| {
            Failure::from_io(&io::Error::new(io::ErrorKind::InvalidData, error))
        };
        let untrusted = rustls::CertificateError::UnknownIssuer;
        assert_eq!(
            within(rustls::Error::InvalidCertificate(untrusted)),
            Failure::Certificate
        );
        for (why, failure) in [
            (
                rustls::CertificateError::NotValidForName,
                Failure::CertificateName,
            ),
            (rustls::CertificateError::Expired, Failure::CertificateDate),
            (
                rustls::CertificateError::NotValidYet,
                Failure::CertificateDate,
            ),
        ] {
            assert_eq!(within(rustls::Error::InvalidCertificate(why)), failure);
        }
        let refused = rustls::AlertDescription::NoApplicationProtocol;
        assert_eq!(
            within(rustls::Error::AlertReceived(refused)),
            Failure::NoHttp2
        );
        assert_eq!(within(rustls::Error::DecryptError), Failure::Tls);
    }

    #[test]
    fn a_peer_that_goes_before_the_response_has_closed() {
        let orderly = Failure::Http2(h2::Reason::NO_ERROR.into());
        for failure in [Failure::Reset, Failure::CutBody, orderly] {
            assert_eq!(failure.before_response(), Failure::ClosedBeforeResponse);
        }
        for reason in [h2::Reason::INTERNAL_ERROR, h2::Reason::REFUSED_STREAM] {
            let failure = Failure::Http2(reason.into());
            assert_eq!(failure.before_response(), failure);
        }
    }
}
