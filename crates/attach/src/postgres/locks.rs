//! Who waits for whom, from what pg_locks shows at a moment.
//!
//! A row that is changed or locked has two queues: the first who waits holds the row's tuple lock
//! and waits for the transaction that has the row; all others wait for the tuple lock. Together
//! they are one queue, and its owner is that transaction.

use std::collections::HashMap;

/// What is locked: the kind, then the numbers that pg_locks has for it.
pub type LockKey = (String, [u32; 7], String);

/// A row of pg_locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRow {
    /// Whose.
    pub pid: i32,
    /// Whether it has it, or waits for it.
    pub granted: bool,
    /// Of what.
    pub key: LockKey,
    /// How, as `AccessShareLock`.
    pub mode: String,
    /// Since when it waits; 0 where it does not or has only begun.
    pub waits_since_us: i64,
}

/// One that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Its process.
    pub pid: i32,
    /// Those before it in the queue.
    pub ahead: Vec<i32>,
    /// Those that have what it waits for.
    pub owners: Vec<i32>,
}

/// Modes, weakest first.
const MODES: [&str; 8] = [
    "AccessShareLock",
    "RowShareLock",
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
];
/// Which modes each conflicts with, as bits (PostgreSQL's documentation, table 13.2).
const CONFLICTS: [u8; 8] = [
    0b1000_0000,
    0b1100_0000,
    0b1111_0000,
    0b1111_1000,
    0b1110_1100,
    0b1111_1100,
    0b1111_1110,
    0b1111_1111,
];

fn conflict(one: &str, other: &str) -> bool {
    let place = |mode: &str| MODES.iter().position(|known| *known == mode);
    match (place(one), place(other)) {
        (Some(one), Some(other)) => CONFLICTS[one] & (1 << other) != 0,
        // Predicate locks block no one.
        _ => false,
    }
}

/// All that wait, each with those before it.
pub fn waiters(rows: &[LockRow]) -> Vec<Waiter> {
    let mut by_key: HashMap<&LockKey, Vec<&LockRow>> = HashMap::new();
    for row in rows {
        by_key.entry(&row.key).or_default().push(row);
    }
    let waiting: HashMap<i32, &LockRow> = rows
        .iter()
        .filter(|row| !row.granted)
        .map(|row| (row.pid, row))
        .collect();
    let of = |row: &LockRow| -> (Vec<i32>, Vec<i32>) {
        let others = by_key.get(&row.key).into_iter().flatten();
        let against =
            others.filter(|other| other.pid != row.pid && conflict(&row.mode, &other.mode));
        let (mut owners, mut ahead) = (Vec::new(), Vec::new());
        for other in against {
            if other.granted {
                owners.push(other.pid);
            } else if (other.waits_since_us, other.pid) < (row.waits_since_us, row.pid) {
                ahead.push(other.pid);
            }
        }
        (owners, ahead)
    };
    let mut all: Vec<Waiter> = waiting
        .values()
        .map(|row| {
            let (mut owners, mut ahead) = of(row);
            // Who has a tuple lock and waits itself is the first of the row's queue.
            let first = owners.first().and_then(|owner| waiting.get(owner));
            if let ("tuple", Some(first)) = (row.key.0.as_str(), first) {
                ahead.push(first.pid);
                owners = of(first).0;
            }
            Waiter {
                pid: row.pid,
                ahead,
                owners,
            }
        })
        .collect();
    all.sort_by_key(|waiter| waiter.pid);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pid kind:object mode since`, a `+` before what is granted.
    fn rows(text: &str) -> Vec<LockRow> {
        let lines = text.split(',').map(str::trim);
        let row = |line: &str| {
            let words: Vec<&str> = line.trim_start_matches('+').split(' ').collect();
            let (kind, object) = words[1].split_once(':').unwrap();
            let mut numbers = [0; 7];
            numbers[0] = object.parse().unwrap();
            LockRow {
                pid: words[0].parse().unwrap(),
                granted: line.starts_with('+'),
                key: (kind.into(), numbers, String::new()),
                mode: format!("{}Lock", words[2]),
                waits_since_us: words.get(3).map_or(0, |since| since.parse().unwrap()),
            }
        };
        lines.map(row).collect()
    }

    fn words(text: &str) -> String {
        let all = waiters(&rows(text));
        let words = all
            .iter()
            .map(|one| format!("{} behind {:?} for {:?}", one.pid, one.ahead, one.owners));
        words.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_rows_two_queues_are_one() {
        let text = "+1 transactionid:7 Exclusive, +2 tuple:5 Exclusive, 2 transactionid:7 Share 10, \
                    3 tuple:5 Exclusive 20, 4 tuple:5 Exclusive 30";
        assert_eq!(
            words(text),
            "2 behind [] for [1]; 3 behind [2] for [1]; 4 behind [3, 2] for [1]"
        );
    }

    #[test]
    fn who_does_not_conflict_is_not_waited_for() {
        let text = "+1 relation:9 AccessShare, 2 relation:9 AccessExclusive 10, 3 relation:9 AccessShare 20, +4 relation:9 RowShare";
        assert_eq!(words(text), "2 behind [] for [1, 4]; 3 behind [2] for []");
    }
}
