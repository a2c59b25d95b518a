//! Who waits for whom, from what pg_locks shows at a moment.
//!
//! A row that is changed or locked has two queues: the first who waits holds the row's tuple lock
//! and waits for the transaction that has the row; all others wait for the tuple lock. Together
//! they are one queue, and its owner is that transaction.

use std::collections::HashMap;

/// What is locked: the kind, then the numbers that pg_locks has for it.
pub type LockKey = (String, [u32; 7], String);

/// The rows that [`LockRow::of_texts`] reads, and when they were looked at. Every role may read them;
/// what no one waits for is left out: locks taken by the fast path, and transactions by their
/// number in the session.
pub const QUERY: &str = "SELECT pid, granted, mode, locktype, \
     pg_catalog.concat_ws(':', database, relation, page, tuple, transactionid, classid, objid, objsubid), \
     (EXTRACT(epoch FROM waitstart) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8, \
     (EXTRACT(epoch FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8 \
     FROM pg_catalog.pg_locks \
     WHERE NOT fastpath AND pid IS NOT NULL AND locktype OPERATOR(pg_catalog.<>) 'virtualxid' \
     AND mode OPERATOR(pg_catalog.<>) 'SIReadLock'";

/// A row of pg_locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRow {
    /// The session that holds it.
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

impl LockRow {
    /// From the columns of [`QUERY`], and when that was, microseconds of the epoch; none where it is
    /// no such row.
    pub fn of_texts(columns: &[Option<String>]) -> Option<(Self, i64)> {
        let [pid, granted, mode, kind, object, since, now] = columns else {
            return None;
        };
        let row = Self {
            pid: pid.as_ref()?.parse().ok()?,
            granted: granted.as_deref()? == "t",
            key: (kind.clone()?, [0; 7], object.clone()?),
            mode: mode.clone()?,
            waits_since_us: match since {
                Some(since) => since.parse().ok()?,
                None => 0,
            },
        };
        Some((row, now.as_ref()?.parse().ok()?))
    }
}

/// One that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Its process.
    pub pid: i32,
    /// Those before it in the queue.
    pub ahead: Vec<i32>,
    /// Those that came before it and wait for the same transaction without a queue, as all do that
    /// look for the newest version of a row: they are woken together, and who runs first is first.
    pub beside: Vec<i32>,
    /// Those that have what it waits for.
    pub owners: Vec<i32>,
    /// Since when, microseconds of the epoch; 0 where it has only begun.
    pub since_us: i64,
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
    // For a moment there is no time: who has only begun is the last.
    let came = |row: &LockRow| (row.waits_since_us.wrapping_sub(1) as u64, row.pid);
    let of = |row: &LockRow| -> (Vec<i32>, Vec<i32>) {
        let others = by_key.get(&row.key).into_iter().flatten();
        let against =
            others.filter(|other| other.pid != row.pid && conflict(&row.mode, &other.mode));
        let (mut owners, mut ahead) = (Vec::new(), Vec::new());
        for other in against {
            if other.granted {
                owners.push(other.pid);
            } else if came(other) < came(row) {
                ahead.push(other.pid);
            }
        }
        (owners, ahead)
    };
    let beside = |row: &LockRow| -> Vec<i32> {
        let others = by_key.get(&row.key).into_iter().flatten();
        let others = others.filter(|other| row.key.0 == "transactionid" && !other.granted);
        let before = others.filter(|other| other.pid != row.pid && came(other) < came(row));
        before.map(|other| other.pid).collect()
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
                beside: beside(row),
                owners,
                since_us: row.waits_since_us,
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
    fn who_waits_for_the_same_transaction_is_beside() {
        let text = "+1 transactionid:7 Exclusive, 2 transactionid:7 Share 20, 3 transactionid:7 Share 10, \
                    4 relation:9 AccessShare 5, 5 relation:9 AccessShare 6";
        let all = waiters(&rows(text));
        let beside: Vec<_> = all.iter().map(|one| (one.pid, &one.beside[..])).collect();
        assert_eq!(beside, [(2, &[3][..]), (3, &[]), (4, &[]), (5, &[])]);
    }

    #[test]
    fn who_has_only_begun_to_wait_is_the_last() {
        let text = "+1 relation:9 AccessExclusive, 2 relation:9 AccessExclusive 10, \
                    3 relation:9 AccessExclusive";
        assert_eq!(words(text), "2 behind [] for [1]; 3 behind [2] for [1]");
    }

    #[test]
    fn rows_of_texts_are_read() {
        let texts =
            |columns: [&str; 7]| columns.map(|text| (!text.is_empty()).then(|| text.to_owned()));
        let row = texts(["7", "f", "ShareLock", "transactionid", "734", "5", "9"]);
        let (read, now_us) = LockRow::of_texts(&row).unwrap();
        assert_eq!(
            (read.pid, read.granted, read.waits_since_us, now_us),
            (7, false, 5, 9)
        );
        assert_eq!(read.key.2, "734");
        assert_eq!(LockRow::of_texts(&row[1..]), None);
        let row = texts(["seven", "f", "ShareLock", "transactionid", "734", "5", "9"]);
        assert_eq!(LockRow::of_texts(&row), None);
    }

    #[test]
    fn who_does_not_conflict_is_not_waited_for() {
        let text = "+1 relation:9 AccessShare, 2 relation:9 AccessExclusive 10, 3 relation:9 AccessShare 20, +4 relation:9 RowShare";
        assert_eq!(words(text), "2 behind [] for [1, 4]; 3 behind [2] for []");
    }
}
