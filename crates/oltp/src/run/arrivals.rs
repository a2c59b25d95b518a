//! What is wanted from outside, whatever became of the others, and what of it waits.

use std::time::Duration;

use sooner_workload::Rng;

/// Random times without end.
#[derive(Clone, Debug)]
pub struct Arrivals {
    at: Duration,
    rate_per_sec: f64,
    random: Rng,
}

impl Arrivals {
    /// The first at this time, then so many a second on average.
    pub fn new(at: Duration, rate_per_sec: f64, random: Rng) -> Self {
        Self {
            at,
            rate_per_sec,
            random,
        }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let at = self.at;
        self.at += Duration::from_secs_f64(self.random.exponential() / self.rate_per_sec);
        Some(at)
    }
}

/// Those that wait, first come first served: a count, however many they are, because their times
/// can be drawn again.
#[derive(Debug)]
pub struct Waiting {
    /// From the first that has not begun.
    arrivals: Arrivals,
    count: u64,
}

impl Waiting {
    /// None yet, of the arrivals that will come at these times.
    pub fn new(arrivals: Arrivals) -> Self {
        Self { arrivals, count: 0 }
    }

    /// One more.
    pub fn came(&mut self) {
        self.count += 1;
    }

    /// The first waits no more: when it was wanted.
    pub fn begin(&mut self) -> Option<Duration> {
        self.count = self.count.checked_sub(1)?;
        self.arrivals.next()
    }

    /// Whether no arrival waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// When those were wanted that should have come before `end` and have not begun.
    pub fn left(&self, end: Duration) -> impl Iterator<Item = Duration> {
        self.arrivals.clone().take_while(move |at| *at < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_begins_once_or_is_left() {
        let end = Duration::from_secs(100);
        let arrivals = Arrivals::new(Duration::ZERO, 5.0, Rng::new(1, 2));
        let all: Vec<Duration> = arrivals.clone().take_while(|at| *at < end).collect();
        assert!((400..600).contains(&all.len()), "{}", all.len());
        let mut waiting = Waiting::new(arrivals);
        assert_eq!(waiting.begin(), None);
        for _ in 0..20 {
            waiting.came();
        }
        let mut seen: Vec<Duration> = (0..20).filter_map(|_| waiting.begin()).collect();
        assert_eq!((seen.len(), waiting.is_empty()), (20, true));
        seen.extend(waiting.left(end));
        assert_eq!(seen, all);
    }
}
