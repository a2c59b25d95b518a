//! All workers of a server, and the levels that they are to have.

use std::collections::BTreeMap;

use crate::begins::Begins;
use crate::bounds::{Bounds, LEVEL_COUNT};
use crate::history::{History, HistoryFigures, Start};
use crate::reading::{Doing, Ended, Reading};
use crate::run_wait::RunWait;
use crate::shadow::{Finished, Shadow};
use crate::worker::Worker;

/// Looks are no closer than this, ns.
const CLOSEST_NS: u64 = 1_000_000;
/// The paper's rule counts changes, which only looks show.
const RULE_LOOK_NS: u64 = 4_000_000;
/// What one that has waited too long may use before it falls back, ns.
const FAVOUR_NS: u64 = 10_000_000;
/// Of the workers, this share at least waits for requests, where beginnings cannot be seen: with
/// fewer, a worker goes from one request to the next without a sleep, and its level is the last
/// one's.
const IDLE_SHARE_MIN: f64 = 0.2;
/// They are ordered again when so many are.
const IDLE_SHARE_AGAIN: f64 = 0.3;
/// After so many requests it is worked out again whether history is of use, for twice as many.
const JUDGED_AFTER: u64 = 256;

/// How the order is made.
#[derive(Debug)]
pub enum Rule {
    /// By processor time used since the request began.
    Used,
    /// By that, and by what requests of the same kind used before.
    History(Box<History>),
    /// By the paper's rule.
    RunWait(RunWait),
}

/// What the operator says.
#[derive(Debug)]
pub struct Settings {
    /// The order.
    pub rule: Rule,
    /// Bounds of levels.
    pub bounds: Bounds,
    /// A worker that has waited for a processor so long goes before all for a moment, ns.
    pub wait_max_ns: u64,
    /// How many processors workers have.
    pub processors: f64,
    /// Whether programs tell of each request that begins.
    pub has_programs: bool,
}

/// When to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At this time, ns, or when something is told before.
    At(u64),
    /// When something is told.
    WhenTold,
}

/// The order of all workers, by the caller's numbers.
#[derive(Debug)]
pub struct Order {
    settings: Settings,
    workers: BTreeMap<u32, Worker>,
    shadow: Shadow,
    begins: Begins,
    requests: u64,
    favours: u64,
    /// Of this look.
    active: usize,
    /// Those that want a processor, by level, of this look and of the one before.
    by_level: [usize; LEVEL_COUNT],
    by_level_before: [usize; LEVEL_COUNT],
    /// Those of which no beginning was seen, and those of them that rest.
    unseen: usize,
    resting: usize,
    /// Whether a beginning was seen of a worker of this look.
    sees: bool,
    due_ns: u64,
    /// Whether too few workers rest to order them.
    is_suspended: bool,
}

impl Order {
    /// Without workers.
    pub fn new(settings: Settings) -> Order {
        Order {
            begins: Begins::new(settings.has_programs),
            settings,
            workers: BTreeMap::new(),
            shadow: Shadow::default(),
            requests: 0,
            favours: 0,
            active: 0,
            by_level: [0; LEVEL_COUNT],
            by_level_before: [0; LEVEL_COUNT],
            unseen: 0,
            resting: 0,
            sees: false,
            due_ns: u64::MAX,
            is_suspended: false,
        }
    }

    /// Begins a look at all workers.
    pub fn begin_look(&mut self) {
        (self.active, self.unseen, self.resting) = (0, 0, 0);
        self.by_level_before = std::mem::take(&mut self.by_level);
        self.due_ns = u64::MAX;
    }

    /// Looks at one; gives its level where that is another one now.
    pub fn look(&mut self, number: u32, reading: &Reading, now_ns: u64) -> Option<u8> {
        let worker = self
            .workers
            .entry(number)
            .or_insert_with(|| Worker::new(reading, now_ns));
        let ended = worker.take(reading, now_ns);
        let ended = ended.filter(|ended| self.begins.counts(ended, now_ns));
        let used_ns = worker.used_ns(reading);
        let rests = worker.rests(reading, now_ns);
        self.active += usize::from(reading.doing.is_active());
        let is_unseen = reading.requests == 0;
        self.sees |= !is_unseen;
        self.resting += usize::from(rests && is_unseen);
        self.unseen += usize::from(is_unseen);
        let said = worker.said(reading, &self.settings.bounds);
        let known = match &mut self.settings.rule {
            Rule::Used | Rule::History(_) if said.is_some() && !rests => said,
            Rule::History(history) if !rests => history.profile(worker.kind(reading)),
            _ => None,
        };
        let wanted = match &mut self.settings.rule {
            Rule::Used | Rule::History(_) if rests => 0,
            Rule::Used | Rule::History(_) => match &known {
                Some(known) => known.level(used_ns),
                None => self.settings.bounds.level(used_ns),
            },
            Rule::RunWait(rule) => 1 - u8::from(rule.goes_first(number, reading, now_ns)),
        };
        let favoured = favour(worker, reading, now_ns, self.settings.wait_max_ns);
        self.favours += u64::from(favoured == Favour::Begins);
        let is_blind = reading.requests == 0 && self.is_suspended;
        let level = match (favoured, is_blind) {
            (Favour::None, false) => wanted,
            _ => 0,
        };
        self.by_level[usize::from(level)] += usize::from(reading.doing.is_active());
        let left_ns = match &known {
            Some(known) => known.left_ns(used_ns),
            None => self.settings.bounds.left_ns(used_ns),
        };
        // One that waits below the top does not have the processor for itself.
        let ahead: usize = match reading.doing {
            Doing::Ready { .. } if level > 0 => {
                self.by_level_before[..=usize::from(level)].iter().sum()
            }
            _ => 1,
        };
        let pace = (ahead as f64 / self.settings.processors).max(1.0);
        let left_ns = left_ns.map(|left_ns| (left_ns as f64 * pace) as u64);
        let due_ns = due_ns(worker, reading, level, left_ns, now_ns);
        let starves_ns = starves_ns(reading, level, now_ns, self.settings.wait_max_ns);
        for due_ns in due_ns.into_iter().chain(starves_ns) {
            self.due_ns = self.due_ns.min(due_ns.max(now_ns + CLOSEST_NS));
        }
        let before = std::mem::replace(&mut worker.level, level);
        if let Some(ended) = ended {
            self.count(&ended);
        }
        (before != level).then_some(level)
    }

    /// A request is over that was seen to begin.
    pub fn finish(&mut self, ended: &Ended) {
        self.see_begins();
        self.count(ended);
    }

    /// Programs tell of this server's requests: what was counted without them is forgotten.
    fn see_begins(&mut self) {
        if !self.begins.see() {
            return;
        }
        self.settings.bounds.forget();
        if let Rule::History(history) = &mut self.settings.rule {
            **history = History::default();
        }
        self.shadow = Shadow::default();
        self.requests = 0;
    }

    fn count(&mut self, ended: &Ended) {
        let bounds = &mut self.settings.bounds;
        let has_learned = bounds.note(ended.used_ns);
        let finished = Finished {
            began_ns: ended.began_ns,
            used_ns: ended.used_ns,
        };
        let known = match &mut self.settings.rule {
            Rule::History(history) => {
                history.finish(ended.kind, ended.used_ns, bounds, has_learned)
            }
            _ => None,
        };
        self.shadow.note_known(finished, known);
        self.requests += 1;
        if self.requests.is_multiple_of(JUDGED_AFTER) {
            self.judge();
        }
    }

    fn judge(&mut self) {
        if let Rule::History(history) = &mut self.settings.rule {
            let bounds_ns = self.settings.bounds.bounds_ns();
            let count = 2 * JUDGED_AFTER as usize;
            let processors = self.settings.processors;
            let played = self.shadow.with_and_without(count, processors, bounds_ns);
            if let Some((with_ns, without_ns)) = played {
                history.judge(with_ns, without_ns);
            }
        }
    }

    /// Changes of the levels on which requests of a kind begin, since the last call.
    pub fn take_starts(&mut self) -> Vec<Start> {
        match &mut self.settings.rule {
            Rule::History(history) => history.take_starts(),
            _ => Vec::new(),
        }
    }

    /// How much is known of requests beforehand; none where that is not looked at.
    pub fn history(&self) -> Option<HistoryFigures> {
        match &self.settings.rule {
            Rule::History(history) => Some(history.figures()),
            _ => None,
        }
    }

    /// Ends a look at all workers.
    pub fn end_look(&mut self, now_ns: u64) -> Next {
        let share = self.resting as f64 / self.unseen.max(1) as f64;
        let least = match self.is_suspended {
            true => IDLE_SHARE_AGAIN,
            false => IDLE_SHARE_MIN,
        };
        if std::mem::take(&mut self.sees) {
            self.see_begins();
        }
        let is_blind = self.begins != Begins::Seen;
        self.is_suspended = is_blind && self.unseen > 0 && share < least;
        // A single one that wants a processor goes before none of the others.
        let is_lower = |worker: &Worker| worker.level > 0;
        let has_order = self.active > 1 || self.workers.values().any(is_lower);
        match (&self.settings.rule, self.due_ns) {
            (Rule::RunWait(_), _) if self.active > 0 => Next::At(now_ns + RULE_LOOK_NS),
            (_, u64::MAX) => Next::WhenTold,
            (_, due_ns) if has_order => Next::At(due_ns),
            _ => Next::WhenTold,
        }
    }

    /// What a worker has could not be changed, or it has another level than was said.
    pub fn set_level(&mut self, number: u32, level: u8) {
        if let Some(worker) = self.workers.get_mut(&number) {
            worker.level = level;
        }
    }

    /// A worker is gone.
    pub fn forget(&mut self, number: u32) {
        self.workers.remove(&number);
        if let Rule::RunWait(rule) = &mut self.settings.rule {
            rule.forget(number);
        }
    }

    /// The bounds of levels as they are now.
    pub fn bounds(&self) -> &Bounds {
        &self.settings.bounds
    }

    /// The order.
    pub fn rule(&self) -> &Rule {
        &self.settings.rule
    }

    /// What the last requests would have taken otherwise.
    pub fn shadow(&self) -> &Shadow {
        &self.shadow
    }

    /// Requests that are over.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// How often one went before all because it had waited too long.
    pub fn favours(&self) -> u64 {
        self.favours
    }

    /// Whether those of which no beginning is seen stay on top, because too few of them wait for
    /// requests.
    pub fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Whether requests are counted by sleeps, because no program tells of their beginnings.
    pub fn counts_sleeps(&self) -> bool {
        self.begins == Begins::Unseen
    }

    /// Whether a worker that wants a processor could change a level by that.
    pub fn has_levels(&self) -> bool {
        matches!(self.settings.rule, Rule::RunWait(_))
            || self.settings.bounds.level(u64::MAX - 2) > 0
    }

    /// How many workers are on each level, and how many want a processor.
    pub fn standing(&self) -> ([usize; LEVEL_COUNT], usize) {
        let mut levels = [0; LEVEL_COUNT];
        for worker in self.workers.values() {
            levels[usize::from(worker.level)] += 1;
        }
        (levels, self.active)
    }
}

/// When a worker has to be looked at again, which uses so much more before its level changes; none
/// where something tells of what it does.
fn due_ns(
    worker: &Worker,
    reading: &Reading,
    level: u8,
    left_ns: Option<u64>,
    now_ns: u64,
) -> Option<u64> {
    let due_ns = match reading.doing {
        Doing::Runs | Doing::Ready { .. } => left_ns.map(|left_ns| now_ns.saturating_add(left_ns)),
        Doing::Asleep { since_ns } if level > 0 => {
            let after_ns = worker.rests_after_ns(reading);
            after_ns.map(|after_ns| since_ns + after_ns)
        }
        _ => None,
    };
    let favour_ns = worker
        .favoured_until_run_ns
        .map(|until_ns| now_ns + until_ns.saturating_sub(reading.run_ns));
    due_ns.into_iter().chain(favour_ns).min()
}

/// When it will have waited for a processor too long.
fn starves_ns(reading: &Reading, level: u8, now_ns: u64, wait_max_ns: u64) -> Option<u64> {
    match reading.doing {
        Doing::Ready { since_ns } if level > 0 => Some(since_ns + wait_max_ns),
        // It may have to wait from now on, and nothing tells of that.
        Doing::Runs if level > 0 => Some(now_ns + wait_max_ns),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Favour {
    None,
    Begins,
    Goes,
}

/// Whether a worker goes before all, whatever it has used.
fn favour(worker: &mut Worker, reading: &Reading, now_ns: u64, wait_max_ns: u64) -> Favour {
    if let Some(until_ns) = worker.favoured_until_run_ns {
        if reading.run_ns < until_ns && reading.doing.is_active() {
            return Favour::Goes;
        }
        worker.favoured_until_run_ns = None;
    }
    match reading.doing {
        Doing::Ready { since_ns }
            if worker.level > 0 && now_ns.saturating_sub(since_ns) >= wait_max_ns =>
        {
            worker.favoured_until_run_ns = Some(reading.run_ns + FAVOUR_NS);
            Favour::Begins
        }
        _ => Favour::None,
    }
}
