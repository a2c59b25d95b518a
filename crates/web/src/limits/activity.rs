//! What a connection is doing, and since when: written by its stream a few times a request, read
//! once a second.
//!
//! A request changes it four times, so a change costs two plain stores and no look at a clock: time
//! comes from a coarse clock that the reader puts forward. It is shared with streams that may move
//! between threads, hence the atomics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It has been answered and asks for nothing.
    Idle,
    /// It is sending a request head, or is new and should.
    Head,
    /// Its request is at hand: whatever takes time now is not the client's to hurry.
    InFlight,
    /// It has had its last answer; what its client still sends is thrown away.
    Lingering,
}

/// A time that is put forward from outside, ms.
#[derive(Debug, Default)]
pub struct CoarseClock(AtomicU64);

impl CoarseClock {
    /// It is `now_ms`.
    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::Relaxed);
    }

    /// The time it was set to, ms.
    pub fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one connection is doing.
#[derive(Debug)]
pub struct Activity {
    phase: AtomicU8,
    since_ms: AtomicU64,
    is_response_ended: AtomicBool,
    has_requested: AtomicBool,
    is_sending: AtomicBool,
    is_switched: AtomicBool,
    is_awaiting: AtomicBool,
    is_unflushed: AtomicBool,
    clock: Arc<CoarseClock>,
}

impl Activity {
    /// A new connection, which should send a request head.
    pub fn new(clock: &Arc<CoarseClock>) -> Self {
        Self {
            phase: AtomicU8::new(Phase::Head as u8),
            since_ms: AtomicU64::new(clock.now_ms()),
            is_response_ended: AtomicBool::new(false),
            has_requested: AtomicBool::new(false),
            is_sending: AtomicBool::new(false),
            is_switched: AtomicBool::new(false),
            is_awaiting: AtomicBool::new(false),
            is_unflushed: AtomicBool::new(false),
            clock: clock.clone(),
        }
    }

    /// What it does now.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            phase if phase == Phase::Idle as u8 => Phase::Idle,
            phase if phase == Phase::Head as u8 => Phase::Head,
            phase if phase == Phase::Lingering as u8 => Phase::Lingering,
            _ => Phase::InFlight,
        }
    }

    /// How long it has been doing that, ms; within the clock's steps.
    pub fn phase_ms(&self) -> u64 {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        self.clock.now_ms().saturating_sub(since_ms)
    }

    /// Bytes came in: after a silence, the start of a request head.
    pub fn received(&self) {
        self.set_sending(true);
        if self.phase() == Phase::Idle {
            self.set_phase(Phase::Head);
        }
    }

    /// A request is at hand; the connection is not idle before it is answered.
    pub fn request_started(&self) {
        self.has_requested.store(true, Ordering::Relaxed);
        self.is_response_ended.store(false, Ordering::Relaxed);
        self.set_phase(Phase::InFlight);
    }

    /// Whether it came to nothing so far: not a request, and not the beginning of one that is
    /// waited for.
    pub fn has_no_request(&self) -> bool {
        self.phase() == Phase::Idle && !self.has_requested.load(Ordering::Relaxed)
    }

    /// All bytes of the answer were given to the connection; when they are flushed it is idle.
    pub fn response_ended(&self) {
        self.is_response_ended.store(true, Ordering::Relaxed);
    }

    /// What was written has gone to the socket.
    pub fn flushed(&self) {
        self.is_unflushed.store(false, Ordering::Relaxed);
        if self.is_response_ended.load(Ordering::Relaxed) {
            self.is_response_ended.store(false, Ordering::Relaxed);
            self.set_phase(Phase::Idle);
        }
    }

    /// Something of an answer may be on its way to the socket.
    pub fn expect_flush(&self) {
        self.is_unflushed.store(true, Ordering::Relaxed);
    }

    /// Whether all that was on its way at the last [`Self::expect_flush`] has gone to the socket.
    pub fn is_flushed(&self) -> bool {
        !self.is_unflushed.load(Ordering::Relaxed)
    }

    /// Whether the client may be in the middle of sending something: a request head, a body, or
    /// frames.
    pub fn is_sending(&self) -> bool {
        self.is_sending.load(Ordering::Relaxed)
    }

    /// Notes whether the client may be in the middle of sending something.
    pub fn set_sending(&self, is_sending: bool) {
        self.is_sending.store(is_sending, Ordering::Relaxed);
    }

    /// It is to end. If no request is open, nothing is on its way either: a body that was read to
    /// its end leaves no mark.
    pub fn drain(&self) {
        if self.phase() == Phase::Idle {
            self.set_sending(false);
        }
    }

    /// Whether every request so far has had its answer, and the client sends no other one yet.
    pub fn is_idle(&self) -> bool {
        self.phase() == Phase::Idle
    }

    /// It speaks another protocol from now on.
    pub fn switch(&self) {
        self.is_switched.store(true, Ordering::Relaxed);
    }

    /// Whether it speaks another protocol.
    pub fn is_switched(&self) -> bool {
        self.is_switched.load(Ordering::Relaxed)
    }

    /// Whether a request waits for what a backend answers.
    pub fn is_awaiting(&self) -> bool {
        self.is_awaiting.load(Ordering::Relaxed)
    }

    /// Notes whether a request waits for what a backend answers.
    pub fn set_awaiting(&self, is_awaiting: bool) {
        self.is_awaiting.store(is_awaiting, Ordering::Relaxed);
    }

    /// It has had its last answer.
    pub fn linger(&self) {
        self.set_phase(Phase::Lingering);
    }

    /// Whether it has had its last answer, and is kept only so that this answer is not lost.
    pub fn is_lingering(&self) -> bool {
        self.phase() == Phase::Lingering
    }

    /// It does `phase` from now on.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.since_ms.store(self.clock.now_ms(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_idle_when_its_answer_is_flushed() {
        let clock = Arc::<CoarseClock>::default();
        let activity = Activity::new(&clock);
        assert_eq!(activity.phase(), Phase::Head);
        activity.request_started();
        activity.flushed();
        assert_eq!(activity.phase(), Phase::InFlight);
        activity.response_ended();
        activity.expect_flush();
        assert!(!activity.is_flushed());
        assert_eq!(activity.phase(), Phase::InFlight);
        activity.flushed();
        assert!(activity.is_flushed());
        assert_eq!((activity.phase(), activity.phase_ms()), (Phase::Idle, 0));
        clock.set(3_000);
        assert_eq!(activity.phase_ms(), 3_000);
        activity.received();
        assert_eq!((activity.phase(), activity.phase_ms()), (Phase::Head, 0));
        clock.set(5_000);
        activity.received();
        assert_eq!(activity.phase_ms(), 2_000, "the head began once");
    }
}
