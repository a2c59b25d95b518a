//! The last five minutes, second by second: what counters say, taken apart by time.

use crate::metrics::{Histogram, Metrics, SIZE_CLASSES};
use sooner_operate::admin::Ring;
use std::sync::Arc;

/// Seconds that "now" means where responses are compared: long enough for a mean.
pub const RECENT_SECONDS: usize = 60;
/// Seconds over which the use of the link is taken.
const BUSY_SECONDS: usize = 10;
const CLASSES: usize = SIZE_CLASSES.len();

/// How many took how long together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub count: u64,
    /// Their times together, ns.
    pub ns: u64,
}

impl Sum {
    fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count.wrapping_sub(earlier.count),
            ns: self.ns.wrapping_sub(earlier.ns),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            ns: self.ns.wrapping_add(other.ns),
        }
    }

    /// The mean, s; `None` of none.
    pub fn mean_seconds(self) -> Option<f64> {
        (self.count > 0).then(|| self.ns as f64 / self.count as f64 / 1e9)
    }
}

/// Responses of one class, as they were and as FAIR would have had them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTimes {
    /// All that were sent.
    pub responses: Sum,
    /// What the same waited.
    pub waits: Sum,
    /// Those that FAIR has done too: what they took.
    pub compared: Sum,
    /// What FAIR gave those.
    pub fair: Sum,
}

impl ClassTimes {
    fn since(self, earlier: Self) -> Self {
        Self {
            responses: self.responses.since(earlier.responses),
            waits: self.waits.since(earlier.waits),
            compared: self.compared.since(earlier.compared),
            fair: self.fair.since(earlier.fair),
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            responses: self.responses.plus(other.responses),
            waits: self.waits.plus(other.waits),
            compared: self.compared.plus(other.compared),
            fair: self.fair.plus(other.fair),
        }
    }
}

/// Counters at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Bytes of bodies sent.
    pub response_bytes: u64,
    /// Responses that ended.
    pub requests: u64,
    /// Bytes charged to the link.
    pub wire_bytes: u64,
    /// Times, by class.
    pub classes: [ClassTimes; CLASSES],
}

impl Totals {
    /// What all workers have counted until now, `wire_bytes` of it by the uplink.
    pub fn read(workers: &[Arc<Metrics>], wire_bytes: u64) -> Self {
        let mut totals = Self {
            wire_bytes,
            ..Self::default()
        };
        // `Metrics::sum` would look for the names of sites, and this is done every second.
        workers.iter().for_each(|metrics| totals.add(metrics));
        totals
    }

    fn add(&mut self, metrics: &Metrics) {
        for site in metrics.sites() {
            self.response_bytes += site.response_bytes;
            self.requests += site.requests.iter().flatten().sum::<u64>();
        }
        for (index, class) in self.classes.iter_mut().enumerate() {
            let sum = |histogram: &Histogram| Sum {
                count: histogram.count(),
                ns: histogram.sum_ns(),
            };
            *class = class.plus(ClassTimes {
                responses: sum(&metrics.responses[index]),
                waits: sum(&metrics.waits[index]),
                compared: sum(&metrics.compared[index]),
                fair: sum(&metrics.fair[index]),
            });
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            response_bytes: self.response_bytes.wrapping_sub(earlier.response_bytes),
            requests: self.requests.wrapping_sub(earlier.requests),
            wire_bytes: self.wire_bytes.wrapping_sub(earlier.wire_bytes),
            classes: std::array::from_fn(|class| self.classes[class].since(earlier.classes[class])),
        }
    }
}

/// What happened in each of the last seconds.
#[derive(Debug, Default)]
pub struct History {
    last: Totals,
    seconds: Ring<Totals>,
}

impl History {
    /// A history that begins with `totals`.
    pub fn new(totals: Totals) -> Self {
        Self {
            last: totals,
            seconds: Ring::default(),
        }
    }

    /// Another second has passed, and now the counters are at `totals`.
    pub fn second_passed(&mut self, totals: Totals) {
        self.seconds.push(totals.since(&self.last));
        self.last = totals;
    }

    /// The seconds, oldest first.
    pub fn seconds(&self) -> impl Iterator<Item = &Totals> {
        self.seconds.seconds()
    }

    /// The last minute, by class.
    pub fn recent(&self) -> [ClassTimes; CLASSES] {
        let mut recent = [ClassTimes::default(); CLASSES];
        for second in self.seconds.last(RECENT_SECONDS) {
            for (sum, class) in recent.iter_mut().zip(second.classes) {
                *sum = sum.plus(class);
            }
        }
        recent
    }

    /// The share of the link that was used in the last seconds, 0 to 1 and a little more, as a
    /// burst ends; `None` before the first second.
    pub fn busy_share(&self, rate_bits_per_sec: u64) -> Option<f64> {
        let last = self.seconds.last(BUSY_SECONDS);
        let (count, bytes) = last.fold((0_u64, 0_u64), |(count, bytes), second| {
            (count + 1, bytes + second.wire_bytes)
        });
        (count > 0 && rate_bits_per_sec > 0)
            .then(|| bytes as f64 * 8.0 / (count as f64 * rate_bits_per_sec as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_operate::admin::SECONDS_MAX;

    fn totals(count: u64) -> Totals {
        let sum = Sum {
            count,
            ns: count * 1_000_000_000,
        };
        Totals {
            response_bytes: 10 * count,
            requests: count,
            wire_bytes: 100 * count,
            classes: [ClassTimes {
                responses: sum,
                waits: sum,
                compared: sum,
                fair: sum,
            }; CLASSES],
        }
    }

    #[test]
    fn counters_are_taken_apart_by_second() {
        let mut history = History::new(totals(1000));
        assert_eq!(history.busy_share(800), None);
        for second in 1..=400 {
            history.second_passed(totals(1000 + 2 * second));
        }
        assert_eq!(history.seconds().count(), SECONDS_MAX);
        assert!(
            history
                .seconds()
                .all(|second| second.requests == 2 && second.response_bytes == 20)
        );
        let recent = history.recent();
        assert_eq!(recent[0].responses.count, 2 * RECENT_SECONDS as u64);
        assert_eq!(recent[5].fair.mean_seconds(), Some(1.0));
        assert_eq!(history.busy_share(1600), Some(1.0));
        assert_eq!(Sum::default().mean_seconds(), None);
    }

    #[test]
    fn counters_are_read_from_the_metrics() {
        let workers = [(); 2].map(|()| Arc::new(Metrics::new(std::time::UNIX_EPOCH)));
        let mut facts = crate::metrics::RequestFacts::new(&hyper::Request::new(()));
        facts.answered(200, 0, Some(20_000));
        for metrics in &workers {
            metrics.request_done(&facts, &crate::metrics::tests::report(20_000, 5, 6));
        }
        for count in [1, 2] {
            let totals = Totals::read(&workers[..count as usize], 7);
            assert_eq!(
                (totals.requests, totals.response_bytes, totals.wire_bytes),
                (count, count * 20_000, 7)
            );
            let ns = 11 * count;
            assert_eq!(totals.classes[2].responses, Sum { count, ns });
            assert_eq!(totals.classes[2].waits.ns, 5 * count);
        }
    }
}
