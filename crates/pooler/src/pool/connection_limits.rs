//! Roles and databases that are at a CONNECTION LIMIT of the server's (53300). What their
//! transactions wait for, only connections of the same role or database can give, so they wait
//! outside and take no place from others.
//!
//! Transactions of one owner wait in a line. Its first goes in when a connection of the owner is
//! idle; without one it tries again each second, because other programs have connections too.

use crate::log::Seldom;
use crate::pool::Owner;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};
use tokio::time::{Instant, timeout_at};

/// Between two logins of which the first was refused.
const LOGIN_PAUSE: Duration = Duration::from_secs(1);

/// What has a CONNECTION LIMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// The role.
    Role,
    /// The database.
    Database,
}

impl Limited {
    /// Whether connections of these two count together.
    pub fn is_shared(self, one: &Owner, other: &Owner) -> bool {
        match self {
            Self::Role => one.user == other.user,
            Self::Database => one.database_there() == other.database_there(),
        }
    }
}

/// The connections of one server by owner, and who waits for one at a limit.
#[derive(Default)]
pub struct ConnectionLimits {
    open: Rc<RefCell<Open>>,
    lines: RefCell<BTreeMap<Owner, Rc<Line>>>,
    /// That a role or database is at its limit.
    pub reached: Seldom,
}

#[derive(Default)]
struct Open {
    counts: BTreeMap<Owner, usize>,
    /// Those that were closed a moment ago: the server may count them for a while.
    closed: Vec<(Owner, Instant)>,
}

/// A connection that is open, as long as this is there.
pub struct CountedConnection {
    open: Rc<RefCell<Open>>,
    owner: Owner,
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut open = self.open.borrow_mut();
        let count = open.counts.get_mut(&self.owner);
        assert!(count.is_some(), "a connection ends twice");
        if let Some(count) = count {
            *count -= 1;
            if *count == 0 {
                open.counts.remove(&self.owner);
            }
        }
        open.closed.retain(|(_, at)| at.elapsed() < LOGIN_PAUSE);
        open.closed.push((self.owner.clone(), Instant::now()));
    }
}

/// The line of one owner.
#[derive(Default)]
pub struct Line {
    turn: Arc<Mutex<()>>,
    /// A connection of the owner has come back.
    returned: Notify,
}

/// The first place of a line; the next one has it when this is dropped.
pub struct Turn {
    _first: OwnedMutexGuard<()>,
}

impl ConnectionLimits {
    /// One more is open.
    pub fn count_one(&self, owner: &Owner) -> CountedConnection {
        let mut open = self.open.borrow_mut();
        *open.counts.entry(owner.clone()).or_default() += 1;
        CountedConnection {
            open: self.open.clone(),
            owner: owner.clone(),
        }
    }

    /// Whether there is an open connection that counts together with those of `owner`, or was one a
    /// moment ago.
    pub fn has_open(&self, limited: Limited, owner: &Owner) -> bool {
        let open = self.open.borrow();
        let closed = open.closed.iter();
        let mut closed = closed.filter(|(_, at)| at.elapsed() < LOGIN_PAUSE);
        let is_shared = |other: &Owner| limited.is_shared(owner, other);
        open.counts.keys().any(is_shared) || closed.any(|(other, _)| is_shared(other))
    }

    /// The line of an owner, where transactions stand in it.
    pub fn line(&self, owner: impl FnOnce() -> Owner) -> Option<Rc<Line>> {
        let mut lines = self.lines.borrow_mut();
        // In the usual case there is none.
        if lines.is_empty() {
            return None;
        }
        lines.retain(|_, line| Rc::strong_count(line) > 1);
        lines.get(&owner()).cloned()
    }

    /// The same; a new one where there is none.
    pub fn new_line(&self, owner: &Owner) -> Rc<Line> {
        let mut lines = self.lines.borrow_mut();
        lines.entry(owner.clone()).or_default().clone()
    }

    /// A connection of this owner is idle.
    pub fn returned(&self, owner: &Owner) {
        if let Some(line) = self.lines.borrow().get(owner) {
            line.returned.notify_one();
        }
    }
}

impl Line {
    /// Waits to be the first, then until it is time to try; `turn` is that of one who has tried.
    pub async fn wait(&self, turn: Option<Turn>, has_idle: impl Fn() -> bool) -> Turn {
        let turn = match turn {
            Some(turn) => turn,
            None => Turn {
                _first: self.turn.clone().lock_owned().await,
            },
        };
        let until = Instant::now() + LOGIN_PAUSE;
        while !has_idle() {
            if timeout_at(until, self.returned.notified()).await.is_err() {
                break;
            }
        }
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    fn owner(user: &str, database: &str) -> Owner {
        Owner {
            user: user.into(),
            database: database.into(),
            there: None,
        }
    }

    /// PostgreSQL counts by the name that it has for a database.
    #[test]
    fn two_names_for_one_database_count_together() {
        let limits = ConnectionLimits::default();
        let there = Some("shop".to_owned());
        let session = Owner {
            there,
            ..owner("bob", "shop_session")
        };
        let _open = limits.count_one(&owner("ann", "shop"));
        assert!(limits.has_open(Limited::Database, &session));
        assert!(!limits.has_open(Limited::Role, &session));
        let namesake = Owner {
            there: Some("other".to_owned()),
            ..owner("eve", "shop")
        };
        assert!(!limits.has_open(Limited::Database, &namesake));
    }

    #[test]
    fn connections_count_together_by_role_or_by_database() {
        let limits = ConnectionLimits::default();
        let (own, elsewhere) = (owner("bob", "app"), owner("bob", "app2"));
        let open = limits.count_one(&elsewhere);
        assert!(limits.has_open(Limited::Role, &own));
        assert!(!limits.has_open(Limited::Database, &own));
        drop(open);
        // The server may not know yet.
        assert!(limits.has_open(Limited::Role, &own));
        assert!(!limits.has_open(Limited::Database, &own));
    }

    #[test]
    fn a_line_is_there_while_a_transaction_stands_in_it() {
        let limits = ConnectionLimits::default();
        let own = owner("bob", "app");
        assert!(limits.line(|| own.clone()).is_none());
        let line = limits.new_line(&own);
        let first = {
            let wait = std::pin::pin!(line.wait(None, || true));
            match wait.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(turn) => turn,
                Poll::Pending => panic!("no other one is there"),
            }
        };
        {
            let second = limits.line(|| own.clone()).expect("a line");
            let mut wait = std::pin::pin!(second.wait(None, || true));
            let mut context = Context::from_waker(Waker::noop());
            assert!(wait.as_mut().poll(&mut context).is_pending());
            drop(first);
            assert!(wait.as_mut().poll(&mut context).is_ready());
        }
        drop(line);
        assert!(limits.line(|| own.clone()).is_none());
    }
}
