//! What requests of a kind (a method and a path) have used before, and what follows for the next.
//!
//! Each kind has a law of its own. It counts where it was better than that of all at saying what
//! came, request by request ([`Trust`], by how far from what came the law lies: [`ranked_loss`]).
//! Where it was not, requests of the kind are ordered by what they have used, like those of which
//! nothing is known; and so are all where that would have given the last requests a lower mean.
//! Kinds are bounded, as clients choose them: one that comes again and again stays
//! ([`SecondChance`]).

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;

use sooner_admission::{Outcome, SecondChance, Trust, quality};

use crate::bounds::Bounds;
use crate::law::{Law, WEIGHT, end_of, ranked_loss, step_of};
use crate::profile::{Atoms, Cutoffs, Profile, atoms};

/// Kinds that are remembered.
pub const KINDS_MAX: usize = 1024;
/// About so many requests of a kind are remembered.
const REMEMBERED: u64 = 64;
/// What the law of all counts in that of a kind, in requests.
const BEFORE: f64 = 0.5;
/// A kind is ordered by its history where that is trusted so much, 0 to 1.
const TRUSTED: f64 = 0.5;
/// So many requests in a row that all others foretell better than their own kind, by this factor,
/// and its history is of times that are over.
const SURPRISES_MAX: u32 = 3;
const SURPRISE: f64 = 2.0;
/// A profile is made anew after this part of the requests that are remembered.
const NEWS_PART: u64 = 8;
/// Levels follow each of so many first requests.
const FIRST: u64 = 64;
/// The last predictions are judged, so many at most.
const JUDGED: usize = 512;

/// What requests have in common, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKind(pub NonZeroU64);

impl From<&RequestKind> for RequestKind {
    fn from(kind: &RequestKind) -> Self {
        *kind
    }
}

/// A change of the level on which requests of a kind begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The kind.
    pub kind: RequestKind,
    /// The level, 0 the top.
    pub level: u8,
}

/// How much was known beforehand.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HistoryFigures {
    /// Kinds that are remembered.
    pub kinds: usize,
    /// Requests that are over and were ordered by their history.
    pub by_history: u64,
    /// Requests that are over and were ordered by what they had used alone.
    pub by_used: u64,
    /// Whether history is left out, because the last requests would have been sooner without.
    pub is_left_out: bool,
    /// Of pairs of the last requests, the share of which the longer was expected to be longer, 0 to
    /// 1; 0.5 is chance. None before the first.
    pub ranked_rightly: Option<f64>,
}

#[derive(Debug)]
struct Kind {
    kind: RequestKind,
    law: Law,
    trust: Trust,
    surprises: u32,
    mean_ns: u64,
    /// None where history says nothing yet, or nothing that can be trusted.
    profile: Option<Arc<Profile>>,
    since: u64,
    start: u8,
}

impl Kind {
    fn new(kind: RequestKind) -> Kind {
        Kind {
            kind,
            law: Law::default(),
            trust: Trust::of_one(),
            surprises: 0,
            mean_ns: 0,
            profile: None,
            since: 0,
            start: 0,
        }
    }

    /// How much of what is said of it is its own, 0 to 1.
    fn own_part(&self) -> f64 {
        let requests = self.law.total() as f64 / f64::from(WEIGHT);
        requests / (requests + BEFORE)
    }

    fn note(&mut self, used_ns: u64, all: &Law) {
        if self.law.total() > 0 {
            let step = step_of(used_ns);
            let own_part = self.own_part();
            let of_all = ranked_loss(|step| all.share(step), step);
            let own = ranked_loss(|step| self.law.share(step), step);
            let of_kind = ranked_loss(
                |step| own_part * self.law.share(step) + (1.0 - own_part) * all.share(step),
                step,
            );
            let spread = all.spread_steps().max(1.0);
            self.trust.note_losses(of_all / spread, of_kind / spread);
            self.surprises = match own > SURPRISE * of_all {
                true => self.surprises + 1,
                false => 0,
            };
        }
        if self.surprises == SURPRISES_MAX {
            *self = Kind {
                start: self.start,
                ..Kind::new(self.kind)
            };
        }
        self.law.note_smoothly(used_ns);
        if self.law.total() >= REMEMBERED * u64::from(WEIGHT) {
            self.law.halve();
        }
        self.since += 1;
    }

    fn is_stale(&self) -> bool {
        let requests = self.law.total() / u64::from(WEIGHT);
        self.since >= (requests / NEWS_PART).max(1)
    }

    /// Its law; while it is of few requests, that of all is part of it.
    fn mixed(&self, all: &Law) -> Atoms {
        let own = self.own_part();
        atoms(|step| own * self.law.share(step) + (1.0 - own) * all.share(step))
    }

    fn learn(&mut self, all: &Law, cutoffs: Cutoffs) {
        self.since = 0;
        let atoms = self.mixed(all);
        self.mean_ns = atoms.iter().map(|(end, share)| end * share).sum::<f64>() as u64;
        let is_trusted = self.trust.weight() >= TRUSTED;
        self.profile = is_trusted.then(|| Arc::new(Profile::new(&atoms, cutoffs)));
    }
}

/// All kinds.
#[derive(Debug)]
pub struct History {
    kinds: SecondChance<Kind, RequestKind>,
    count: usize,
    cutoffs: Option<Cutoffs>,
    is_left_out: bool,
    starts: Vec<Start>,
    outcomes: VecDeque<Outcome>,
    by_history: u64,
    by_used: u64,
}

impl Default for History {
    fn default() -> History {
        History {
            kinds: SecondChance::of_keys(KINDS_MAX),
            count: 0,
            cutoffs: None,
            is_left_out: false,
            starts: Vec::new(),
            outcomes: VecDeque::new(),
            by_history: 0,
            by_used: 0,
        }
    }
}

impl History {
    /// The levels of a request of this kind; none where it is ordered by what it has used.
    pub fn profile(&mut self, kind: Option<RequestKind>) -> Option<Arc<Profile>> {
        match self.is_left_out {
            true => None,
            false => self.said(kind),
        }
    }

    /// The same, whether or not history is left out.
    fn said(&mut self, kind: Option<RequestKind>) -> Option<Arc<Profile>> {
        self.kinds.get(&kind?)?.profile.clone()
    }

    /// A request is over; `bounds` know of it already, and have changed if `has_learned`. Gives what
    /// history said of it.
    pub fn finish(
        &mut self,
        kind: Option<RequestKind>,
        used_ns: u64,
        bounds: &Bounds,
        has_learned: bool,
    ) -> Option<Arc<Profile>> {
        if has_learned || bounds.law().total() < FIRST {
            self.learn(bounds);
        }
        let said = self.said(kind);
        match said.is_some() && !self.is_left_out {
            true => self.by_history += 1,
            false => self.by_used += 1,
        }
        let (Some(kind), Some(cutoffs)) = (kind, self.cutoffs) else {
            return said;
        };
        let (found, gone) = self.kinds.entry(&kind, || Kind::new(kind));
        if found.mean_ns > 0 {
            let outcome = Outcome {
                came_ns: 0,
                expected_ns: found.mean_ns,
                kind_ns: found.mean_ns,
                service_ns: end_of(step_of(used_ns)),
            };
            if self.outcomes.len() == JUDGED {
                self.outcomes.pop_front();
            }
            self.outcomes.push_back(outcome);
        } else if gone.is_none() && found.law.total() == 0 {
            self.count += 1;
        }
        // Before those that begin, so that there is room for them.
        if let Some(gone) = gone.filter(|gone| gone.start > 0) {
            let (kind, level) = (gone.kind, 0);
            self.starts.push(Start { kind, level });
        }
        found.note(used_ns, bounds.law());
        if found.is_stale() {
            found.learn(bounds.law(), cutoffs);
            self.starts.extend(start(found, self.is_left_out));
        }
        said
    }

    /// The bounds of levels are others.
    fn learn(&mut self, bounds: &Bounds) {
        let cutoffs = Cutoffs::new(bounds.bounds_ns(), bounds.law());
        if self.cutoffs.is_some_and(|before| before.is_near(&cutoffs)) {
            return;
        }
        self.cutoffs = Some(cutoffs);
        for kind in self.kinds.values_mut() {
            kind.learn(bounds.law(), cutoffs);
            self.starts.extend(start(kind, self.is_left_out));
        }
    }

    /// What the last requests would have taken with history, and without: the lower one counts from
    /// now on.
    pub fn judge(&mut self, with_ns: f64, without_ns: f64) {
        let is_left_out = match self.is_left_out {
            true => with_ns >= without_ns,
            false => with_ns > 1.01 * without_ns,
        };
        if std::mem::replace(&mut self.is_left_out, is_left_out) != is_left_out {
            for kind in self.kinds.values_mut() {
                self.starts.extend(start(kind, is_left_out));
            }
        }
    }

    /// Changes of the levels on which kinds begin, since the last call.
    pub fn take_starts(&mut self) -> Vec<Start> {
        std::mem::take(&mut self.starts)
    }

    /// How much was known beforehand.
    pub fn figures(&self) -> HistoryFigures {
        let outcomes: Vec<Outcome> = self.outcomes.iter().copied().collect();
        HistoryFigures {
            kinds: self.count,
            by_history: self.by_history,
            by_used: self.by_used,
            is_left_out: self.is_left_out,
            ranked_rightly: quality(&outcomes, usize::MAX).ranked_rightly,
        }
    }
}

/// The change of where a kind begins, if it is one.
fn start(kind: &mut Kind, is_left_out: bool) -> Option<Start> {
    let profile = kind.profile.as_ref().filter(|_| !is_left_out);
    let level = profile.map_or(0, |profile| profile.level(0));
    let before = std::mem::replace(&mut kind.start, level);
    (before != level).then_some(Start {
        kind: kind.kind,
        level,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn kind(number: u64) -> Option<RequestKind> {
        NonZeroU64::new(number).map(RequestKind)
    }

    /// Two kinds, of 2 and of 300 ms.
    fn learned() -> (History, Bounds) {
        let mut bounds = Bounds::fixed([6 * MS, 60 * MS]);
        let mut history = History::default();
        for at in 0..40 {
            let used_ns = [2 * MS, 300 * MS][at % 2];
            let has_learned = bounds.note(used_ns);
            history.finish(kind(1 + at as u64 % 2), used_ns, &bounds, has_learned);
        }
        (history, bounds)
    }

    /// The last start of each kind, as it was told.
    fn starts(history: &mut History) -> String {
        let starts = history.take_starts().into_iter();
        let words = starts.map(|start| format!("{}:{}", start.kind.0, start.level));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn history_is_left_out_while_requests_are_sooner_without() {
        let (mut history, _) = learned();
        assert!(starts(&mut history).ends_with("2:2"));
        let level = |history: &mut History| history.profile(kind(2)).map(|one| one.level(0));
        assert_eq!(level(&mut history), Some(2));
        // A little later decides nothing.
        history.judge(1.005, 1.0);
        assert_eq!(
            (level(&mut history), starts(&mut history)),
            (Some(2), "".into())
        );
        history.judge(1.02, 1.0);
        assert_eq!(
            (level(&mut history), starts(&mut history)),
            (None, "2:0".into())
        );
        assert!(history.figures().is_left_out);
        history.judge(1.0, 1.0);
        assert_eq!(level(&mut history), None);
        history.judge(0.99, 1.0);
        assert_eq!(
            (level(&mut history), starts(&mut history)),
            (Some(2), "2:2".into())
        );
    }

    #[test]
    fn figures_count_requests_by_what_they_were_ordered_by() {
        let (mut history, bounds) = learned();
        let before = history.figures();
        assert_eq!((before.kinds, before.by_history + before.by_used), (2, 40));
        history.finish(kind(1), 2 * MS, &bounds, false);
        history.finish(kind(3), 2 * MS, &bounds, false);
        history.finish(None, 2 * MS, &bounds, false);
        let after = history.figures();
        assert_eq!(after.by_history, before.by_history + 1);
        assert_eq!((after.by_used, after.kinds), (before.by_used + 2, 3));
        assert!(after.ranked_rightly > Some(0.99), "{after:?}");
    }

    /// Numbers of a seed: a uniform one from 0 to 1, and one of the normal law.
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    /// On a busy machine the same request takes now more and now less.
    #[test]
    fn eight_of_each_kind_suffice_where_none_is_like_another() {
        for deviation in [0.02, 0.2, 0.5] {
            let mut random = Random(1);
            let on_the_last = (0..50).filter(|_| {
                let mut bounds = Bounds::fixed([300 * MS, 500 * MS]);
                let mut history = History::default();
                for at in 0..16 {
                    let usual_ns = [5e6, 9e8][at % 2];
                    let used_ns = (usual_ns * (deviation * random.normal()).exp()) as u64;
                    let has_learned = bounds.note(used_ns);
                    history.finish(kind(1 + at as u64 % 2), used_ns, &bounds, has_learned);
                }
                let profile = history.profile(kind(2));
                profile.is_some_and(|profile| profile.level(30 * MS) == 2)
            });
            assert!(on_the_last.count() >= 49, "{deviation}");
        }
    }

    #[test]
    fn kinds_that_say_nothing_are_hardly_trusted() {
        let heavy: fn(&mut Random) -> f64 = |random| 1e7 * (1.5 * random.normal()).exp();
        let of_two: fn(&mut Random) -> f64 =
            |random| [5e6, 9e8][usize::from(random.uniform() < 0.5)];
        for (law, trusted_max) in [(heavy, 3), (of_two, 14)] {
            let mut random = Random(1);
            let mut trusted = 0;
            for _ in 0..20 {
                let mut bounds = Bounds::fixed([300 * MS, 500 * MS]);
                let mut history = History::default();
                for _ in 0..160 {
                    let used_ns = law(&mut random) as u64;
                    let one = kind(1 + (random.uniform() * 10.0) as u64);
                    let has_learned = bounds.note(used_ns);
                    history.finish(one, used_ns, &bounds, has_learned);
                }
                let kinds = (1..=10).map(kind);
                trusted += kinds.filter(|one| history.profile(*one).is_some()).count();
            }
            // Of 200.
            assert!(trusted <= trusted_max, "{trusted}");
        }
    }
}
