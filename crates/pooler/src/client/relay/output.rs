//! What goes to the client: as much as it takes of what the server would have sent by now, and
//! where in the server's messages the client is then. One that has heard a part of a message takes
//! whatever comes next for the rest of it, so it is told nothing more.

use super::leaving::Leaving;
use super::{End, Relay, Step};
use crate::stream::Stream;
use bytes::{Buf, BytesMut};
use sooner_postgres::wire::{Part, Piece};
use std::io;
use std::task::{Context, Poll};

/// What a server keeps of its answers before it sends them unasked (PQ_SEND_BUFFER_SIZE in its
/// `pqcomm.c`).
const SEND_BUFFER_BYTES: usize = 8192;

/// What is thrown away for a client that is gone before its command is cancelled.
const UNREAD_BYTES: u64 = 1 << 20;

/// What has begun to come of the server's messages and is not whole.
#[derive(Default)]
pub(super) struct Begun {
    /// What has come for the client of the message that is not whole yet.
    bytes: usize,
    /// Whether what is kept back begins with a message, of which the client has heard nothing.
    is_kept_whole: bool,
}

impl Begun {
    /// Notes a piece of which so much is shown to the client; `begins_kept` where nothing was kept
    /// back before it.
    pub(super) fn note(&mut self, piece: &Piece<'_>, shown_bytes: usize, begins_kept: bool) {
        let is_first = piece.part == Part::First;
        if begins_kept {
            self.is_kept_whole = is_first;
        }
        let before = if is_first { 0 } else { self.bytes };
        self.bytes = if piece.is_last {
            0
        } else {
            before + shown_bytes
        };
    }
}

impl Relay<'_, '_> {
    /// Whether the client has heard a part of a message and not the rest; also where it does not
    /// read, as PostgreSQL tells such a client nothing.
    pub(super) fn is_cut_off(&self) -> bool {
        let unwritten_bytes = self.to_client.len() + self.kept_back.len();
        let has_heard_all = unwritten_bytes == self.begun.bytes;
        let is_before_kept =
            self.to_client.is_empty() && !self.kept_back.is_empty() && self.begun.is_kept_whole;
        !(has_heard_all || is_before_kept)
    }

    /// An end that nothing asked for; what the server said before it is lost goes to the client.
    pub(super) fn ended(&mut self, end: End, cx: &mut Context<'_>) -> End {
        if matches!(end, End::ServerBroke(_)) && !self.is_unread {
            // That it cannot be written is the end as well.
            let _ = flush((&mut *self.client, &mut self.to_client), cx);
        }
        end
    }

    /// What a client does not read that is gone is thrown away, up to a bound.
    pub(super) fn flush_client(&mut self, cx: &mut Context<'_>) -> Step {
        self.release();
        if !self.is_unread {
            match flush((&mut *self.client, &mut self.to_client), cx) {
                Ok(moved) => {
                    if moved {
                        self.forget_cycle();
                    }
                    return Ok(moved);
                }
                Err(_) => self.is_unread = true,
            }
            self.leave(Leaving::Gone);
        }
        self.unread_bytes += self.to_client.len() as u64;
        let moved = !self.to_client.is_empty();
        self.to_client.clear();
        if self.unread_bytes > UNREAD_BYTES {
            Err(End::ClientLeft)
        } else {
            Ok(moved)
        }
    }

    /// What the server would have sent by now goes to the client: all, or as much as its buffer
    /// sends each time that it is full.
    pub(super) fn release(&mut self) {
        let is_due = !self.rewriter.is_hurried()
            || self.rewriter.is_flushed()
            || matches!(self.leaving, Some(Leaving::Broke(_)));
        let later_bytes = if is_due {
            0
        } else {
            self.unflushed_bytes % SEND_BUFFER_BYTES
        };
        let due_bytes = self.kept_back.len().saturating_sub(later_bytes);
        if due_bytes > 0 {
            self.to_client
                .extend_from_slice(&self.kept_back[..due_bytes]);
            self.kept_back.advance(due_bytes);
            self.begun.is_kept_whole = false;
        }
        if self.rewriter.is_flushed() {
            self.unflushed_bytes = 0;
        }
    }
}

/// Writes what can be written.
pub(super) fn flush(
    (stream, output): (&mut Stream, &mut BytesMut),
    cx: &mut Context<'_>,
) -> io::Result<bool> {
    let mut moved = false;
    while !(output.is_empty() && stream.is_flushed()) {
        match stream.poll_flush_some(cx, output) {
            Poll::Pending => break,
            Poll::Ready(written) => written?,
        }
        moved = true;
    }
    Ok(moved)
}
