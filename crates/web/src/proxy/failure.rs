//! Why a request got no answer from its upstream, and what its client is told instead.

use super::request::Refusal;
use super::response::BadResponse;
use super::upload::ClientFault;
use crate::body::Source;
use crate::message::Answer;
use bytes::Bytes;
use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, StatusCode};
use std::fmt;

/// Why there is no answer. `Display` is for the log; the client hears less.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The request is not passed on.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// No server may be asked.
    #[error("no server is up")]
    AllDown {
        /// When the first may be asked again, s.
        retry_seconds: u64,
    },
    /// The operator allows no more to wait.
    #[error("the queue is full")]
    QueueFull,
    /// It has waited as long as the operator allows.
    #[error("waited too long for a place")]
    QueuedTooLong,
    /// The server could not be reached.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// The server took too long to be reached.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The connection ended before the response began.
    #[error("closed before it answered: {0}")]
    Closed(String),
    /// The response did not begin in time.
    #[error("took too long to answer")]
    ResponseTimeout,
    /// What came was no response.
    #[error("sent no valid response: {0}")]
    Unreadable(String),
    /// What came was a response that is not passed on.
    #[error("sent a response that is not passed on: {0}")]
    BadResponse(BadResponse),
    /// The client's body does not come to its end.
    #[error("no whole body came from the client: {0:?}")]
    ClientBody(ClientFault),
}

impl Failure {
    /// The status the client gets.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Refused(refusal) => refusal.status(),
            Self::AllDown { .. } | Self::QueueFull | Self::QueuedTooLong => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Unreachable(_) | Self::Closed(_) | Self::Unreadable(_) | Self::BadResponse(_) => {
                StatusCode::BAD_GATEWAY
            }
            Self::ConnectTimeout | Self::ResponseTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::ClientBody(ClientFault::BrokeOff) => StatusCode::BAD_REQUEST,
            Self::ClientBody(ClientFault::TooLong) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::ClientBody(ClientFault::TooSlow) => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// Whether it is the server's doing, so that another server might do better.
    pub fn is_of_server(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::ConnectTimeout
                | Self::Closed(_)
                | Self::ResponseTimeout
                | Self::Unreadable(_)
                | Self::BadResponse(_)
        )
    }

    /// Whether the server may be asked the same again: it gave nothing back, and at once.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::ConnectTimeout | Self::Closed(_)
        )
    }

    /// What the client is told: no address, no name and no message of the system.
    fn told(&self) -> &'static str {
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
            Self::AllDown { .. } => "nobody can answer now, try again later",
            Self::QueueFull => "too many wait already, try again later",
            Self::QueuedTooLong => "too much to do, try again later",
            Self::Unreachable(_) => "the server behind this one cannot be reached",
            Self::Closed(_) => "the server behind this one ended the connection",
            Self::Unreadable(_) | Self::BadResponse(_) => {
                "the server behind this one sent no valid answer"
            }
            Self::ConnectTimeout => "the server behind this one could not be reached in time",
            Self::ResponseTimeout => "the server behind this one did not answer in time",
            Self::ClientBody(ClientFault::BrokeOff) => "the request ended early",
            Self::ClientBody(ClientFault::TooLong) => "the request's body is too long",
            Self::ClientBody(ClientFault::TooSlow) => "the request's body comes too slowly",
        }
    }

    fn retry_seconds(&self) -> Option<u64> {
        match self {
            Self::AllDown { retry_seconds } => Some((*retry_seconds).max(1)),
            Self::QueueFull | Self::QueuedTooLong => Some(1),
            _ => None,
        }
    }

    /// The answer in place of the upstream's.
    pub fn answer(&self) -> Answer {
        let status = self.status();
        let body = Bytes::from(format!("{}: {}\n", Named(status), self.told()));
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        if let Some(seconds) = self.retry_seconds() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if *self == Self::Refused(Refusal::Method) {
            headers.insert(
                ALLOW,
                HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
            );
        }
        Answer {
            status,
            headers,
            source: Source::Memory(body),
        }
    }
}

/// `502 Bad Gateway`.
struct Named(StatusCode);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())?;
        match self.0.canonical_reason() {
            Some(reason) => write!(f, " {reason}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_hears_a_reason_and_no_address() {
        let failure = Failure::Unreachable("10.0.0.7:3000: connection refused".into());
        let answer = failure.answer();
        assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
        let Source::Memory(body) = answer.source else {
            panic!("a text of ours is in memory");
        };
        assert_eq!(
            body,
            "502 Bad Gateway: the server behind this one cannot be reached\n"
        );
        assert_eq!(answer.headers[CONTENT_LENGTH], body.len().to_string());
    }

    #[test]
    fn who_may_come_again_is_told_when() {
        let down = Failure::AllDown { retry_seconds: 0 }.answer();
        assert_eq!(down.headers[RETRY_AFTER], "1");
        assert_eq!(down.status, StatusCode::SERVICE_UNAVAILABLE);
        let slow = Failure::ResponseTimeout.answer();
        assert!(!slow.headers.contains_key(RETRY_AFTER));
        assert_eq!(slow.status, StatusCode::GATEWAY_TIMEOUT);
    }
}
