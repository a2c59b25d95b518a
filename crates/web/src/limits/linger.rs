//! How long a connection that has had its last answer is still read from (RFC 9112, 9.6).
//!
//! Pure. An answer may come before the request is over: the body is too long, the method is wrong,
//! the path is refused. When the socket is then closed while bytes of the client lie in it unread,
//! or more come later, the system answers them with a reset, and a client that gets one may throw
//! away the response it has not read yet. So this side says that it has nothing more to send, and
//! goes on reading, keeping nothing, until the client closes too; but a client that does not may
//! not hold the connection for long.

use sooner_policy::Time;

/// The most in all, ns: 30 s, in which a client with a link of its own has long seen the answer
/// (nginx's `lingering_time` is the same).
const TIME_NS_MAX: u64 = 30_000_000_000;
/// The longest without a byte, ns: 5 s are many round trips; a client that sends nothing has
/// nothing on the way (nginx's `lingering_timeout`).
const SILENCE_NS_MAX: u64 = 5_000_000_000;

/// How long one connection lingers.
#[derive(Debug, Clone, Copy)]
pub struct Linger {
    ends_at: Time,
    is_silent_until: Time,
    left_bytes: u64,
}

impl Linger {
    /// Lingering that begins `now` and ends with the byte after `bytes_max`.
    pub fn begin(bytes_max: u64, now: Time) -> Self {
        Self {
            ends_at: now.after(TIME_NS_MAX),
            is_silent_until: now.after(SILENCE_NS_MAX),
            left_bytes: bytes_max,
        }
    }

    /// The client sent `bytes`, which are discarded.
    pub fn received(&mut self, bytes: usize, now: Time) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes as u64);
        self.is_silent_until = now.after(SILENCE_NS_MAX);
    }

    /// Whether the client has sent as much as it may.
    pub fn is_over(&self) -> bool {
        self.left_bytes == 0
    }

    /// When it is over if nothing more comes.
    pub fn deadline(&self) -> Time {
        self.ends_at.min(self.is_silent_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_ns(seconds * 1_000_000_000)
    }

    #[test]
    fn the_silent_are_left_soon_and_the_others_in_the_end() {
        let mut linger = Linger::begin(1 << 20, at(100));
        assert_eq!(linger.deadline(), at(105));
        for seconds in (104..=128).step_by(4) {
            linger.received(1, at(seconds));
        }
        assert_eq!(linger.deadline(), at(130));
        assert!(!linger.is_over());
    }

    #[test]
    fn bytes_are_bounded() {
        let mut linger = Linger::begin(1000, at(0));
        linger.received(999, at(0));
        assert!(!linger.is_over());
        linger.received(1, at(0));
        assert!(linger.is_over());
        linger.received(usize::MAX, at(0));
        assert!(linger.is_over());
    }
}
