//! What was seen, transaction by transaction.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

/// A transaction that came to an end, good or bad.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The class's number.
    pub class: usize,
    /// The kind's number.
    pub kind: usize,
    /// When it ended, from the beginning of what is measured.
    pub ended: Duration,
    /// From when it was wanted until it ended, times that it was tried again included.
    pub response: Duration,
    /// How often it was tried again.
    pub retries: u32,
    /// Whether it was taken back on purpose.
    pub is_rolled_back: bool,
}

/// Everything of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Those that ended well while it was measured.
    pub outcomes: Vec<Outcome>,
    /// Those that did not, by SQLSTATE.
    pub errors: BTreeMap<String, u64>,
    /// Users who lost their connections, whether it was measured then or not.
    pub lost_users: u64,
    /// For how long it was measured.
    pub duration: Duration,
    /// For how long it should have been, where a signal ended it: before that time, or while the
    /// last transactions were waited for.
    pub stopped_of: Option<Duration>,
    /// Transactions, or visits, that were wanted when all sessions were taken: they waited here.
    pub waited_for_session: u64,
    /// Transactions that had not ended when it was over, those that were not begun included.
    pub incompletes: u64,
    /// Those of them that were still under way when no more was waited for them.
    pub unended: u64,
    /// Transactions, or visits, that were never begun.
    pub not_begun: u64,
    /// How long incompletes had waited by then, all together.
    pub incompletes_waited: Duration,
    /// How late they began where a session was free, at the worst in a hundred, s.
    pub lag_p99_seconds: f64,
}

/// Keeps what counts: times are from the beginning of the run, warm-up included.
#[derive(Debug)]
pub struct Recorder {
    warm_up: Duration,
    /// When it is over.
    pub until: Duration,
    measured: Measured,
    /// When the transactions that are under way were wanted, with how many at each time.
    under_way: BTreeMap<Duration, u64>,
    lags_seconds: Vec<f64>,
}

/// How a transaction ended: its class, kind, tries and whether it was taken back, or its SQLSTATE.
pub type Done = Result<(usize, usize, u32, bool), String>;

impl Recorder {
    /// Of a run that is measured for so long after its warm-up.
    pub fn new(warm_up: Duration, measured: Duration) -> Self {
        Self {
            warm_up,
            until: warm_up + measured,
            measured: Measured {
                duration: measured,
                ..Measured::default()
            },
            under_way: BTreeMap::new(),
            lags_seconds: Vec::new(),
        }
    }

    /// A signal ends the run at this time: before its end, or while the last are waited for.
    pub fn stop(&mut self, now: Duration) {
        self.measured.stopped_of = Some(self.measured.duration);
        if now < self.until {
            self.measured.duration = now.saturating_sub(self.warm_up);
            self.until = now;
        }
    }

    /// A transaction that was wanted then is under way.
    pub fn began(&mut self, wanted: Duration) {
        *self.under_way.entry(wanted).or_default() += 1;
    }

    /// A transaction that was wanted then has ended.
    pub fn ended(&mut self, wanted: Duration, ended: Duration, done: Done) {
        if let Entry::Occupied(mut count) = self.under_way.entry(wanted) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        if ended < self.warm_up {
            return;
        }
        if ended >= self.until {
            return self.incomplete(wanted, self.until);
        }
        match done {
            Ok((class, kind, retries, is_rolled_back)) => self.measured.outcomes.push(Outcome {
                class,
                kind,
                ended: ended - self.warm_up,
                response: ended.saturating_sub(wanted),
                retries,
                is_rolled_back,
            }),
            Err(sqlstate) => *self.measured.errors.entry(sqlstate).or_default() += 1,
        }
    }

    /// One that was wanted then could begin now, if a session was free.
    pub fn came(&mut self, wanted: Duration, now: Duration, has_session: bool) {
        if wanted < self.warm_up {
            return;
        }
        if has_session {
            let lag = now.saturating_sub(wanted);
            self.lags_seconds.push(lag.as_secs_f64());
        } else {
            self.measured.waited_for_session += 1
        }
    }

    /// One that was wanted then was not begun before it was over.
    pub fn not_begun(&mut self, wanted: Duration, over: Duration) {
        self.measured.not_begun += 1;
        self.incomplete(wanted, over);
    }

    fn incomplete(&mut self, wanted: Duration, over: Duration) {
        self.measured.incompletes += 1;
        self.measured.incompletes_waited += over.saturating_sub(wanted);
    }

    /// A user's connections are gone, and it with them: whatever is measured from now on is of
    /// fewer.
    pub fn lost(&mut self) {
        self.measured.lost_users += 1;
    }

    /// What was measured; what is under way comes to no end that counts.
    pub fn finish(mut self) -> Measured {
        for (wanted, count) in std::mem::take(&mut self.under_way) {
            for _ in 0..count {
                self.incomplete(wanted, self.until);
            }
            self.measured.unended += count;
        }
        self.lags_seconds.sort_by(f64::total_cmp);
        let at = self.lags_seconds.len() * 99 / 100;
        self.measured.lag_p99_seconds = self.lags_seconds.get(at).copied().unwrap_or(0.0);
        self.measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_while_it_is_measured_counts_from_when_it_was_wanted() {
        let s = Duration::from_secs;
        let mut recorder = Recorder::new(s(10), s(20));
        for (wanted, ended) in [(0, 9), (8, 10), (12, 29), (15, 30)] {
            recorder.ended(s(wanted), s(ended), Ok((0, 1, 2, false)));
        }
        recorder.ended(s(11), s(12), Err("40P01".into()));
        recorder.came(s(5), s(5), false);
        recorder.came(s(5), s(9), true);
        recorder.came(s(15), s(15), false);
        recorder.came(s(16), s(17), true);
        recorder.not_begun(s(28), s(30));
        let measured = recorder.finish();
        let times = measured
            .outcomes
            .iter()
            .map(|one| (one.ended, one.response));
        assert_eq!(times.collect::<Vec<_>>(), [(s(0), s(2)), (s(19), s(17))]);
        assert_eq!(measured.errors, BTreeMap::from([("40P01".into(), 1)]));
        assert_eq!(
            (measured.waited_for_session, measured.lag_p99_seconds),
            (1, 1.0)
        );
        let Measured {
            incompletes,
            not_begun,
            incompletes_waited,
            ..
        } = measured;
        // From 15 to 30, and from 28 to 30.
        assert_eq!((incompletes, not_begun, incompletes_waited), (2, 1, s(17)));
    }

    /// What a run of 10 s after 10 s of warm-up says that is stopped then.
    fn stopped(now: Duration) -> Measured {
        let s = Duration::from_secs;
        let mut recorder = Recorder::new(s(10), s(10));
        for wanted in [11, 12, 12, 13] {
            recorder.began(s(wanted));
        }
        recorder.ended(s(12), s(14), Ok((0, 0, 0, false)));
        recorder.stop(now);
        recorder.finish()
    }

    #[test]
    fn what_a_signal_finds_under_way_is_incomplete_before_and_after_the_end() {
        let s = Duration::from_secs;
        let before = stopped(s(16));
        assert_eq!((before.stopped_of, before.duration), (Some(s(10)), s(6)));
        assert_eq!((before.incompletes, before.unended), (3, 3));
        // From 11, 12 and 13 to 16.
        assert_eq!(
            (before.outcomes.len(), before.incompletes_waited),
            (1, s(12))
        );
        let after = stopped(s(25));
        assert_eq!((after.stopped_of, after.duration), (Some(s(10)), s(10)));
        assert_eq!((after.incompletes, after.unended), (3, 3));
        assert_eq!(after.incompletes_waited, s(24), "to the end of the run");
    }
}
