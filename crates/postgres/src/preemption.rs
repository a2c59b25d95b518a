//! Who makes room for a transaction that waits for a lock, as a decision: nothing is done here.
//!
//! Five ways come together (thesis, chapters 9 and 11; McWherter et al. 2005). A statement that
//! stands alone and waits in front is sent again, behind the one that matters more: that costs no
//! work. Preempt on wait takes the locks from one that waits itself, for a lock or for its client,
//! because it cannot go on anyway. Preemptive abort takes them from any holder. And the
//! transaction to be taken may be another one of those in the way: the one that holds the fewest
//! locks, or the one that began last.

use crate::locks::Waiter;
use std::collections::{BTreeMap, BTreeSet};

/// From whom locks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preempt {
    /// From those that wait themselves.
    Waiting,
    /// From all.
    Always,
}

/// Which of those that are in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Those that have the lock.
    #[default]
    Holders,
    /// The one that holds the fewest locks, of all that it waits for directly or not.
    FewestLocks,
    /// The one that began last.
    Youngest,
}

/// A transaction inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// 1 goes before 2.
    pub priority: u8,
    /// When it began; larger is later.
    pub began: u64,
    /// How many locks it holds.
    pub locks: usize,
    /// Whether it waits for its client: a statement to cancel there is none.
    pub is_idle: bool,
    /// Whether it has for long.
    pub is_idle_for_long: bool,
    /// Whether what it does may be its commit, or end with one: that is left to go on unless it waits
    /// for a lock, because a cancelled commit would not wait for its standby.
    pub may_commit: bool,
    /// Whether it is one statement that can be sent again as if it had not been.
    pub is_repeatable: bool,
    /// Whether it may be taken at all: one that was taken often is spared.
    pub is_spared: bool,
}

/// What becomes of a transaction that makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taken {
    /// Its statement is sent again.
    Again,
    /// It is rolled back while it does something.
    Cancelled,
    /// It is rolled back while its client does nothing.
    RolledBack,
}

/// Those that make room for `high`, and how. `inside` are the transactions that may be taken, by
/// their server processes; others only have locks.
pub fn taken(
    waiters: &[Waiter],
    high: i32,
    inside: &BTreeMap<i32, Inside>,
    (preempt, choice): (Preempt, Choice),
) -> BTreeMap<i32, Taken> {
    let waiting: BTreeMap<i32, &Waiter> = waiters.iter().map(|one| (one.pid, one)).collect();
    let (Some(waiter), Some(own)) = (waiting.get(&high), inside.get(&high)) else {
        return BTreeMap::new();
    };
    let is_lower = |pid: i32| {
        let other = inside.get(&pid)?;
        (other.priority > own.priority && !other.is_spared).then_some(other)
    };
    let is_stuck = |pid: i32| {
        let is_left_alone = |other: &Inside| other.is_idle_for_long;
        waiting.contains_key(&pid) || inside.get(&pid).is_some_and(is_left_alone)
    };
    let is_settled = |pid: i32| {
        let other = inside.get(&pid);
        !other.is_some_and(|other| other.may_commit) || waiting.contains_key(&pid)
    };
    let is_due = |pid: &i32| (preempt == Preempt::Always || is_stuck(*pid)) && is_settled(*pid);
    let in_the_way = blockers(&waiting, waiter, |pid| is_lower(pid).is_some(), choice);
    let due = in_the_way.into_iter().filter(is_due);
    let due = due.filter_map(|pid| Some((pid, is_lower(pid)?)));
    let victims: Vec<(i32, &Inside)> = match choice {
        Choice::Holders => due.collect(),
        Choice::FewestLocks => due
            .min_by_key(|(pid, other)| (other.locks, *pid))
            .into_iter()
            .collect(),
        Choice::Youngest => due
            .max_by_key(|(pid, other)| (other.began, *pid))
            .into_iter()
            .collect(),
    };
    let how = |(pid, other): (i32, &Inside)| {
        let how = match other {
            _ if other.is_idle => Taken::RolledBack,
            _ if other.is_repeatable => Taken::Again,
            _ => Taken::Cancelled,
        };
        (pid, how)
    };
    let ahead = waiter.ahead.iter().copied();
    let ahead = ahead.filter(|pid| is_lower(*pid).is_some_and(|other| other.is_repeatable));
    let ahead = ahead.map(|pid| (pid, Taken::Again));
    victims.into_iter().map(how).chain(ahead).collect()
}

/// Those that have what it waits for. What cannot be taken is looked through: it may wait itself.
/// With a choice among all, those that can be taken are looked through as well.
fn blockers(
    waiting: &BTreeMap<i32, &Waiter>,
    waiter: &Waiter,
    can_be_taken: impl Fn(i32) -> bool,
    choice: Choice,
) -> BTreeSet<i32> {
    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::from([waiter.pid]));
    let mut next: Vec<i32> = waiter.owners.clone();
    while let Some(pid) = next.pop() {
        if !seen.insert(pid) {
            continue;
        }
        let is_one = can_be_taken(pid);
        if is_one {
            found.insert(pid);
        }
        if !is_one || choice != Choice::Holders {
            let behind = waiting.get(&pid).map(|one| &one.owners);
            next.extend(behind.into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pid<ahead.ahead:owner.owner`
    fn waiters(text: &str) -> Vec<Waiter> {
        let numbers = |text: &str| {
            let words = text.split('.').filter(|word| !word.is_empty());
            words.map(|word| word.parse().unwrap()).collect()
        };
        let one = |word: &str| {
            let (pid, rest) = word.split_once('<').unwrap();
            let (ahead, owners) = rest.split_once(':').unwrap();
            Waiter {
                pid: pid.parse().unwrap(),
                ahead: numbers(ahead),
                beside: Vec::new(),
                owners: numbers(owners),
                since_us: 0,
            }
        };
        text.split(' ').map(one).collect()
    }

    /// Process 1 matters most, 5 as much as 1; `i`: idle for long, `j`: just now, `a`: alone,
    /// `s`: spared, `c`: commits.
    fn inside(text: &str) -> BTreeMap<i32, Inside> {
        let one = |word: &str| {
            let digits = word.trim_end_matches(char::is_alphabetic);
            let pid: i32 = digits.parse().unwrap();
            let state = Inside {
                priority: if pid == 1 || pid == 5 { 1 } else { 100 },
                began: pid as u64,
                locks: 10 - pid as usize,
                is_idle: word.contains(['i', 'j']),
                is_idle_for_long: word.contains('i'),
                may_commit: word.contains('c'),
                is_repeatable: word.contains('a'),
                is_spared: word.contains('s'),
            };
            (pid, state)
        };
        text.split(' ').map(one).collect()
    }

    fn words(queues: &str, transactions: &str, how: (Preempt, Choice)) -> String {
        let all = taken(&waiters(queues), 1, &inside(transactions), how);
        let words = all.iter().map(|(pid, how)| format!("{pid} {how:?}"));
        words.collect::<Vec<_>>().join(", ")
    }

    const WAITING: (Preempt, Choice) = (Preempt::Waiting, Choice::Holders);
    const ALWAYS: (Preempt, Choice) = (Preempt::Always, Choice::Holders);

    #[test]
    fn one_that_runs_is_spared_unless_all_are_taken() {
        assert_eq!(words("1<:2", "1 2", WAITING), "");
        assert_eq!(words("1<:2", "1 2", ALWAYS), "2 Cancelled");
        assert_eq!(words("1<:2 2<:3", "1 2 3", WAITING), "2 Cancelled");
        assert_eq!(words("1<:2", "1 2i", WAITING), "2 RolledBack");
        assert_eq!(words("1<:2", "1 2j", WAITING), "");
        // There is no statement that could be cancelled.
        assert_eq!(words("1<:2", "1 2j", ALWAYS), "2 RolledBack");
        assert_eq!(words("1<:2", "1 2s", ALWAYS), "");
        assert_eq!(words("1<:2", "1 2c", ALWAYS), "", "it is about to let go");
        assert_eq!(words("1<:2 2<:3", "1 2c 3", ALWAYS), "2 Cancelled");
        assert_eq!(words("2<:1", "1 2", ALWAYS), "", "it does not wait");
        assert_eq!(words("1<:2", "2", ALWAYS), "", "it is not the gate's");
    }

    #[test]
    fn who_stands_alone_in_front_is_sent_again() {
        assert_eq!(words("1<3.4:2 3<:2 4<3:2", "1 2 3a 4", WAITING), "3 Again");
        assert_eq!(
            words("1<3.4:2 3<:2 4<3:2", "1 2a 3a 4s", ALWAYS),
            "2 Again, 3 Again"
        );
    }

    #[test]
    fn what_matters_as_much_is_looked_through() {
        assert_eq!(words("1<:5 5<:2 2<:3", "1 5 2 3", WAITING), "2 Cancelled");
        assert_eq!(words("1<:9 9<:2", "1 2i", WAITING), "2 RolledBack");
        assert_eq!(words("1<:5", "1 5", ALWAYS), "");
        assert_eq!(words("1<:5 5<:1", "1 5", ALWAYS), "", "a circle ends");
    }

    #[test]
    fn another_one_of_those_in_the_way_can_be_chosen() {
        let queues = "1<:2 2<:3 3<:4";
        let all = "1 2 3 4";
        assert_eq!(words(queues, all, ALWAYS), "2 Cancelled");
        assert_eq!(
            words(queues, all, (Preempt::Always, Choice::FewestLocks)),
            "4 Cancelled"
        );
        assert_eq!(
            words(queues, all, (Preempt::Waiting, Choice::FewestLocks)),
            "3 Cancelled"
        );
        assert_eq!(
            words(queues, all, (Preempt::Waiting, Choice::Youngest)),
            "3 Cancelled"
        );
    }
}
