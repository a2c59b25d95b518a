//! From looks at all sessions to seconds by class, by kind and by part.
//!
//! Between two looks the kernel says how long each session ran and waited for a processor, which is
//! exact. What a session waits for otherwise is seen at the looks, as the server shows it; each
//! stands for the time since the one before. A session that was woken shows its wait until a
//! processor has it: how much that is together follows from the kernel's figures, and how it is
//! divided is seen at the looks.

mod transactions;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::ages::Ages;
use super::part::{PARTS, Part};
use transactions::Open;

/// Slices of the time, to say how sure a mean is.
pub const SLICES: usize = 20;

/// Seconds by part. What shows no wait is under [`Part::Running`].
pub type Seconds = [f64; PARTS];

/// What is seen of a session at one look.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its process.
    pub pid: i32,
    /// Its class, by number.
    pub class: usize,
    /// How long a processor had it since the look before, seconds.
    pub run_s: f64,
    /// How long it waited for one, seconds.
    pub wait_s: f64,
    /// Whether it shows a wait, or is idle, and is on a processor or in line for one; none where
    /// that was not looked at.
    pub is_woken: Option<bool>,
    /// The transaction in which it is.
    pub transaction: Option<SeenTransaction>,
}

/// A transaction at one look.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenTransaction {
    /// When it began: the same number is the same transaction of this session.
    pub began_us: i64,
    /// What it does at the moment, as the server shows it; [`Part::Running`] also where it waits for
    /// a processor.
    pub part: Part,
    /// How old it is.
    pub age_ns: u64,
    /// How old its statement is.
    pub statement_age_ns: u64,
    /// What it calls itself, where its statement says so.
    pub kind: Option<Rc<str>>,
    /// Its statement without constants.
    pub statement: Rc<str>,
}

/// What all transactions of a class had.
#[derive(Debug, Clone, Default)]
pub struct ClassTally {
    /// Seen at looks.
    pub seconds: Seconds,
    /// Of these, those of sessions that were woken.
    pub woken: Woken,
    /// Of the kernel, where the session was in this class at both looks.
    pub run_s: f64,
    /// Likewise.
    pub wait_s: f64,
    /// Of its transactions.
    pub ages: Ages,
    /// By kind, where transactions say what they are.
    pub kinds: BTreeMap<String, NamedTally>,
    /// By statement, of those that do not.
    pub statements: BTreeMap<String, NamedTally>,
    /// The seconds of each slice.
    pub slices: [Seconds; SLICES],
}

/// Sessions that were woken and are not on a processor yet, or only just.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Woken {
    /// Seconds by what they still show.
    pub seconds: Seconds,
    /// Of those that are in no transaction yet.
    pub idle_s: f64,
}

/// What was seen under one name.
#[derive(Debug, Clone, Default)]
pub struct NamedTally {
    /// Seen at looks.
    pub seconds: Seconds,
    /// Of transactions of a kind, or of statements.
    pub ages: Ages,
}

/// What was seen while so many were in a transaction.
#[derive(Debug, Clone, Copy, Default)]
pub struct ActiveTally {
    /// How long there were so many.
    pub time_s: f64,
    /// Of the kernel.
    pub run_s: f64,
    /// Of the kernel.
    pub wait_s: f64,
    /// Seen at looks.
    pub seconds: Seconds,
    /// Of these, those of sessions that were woken.
    pub woken: Woken,
}

/// All of it.
#[derive(Debug)]
pub struct Tally {
    /// How long it was looked at.
    pub time_s: f64,
    /// How often.
    pub looks: u64,
    /// By class.
    pub classes: Vec<ClassTally>,
    /// By the number of transactions, in powers of two: 1, 2, 3 to 4, 5 to 8.
    pub by_active: BTreeMap<u32, ActiveTally>,
    /// Of the kernel, all classes, whether they were seen in a transaction or not.
    pub run_s: f64,
    /// Likewise.
    pub wait_s: f64,
    /// How long each slice was looked at.
    pub slices_s: [f64; SLICES],
    /// Length of a slice.
    slice_s: f64,
    open: HashMap<i32, Open>,
    last_class: HashMap<i32, usize>,
    /// In transactions of which kinds a statement was seen, and for how long; of
    /// [`transactions::NAMES_MAX`].
    known: HashMap<(usize, String), BTreeMap<String, f64>>,
}

impl Tally {
    /// Of so many classes, over about so long.
    pub fn new(classes: usize, planned_s: f64) -> Tally {
        Tally {
            time_s: 0.0,
            looks: 0,
            classes: vec![ClassTally::default(); classes],
            by_active: BTreeMap::new(),
            run_s: 0.0,
            wait_s: 0.0,
            slices_s: [0.0; SLICES],
            slice_s: planned_s / SLICES as f64,
            open: HashMap::new(),
            last_class: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// A look, so long after the one before.
    pub fn look(&mut self, since_s: f64, sessions: &[Seen]) {
        let slice = ((self.time_s / self.slice_s) as usize).min(SLICES - 1);
        self.time_s += since_s;
        self.slices_s[slice] += since_s;
        self.looks += 1;
        let active = sessions
            .iter()
            .filter(|session| session.transaction.is_some());
        let active = active.count() as u32;
        let idle = sessions.iter().filter(|own| own.transaction.is_none());
        let looked_at = idle.clone().filter(|own| own.is_woken.is_some()).count();
        let idle_weight = idle.count() as f64 / looked_at.max(1) as f64;
        let mut here = ActiveTally {
            time_s: since_s,
            ..ActiveTally::default()
        };
        for seen in sessions {
            self.run_s += seen.run_s;
            self.wait_s += seen.wait_s;
            here.run_s += seen.run_s;
            here.wait_s += seen.wait_s;
            let class = &mut self.classes[seen.class];
            for woken in [&mut class.woken, &mut here.woken] {
                woken.add(seen, since_s, idle_weight);
            }
            if self
                .last_class
                .insert(seen.pid, seen.class)
                .is_none_or(|last| last == seen.class)
            {
                class.run_s += seen.run_s;
                class.wait_s += seen.wait_s;
            }
            if let Some(transaction) = &seen.transaction {
                let at = transaction.part.index();
                here.seconds[at] += since_s;
                class.seconds[at] += since_s;
                class.ages.add(transaction.age_ns, since_s);
                class.slices[slice][at] += since_s;
            }
            self.follow(seen, since_s);
        }
        if active > 0 {
            let all = self
                .by_active
                .entry(active.next_power_of_two())
                .or_default();
            all.add(&here);
        }
        let pids: HashSet<i32> = sessions.iter().map(|seen| seen.pid).collect();
        self.last_class.retain(|pid, _| pids.contains(pid));
        let gone: Vec<i32> = self
            .open
            .keys()
            .copied()
            .filter(|pid| !pids.contains(pid))
            .collect();
        gone.into_iter().for_each(|pid| self.close(pid));
    }
}

fn add(to: &mut Seconds, from: &Seconds, share: f64) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += share * from;
    }
}

impl Woken {
    /// A session that was looked at stands for so many idle ones.
    fn add(&mut self, seen: &Seen, since_s: f64, idle_weight: f64) {
        if seen.is_woken != Some(true) {
            return;
        }
        match &seen.transaction {
            Some(transaction) => self.seconds[transaction.part.index()] += since_s,
            None => self.idle_s += since_s * idle_weight,
        }
    }
}

impl ActiveTally {
    fn add(&mut self, other: &ActiveTally) {
        self.time_s += other.time_s;
        self.run_s += other.run_s;
        self.wait_s += other.wait_s;
        add(&mut self.seconds, &other.seconds, 1.0);
        add(&mut self.woken.seconds, &other.woken.seconds, 1.0);
        self.woken.idle_s += other.woken.idle_s;
    }
}
