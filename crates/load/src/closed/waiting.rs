//! Which connections still wait when a closed loop ends: each has a request under way then, but one
//! that hangs is in no other figure.

use sooner_kernel::clock::monotonic_ns;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

/// A request that is as new as this may be answered soon, ns; in a shorter window it is the window.
const SILENCE_MIN_NS: u64 = 1_000_000_000;
/// So is one that is younger than this part of the window.
const WINDOW_PART: u64 = 4;
/// Or than so many times the longest response.
const LONGEST_TIMES: u64 = 2;

/// One stream of requests.
pub struct Watched {
    connection: u32,
    /// When the request under way was sent, or a byte of its body came last; none between two.
    since_ns: Cell<Option<u64>>,
    has_body: Cell<bool>,
}

/// All of a run.
#[derive(Default)]
pub struct Watch(RefCell<Vec<Rc<Watched>>>);

/// Connections that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How many.
    pub connections: u64,
    /// How long one of them has been silent, at most.
    pub silent_ns: u64,
}

impl Watch {
    /// One more stream, on this connection.
    pub fn stream(&self, connection: u32) -> Rc<Watched> {
        let watched = Rc::new(Watched {
            connection,
            since_ns: Cell::new(None),
            has_body: Cell::new(false),
        });
        self.0.borrow_mut().push(watched.clone());
        watched
    }

    /// Those that wait at the end of a window with this longest response. A body that has
    /// begun may stand still as long as a slow link or another's turn lasts, but not all the time.
    pub fn waiting(&self, now_ns: u64, window_ns: u64, longest_ns: u64) -> Waiting {
        let silence_ns = SILENCE_MIN_NS
            .min(window_ns)
            .max(window_ns / WINDOW_PART)
            .max(longest_ns.saturating_mul(LONGEST_TIMES));
        let mut silent = BTreeMap::new();
        for stream in self.0.borrow().iter() {
            let Some(since_ns) = stream.since_ns.get() else {
                continue;
            };
            let silent_ns = now_ns.saturating_sub(since_ns);
            let limit_ns = match stream.has_body.get() {
                true => window_ns,
                false => silence_ns,
            };
            if silent_ns >= limit_ns {
                let longest = silent.entry(stream.connection).or_insert(0);
                *longest = silent_ns.max(*longest);
            }
        }
        Waiting {
            connections: silent.len() as u64,
            silent_ns: silent.into_values().max().unwrap_or(0),
        }
    }
}

impl Watched {
    /// Waits for a request that is `asked` at `start_ns`. Body bytes that are received while it is
    /// polled are its own: nothing else runs then.
    pub async fn over<T>(
        &self,
        start_ns: u64,
        body_bytes: impl Fn() -> u64,
        asked: impl Future<Output = T>,
    ) -> T {
        self.since_ns.set(Some(start_ns));
        self.has_body.set(false);
        let mut asked = pin!(asked);
        poll_fn(|cx| {
            let before = body_bytes();
            let polled = asked.as_mut().poll(cx);
            if body_bytes() != before {
                self.since_ns.set(Some(monotonic_ns()));
                self.has_body.set(true);
            }
            polled
        })
        .await
    }

    /// It is over, answered or not.
    pub fn ended(&self) {
        self.since_ns.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn who_has_been_silent_for_long_waits() {
        let watch = Watch::default();
        let streams = [0, 0, 1, 2].map(|connection| watch.stream(connection));
        let at = |seconds: u64| watch.waiting(seconds * SECOND_NS, 8 * SECOND_NS, 0);
        assert_eq!(at(100), Waiting::default());
        for stream in &streams {
            stream.since_ns.set(Some(0));
        }
        streams[2].has_body.set(true);
        streams[3].since_ns.set(Some(9 * SECOND_NS));
        assert_eq!(at(1).connections, 0);
        assert_eq!(at(2).connections, 1);
        assert_eq!(at(8).connections, 2);
        let all = at(11);
        assert_eq!((all.connections, all.silent_ns), (3, 11 * SECOND_NS));
        // Responses take so long here.
        let slow = watch.waiting(7 * SECOND_NS, 8 * SECOND_NS, 4 * SECOND_NS);
        assert_eq!(slow.connections, 0);
        // In a window below a second all of it counts.
        let short = |ns| watch.waiting(ns, SECOND_NS / 2, 0).connections;
        assert_eq!((short(SECOND_NS / 4), short(SECOND_NS / 2)), (0, 2));
    }
}
