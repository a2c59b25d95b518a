//! How far apart things are that are done again and again, so that they cost no more than they may.

use std::time::Duration;

use super::meter::Meter;

/// Whatever it costs.
const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// The weight of the last one among all: what it costs changes with the number of sessions.
const LAST: f64 = 0.1;
/// Of what was spent beyond the mean, the part for which the next interval makes up.
const MADE_UP: f64 = 0.25;

/// Of one thing.
#[derive(Debug)]
pub struct Pace {
    /// No closer than this.
    min: Duration,
    /// Of all processors' time.
    cost_share: f64,
    each_ns: Option<f64>,
    /// Spent, and not covered by an interval yet: the mean is late where costs rise.
    owed_ns: f64,
}

impl Pace {
    /// No closer than `min`, and at this cost.
    pub fn new(min: Duration, cost_share: f64) -> Pace {
        Pace {
            min,
            cost_share,
            each_ns: None,
            owed_ns: 0.0,
        }
    }

    /// It was done, and cost so much processor time.
    pub fn note(&mut self, cost_ns: u64) {
        let cost_ns = cost_ns as f64;
        let before = self.each_ns.unwrap_or(cost_ns);
        self.each_ns = Some(before + LAST * (cost_ns - before));
        self.owed_ns += cost_ns;
    }

    /// How long until the next time. For each time once.
    pub fn interval(&mut self, meter: &Meter) -> Duration {
        let each_ns = self.each_ns.unwrap_or(0.0);
        let covers_ns = each_ns + MADE_UP * (self.owed_ns - each_ns).max(0.0);
        let whole = meter.spread(Duration::from_nanos(covers_ns as u64), self.cost_share);
        let interval = whole.clamp(self.min, INTERVAL_MAX);
        let covered = interval.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE);
        self.owed_ns = (self.owed_ns - covers_ns * covered).max(0.0);
        interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_more_is_done_less_often_without_an_end() {
        let meter = Meter::start(std::process::id()).unwrap();
        let mut pace = Pace::new(Duration::from_millis(10), 0.01);
        let settle = |cost_ns: u64, pace: &mut Pace| {
            let one = |_| {
                pace.note(cost_ns);
                pace.interval(&meter)
            };
            (0..200).map(one).last().unwrap()
        };
        assert_eq!(settle(0, &mut pace), Duration::from_millis(10));
        // 0.1 s at 1 % of all processors.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let interval_s = settle(100_000_000, &mut pace).as_secs_f64();
        assert!(
            (interval_s * processors as f64 - 10.0).abs() < 0.1,
            "{interval_s}"
        );
        assert_eq!(settle(0, &mut pace), Duration::from_millis(10));
    }

    #[test]
    fn what_the_first_ones_did_not_foretell_is_made_up_for() {
        let meter = Meter::start(std::process::id()).unwrap();
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let mut pace = Pace::new(Duration::from_millis(10), 0.01);
        let (mut spent_s, mut waited_s) = (0.0, 0.0);
        for cost_ns in [1_000_000].into_iter().chain([40_000_000; 30]) {
            pace.note(cost_ns);
            spent_s += cost_ns as f64 / 1e9;
            waited_s += pace.interval(&meter).as_secs_f64();
        }
        let over_s = spent_s - 0.01 * processors * waited_s;
        assert!(over_s < 0.06, "{over_s} s more, of 0.04 s each");
    }
}
