//! A request on its way onto a connection, as far as the connection takes it.

use crate::failure::Failure;
use crate::transport::Transport;
use crate::unanswered::{Again, Unanswered};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// A request in two pieces, one behind the other: so many requests can share a large body.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The head, and what is sent in one piece with it.
    pub begin: &'a [u8],
    /// The rest of the body.
    pub rest: &'a [u8],
}

impl<'a> From<&'a [u8]> for Parts<'a> {
    /// A request in one piece.
    fn from(begin: &'a [u8]) -> Parts<'a> {
        Parts { begin, rest: &[] }
    }
}

/// What has been sent of a request.
pub struct Sending<'a> {
    request: Parts<'a>,
    sent: usize,
    is_flushed: bool,
    /// Why no more of it is sent, where the server has closed. It may have answered before.
    closed: Option<Unanswered>,
}

impl<'a> Sending<'a> {
    /// Nothing yet.
    pub fn new(request: Parts<'a>) -> Sending<'a> {
        Sending {
            request,
            sent: 0,
            is_flushed: false,
            closed: None,
        }
    }

    /// Whether all of it was sent.
    pub fn is_done(&self) -> bool {
        self.is_flushed
    }

    /// Sends what `stream` takes. Ready when there is nothing more to send; fails for any other
    /// reason than that the server has closed: its answer may be there all the same.
    pub fn poll(
        &mut self,
        stream: &mut Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Unanswered>> {
        if self.is_flushed || self.closed.is_some() {
            return Poll::Ready(Ok(()));
        }
        let Err(error) = ready!(self.poll_all(stream, cx)) else {
            self.is_flushed = true;
            return Poll::Ready(Ok(()));
        };
        let lost = Unanswered::from(Failure::from_io(&error).before_response());
        // Where not even the first byte went out, the server has not read it; what TLS has taken
        // may have gone out in part.
        let lost = match self.sent == 0 && matches!(stream, Transport::Plain(_)) {
            true => lost.with(Again::Unsent),
            false => lost,
        };
        if lost.failure != Failure::ClosedBeforeResponse {
            return Poll::Ready(Err(lost));
        }
        self.closed = Some(lost);
        Poll::Ready(Ok(()))
    }

    /// What a failure to read says of the request.
    pub fn lost(&self, failure: Failure) -> Unanswered {
        match (failure, self.closed) {
            (Failure::ClosedBeforeResponse, Some(closed)) => closed,
            (failure, _) => failure.into(),
        }
    }

    fn poll_all(&mut self, stream: &mut Transport, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(left) = self.left() {
            let sent = ready!(Pin::new(&mut *stream).poll_write(cx, left))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += sent;
        }
        Pin::new(stream).poll_flush(cx)
    }

    /// What goes next; none where everything was taken.
    fn left(&self) -> Option<&'a [u8]> {
        let Parts { begin, rest } = self.request;
        let left = match self.sent.checked_sub(begin.len()) {
            None => &begin[self.sent..],
            Some(sent) => &rest[sent..],
        };
        (!left.is_empty()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_goes_behind_the_other() {
        let mut sending = Sending::new(Parts {
            begin: b"head",
            rest: b"body",
        });
        let mut left = Vec::new();
        for sent in [0, 1, 3, 4, 7, 8] {
            sending.sent = sent;
            left.push(sending.left());
        }
        let expected: [Option<&[u8]>; 6] = [
            Some(b"head"),
            Some(b"ead"),
            Some(b"d"),
            Some(b"body"),
            Some(b"y"),
            None,
        ];
        assert_eq!(left, expected);
        let whole: &[u8] = b"head";
        let mut sending = Sending::new(whole.into());
        sending.sent = 4;
        assert_eq!(sending.left(), None);
    }
}
