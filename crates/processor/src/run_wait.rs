//! The rule of Suranauwarat and Taniguchi (2001), to be measured: a worker that waited for long
//! (SLP) and has changed between running and waiting less than RW times since then is taken for one
//! that answers with text, and goes first. RW is fixed, or predicted in periods.
//!
//! It knows nothing of how much a request computes: only how often it waits.

use std::collections::{BTreeMap, VecDeque};

use crate::reading::Reading;

/// RW is predicted anew after so long.
pub const PERIOD_NS: u64 = 500_000_000;
/// RWbuffer: of so many past requests the least changes count.
pub const MOST_CHANGES_KEPT: usize = 5;
/// RWmin: fewer changes than so many are not of a request.
const CHANGES_MIN: u64 = 2;
/// SLPmin: a wait that ends a request, for the prediction of RW.
const LONG_MIN_NS: u64 = 200_000_000;
/// RW before anything is known.
const CHANGES_AT_FIRST: u64 = 3;
/// SLP is never predicted to be less.
const LONG_LEAST_NS: u64 = 2_000_000;
/// Of the shortest wait for a connection that is remembered, the predicted SLP is this part.
const LONG_PART: u64 = 2;

#[derive(Debug, Clone, Default)]
struct Kept {
    /// Sleeps when its last long wait was seen, by SLP and by SLPmin.
    after_long: Option<u64>,
    counted_from: Option<u64>,
    changes: VecDeque<u64>,
    idle_ns: VecDeque<u64>,
    /// The wait for a connection that it is in.
    idles_for_ns: u64,
}

/// The rule, with what is remembered of all workers.
#[derive(Debug, Clone)]
pub struct RunWait {
    changes: u64,
    long_ns: u64,
    predicts_changes: bool,
    predicts_long: bool,
    workers: BTreeMap<u32, Kept>,
    due_ns: u64,
}

impl RunWait {
    /// With RW and SLP (ns) as they are given; what is not is predicted.
    pub fn new(changes: Option<u32>, long_ns: Option<u64>) -> RunWait {
        RunWait {
            changes: changes.map_or(CHANGES_AT_FIRST, u64::from),
            long_ns: long_ns.unwrap_or(10_000_000),
            predicts_changes: changes.is_none(),
            predicts_long: long_ns.is_none(),
            workers: BTreeMap::new(),
            due_ns: 0,
        }
    }

    /// RW and SLP (ns) as they are now.
    pub fn now(&self) -> (u64, u64) {
        (self.changes, self.long_ns)
    }

    /// Whether a worker goes first.
    pub fn goes_first(&mut self, worker: u32, reading: &Reading, now_ns: u64) -> bool {
        let quiet_ns = reading.doing.quiet_ns(now_ns);
        let kept = self.workers.entry(worker).or_default();
        if quiet_ns >= self.long_ns {
            kept.after_long = Some(reading.sleeps);
        }
        if quiet_ns >= LONG_MIN_NS {
            let from = kept.counted_from.replace(reading.sleeps);
            let changes = from.map_or(0, |from| reading.sleeps - from);
            keep(&mut kept.changes, changes, CHANGES_MIN);
        }
        if matches!(reading.doing, crate::Doing::Idle { .. }) {
            kept.idles_for_ns = quiet_ns;
        } else {
            let ended_ns = std::mem::take(&mut kept.idles_for_ns);
            keep(&mut kept.idle_ns, ended_ns, 1);
        }
        let changed = kept
            .after_long
            .map(|after| reading.sleeps.saturating_sub(after));
        let is_first = changed.is_some_and(|changed| changed < self.changes);
        self.predict(now_ns);
        is_first
    }

    /// A worker is gone.
    pub fn forget(&mut self, worker: u32) {
        self.workers.remove(&worker);
    }

    fn predict(&mut self, now_ns: u64) {
        if now_ns < self.due_ns {
            return;
        }
        self.due_ns = now_ns + PERIOD_NS;
        let least = |of: fn(&Kept) -> &VecDeque<u64>| {
            let least = self
                .workers
                .values()
                .filter_map(|kept| of(kept).iter().min());
            least.copied().collect::<Vec<u64>>()
        };
        let (changes, idle) = (least(|kept| &kept.changes), least(|kept| &kept.idle_ns));
        if let (true, Some(greatest)) = (self.predicts_changes, changes.into_iter().max()) {
            // A request with so many changes still goes first.
            self.changes = greatest + 1;
        }
        if let (true, Some(shortest)) = (self.predicts_long, idle.into_iter().min()) {
            self.long_ns = (shortest / LONG_PART).max(LONG_LEAST_NS);
        }
    }
}

fn keep(buffer: &mut VecDeque<u64>, value: u64, least: u64) {
    if value < least {
        return;
    }
    if buffer.len() == MOST_CHANGES_KEPT {
        buffer.pop_front();
    }
    buffer.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Doing;

    fn reading(doing: Doing, sleeps: u64) -> Reading {
        Reading {
            doing,
            run_ns: 0,
            sleeps,
            requests: 0,
            begin_run_ns: 0,
            begin_at_ns: 0,
            has_answered: false,
            kind: None,
            hands_on: false,
            said_ns: None,
        }
    }

    #[test]
    fn few_changes_after_a_long_wait_go_first() {
        let mut rule = RunWait::new(Some(3), Some(20));
        let mut first =
            |doing, sleeps, now_ns| rule.goes_first(1, &reading(doing, sleeps), now_ns) as u8;
        let asleep = Doing::Asleep { since_ns: 100 };
        let decisions = [
            first(Doing::Runs, 4, 50),  // no long wait was seen
            first(asleep, 5, 110),      // not long
            first(asleep, 5, 120),      // long
            first(Doing::Runs, 5, 130), // the request
            first(Doing::Runs, 7, 140),
            first(Doing::Runs, 8, 150), // the third change
        ];
        assert_eq!(decisions, [0, 0, 1, 1, 1, 0]);
    }

    #[test]
    fn changes_are_predicted_from_the_fewest_of_each_worker() {
        let mut rule = RunWait::new(None, Some(20));
        let mut now_ns = 0;
        // One worker changes 4 or 6 times a request, the other 2 or 3 times.
        for (worker, changes) in [(1, [4, 6, 4, 6]), (2, [2, 3, 2, 3])] {
            let mut sleeps = 0;
            for changes in changes {
                sleeps += changes;
                now_ns += 2 * LONG_MIN_NS;
                let since_ns = now_ns - LONG_MIN_NS;
                rule.goes_first(worker, &reading(Doing::Asleep { since_ns }, sleeps), now_ns);
            }
        }
        rule.goes_first(3, &reading(Doing::Runs, 0), now_ns + PERIOD_NS);
        assert_eq!(rule.now(), (5, 20));
    }

    #[test]
    fn a_long_wait_is_predicted_from_waits_for_connections() {
        let mut rule = RunWait::new(Some(3), None);
        for at_ms in [0_u64, 30, 100, 160] {
            let idle = Doing::Idle {
                since_ns: at_ms * 1_000_000,
            };
            let end_ns = (at_ms + 20) * 1_000_000;
            rule.goes_first(1, &reading(idle, 1), end_ns);
            rule.goes_first(1, &reading(Doing::Runs, 1), end_ns + 1);
        }
        rule.goes_first(1, &reading(Doing::Runs, 1), PERIOD_NS + 1);
        assert_eq!(rule.now(), (3, 10_000_000));
    }
}
