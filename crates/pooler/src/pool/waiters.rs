//! Transactions that wait for a server connection of an owner, while a new one is opened.
//!
//! A login can take a hundred times as long as a transaction, where the server is busy. So a
//! transaction that finds no idle connection has one opened and takes the first that there is:
//! this one, or one that another transaction gives back. An opening of which the transaction has
//! got another connection is spare: the next transaction that finds none waits for it and begins
//! no other, so that there are never more connections than transactions inside. One of which the
//! client leaves is given up: it may be at a server that does not answer.
//!
//! The class that matters more is served first, until one has waited for [`OVERDUE`]: from then on
//! it goes before all that have not.

use crate::pool::Owner;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Who has waited for so long is overtaken no more.
pub const OVERDUE: Duration = Duration::from_millis(250);

/// Names an opening, and the transaction for which it was begun.
pub type Number = u64;

/// What a waiting transaction is told.
pub enum Handed<T, E> {
    /// It has this connection.
    Server(T),
    /// The opening that was begun for it has failed.
    Failed(E),
    /// There are fewer openings than before: it has to look again.
    LookAgain,
}

/// A transaction's wait.
pub struct Ticket<T, E> {
    pub number: Number,
    pub receiver: oneshot::Receiver<Handed<T, E>>,
}

/// Resolves when an opening has been given up.
pub type GivenUp = oneshot::Receiver<()>;

/// Which transaction waits, and since when.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The lower goes first.
    pub rank: u8,
    pub since: Instant,
}

impl Waiting {
    /// Of a transaction in a class of this priority, 1 before 2; 0 is that of no class, which goes
    /// last.
    pub fn of(priority: u8, since: Instant) -> Self {
        let rank = priority.checked_sub(1).unwrap_or(u8::MAX);
        Self { rank, since }
    }
}

/// Those of all owners; `T` is a connection, `E` why one cannot be opened.
pub struct Waiters<T, E> {
    owners: BTreeMap<Owner, OfOwner<T, E>>,
    next: Number,
}

struct OfOwner<T, E> {
    /// In the order in which they came.
    waiting: Vec<Waiter<T, E>>,
    /// Openings of which the transactions need them no more; one is given up by dropping its value.
    spare: BTreeMap<Number, oneshot::Sender<()>>,
}

struct Waiter<T, E> {
    number: Number,
    waiting: Waiting,
    /// Where one is being opened for it: what gives that up when dropped.
    opening: Option<oneshot::Sender<()>>,
    sender: oneshot::Sender<Handed<T, E>>,
}

impl<T, E> Default for Waiters<T, E> {
    fn default() -> Self {
        let owners = BTreeMap::new();
        Self { owners, next: 0 }
    }
}

impl<T, E> OfOwner<T, E> {
    fn without_opening(&self) -> usize {
        self.waiting
            .iter()
            .filter(|waiter| waiter.opening.is_none())
            .count()
    }

    fn has_spare(&self) -> bool {
        self.spare.len() > self.without_opening()
    }

    /// The one that is served next.
    fn first(&self, now: Instant) -> Option<usize> {
        let all = self.waiting.iter().enumerate();
        let rank = |waiter: &Waiter<T, E>| {
            let waiting = waiter.waiting;
            let is_overdue = now.saturating_duration_since(waiting.since) >= OVERDUE;
            let rank = if is_overdue { 0 } else { waiting.rank };
            (!is_overdue, rank, waiting.since, waiter.number)
        };
        Some(all.min_by_key(|(_, waiter)| rank(waiter))?.0)
    }

    fn remove(&mut self, number: Number) -> Option<Waiter<T, E>> {
        let mut all = self.waiting.iter();
        let at = all.position(|waiter| waiter.number == number)?;
        Some(self.waiting.remove(at))
    }

    /// Tells all for which none is being opened.
    fn look_again(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for waiter in waiting {
            if waiter.opening.is_some() {
                self.waiting.push(waiter);
            } else {
                let _ = waiter.sender.send(Handed::LookAgain);
            }
        }
    }
}

impl<T, E> Waiters<T, E> {
    /// A transaction of this owner waits. One has to be opened for it where that is allowed now and
    /// there is no spare one for it.
    pub fn wait(
        &mut self,
        owner: &Owner,
        waiting: Waiting,
        may_open: bool,
    ) -> (Ticket<T, E>, Option<GivenUp>) {
        let (sender, receiver) = oneshot::channel();
        let number = self.next;
        self.next += 1;
        let own = self.owners.entry(owner.clone()).or_insert_with(|| OfOwner {
            waiting: Vec::new(),
            spare: BTreeMap::new(),
        });
        let opens = may_open && !own.has_spare();
        let (opening, given_up) = opens.then(oneshot::channel).unzip();
        own.waiting.push(Waiter {
            number,
            waiting,
            opening,
            sender,
        });
        (Ticket { number, receiver }, given_up)
    }

    /// Whether there is nothing to keep track of.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Gives a connection to the first that waits for one of this owner; back where none does.
    pub fn hand(&mut self, owner: &Owner, mut server: T, now: Instant) -> Option<T> {
        let Some(own) = self.owners.get_mut(owner) else {
            return Some(server);
        };
        while let Some(first) = own.first(now) {
            let waiter = own.waiting.remove(first);
            if let Some(opening) = waiter.opening {
                own.spare.insert(waiter.number, opening);
            }
            match waiter.sender.send(Handed::Server(server)) {
                Ok(()) => {
                    self.forget(owner);
                    return None;
                }
                Err(Handed::Server(returned)) => server = returned,
                Err(_) => return None,
            }
        }
        Some(server)
    }

    /// A transaction waits no longer, and what is being opened for it is given up; whether anything
    /// was.
    pub fn leave(&mut self, owner: &Owner, number: Number) -> bool {
        let Some(own) = self.owners.get_mut(owner) else {
            return false;
        };
        let opening = own.remove(number).and_then(|waiter| waiter.opening);
        self.forget(owner);
        opening.is_some()
    }

    /// An opening has come to its end; whether it still counts. What it opened is to be handed on.
    pub fn opened(&mut self, owner: &Owner, number: Number) -> bool {
        let Some(own) = self.owners.get_mut(owner) else {
            return false;
        };
        let mut waiting = own.waiting.iter_mut();
        let counts = match waiting.find(|waiter| waiter.number == number) {
            // Another one may be handed what was opened for this one, which then waits for others.
            Some(waiter) => waiter.opening.take().is_some(),
            None => own.spare.remove(&number).is_some(),
        };
        self.forget(owner);
        counts
    }

    /// What an opening has opened is of no use any more: those that count on it look again. Whether
    /// it still counts.
    pub fn discarded(&mut self, owner: &Owner, number: Number) -> bool {
        let counts = self.opened(owner, number);
        if let Some(own) = self.owners.get_mut(owner)
            && own.without_opening() > own.spare.len()
        {
            own.look_again();
            self.forget(owner);
        }
        counts
    }

    /// An opening has failed; whether it still counts. The transaction for which it was begun hears
    /// why; where that is gone, those that count on spare ones look again.
    pub fn failed(&mut self, owner: &Owner, number: Number, error: E) -> bool {
        let Some(own) = self.owners.get_mut(owner) else {
            return false;
        };
        let counts = match own.remove(number) {
            Some(waiter) => {
                let _ = waiter.sender.send(Handed::Failed(error));
                true
            }
            None => own.spare.remove(&number).is_some(),
        };
        if own.without_opening() > own.spare.len() {
            own.look_again();
        }
        self.forget(owner);
        counts
    }

    /// Gives up a spare opening that no transaction counts on; whether there is one.
    pub fn give_up_spare(&mut self) -> bool {
        let mut owners = self.owners.iter_mut();
        let unneeded = owners.find(|(_, own)| own.has_spare());
        let Some((owner, own)) = unneeded else {
            return false;
        };
        let owner = owner.clone();
        own.spare.pop_last();
        self.forget(&owner);
        true
    }

    /// Gives up all openings of these owners, and all of their transactions look again; how many
    /// were given up.
    pub fn give_up_all(&mut self, is_theirs: impl Fn(&Owner) -> bool) -> usize {
        let mut openings = 0;
        self.owners.retain(|owner, own| {
            if !is_theirs(owner) {
                return true;
            }
            openings += own.spare.len() + own.waiting.len() - own.without_opening();
            for waiter in own.waiting.drain(..) {
                let _ = waiter.sender.send(Handed::LookAgain);
            }
            false
        });
        openings
    }

    /// Whether one is being opened for one of these owners.
    pub fn has_opening(&self, is_theirs: impl Fn(&Owner) -> bool) -> bool {
        let mut own = self.owners.iter().filter(|(owner, _)| is_theirs(owner));
        own.any(|(_, own)| own.spare.len() + own.waiting.len() > own.without_opening())
    }

    /// Whether a transaction of this owner would find a spare opening.
    pub fn has_spare(&self, owner: &Owner) -> bool {
        let own = self.owners.get(owner);
        own.is_some_and(OfOwner::has_spare)
    }

    fn forget(&mut self, owner: &Owner) {
        let own = self.owners.get(owner);
        if own.is_some_and(|own| own.waiting.is_empty() && own.spare.is_empty()) {
            self.owners.remove(owner);
        }
    }
}

#[cfg(test)]
mod tests;
