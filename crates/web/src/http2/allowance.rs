//! How many frames a client may send that ask for nothing.
//!
//! PING, SETTINGS, PRIORITY, PRIORITY_UPDATE, WINDOW_UPDATE, RST_STREAM and frames of unknown types cost a client a few
//! bytes and the server a look, and often an answer. Clients that keep the rules send few of them by themselves, and more with
//! what they get: a window is opened with every piece of a body, a connection is measured while it is busy. So there is a supply
//! that refills with time, with every request, and with what is sent to the client; a client that uses it up is told to calm down.
//! Pure: the time comes in.

use tokio::time::{Duration, Instant};

/// What a client may send at once that never got anything.
const SUPPLY: u32 = 1_000;
/// The most that a client can save up: two window updates for each frame of a window of 1 GiB.
const SUPPLY_MAX: u32 = 2 * 65_536;
/// One more in this time: 100 a second.
const REFILL_PERIOD: Duration = Duration::from_millis(10);
/// For each request: its priority, its windows, its end.
const PER_REQUEST: u32 = 8;
/// For each DATA frame sent to the client: both of its windows, twice each.
const PER_DATA_FRAME: u32 = 4;
/// A client that reads little at a time opens windows by little.
const DATA_BYTES_EACH: u64 = 1_024;
/// Of a long frame each so many bytes count as one more.
const PAYLOAD_BYTES_EACH: u32 = 1_024;

const DATA: u8 = 0;
const HEADERS: u8 = 1;

/// What one client may still send.
#[derive(Debug)]
pub struct Allowance {
    left: u32,
    refilled_at: Instant,
}

impl Allowance {
    /// Of a connection that begins now.
    pub fn new(now: Instant) -> Self {
        Self {
            left: SUPPLY,
            refilled_at: now,
        }
    }

    /// The client sent a frame of `kind`; false when that was one too many. The time is asked for only where it matters.
    pub fn spend(&mut self, kind: u8, payload_bytes: u32, now: impl FnOnce() -> Instant) -> bool {
        match kind {
            // How much of it, and how many of it that are empty, the library bounds.
            DATA => return true,
            HEADERS => {
                self.add(PER_REQUEST);
                return true;
            }
            _ => {}
        }
        let cost = 1 + payload_bytes / PAYLOAD_BYTES_EACH;
        if self.left < cost {
            self.refill(now());
        }
        let is_left = self.left >= cost;
        self.left = self.left.saturating_sub(cost);
        is_left
    }

    /// The client is sent `frames` of DATA with `bytes` in all.
    pub fn earn(&mut self, frames: u32, bytes: u64) {
        let by_bytes = u32::try_from(bytes / DATA_BYTES_EACH).unwrap_or(u32::MAX);
        self.add(
            frames
                .saturating_mul(PER_DATA_FRAME)
                .saturating_add(by_bytes),
        );
    }

    fn add(&mut self, more: u32) {
        self.left = self.left.saturating_add(more).min(SUPPLY_MAX);
    }

    /// Time fills no more than the first supply.
    fn refill(&mut self, now: Instant) {
        let periods = now.duration_since(self.refilled_at).as_millis() / REFILL_PERIOD.as_millis();
        let refill = u32::try_from(periods).unwrap_or(u32::MAX);
        self.refilled_at += REFILL_PERIOD.saturating_mul(refill);
        let room = SUPPLY.saturating_sub(self.left);
        self.left += refill.min(room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;

    fn sent(allowance: &mut Allowance, kind: u8, payload_bytes: u32, now: Instant) -> usize {
        (0..1_000_000)
            .take_while(|_| allowance.spend(kind, payload_bytes, || now))
            .count()
    }

    #[test]
    fn a_flood_ends_and_time_gives_a_little() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        assert_eq!(sent(&mut allowance, PING, 8, start), 1_000);
        let later = start + Duration::from_secs(1);
        assert_eq!(sent(&mut allowance, PING, 8, later), 100);
        let much_later = start + Duration::from_secs(1_000_000);
        assert_eq!(sent(&mut allowance, PING, 8, much_later), 1_000);
    }

    #[test]
    fn long_frames_count_more() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        assert_eq!(sent(&mut allowance, 0xfa, 16_384, start), 58);
    }

    #[test]
    fn what_a_client_gets_it_may_acknowledge() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        for _ in 0..100_000 {
            assert!(allowance.spend(HEADERS, 20, || start));
            allowance.earn(1, 16_384);
            // Both windows, by 2 KiB each time.
            assert!((0..16).all(|_| allowance.spend(WINDOW_UPDATE, 4, || start)));
        }
        assert_eq!(allowance.left, SUPPLY_MAX - 16);
    }
}
