//! What a connection's streams have handed over and its socket has not sent.
//!
//! A connection with much of it gets no more grants, or a slow client would collect them while
//! others could use the link. What was handed over lies in the HTTP/2 engine until the socket takes
//! it. How much of what the socket takes is frames and TLS records is not known here, so the count
//! can only be too low while the engine is busy, and is exact again when it has written everything.
//!
//! The engine flushes when it has written everything, but also between frames. A flush after which
//! it writes on was not the last: then what was outstanding before it still was.

use sooner_policy::Time;

/// The state of one connection.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    /// Handed over by streams and not written to the socket.
    outstanding_bytes: u64,
    /// What was outstanding at the latest flush, until something shows that it was the last one.
    unconfirmed_bytes: u64,
    /// Written to the socket, and still in it: a window is shut.
    unsent_bytes: u64,
    backed_up_since: Option<Time>,
    backed_up_ns: u64,
}

impl SendBuffer {
    /// A stream hands over `bytes` of payload.
    pub(crate) fn hand_over(&mut self, bytes: u64) {
        self.unconfirmed_bytes = 0;
        self.outstanding_bytes += bytes;
    }

    /// The engine wrote (or tried to write) to the socket, which took `written_bytes`; `sent_bytes`
    /// have left it.
    pub(crate) fn write(&mut self, written_bytes: u64, sent_bytes: u64) {
        let outstanding_bytes =
            self.outstanding_bytes + std::mem::take(&mut self.unconfirmed_bytes);
        self.outstanding_bytes = outstanding_bytes.saturating_sub(written_bytes);
        self.unsent_bytes += written_bytes;
        self.send(sent_bytes);
    }

    /// `sent_bytes` have left the socket by themselves.
    pub(crate) fn send(&mut self, sent_bytes: u64) {
        self.unsent_bytes = self.unsent_bytes.saturating_sub(sent_bytes);
    }

    /// The engine flushed.
    pub(crate) fn flush(&mut self) {
        self.unconfirmed_bytes = std::mem::take(&mut self.outstanding_bytes);
    }

    /// Whether the connection has enough to send: more than `limit_bytes` handed over, or a socket
    /// that sends nothing.
    pub(crate) fn has_enough(&self, limit_bytes: u64) -> bool {
        self.outstanding_bytes > limit_bytes || self.unsent_bytes > 0
    }

    /// Whether the connection was last said to be backed up.
    pub(crate) fn is_backed_up(&self) -> bool {
        self.backed_up_since.is_some()
    }

    /// Notes whether the connection is backed up; returns whether that is new.
    pub(crate) fn note_backed_up(&mut self, is_backed_up: bool, now: Time) -> bool {
        if is_backed_up == self.is_backed_up() {
            return false;
        }
        self.backed_up_ns = self.backed_up_ns_at(now);
        self.backed_up_since = is_backed_up.then_some(now);
        true
    }

    /// For how long in all the connection was backed up, ns.
    pub(crate) fn backed_up_ns_at(&self, now: Time) -> u64 {
        self.backed_up_ns + self.backed_up_since.map_or(0, |since| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 100;

    #[test]
    fn what_is_handed_over_is_enough_until_it_is_written() {
        let mut buffer = SendBuffer::default();
        buffer.hand_over(101);
        assert!(buffer.has_enough(LIMIT));
        buffer.write(20, 20);
        assert!(!buffer.has_enough(LIMIT));
    }

    #[test]
    fn what_lies_in_the_socket_is_enough() {
        let mut buffer = SendBuffer::default();
        buffer.hand_over(10);
        buffer.write(19, 12);
        assert!(buffer.has_enough(LIMIT));
        buffer.send(7);
        assert!(!buffer.has_enough(LIMIT));
    }

    #[test]
    fn a_flush_between_frames_is_not_the_last() {
        let mut buffer = SendBuffer::default();
        buffer.hand_over(300);
        buffer.write(100, 100);
        buffer.flush();
        assert!(!buffer.has_enough(LIMIT));
        buffer.write(0, 0);
        assert!(buffer.has_enough(LIMIT), "200 are still to be written");
        buffer.write(200, 200);
        assert!(!buffer.has_enough(0));
    }

    #[test]
    fn what_the_engine_dropped_is_forgotten() {
        let mut buffer = SendBuffer::default();
        buffer.hand_over(300);
        buffer.flush();
        // Nothing was written since the first.
        buffer.flush();
        buffer.write(5, 5);
        assert!(!buffer.has_enough(LIMIT));
        buffer.hand_over(300);
        buffer.flush();
        buffer.hand_over(50);
        buffer.write(59, 59);
        assert!(
            !buffer.has_enough(0),
            "what was dropped is not counted twice"
        );
    }

    #[test]
    fn the_time_backed_up_adds_up() {
        let mut buffer = SendBuffer::default();
        let at = Time::from_ns;
        assert!(buffer.note_backed_up(true, at(10)));
        assert!(!buffer.note_backed_up(true, at(20)));
        assert_eq!(buffer.backed_up_ns_at(at(30)), 20);
        assert!(buffer.note_backed_up(false, at(40)));
        assert_eq!(buffer.backed_up_ns_at(at(90)), 30);
    }
}
