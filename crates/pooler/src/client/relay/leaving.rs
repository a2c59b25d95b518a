//! A client that leaves in the middle of a transaction: what was sent before is worked off, and
//! what cannot commit anything is not waited for without end.

use super::{End, Relay};
use sooner_postgres::wire::write_terminate;
use std::future::Future;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::sleep;

/// How long what cannot commit anything may go on for a client that is gone.
const GRACE: Duration = Duration::from_secs(2);

/// Why nothing more is taken from a client, while what came before is worked off.
#[derive(Debug)]
pub(super) enum Leaving {
    /// It has said goodbye, or sent what ends its session.
    Goodbye,
    /// Its connection is at its end.
    Gone,
    /// It has sent what cannot be understood.
    Broke(String),
}

impl Relay<'_, '_> {
    /// Whether a client that leaves can go; what is asked of the server for that begins to be
    /// written.
    pub(super) fn poll_leaving(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let Some(leaving) = &self.leaving else {
            return Poll::Pending;
        };
        let is_settled = self.rewriter.is_settled() && self.to_client.is_empty();
        let written_bytes = self.to_server.len();
        match leaving {
            Leaving::Broke(_) if is_settled => {
                return self.left().map_or(Poll::Pending, Poll::Ready);
            }
            Leaving::Broke(_) => self.rewriter.flush(&mut self.to_server),
            _ if self.has_terminated || self.is_over_but_for_output() => {}
            _ if !self.from_client.is_between_messages() => return self.poll_cut_off(cx),
            _ if is_settled || self.rewriter.is_unsynced() => {
                // It may have to answer first, and rolls back what is open.
                write_terminate(&mut self.to_server);
                self.has_terminated = true;
            }
            _ => {}
        }
        if self.to_server.len() > written_bytes {
            cx.waker().wake_by_ref();
        }
        self.poll_grace(cx)
    }

    /// The rest of a message never comes: the server is to see the same of it, behind what it has
    /// yet to do.
    pub(super) fn poll_cut_off(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.to_server.is_empty() && self.server.stream.is_flushed() {
            // Where that fails the server is gone, which reading it tells.
            self.has_terminated = self.server.stream.poll_end(cx).is_ready();
        }
        self.poll_grace(cx)
    }

    /// How long what runs for a client that is gone may still take.
    pub(super) fn poll_grace(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.is_gone() && !self.rewriter.may_commit() {
            let grace = self.grace.get_or_insert_with(|| Box::pin(sleep(GRACE)));
            return grace.as_mut().poll(cx).map(|()| End::ClientLeft);
        }
        Poll::Pending
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.leaving, Some(Leaving::Gone))
    }

    /// How it ends for a client that leaves.
    pub(super) fn left(&mut self) -> Option<End> {
        Some(match self.leaving.take()? {
            Leaving::Broke(what) => End::ClientBroke(what),
            Leaving::Goodbye | Leaving::Gone => End::ClientLeft,
        })
    }

    pub(super) fn leave(&mut self, leaving: Leaving) {
        self.leaving.get_or_insert(leaving);
    }
}
