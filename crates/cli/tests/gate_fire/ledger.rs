//! What the clients believe of their transactions, held against what is in the database.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::transfer::Transfer;

/// What a client knows of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It was told that it is committed.
    Acknowledged,
    /// It was told that something failed, or has never said that it is to be committed.
    Failed,
    /// The connection was lost in between.
    Unknown,
}

/// The notes of all clients.
#[derive(Default)]
pub struct Ledger {
    /// With how it was sent, for the developer who has to find out why.
    notes: Mutex<BTreeMap<u64, (Transfer, Outcome, String)>>,
    counts: Mutex<BTreeMap<String, u64>>,
    violations: Mutex<Vec<String>>,
}

/// What is in the journal under one number.
struct Entry {
    transfer: Transfer,
    /// What the database called the client that ran it.
    who: String,
    count: u64,
}

impl Ledger {
    /// Notes how a transaction ended.
    pub fn note(&self, transfer: &Transfer, outcome: Outcome, how: String) {
        self.count(&format!("{outcome:?}"));
        let mut notes = self.notes.lock().unwrap();
        notes.insert(transfer.id, (transfer.clone(), outcome, how));
    }

    /// One more of these.
    pub fn count(&self, what: &str) {
        *self
            .counts
            .lock()
            .unwrap()
            .entry(what.to_owned())
            .or_default() += 1;
    }

    /// How many of these there were.
    pub fn counted(&self, what: &str) -> u64 {
        self.counts.lock().unwrap().get(what).copied().unwrap_or(0)
    }

    /// All counts, for the reader of the test's output.
    pub fn summary(&self) -> String {
        let counts = self.counts.lock().unwrap();
        let lines: Vec<String> = counts
            .iter()
            .map(|(what, count)| format!("  {count:6} {what}"))
            .collect();
        lines.join("\n")
    }

    /// Something that must not be.
    pub fn violation(&self, what: String) {
        self.violations.lock().unwrap().push(what);
    }

    /// Whether nothing was wrong so far.
    pub fn is_clean(&self) -> bool {
        self.violations.lock().unwrap().is_empty()
    }

    /// All that must not be.
    pub fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap().clone()
    }

    /// Holds `journal` (number, from, to, amount, who; a line each) and `balances` (in the
    /// accounts' order) against the notes.
    pub fn audit(&self, journal: &str, balances: &str, balance_at_first: i64) {
        let entries = read(journal);
        let notes = self.notes.lock().unwrap();
        let mut commits_unknown = 0;
        for (id, (transfer, outcome, how)) in notes.iter() {
            let count = entries.get(id).map_or(0, |entry| entry.count);
            let is_right = match outcome {
                Outcome::Acknowledged => count == 1,
                Outcome::Failed => count == 0,
                Outcome::Unknown => count <= 1,
            };
            if *outcome == Outcome::Unknown {
                commits_unknown += count;
            }
            if !is_right {
                self.violation(format!(
                    "{outcome:?}, and {count} times there: {transfer:?} {how}"
                ));
            }
        }
        for (id, entry) in &entries {
            match notes.get(id) {
                Some((transfer, ..)) if *transfer == entry.transfer => {}
                noted => self.violation(format!("{:?} is there for {noted:?}", entry.transfer)),
            }
            if entry.who != entry.transfer.name() {
                let transfer = &entry.transfer;
                self.violation(format!("{transfer:?} ran as {:?}", entry.who));
            }
        }
        self.counts
            .lock()
            .unwrap()
            .insert("Unknown that committed".to_owned(), commits_unknown);
        self.audit_balances(&entries, balances, balance_at_first);
    }

    fn audit_balances(&self, entries: &BTreeMap<u64, Entry>, balances: &str, at_first: i64) {
        let balances: Vec<i64> = balances.lines().map(|line| line.parse().unwrap()).collect();
        let mut expected = vec![at_first; balances.len()];
        for Entry {
            transfer, count, ..
        } in entries.values()
        {
            let amount = transfer.amount * *count as i64;
            expected[transfer.from as usize] -= amount;
            expected[transfer.to as usize] += amount;
        }
        if balances != expected {
            self.violation(format!("balances {balances:?} instead of {expected:?}"));
        }
        let (sum, before) = (
            balances.iter().sum::<i64>(),
            at_first * balances.len() as i64,
        );
        if sum != before {
            self.violation(format!("{sum} in all instead of {before}"));
        }
    }
}

fn read(journal: &str) -> BTreeMap<u64, Entry> {
    let mut entries = BTreeMap::new();
    for line in journal.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let number = |index: usize| fields[index].parse::<u64>().unwrap();
        let transfer = Transfer {
            id: number(0),
            from: number(1),
            to: number(2),
            amount: number(3) as i64,
        };
        let who = fields[4].to_owned();
        let entry = Entry {
            transfer,
            who,
            count: 0,
        };
        entries.entry(number(0)).or_insert(entry).count += 1;
    }
    entries
}
