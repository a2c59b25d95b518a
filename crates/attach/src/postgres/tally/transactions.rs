//! Transactions that go on from look to look. Which kind one is may be seen late, so what it had is
//! divided among names when it is over.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{NamedTally, Seen, Tally, add};
use crate::postgres::ages::Ages;
use crate::postgres::part::Part;

/// Kinds or statements of a class that are told apart at most; more are one.
pub(super) const NAMES_MAX: usize = 500;
/// Kinds of transactions in which one statement is known from at most; more are one.
const KINDS_MAX: usize = 50;
/// What all others are called then.
const OTHERS: &str = "others";
/// What is told apart of a transaction that goes on at most; more is one with the last.
const STAYS_MAX: usize = 256;

/// A transaction that may go on.
#[derive(Debug)]
pub struct Open {
    class: usize,
    began_us: i64,
    kind: Option<Rc<str>>,
    stays: Vec<Stay>,
}

/// Looks at one statement in one part, one after the other.
#[derive(Debug)]
struct Stay {
    statement: Rc<str>,
    part: Part,
    first: OneLook,
    /// Those behind the first, at the ages of the last.
    more: OneLook,
}

#[derive(Debug, Clone, Copy, Default)]
struct OneLook {
    seconds: f64,
    age_ns: u64,
    statement_age_ns: u64,
}

impl Tally {
    /// Whatever is open is over. What statements were seen alone goes to the kinds in which they
    /// are known from.
    pub fn finish(&mut self) {
        let pids: Vec<i32> = self.open.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.close(pid));
        for (at, class) in self.classes.iter_mut().enumerate() {
            let statements = std::mem::take(&mut class.statements);
            for (statement, tally) in statements {
                let Some(kinds) = self.known.get(&(at, statement.clone())) else {
                    named(&mut class.statements, &statement).merge(&tally, 1.0);
                    continue;
                };
                let all: f64 = kinds.values().sum();
                for (kind, seconds) in kinds {
                    let parts = NamedTally {
                        seconds: tally.seconds,
                        ages: Ages::default(),
                    };
                    named(&mut class.kinds, kind).merge(&parts, seconds / all);
                }
            }
        }
    }

    /// What a session does now, in the transaction of the last look or another one.
    pub(super) fn follow(&mut self, seen: &Seen, since_s: f64) {
        let began_us = seen.transaction.as_ref().map(|own| own.began_us);
        let open = self.open.get(&seen.pid).map(|open| open.began_us);
        if open.is_some() && open != began_us {
            self.close(seen.pid);
        }
        let Some(transaction) = &seen.transaction else {
            return;
        };
        let open = self.open.entry(seen.pid).or_insert_with(|| Open {
            class: seen.class,
            began_us: transaction.began_us,
            kind: None,
            stays: Vec::new(),
        });
        if open.kind.is_none() {
            open.kind.clone_from(&transaction.kind);
        }
        let look = OneLook {
            seconds: since_s,
            age_ns: transaction.age_ns,
            statement_age_ns: transaction.statement_age_ns,
        };
        let is_full = open.stays.len() == STAYS_MAX;
        match open.stays.last_mut() {
            Some(last)
                if is_full
                    || (last.part == transaction.part
                        && last.statement == transaction.statement) =>
            {
                last.more = OneLook {
                    seconds: last.more.seconds + since_s,
                    ..look
                };
            }
            _ => open.stays.push(Stay {
                statement: Rc::clone(&transaction.statement),
                part: transaction.part,
                first: look,
                more: OneLook::default(),
            }),
        }
    }

    /// What its transaction had is divided among names.
    pub(super) fn close(&mut self, pid: i32) {
        let Some(open) = self.open.remove(&pid) else {
            return;
        };
        let class = &mut self.classes[open.class];
        for stay in &open.stays {
            let tally = match &open.kind {
                Some(kind) => named(&mut class.kinds, kind),
                None => named(&mut class.statements, &stay.statement),
            };
            for look in [stay.first, stay.more] {
                tally.seconds[stay.part.index()] += look.seconds;
                let age_ns = match &open.kind {
                    Some(_) => look.age_ns,
                    None => look.statement_age_ns,
                };
                tally.ages.add(age_ns, look.seconds);
            }
            let Some(kind) = &open.kind else { continue };
            let statement = (open.class, stay.statement.to_string());
            if self.known.len() < NAMES_MAX || self.known.contains_key(&statement) {
                let kinds = self.known.entry(statement).or_default();
                let seconds = stay.first.seconds + stay.more.seconds;
                let is_room = kinds.len() < KINDS_MAX || kinds.contains_key(&**kind);
                let kind = if is_room { kind } else { OTHERS };
                *kinds.entry(kind.to_owned()).or_default() += seconds;
            }
        }
    }
}

/// The one of this name, or the one of all others.
fn named<'a>(all: &'a mut BTreeMap<String, NamedTally>, name: &str) -> &'a mut NamedTally {
    let is_room = all.len() < NAMES_MAX || all.contains_key(name);
    all.entry(if is_room { name } else { OTHERS }.to_owned())
        .or_default()
}

impl NamedTally {
    fn merge(&mut self, other: &NamedTally, share: f64) {
        add(&mut self.seconds, &other.seconds, share);
        self.ages.merge(&other.ages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::tally::SeenTransaction;

    #[test]
    fn kinds_of_a_statement_have_a_bound() {
        let mut tally = Tally::new(1, 10.0);
        for number in 0..2000_i64 {
            let seen = Seen {
                pid: 1,
                class: 0,
                run_s: 0.0,
                wait_s: 0.0,
                is_woken: None,
                transaction: Some(SeenTransaction {
                    began_us: number,
                    part: Part::Running,
                    age_ns: 1,
                    statement_age_ns: 1,
                    kind: Some(format!("k{number}").into()),
                    statement: "commit".into(),
                }),
            };
            tally.look(0.001, &[seen]);
        }
        tally.finish();
        let kinds = &tally.known[&(0, "commit".to_owned())];
        assert_eq!(kinds.len(), KINDS_MAX + 1);
        assert!(kinds[OTHERS] > 1.9);
    }
}
