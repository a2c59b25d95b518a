//! Why a request got no response from its upstream, and the response to its client instead.

use super::fastcgi::NEEDS_LENGTH;
use super::upload::ClientFault;
use crate::response::{Response, plain};
use hyper::StatusCode;
use hyper::header::{ALLOW, HeaderValue, RETRY_AFTER};
use rustix::io::Errno;
use sooner_http::forwarding::request::Refusal;
use sooner_http::forwarding::response::BadResponse;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Why there is no answer. `Display` is for the log; the client hears less.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The request is not passed on.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// No server is up.
    #[error("no server is up; the first is tried again in {retry_seconds} s{}", because(.last))]
    AllDown {
        /// When the first may get a request again, s.
        retry_seconds: u64,
        /// Which server failed last, and how.
        last: Option<Arc<str>>,
    },
    /// The operator allows no more to wait.
    #[error("the queue is full: {waiting} wait")]
    QueueFull {
        /// How many wait.
        waiting: usize,
    },
    /// It has waited as long as the operator allows.
    #[error("no place was free within {0:?}")]
    QueuedTooLong(Duration),
    /// Nothing is left here to connect with.
    #[error("no connection can be opened: {0}")]
    Exhausted(Exhausted),
    /// The server could not be reached.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// The server took too long to be reached.
    #[error("not connected within {0:?}")]
    ConnectTimeout(Duration),
    /// The connection ended before the response began.
    #[error("closed before it answered: {0}")]
    Closed(String),
    /// So did a connection that had been kept, and not a byte came on it: the server may have
    /// closed it before it saw the request.
    #[error("closed a kept connection as the request came, which may not be sent twice: {0}")]
    ClosedWhileKept(String),
    /// The response did not begin in time.
    #[error("no answer began within {0:?}")]
    ResponseTimeout(Duration),
    /// It ran for longer than its class may.
    #[error("it ran for longer than {0:?} (class.longest)")]
    RanTooLong(Duration),
    /// What came was no response.
    #[error("sent an invalid response: {0}")]
    Unreadable(String),
    /// What came was a response that is not passed on.
    #[error("sent a response that is not passed on: {0}")]
    BadResponse(BadResponse),
    /// The answer came behind comments, and is nothing that could follow them.
    #[error(
        "answered with status {0} and not with a plain event stream, after comments had been sent to the client"
    )]
    Unfit(StatusCode),
    /// So is an event stream that is compressed, as they are not.
    #[error(
        "answered with a compressed event stream, after plain comments had been sent to the client"
    )]
    Compressed,
    /// The server stops, and its grace is over.
    #[error("this server stopped (limits.grace_seconds)")]
    Stopped,
    /// The client's body does not come to its end.
    #[error("the client did not send its whole body: {0}")]
    ClientBody(ClientFault),
}

impl Failure {
    /// The status the client gets.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Refused(refusal) => refusal.status(),
            Self::AllDown { .. }
            | Self::QueueFull { .. }
            | Self::QueuedTooLong(_)
            | Self::Exhausted(_)
            | Self::Stopped => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreachable(_)
            | Self::Closed(_)
            | Self::ClosedWhileKept(_)
            | Self::Unreadable(_)
            | Self::BadResponse(_) => StatusCode::BAD_GATEWAY,
            Self::ConnectTimeout(_) | Self::ResponseTimeout(_) | Self::RanTooLong(_) => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::Unfit(status) if status.is_client_error() || status.is_server_error() => *status,
            Self::Unfit(_) | Self::Compressed => StatusCode::BAD_GATEWAY,
            Self::ClientBody(ClientFault::BrokeOff) => StatusCode::BAD_REQUEST,
            Self::ClientBody(ClientFault::TooLong | ClientFault::NeedsLength) => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::ClientBody(ClientFault::TooSlow) => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// Whether it is the server's doing, so that another server might do better.
    pub fn is_server_fault(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::ConnectTimeout(_)
                | Self::Closed(_)
                | Self::ResponseTimeout(_)
                | Self::Unreadable(_)
                | Self::BadResponse(_)
        )
    }

    /// Whether the server could not be reached at all, which no request brings about.
    pub fn is_connect_failure(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::ConnectTimeout(_))
    }

    /// Whether this host had nothing left to connect with; the request was not sent then.
    pub fn is_exhausted(&self) -> bool {
        matches!(self, Self::Exhausted(_))
    }

    /// Whether the request may be sent again: the server gave nothing back, and at once.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::ConnectTimeout(_) | Self::Closed(_)
        )
    }

    /// The text for the client: no address, no name and no message of the system.
    pub fn client_message(&self) -> &'static str {
        match self {
            Self::Refused(Refusal::Host) => "a request needs exactly one valid Host",
            Self::Refused(Refusal::TransferCoding) => {
                "no transfer coding but chunked is understood"
            }
            Self::Refused(Refusal::ContentLength) => "the Content-Length is not one number",
            Self::Refused(Refusal::DotSegment) => {
                "a path with the segment . or .. is not passed on"
            }
            Self::Refused(Refusal::Method) => "this method is not passed on",
            Self::Refused(Refusal::Target) => "the request has no path",
            Self::Refused(Refusal::Loop) => "the request goes in a circle",
            Self::AllDown { .. } => "no server can answer now, try again later",
            Self::QueueFull { .. } => "too many wait already, try again later",
            Self::QueuedTooLong(_) | Self::Exhausted(_) => "too much to do, try again later",
            Self::Unreachable(_) => "the server behind this one cannot be reached",
            Self::Closed(_) | Self::ClosedWhileKept(_) => {
                "the server behind this one ended the connection"
            }
            Self::Unreadable(_) | Self::BadResponse(_) => {
                "the server behind this one sent no valid answer"
            }
            Self::Unfit(status) if status.is_client_error() || status.is_server_error() => {
                "the server behind this one answered with an error"
            }
            Self::Unfit(_) => "the server behind this one answered with no event stream",
            Self::Compressed => {
                "the server behind this one answered with a compressed event stream"
            }
            Self::ConnectTimeout(_) => "the server behind this one could not be reached in time",
            Self::Stopped => "this server stops, try again later",
            Self::RanTooLong(_) => "this took longer than it may",
            Self::ResponseTimeout(_) => "the server behind this one did not answer in time",
            Self::ClientBody(ClientFault::BrokeOff) => "the request ended early",
            Self::ClientBody(ClientFault::TooLong) => "the request's body is too long",
            Self::ClientBody(ClientFault::TooSlow) => "the request body arrives too slowly",
            Self::ClientBody(ClientFault::NeedsLength) => NEEDS_LENGTH,
        }
    }

    fn retry_seconds(&self) -> Option<u64> {
        match self {
            Self::AllDown { retry_seconds, .. } => Some((*retry_seconds).max(1)),
            Self::QueueFull { .. }
            | Self::QueuedTooLong(_)
            | Self::Exhausted(_)
            | Self::Stopped => Some(1),
            _ => None,
        }
    }

    /// The response in place of the upstream's.
    pub fn response(&self) -> Response {
        let mut response = plain(self.status(), self.client_message());
        let headers = &mut response.headers;
        if let Some(seconds) = self.retry_seconds() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if *self == Self::Refused(Refusal::Method) {
            headers.insert(
                ALLOW,
                HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
            );
        }
        response
    }
}

/// What this host ran out of when it connected to a server. It says nothing of the server, which
/// may be well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    /// EMFILE.
    #[error("this process has no descriptor left; raise `ulimit -n`")]
    Descriptors,
    /// ENFILE.
    #[error("the system has no descriptor left; raise fs.file-max")]
    SystemDescriptors,
    /// EADDRNOTAVAIL: all ports towards the server are in use, or no address of this machine leads
    /// there.
    #[error(
        "no local address and port is left to connect from; widen net.ipv4.ip_local_port_range, or set a `limit`"
    )]
    Ports,
    /// ENOBUFS, ENOMEM.
    #[error("the system has no memory left for a connection")]
    Memory,
    /// EAGAIN: as many connections wait at the server's Unix socket as may.
    #[error("as many connections wait at the server's socket as may; set a `limit`")]
    Backlog,
}

impl Exhausted {
    /// What was lacking where connecting ended with `error`; `None` if it ended for another reason.
    pub fn of(error: &io::Error) -> Option<Self> {
        match Errno::from_io_error(error)? {
            Errno::MFILE => Some(Self::Descriptors),
            Errno::NFILE => Some(Self::SystemDescriptors),
            Errno::ADDRNOTAVAIL => Some(Self::Ports),
            Errno::NOBUFS | Errno::NOMEM => Some(Self::Memory),
            Errno::AGAIN => Some(Self::Backlog),
            _ => None,
        }
    }
}

fn because(last: &Option<Arc<str>>) -> String {
    match last {
        Some(last) => format!("; the last to fail was {last}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Source;
    use hyper::header::CONTENT_LENGTH;

    #[test]
    fn the_client_hears_a_reason_and_no_address() {
        let failure = Failure::Unreachable("10.0.0.7:3000: connection refused".into());
        let response = failure.response();
        assert_eq!(response.status, StatusCode::BAD_GATEWAY);
        let Source::Memory(body) = response.source else {
            panic!("a text of ours is in memory");
        };
        assert_eq!(
            body,
            "502 Bad Gateway: the server behind this one cannot be reached\n"
        );
        assert_eq!(response.headers[CONTENT_LENGTH], body.len().to_string());
    }

    #[test]
    fn who_may_come_again_is_told_when() {
        let down = Failure::AllDown {
            retry_seconds: 0,
            last: Some("10.0.0.7:3000: connection refused".into()),
        };
        assert_eq!(
            down.to_string(),
            "no server is up; the first is tried again in 0 s; the last to fail was 10.0.0.7:3000: connection refused"
        );
        let down = down.response();
        assert_eq!(down.headers[RETRY_AFTER], "1");
        assert_eq!(down.status, StatusCode::SERVICE_UNAVAILABLE);
        let lacking = Failure::Exhausted(Exhausted::Descriptors);
        assert!(!lacking.is_server_fault() && lacking.response().headers.contains_key(RETRY_AFTER));
        let slow = Failure::ResponseTimeout(Duration::from_millis(1500));
        assert_eq!(slow.to_string(), "no answer began within 1.5s");
        let slow = slow.response();
        assert!(!slow.headers.contains_key(RETRY_AFTER));
        assert_eq!(slow.status, StatusCode::GATEWAY_TIMEOUT);
    }

    #[test]
    fn only_what_is_ours_is_our_lack() {
        let of = |errno: Errno| Exhausted::of(&io::Error::from(errno));
        assert_eq!(of(Errno::MFILE), Some(Exhausted::Descriptors));
        assert_eq!(of(Errno::NFILE), Some(Exhausted::SystemDescriptors));
        assert_eq!(of(Errno::ADDRNOTAVAIL), Some(Exhausted::Ports));
        assert_eq!(of(Errno::NOMEM), Some(Exhausted::Memory));
        assert_eq!(of(Errno::AGAIN), Some(Exhausted::Backlog));
        for of_the_server in [Errno::CONNREFUSED, Errno::HOSTUNREACH, Errno::TIMEDOUT] {
            assert_eq!(of(of_the_server), None);
        }
        assert_eq!(Exhausted::of(&io::Error::other("no such name")), None);
    }
}
