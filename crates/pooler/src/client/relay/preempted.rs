//! A transaction that has to make room: one statement that its client has heard nothing of is sent
//! again, all else is rolled back and its client hears why.

use super::{End, Relay};
use bytes::BytesMut;
use sooner_postgres::preemption::Taken;
use sooner_postgres::rewriter::CANCELLED;
use sooner_postgres::wire::code_of_error;
use std::time::Instant;

impl Relay<'_, '_> {
    /// Whether a transaction is open and its client does nothing.
    pub(super) fn can_roll_back(&self) -> bool {
        self.rewriter.is_idle_in_transaction()
            && !self.rewriter.is_unsynced()
            && self.leaving.is_none()
            && self.input.is_empty()
            && self.from_client.is_between_messages()
            && self.from_server.is_between_messages()
            && self.to_server.is_empty()
            && self.to_client.is_empty()
            && self.unwritable.is_none()
            && self.server.stream.is_flushed()
    }

    /// How it ends where all is answered. What is sent again is so for a client that is gone as well:
    /// it may commit something.
    pub(super) fn over(&mut self) -> End {
        let again = self.repeatable.take().filter(|_| self.swallows);
        match again {
            Some(cycle) => End::Again(cycle),
            None => self.left().unwrap_or(End::Over),
        }
    }

    /// Whether all that is to be sent again has been taken, so that what comes now is behind it.
    pub(super) fn has_all_to_repeat(&self) -> bool {
        let taken = |cycle: &BytesMut| self.received_bytes >= cycle.len() as u64;
        self.swallows && self.repeatable.as_ref().is_some_and(taken)
    }

    /// Whether its transaction has failed for others, and the server has not yet done all that it was
    /// told for that: what comes now would be cancelled in place of what was meant.
    pub(super) fn waits_for_cancel(&self) -> bool {
        self.has_made_room && !self.swallows && self.handle.preemption.is_on_its_way()
    }

    /// Keeps what the client has sent if it can be sent again, for as long as the client has heard
    /// nothing of it.
    pub(super) fn keep_cycle(&mut self) {
        let preemption = &self.handle.preemption;
        if preemption.running.get().is_some() && self.rewriter.is_repeatable(self.input) {
            self.repeatable = Some(BytesMut::from(&self.input[..]));
            preemption.is_repeatable.set(true);
        }
    }

    pub(super) fn forget_cycle(&mut self) {
        if !self.swallows && self.repeatable.take().is_some() {
            self.handle.preemption.is_repeatable.set(false);
        }
    }

    /// The server has cancelled what runs: perhaps because others need its locks.
    pub(super) fn note_cancelled(&mut self) {
        let preemption = &self.handle.preemption;
        let Some(taken) = preemption.ordered(Instant::now()) else {
            return;
        };
        if preemption.is_cancelled_by_client() {
            return;
        }
        let was_spared = preemption.is_spared();
        preemption.made_room();
        self.has_made_room = true;
        if taken == Taken::Again && self.repeatable.is_some() && !was_spared {
            self.swallows = true;
            keep_unasked(&mut self.to_client);
            keep_unasked(&mut self.kept_back);
        } else {
            self.rewriter.preempt();
        }
    }
}

/// Leaves of whole messages to a client those that are no answers: notifications and settings.
fn keep_unasked(messages: &mut BytesMut) {
    let mut rest = std::mem::take(messages);
    while let [tag, a, b, c, d, ..] = rest[..] {
        let bytes = 1 + u32::from_be_bytes([a, b, c, d]) as usize;
        let message = rest.split_to(bytes.min(rest.len()));
        if is_unasked(tag) {
            messages.unsplit(message);
        }
    }
}

/// Whether a message of the server's is no answer.
pub(super) fn is_unasked(tag: u8) -> bool {
    matches!(tag, b'A' | b'S')
}

/// Whether this begins with all of an error that says that a statement was cancelled.
pub(super) fn is_cancelled(input: &[u8]) -> bool {
    let [b'E', a, b, c, d, ..] = input else {
        return false;
    };
    let bytes = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
    input.len() > bytes && code_of_error(input) == CANCELLED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_answer_is_left() {
        let mut messages = BytesMut::from(&b"1\0\0\0\x04A\0\0\0\x06xyS\0\0\0\x05zC\0\0\0\x05w"[..]);
        keep_unasked(&mut messages);
        assert_eq!(messages, &b"A\0\0\0\x06xyS\0\0\0\x05z"[..]);
    }
}
