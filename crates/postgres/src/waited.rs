//! How long a statement has waited for locks in all: on a row that many change, one wait follows
//! another, each for the transaction that has the row now.

use std::time::Duration;

/// One statement's waits, as looks at the server have seen them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// In waits that are over, as far as they were seen.
    earlier_us: u64,
    /// When the last one began, by the server's clock, us; 0 before the first.
    since_us: i64,
    /// When it was last seen.
    seen_us: i64,
}

impl Waited {
    /// It is seen to wait since then; how long it has in all.
    pub fn see(&mut self, since_us: i64, now_us: i64) -> Duration {
        let length_us = |from, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        if since_us != self.since_us {
            self.earlier_us += length_us(self.since_us, self.seen_us);
            self.since_us = since_us;
        }
        self.seen_us = now_us;
        Duration::from_micros(self.earlier_us.saturating_add(length_us(since_us, now_us)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks as `SINCE-NOW`, and what they say, ms.
    fn waits(looks: &str) -> String {
        let mut waited = Waited::default();
        let said = looks.split(' ').map(|look| {
            let (since, now) = look.split_once('-').unwrap();
            let [since, now] = [since, now].map(|ms| 1000 * ms.parse::<i64>().unwrap());
            waited.see(since, now).as_millis().to_string()
        });
        said.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn waits_that_follow_one_another_are_one() {
        assert_eq!(waits("10-15 10-30"), "5 20");
        assert_eq!(waits("10-15 17-20 17-27 30-31"), "5 8 15 16");
        // What was not seen is not counted, and a clock that is set back neither.
        assert_eq!(waits("10-10 90-91 95-93"), "0 1 1");
    }
}
