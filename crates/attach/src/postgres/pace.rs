//! How far apart things are that are done again and again, so that they cost no more than they may.

use std::time::Duration;

use super::meter::Meter;

/// Whatever it costs.
const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// The weight of the last one among all: what it costs changes with the number of sessions.
const LAST: f64 = 0.1;

/// Of one thing.
#[derive(Debug)]
pub struct Pace {
    /// No closer than this.
    min: Duration,
    /// Of all processors' time.
    cost_share: f64,
    each_ns: Option<f64>,
}

impl Pace {
    /// No closer than `min`, and at this cost.
    pub fn new(min: Duration, cost_share: f64) -> Pace {
        Pace {
            min,
            cost_share,
            each_ns: None,
        }
    }

    /// It was done, and cost so much processor time.
    pub fn note(&mut self, cost_ns: u64) {
        let cost_ns = cost_ns as f64;
        let before = self.each_ns.unwrap_or(cost_ns);
        self.each_ns = Some(before + LAST * (cost_ns - before));
    }

    /// How long until the next time.
    pub fn interval(&self, meter: &Meter) -> Duration {
        let each = Duration::from_nanos(self.each_ns.unwrap_or(0.0) as u64);
        meter
            .spread(each, self.cost_share)
            .clamp(self.min, INTERVAL_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_more_is_done_less_often_without_an_end() {
        let meter = Meter::start(std::process::id()).unwrap();
        let mut pace = Pace::new(Duration::from_millis(10), 0.01);
        assert_eq!(pace.interval(&meter), Duration::from_millis(10));
        (0..200).for_each(|_| pace.note(100_000_000));
        // 0.1 s at 1 % of all processors.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let interval_s = pace.interval(&meter).as_secs_f64();
        assert!(
            (interval_s * processors as f64 - 10.0).abs() < 0.1,
            "{interval_s}"
        );
        (0..200).for_each(|_| pace.note(0));
        assert_eq!(pace.interval(&meter), Duration::from_millis(10));
    }
}
