//! Whether a server's requests are counted by their beginnings, or by the sleeps of its workers.

use crate::reading::Ended;

/// A sleep ends a request where that has used so much, ns: a thread that only looks whether there is
/// something to do uses less.
const SIGN_MIN_NS: u64 = 1_000_000;
/// So many of them without a beginning show that the programs see none of this server.
const SIGNS: u32 = 16;
/// And none before this, ns.
const AWAITED_NS: u64 = 10_000_000_000;

/// What is known of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// Programs run, and no request of this server has begun yet.
    Awaited {
        /// The first sleep that may have ended a request.
        since_ns: Option<u64>,
        /// How many there were.
        signs: u32,
    },
    /// Only what begins by an event is a request.
    Seen,
    /// No program tells of them, or not of this server's.
    Unseen,
}

impl Begins {
    /// At the start.
    pub fn new(has_programs: bool) -> Begins {
        match has_programs {
            true => Begins::Awaited {
                since_ns: None,
                signs: 0,
            },
            false => Begins::Unseen,
        }
    }

    /// A beginning was seen; gives whether what sleeps have counted is to be forgotten.
    pub fn see(&mut self) -> bool {
        std::mem::replace(self, Begins::Seen) == Begins::Unseen
    }

    /// Whether a request that a sleep seems to have ended counts.
    pub fn counts(&mut self, ended: &Ended, now_ns: u64) -> bool {
        let Begins::Awaited { since_ns, signs } = self else {
            return *self == Begins::Unseen;
        };
        if ended.used_ns < SIGN_MIN_NS {
            return false;
        }
        *signs += 1;
        let since_ns = *since_ns.get_or_insert(now_ns);
        if *signs < SIGNS || now_ns.saturating_sub(since_ns) < AWAITED_NS {
            return false;
        }
        *self = Begins::Unseen;
        true
    }
}
