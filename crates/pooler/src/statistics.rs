//! What transactions took: sums since the start, sums of the last minute, and recent
//! response times, for each database, user and class. Knows no clock: the caller says when a minute
//! has passed.

mod kinds;

pub use kinds::Kinds;

use hdrhistogram::Histogram;
use sooner_postgres::statements::StatementCounts;
use std::collections::BTreeMap;

/// Names of one kind that are told apart; what comes later is counted together.
const NAMES_MAX: usize = 256;
/// The name of those that come later.
pub const OTHERS: &str = "(others)";
/// The longest time that is told apart from longer ones, us: a day.
const TIME_US_MAX: u64 = 86_400_000_000;
/// Within a hundredth.
const DIGITS: u8 = 2;

/// What a client did with a server connection from when it wanted one until it gave it back.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaseUsage {
    /// Whether it came to its end.
    pub is_transaction: bool,
    /// Whether it failed because it was in the way of others (SQLSTATE class 40).
    pub is_conflict: bool,
    /// Whether it was rolled back because one that matters more waited for its locks.
    pub is_preempted: bool,
    /// How often it was sent again for such a one, without its client noticing.
    pub repeats: u64,
    /// Commands and their like.
    pub queries: u64,
    /// Whether it had to log in first.
    pub is_login: bool,
    /// It waited for its turn.
    pub outside_us: u64,
    /// Then it waited for its connection, which may have had to be opened.
    pub opening_us: u64,
    /// It had the connection.
    pub inside_us: u64,
    /// In which the server had something to do.
    pub busy_us: u64,
    /// From the client.
    pub received_bytes: u64,
    /// To the client.
    pub sent_bytes: u64,
    /// Statements with a name.
    pub statements: StatementCounts,
}

/// Sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Those that came to their end.
    pub transactions: u64,
    /// Of these, those that failed because they were in the way of others, and will be tried again.
    pub conflicts: u64,
    /// Those that were rolled back because one that matters more waited for their locks.
    pub preempted: u64,
    /// With a connection, of these: work that was for nothing.
    pub preempted_us: u64,
    /// How often one was sent again for one that matters more.
    pub repeats: u64,
    /// Commands and their like.
    pub queries: u64,
    /// Turns, however they ended.
    pub turns: u64,
    /// Of these, those that had to log in first.
    pub logins: u64,
    /// Waiting.
    pub outside_us: u64,
    /// Waiting for a connection, once let in.
    pub opening_us: u64,
    /// With a connection.
    pub inside_us: u64,
    /// In which servers had something to do.
    pub busy_us: u64,
    /// From clients.
    pub received_bytes: u64,
    /// To clients.
    pub sent_bytes: u64,
    /// Statements with a name.
    pub statements: StatementCounts,
}

impl LeaseUsage {
    /// Its response time.
    fn total_us(&self) -> u64 {
        self.outside_us + self.opening_us + self.inside_us
    }
}

impl Sums {
    fn add(&mut self, usage: &LeaseUsage) {
        self.transactions += u64::from(usage.is_transaction);
        self.conflicts += u64::from(usage.is_transaction && usage.is_conflict);
        if usage.is_preempted {
            self.preempted += 1;
            self.preempted_us += usage.inside_us;
        }
        self.repeats += usage.repeats;
        self.queries += usage.queries;
        self.turns += 1;
        self.logins += u64::from(usage.is_login);
        self.outside_us += usage.outside_us;
        self.opening_us += usage.opening_us;
        self.inside_us += usage.inside_us;
        self.busy_us += usage.busy_us;
        self.received_bytes += usage.received_bytes;
        self.sent_bytes += usage.sent_bytes;
        self.statements = self.statements.with(&usage.statements);
    }

    /// Both together.
    pub fn with(&self, other: &Self) -> Self {
        Self {
            transactions: self.transactions + other.transactions,
            conflicts: self.conflicts + other.conflicts,
            preempted: self.preempted + other.preempted,
            preempted_us: self.preempted_us + other.preempted_us,
            repeats: self.repeats + other.repeats,
            queries: self.queries + other.queries,
            turns: self.turns + other.turns,
            logins: self.logins + other.logins,
            outside_us: self.outside_us + other.outside_us,
            opening_us: self.opening_us + other.opening_us,
            inside_us: self.inside_us + other.inside_us,
            busy_us: self.busy_us + other.busy_us,
            received_bytes: self.received_bytes + other.received_bytes,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            statements: self.statements.with(&other.statements),
        }
    }

    /// What came since.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            transactions: self.transactions - before.transactions,
            conflicts: self.conflicts - before.conflicts,
            preempted: self.preempted - before.preempted,
            preempted_us: self.preempted_us - before.preempted_us,
            repeats: self.repeats - before.repeats,
            queries: self.queries - before.queries,
            turns: self.turns - before.turns,
            logins: self.logins - before.logins,
            outside_us: self.outside_us - before.outside_us,
            opening_us: self.opening_us - before.opening_us,
            inside_us: self.inside_us - before.inside_us,
            busy_us: self.busy_us - before.busy_us,
            received_bytes: self.received_bytes - before.received_bytes,
            sent_bytes: self.sent_bytes - before.sent_bytes,
            statements: self.statements.since(&before.statements),
        }
    }
}

/// Times of transactions.
struct Times {
    outside: Histogram<u32>,
    opening: Histogram<u32>,
    inside: Histogram<u32>,
    total: Histogram<u32>,
}

/// Which time of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for its turn.
    Outside,
    /// Waiting for a connection, once let in.
    Opening,
    /// With a server connection.
    Inside,
    /// All of them.
    Total,
}

impl Times {
    fn new() -> Option<Self> {
        let new = || Histogram::new_with_max(TIME_US_MAX, DIGITS).ok();
        Some(Self {
            outside: new()?,
            opening: new()?,
            inside: new()?,
            total: new()?,
        })
    }

    fn add(&mut self, usage: &LeaseUsage) {
        self.outside.saturating_record(usage.outside_us);
        self.opening.saturating_record(usage.opening_us);
        self.inside.saturating_record(usage.inside_us);
        self.total.saturating_record(usage.total_us());
    }

    /// Those of another as well. All have the same bounds.
    fn take_over(&mut self, other: &Self) {
        let _ = self.outside.add(&other.outside);
        let _ = self.opening.add(&other.opening);
        let _ = self.inside.add(&other.inside);
        let _ = self.total.add(&other.total);
    }

    fn of(&self, phase: Phase) -> &Histogram<u32> {
        match phase {
            Phase::Outside => &self.outside,
            Phase::Opening => &self.opening,
            Phase::Inside => &self.inside,
            Phase::Total => &self.total,
        }
    }
}

/// Upper bounds of the classes in which times are counted for collectors, us.
pub const BOUNDS_US: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
    5_000_000, 30_000_000,
];

/// All of one database, user or class.
#[derive(Default)]
pub struct Tally {
    /// Since the start.
    pub sums: Sums,
    /// Of the last full minute.
    pub minute: Sums,
    before_minute: Sums,
    /// This minute and the one before it; made at the first transaction.
    recent: [Option<Times>; 2],
    /// Since the start: transactions with a total time of at most each of [`BOUNDS_US`].
    pub total_at_most: [u64; BOUNDS_US.len()],
    /// The total time of these transactions, us.
    pub total_us: u64,
}

impl Tally {
    fn add(&mut self, usage: &LeaseUsage) {
        self.sums.add(usage);
        if !usage.is_transaction {
            return;
        }
        let total_us = usage.total_us();
        self.total_us += total_us;
        for (count, bound_us) in self.total_at_most.iter_mut().zip(BOUNDS_US) {
            *count += u64::from(total_us <= bound_us);
        }
        let [now, _] = &mut self.recent;
        if now.is_none() {
            *now = Times::new();
        }
        if let Some(times) = now {
            times.add(usage);
        }
    }

    /// What was counted in another from now on counts here.
    fn take_over(&mut self, other: Self) {
        self.sums = self.sums.with(&other.sums);
        self.minute = self.minute.with(&other.minute);
        self.before_minute = self.before_minute.with(&other.before_minute);
        self.total_us += other.total_us;
        for (count, more) in self.total_at_most.iter_mut().zip(other.total_at_most) {
            *count += more;
        }
        for (own, others) in self.recent.iter_mut().zip(other.recent) {
            match (own, others) {
                (Some(own), Some(others)) => own.take_over(&others),
                (own, others) => *own = own.take().or(others),
            }
        }
    }

    fn minute_passed(&mut self) {
        self.minute = self.sums.since(&self.before_minute);
        self.before_minute = self.sums;
        self.recent.swap(0, 1);
        self.recent[0] = None;
    }

    /// The time that a share of the transactions of the last one to two minutes took at most, us;
    /// `None` where there were none.
    pub fn quantile_us(&self, phase: Phase, share: f64) -> Option<u64> {
        let mut both = self.recent.iter().flatten().map(|times| times.of(phase));
        let mut all = both.next()?.clone();
        for more in both {
            // Both have the same bounds.
            let _ = all.add(more);
        }
        (!all.is_empty()).then(|| all.value_at_quantile(share))
    }
}

/// Tallies by name.
#[derive(Default)]
pub struct Tallies(BTreeMap<String, Tally>);

impl Tallies {
    fn add(&mut self, name: &str, usage: &LeaseUsage) {
        if let Some(tally) = self.0.get_mut(name) {
            return tally.add(usage);
        }
        let name = if self.0.len() < NAMES_MAX {
            name
        } else {
            OTHERS
        };
        self.0.entry(name.to_owned()).or_default().add(usage);
    }

    /// That of a name, if something was counted for it.
    pub fn get(&self, name: &str) -> Option<&Tally> {
        self.0.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tally)> {
        self.0.iter().map(|(name, tally)| (name.as_str(), tally))
    }
}

/// Everything.
#[derive(Default)]
pub struct Statistics {
    /// By the names that clients use.
    pub databases: Tallies,
    /// By name.
    pub users: Tallies,
    /// By name; those in no class have none.
    pub classes: Tallies,
    /// By kind, where it matters what transactions say of themselves.
    pub kinds: Kinds,
}

impl Statistics {
    /// A turn is over.
    pub fn record(&mut self, database: &str, user: &str, class: &str, usage: &LeaseUsage) {
        self.databases.add(database, usage);
        self.users.add(user, usage);
        self.classes.add(class, usage);
    }

    /// The same turn, by what it was; `shape` is its first statement without constants.
    pub fn record_kind(&mut self, kind: &str, shape: Option<&str>, usage: &LeaseUsage) {
        self.kinds.add(kind, shape, usage);
    }

    /// A minute has passed.
    pub fn minute_passed(&mut self) {
        for tallies in [&mut self.databases, &mut self.users, &mut self.classes] {
            for tally in tallies.0.values_mut() {
                tally.minute_passed();
            }
        }
        self.kinds.minute_passed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(outside_us: u64, inside_us: u64) -> LeaseUsage {
        LeaseUsage {
            is_transaction: true,
            is_conflict: false,
            queries: 2,
            outside_us,
            inside_us,
            busy_us: inside_us / 2,
            received_bytes: 10,
            sent_bytes: 100,
            ..LeaseUsage::default()
        }
    }

    #[test]
    fn sums_are_of_the_start_and_of_the_last_minute() {
        let mut statistics = Statistics::default();
        statistics.record("shop", "ann", "", &took(100, 300));
        statistics.minute_passed();
        statistics.record("shop", "bob", "", &took(0, 50));
        let (name, tally) = statistics.databases.iter().next().unwrap();
        assert_eq!(
            (name, tally.sums.transactions, tally.sums.queries),
            ("shop", 2, 4)
        );
        assert_eq!((tally.sums.inside_us, tally.minute.inside_us), (350, 300));
        assert_eq!(statistics.users.iter().count(), 2);
    }

    #[test]
    fn quantiles_are_of_the_last_two_minutes() {
        let mut tally = Tally::default();
        assert_eq!(tally.quantile_us(Phase::Total, 0.5), None);
        for inside_us in 1..=100 {
            tally.add(&took(1000, inside_us * 1000));
        }
        let near = |share, expected: u64| {
            let found = tally.quantile_us(Phase::Total, share).unwrap();
            found.abs_diff(expected) <= expected / 100
        };
        assert!(near(0.5, 51_000) && near(0.99, 100_000));
        assert_eq!(tally.quantile_us(Phase::Outside, 0.5).unwrap() / 10, 100);
        tally.minute_passed();
        assert!(tally.quantile_us(Phase::Inside, 0.5).is_some());
        tally.minute_passed();
        assert_eq!(tally.quantile_us(Phase::Inside, 0.5), None);
    }

    #[test]
    fn names_without_end_are_counted_together() {
        let mut tallies = Tallies::default();
        for number in 0..2 * NAMES_MAX {
            tallies.add(&number.to_string(), &took(1, 1));
        }
        assert_eq!(tallies.iter().count(), NAMES_MAX + 1);
        let others = tallies.iter().find(|(name, _)| *name == OTHERS).unwrap();
        assert_eq!(others.1.sums.turns, NAMES_MAX as u64);
    }

    #[test]
    fn kinds_have_a_statement_to_be_known_by() {
        let mut statistics = Statistics::default();
        for shape in [None, Some("select ?"), Some("select b")] {
            statistics.record_kind("pay", shape, &took(1, 1));
        }
        let all: Vec<_> = statistics.kinds.iter().collect();
        let [(kind, shape, tally)] = all[..] else {
            panic!("{} kinds", all.len());
        };
        assert_eq!((kind, shape), ("pay", Some("select ?")));
        assert_eq!(tally.sums.turns, 3);
    }

    #[test]
    fn a_turn_that_did_not_end_counts_in_no_time() {
        let mut tally = Tally::default();
        tally.add(&LeaseUsage::default());
        assert_eq!((tally.sums.turns, tally.sums.transactions), (1, 0));
        assert_eq!(tally.quantile_us(Phase::Total, 0.5), None);
        tally.add(&took(0, 400));
        assert_eq!(tally.total_at_most[..3], [0, 0, 1]);
    }
}
