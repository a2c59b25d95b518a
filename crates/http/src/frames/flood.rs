//! What a client may send beyond its share: frames that request nothing, and requests it resets.
//!
//! Both are supplies that refill with time; a client that uses one up is told to calm down.

use super::kind;
use sooner_policy::Time;

/// Frames that a client may send at once before it has got anything.
const FRAMES: u32 = 1_000;
/// The most that a client can save up: two window updates for each frame of a window of 1 GiB.
const FRAMES_MAX: u32 = 2 * 65_536;
/// One more frame in this time: 100 a second.
const FRAME_REFILL_NS: u64 = 10_000_000;
/// For each request: its priority, its windows, its end.
const FRAMES_PER_REQUEST: u32 = 8;
/// For each DATA frame sent to the client: both of its windows, twice each.
const FRAMES_PER_DATA_FRAME: u32 = 4;
/// A client that reads little at a time opens windows by little.
const DATA_BYTES_PER_FRAME: u64 = 1_024;
/// Of a long frame each so many bytes count as one more.
const PAYLOAD_BYTES_PER_FRAME: u32 = 1_024;

/// A page that is left takes back its requests, twice in a row.
const RESETS_PER_STREAM: u32 = 2;
/// Dragging the position of a film around takes back several requests a second.
const RESET_REFILL_NS: u64 = 50_000_000;

/// The frames without a request that one client may still send.
///
/// PING, SETTINGS, PRIORITY, PRIORITY_UPDATE, WINDOW_UPDATE, RST_STREAM and frames of unknown types
/// cost a client a few bytes and the server a look, and often a reply. Clients that keep the rules
/// send few of them by themselves, and more with what they get: a window is opened with every piece
/// of a body, a connection is measured while it is busy. So the supply refills with time, with each
/// request, and with what is sent.
#[derive(Debug)]
pub struct FrameBudget {
    left: u32,
    refilled_at: Time,
}

impl FrameBudget {
    /// The budget of a connection that begins now.
    pub fn new(now: Time) -> Self {
        Self {
            left: FRAMES,
            refilled_at: now,
        }
    }

    /// The client sent a frame of `kind`; false when that was one too many. Reads the time only
    /// when short.
    pub fn spend(&mut self, kind: u8, payload_bytes: u32, now: impl FnOnce() -> Time) -> bool {
        match kind {
            // The library bounds its length and the number of empty ones.
            kind::DATA => return true,
            kind::HEADERS => {
                self.add(FRAMES_PER_REQUEST);
                return true;
            }
            _ => {}
        }
        let cost = 1 + payload_bytes / PAYLOAD_BYTES_PER_FRAME;
        if self.left < cost {
            self.refill(now());
        }
        let is_left = self.left >= cost;
        self.left = self.left.saturating_sub(cost);
        is_left
    }

    /// The client is sent `frames` of DATA with `bytes` in all.
    pub fn earn(&mut self, frames: u32, bytes: u64) {
        let by_bytes = u32::try_from(bytes / DATA_BYTES_PER_FRAME).unwrap_or(u32::MAX);
        self.add(
            frames
                .saturating_mul(FRAMES_PER_DATA_FRAME)
                .saturating_add(by_bytes),
        );
    }

    fn add(&mut self, more: u32) {
        self.left = self.left.saturating_add(more).min(FRAMES_MAX);
    }

    /// Time refills no more than the first supply.
    fn refill(&mut self, now: Time) {
        let refill = periods(&mut self.refilled_at, now, FRAME_REFILL_NS);
        let room = FRAMES.saturating_sub(self.left);
        self.left += refill.min(room);
    }
}

/// The requests that one client may still reset; malformed requests count too.
///
/// A request that is reset at once costs the client a few bytes and the server its work, and does
/// not count among the open streams ("rapid reset", CVE-2023-44487). A browser resets what a page
/// that was left had requested, in one go, and then requests what the next page needs.
#[derive(Debug)]
pub struct ResetBudget {
    left: u32,
    left_max: u32,
    refilled_at: Time,
}

impl ResetBudget {
    /// A full budget for a connection with at most `streams_max` open streams.
    pub fn new(streams_max: u32, now: Time) -> Self {
        let left_max = streams_max.saturating_mul(RESETS_PER_STREAM);
        Self {
            left: left_max,
            left_max,
            refilled_at: now,
        }
    }

    /// One request was reset; false when that was one too many.
    pub fn spend(&mut self, now: Time) -> bool {
        let refill = periods(&mut self.refilled_at, now, RESET_REFILL_NS);
        self.left = self.left.saturating_add(refill).min(self.left_max);
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}

/// How many whole periods have passed since `since`, which moves on by them.
fn periods(since: &mut Time, now: Time, period_ns: u64) -> u32 {
    let periods = u32::try_from(now.since(*since) / period_ns).unwrap_or(u32::MAX);
    *since = since.after(period_ns.saturating_mul(periods.into()));
    periods
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;

    fn sent(budget: &mut FrameBudget, kind: u8, payload_bytes: u32, now: Time) -> usize {
        (0..1_000_000)
            .take_while(|_| budget.spend(kind, payload_bytes, || now))
            .count()
    }

    #[test]
    fn a_flood_ends_and_time_gives_a_little() {
        let start = Time::ZERO;
        let mut budget = FrameBudget::new(start);
        assert_eq!(sent(&mut budget, PING, 8, start), 1_000);
        let later = start.after(SECOND_NS);
        assert_eq!(sent(&mut budget, PING, 8, later), 100);
        let much_later = start.after(1_000_000 * SECOND_NS);
        assert_eq!(sent(&mut budget, PING, 8, much_later), 1_000);
    }

    #[test]
    fn long_frames_count_more() {
        let start = Time::ZERO;
        let mut budget = FrameBudget::new(start);
        assert_eq!(sent(&mut budget, 0xfa, 16_384, start), 58);
    }

    #[test]
    fn what_a_client_gets_it_may_acknowledge() {
        let start = Time::ZERO;
        let mut budget = FrameBudget::new(start);
        for _ in 0..100_000 {
            assert!(budget.spend(kind::HEADERS, 20, || start));
            budget.earn(1, 16_384);
            // Both windows, by 2 KiB each time.
            assert!((0..16).all(|_| budget.spend(WINDOW_UPDATE, 4, || start)));
        }
        assert_eq!(budget.left, FRAMES_MAX - 16);
    }

    #[test]
    fn a_page_may_be_left_and_a_flood_is_noticed() {
        let start = Time::ZERO;
        let mut resets = ResetBudget::new(100, start);
        assert!((0..200).all(|_| resets.spend(start)));
        assert!(!resets.spend(start));
        let later = start.after(SECOND_NS);
        assert_eq!((0..100).filter(|_| resets.spend(later)).count(), 20);
    }

    #[test]
    fn a_steady_client_is_never_refused() {
        let start = Time::ZERO;
        let mut resets = ResetBudget::new(1, start);
        let times = (0..10_000).map(|count| start.after(count * 60_000_000));
        assert!(times.into_iter().all(|now| resets.spend(now)));
    }
}
