//! Whether the client's windows, its stream's and its connection's, let a stream send now.
//!
//! The library does not say how large a window is. What can be done is to reserve some of it, look
//! how much that gave, and give it back, all in one go. A stream that got nothing asks for one byte
//! more than it has, as that is how the library tells that a window has opened. As long as a stream
//! waits for its turn it reserves nothing: see the [module](super).
//!
//! Windows that open by a few bytes are not worth a frame and a turn. A stream keeps what little it
//! got until there is more, and sends it when nothing more has come for a while (RFC 1122, 4.2.3.4
//! has the same rule for TCP).

use bytes::Bytes;
use h2::SendStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Worth a frame: twice what the frame and its TLS record add.
const WORTH_BYTES: usize = 64;
/// How long more is waited for where less is to be had.
const MORE_WAIT: Duration = Duration::from_millis(100);

/// What a stream knows of its client's windows.
pub struct Windows {
    patience: Duration,
    shut: Option<Shut>,
    /// Nothing more came: whatever there is will be sent.
    takes_anything: bool,
}

/// Windows that are shut, or open by less than is worth a frame.
struct Shut {
    held_bytes: usize,
    timer: Pin<Box<Sleep>>,
}

/// Why a stream will not send any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The client took the request back, or is gone.
    Reset,
    /// The windows stayed shut for as long as the patience.
    Stalled,
}

impl Windows {
    /// Windows that are taken for open until a look at them says otherwise; they may stay shut for
    /// `patience`.
    pub fn new(patience: Duration) -> Self {
        Self {
            patience,
            shut: None,
            takes_anything: false,
        }
    }

    /// Ready when a turn of `wanted_bytes` could be used, as far as is known.
    pub fn poll_open(
        &mut self,
        stream: &mut SendStream<Bytes>,
        wanted_bytes: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Closed>> {
        while let Some(shut) = &mut self.shut {
            match stream.poll_capacity(cx) {
                Poll::Ready(Some(Ok(_))) => {
                    let available_bytes = probe(stream, wanted_bytes);
                    if available_bytes >= WORTH_BYTES.min(wanted_bytes) {
                        self.shut = None;
                        stream.reserve_capacity(0);
                    } else {
                        shut.keep(stream, available_bytes);
                    }
                }
                Poll::Ready(_) => return Poll::Ready(Err(Closed::Reset)),
                Poll::Pending => {
                    ready!(shut.timer.as_mut().poll(cx));
                    if shut.held_bytes == 0 {
                        return Poll::Ready(Err(Closed::Stalled));
                    }
                    self.takes_anything = true;
                    self.shut = None;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reserves up to `bytes` for a turn that has come; returns how much may be sent. If that is
    /// nothing the windows are shut from now on.
    pub fn reserve(&mut self, stream: &mut SendStream<Bytes>, bytes: usize) -> usize {
        let available_bytes = probe(stream, bytes);
        let least_bytes = if std::mem::take(&mut self.takes_anything) {
            1
        } else {
            WORTH_BYTES.min(bytes)
        };
        if available_bytes >= least_bytes {
            return available_bytes;
        }
        let mut shut = Shut {
            held_bytes: 0,
            timer: Box::pin(sleep(self.patience)),
        };
        shut.keep(stream, available_bytes);
        self.shut = Some(shut);
        0
    }
}

impl Shut {
    /// Keeps the `bytes` there are, and waits for more.
    fn keep(&mut self, stream: &mut SendStream<Bytes>, bytes: usize) {
        stream.reserve_capacity(bytes + 1);
        if self.held_bytes == 0 && bytes > 0 {
            self.timer.as_mut().reset(Instant::now() + MORE_WAIT);
        }
        self.held_bytes = bytes;
    }
}

/// Reserves `bytes`, or as much of it as there is.
fn probe(stream: &mut SendStream<Bytes>, bytes: usize) -> usize {
    stream.reserve_capacity(bytes);
    stream.capacity().min(bytes)
}
