//! How many connections there may be, in all and from one origin, and which one ends when there are
//! too many.
//!
//! A connection that has not proved yet who it is must never keep another one out: at a bound, one
//! of these ends. That is the one that has been silent longest, of the origin that has most silent
//! ones, so the one that comes from elsewhere stays. Clients that have proved who they are keep
//! their places, and one too many of them is told so (53300). Knows no socket and no clock.

use sooner_config::ClientNetwork;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::sync::Notify;

/// Where connections come from, as far as they are bounded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// An address, or an IPv6 network.
    Network(ClientNetwork),
    /// Through a socket file, from processes of this system user.
    SystemUser(u32),
    /// Not known.
    Unknown,
}

/// Connections beyond those of clients, in all: to be proved, for cancel requests, for a proper no.
const BESIDE: usize = 32;
/// The same, from one origin, where its connections are bounded.
const BESIDE_OF_ORIGIN: usize = 8;
/// Sessions in the gate's own database.
const CONSOLES_MAX: usize = 32;

/// How many there may be.
#[derive(Clone, Copy, Debug)]
pub struct SlotLimits {
    /// Clients, in all.
    pub clients: usize,
    /// Clients of one origin, if that is bounded.
    pub of_origin: Option<usize>,
}

/// There is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSlot {
    /// There are so many clients.
    Clients(usize),
    /// There are so many clients of its origin.
    OfOrigin(usize),
    /// There are so many sessions in the gate's own database.
    Consoles(usize),
}

/// Every connection of a client.
#[derive(Clone, Default)]
pub struct Slots(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    last: u64,
    of: BTreeMap<Origin, OfOrigin>,
    logins: usize,
    clients: usize,
    consoles: usize,
}

#[derive(Default)]
struct OfOrigin {
    /// Not proved, and their client is to say something; by number, the first came first.
    silent: BTreeMap<u64, Rc<Notify>>,
    /// Not proved, and the gate looks something up for them or passes a cancel request on.
    busy: BTreeMap<u64, Rc<Notify>>,
    /// Proved.
    clients: usize,
}

impl OfOrigin {
    fn logins(&self) -> usize {
        self.silent.len() + self.busy.len()
    }

    /// Ends the login that has taken longest; one that waits for the gate only where no other is
    /// left.
    fn end_first(&mut self) -> bool {
        let first = self.silent.pop_first().or_else(|| self.busy.pop_first());
        let Some((_, told)) = first else { return false };
        told.notify_one();
        true
    }
}

impl Slots {
    /// One more connection, which has proved nothing yet; how many had to end for it.
    pub fn arrive(&self, origin: Origin, bounds: SlotLimits) -> (LoginSlot, usize) {
        let mut state = self.0.borrow_mut();
        let mut ended = 0;
        while state.has_too_many(origin, bounds) && state.end_of(origin)
            || state.is_full(bounds) && state.end_any()
        {
            ended += 1;
        }
        state.last += 1;
        state.logins += 1;
        let (id, told) = (state.last, Rc::<Notify>::default());
        let of = state.of.entry(origin).or_default();
        of.silent.insert(id, told.clone());
        let login = LoginSlot {
            slots: self.clone(),
            origin,
            id,
            told,
        };
        (login, ended)
    }

    /// No descriptor is left: ends a connection that has not proved yet who it is, if there is one,
    /// and up to `most` of origins that have several silent ones; gives how many.
    pub fn end_for_room(&self, most: usize) -> usize {
        let mut state = self.0.borrow_mut();
        let mut ended = usize::from(state.end_any());
        while (1..most).contains(&ended) && state.has_several_silent() && state.end_any() {
            ended += 1;
        }
        ended
    }

    /// How many have not proved yet who they are.
    pub fn logins(&self) -> usize {
        self.0.borrow().logins
    }
}

impl State {
    fn has_too_many(&self, origin: Origin, bounds: SlotLimits) -> bool {
        let handle = self
            .of
            .get(&origin)
            .map_or(0, |of| of.clients + of.logins());
        bounds
            .of_origin
            .is_some_and(|max| handle >= max.saturating_add(BESIDE_OF_ORIGIN))
    }

    fn is_full(&self, bounds: SlotLimits) -> bool {
        self.clients + self.consoles + self.logins >= bounds.clients.saturating_add(BESIDE)
    }

    fn end_of(&mut self, origin: Origin) -> bool {
        let ended = self.of.get_mut(&origin).is_some_and(OfOrigin::end_first);
        self.logins -= usize::from(ended);
        ended
    }

    fn end_any(&mut self) -> bool {
        let weight = |of: &OfOrigin| (of.silent.len(), of.busy.len());
        let heaviest = self.of.iter().max_by_key(|(_, of)| weight(of));
        let Some((&origin, _)) = heaviest else {
            return false;
        };
        self.end_of(origin)
    }

    fn has_several_silent(&self) -> bool {
        self.of.values().any(|of| of.silent.len() > 1)
    }

    fn has_room(&self, origin: Origin, bounds: SlotLimits) -> Result<(), NoSlot> {
        let of_origin = self.of.get(&origin).map_or(0, |of| of.clients);
        match bounds.of_origin {
            _ if self.clients >= bounds.clients => Err(NoSlot::Clients(bounds.clients)),
            Some(max) if of_origin >= max => Err(NoSlot::OfOrigin(max)),
            _ => Ok(()),
        }
    }

    /// The sums are those of the origins.
    fn check(&self) {
        debug_assert_eq!(
            self.logins,
            self.of.values().map(OfOrigin::logins).sum::<usize>()
        );
        debug_assert_eq!(
            self.clients,
            self.of.values().map(|of| of.clients).sum::<usize>()
        );
    }

    fn forget_if_gone(&mut self, origin: Origin) {
        self.check();
        let is_gone = |of: &OfOrigin| of.clients == 0 && of.logins() == 0;
        if self.of.get(&origin).is_some_and(is_gone) {
            self.of.remove(&origin);
        }
    }
}

/// A connection that has not proved yet who it is; ended, or proved, when dropped.
pub struct LoginSlot {
    slots: Slots,
    origin: Origin,
    id: u64,
    told: Rc<Notify>,
}

impl LoginSlot {
    /// Ready when it has to end, because others need the place.
    pub async fn ended(&self) {
        self.told.notified().await;
    }

    /// While the gate itself does `work` for it, it is not its client that is silent.
    pub async fn busy<T>(&self, work: impl Future<Output = T>) -> T {
        self.set_busy(true);
        let _silent_again = SilentAgain(self);
        work.await
    }

    fn set_busy(&self, is_busy: bool) {
        let mut state = self.slots.0.borrow_mut();
        let Some(of) = state.of.get_mut(&self.origin) else {
            return;
        };
        let (from, to) = if is_busy {
            (&mut of.silent, &mut of.busy)
        } else {
            (&mut of.busy, &mut of.silent)
        };
        if let Some(told) = from.remove(&self.id) {
            to.insert(self.id, told);
        }
    }

    /// Whether there would be a place for its client.
    pub fn has_room(&self, bounds: SlotLimits) -> Result<(), NoSlot> {
        self.slots.0.borrow().has_room(self.origin, bounds)
    }

    /// A place for its client, which has proved who it is.
    pub fn client(&self, bounds: SlotLimits) -> Result<ClientSlot, NoSlot> {
        self.has_room(bounds)?;
        let mut state = self.slots.0.borrow_mut();
        state.clients += 1;
        state.of.entry(self.origin).or_default().clients += 1;
        Ok(ClientSlot {
            slots: self.slots.clone(),
            origin: Some(self.origin),
        })
    }

    /// A place in the gate's own database, for one who wants to see what is wrong.
    pub fn console(&self) -> Result<ClientSlot, NoSlot> {
        let mut state = self.slots.0.borrow_mut();
        if state.consoles >= CONSOLES_MAX {
            return Err(NoSlot::Consoles(CONSOLES_MAX));
        }
        state.consoles += 1;
        Ok(ClientSlot {
            slots: self.slots.clone(),
            origin: None,
        })
    }
}

struct SilentAgain<'a>(&'a LoginSlot);

impl Drop for SilentAgain<'_> {
    fn drop(&mut self) {
        self.0.set_busy(false);
    }
}

impl Drop for LoginSlot {
    fn drop(&mut self) {
        let mut state = self.slots.0.borrow_mut();
        let Some(of) = state.of.get_mut(&self.origin) else {
            return;
        };
        let is_here = of.silent.remove(&self.id).is_some() || of.busy.remove(&self.id).is_some();
        state.logins -= usize::from(is_here);
        state.forget_if_gone(self.origin);
    }
}

/// A client's place among all, or that of a session in the gate's own database; free again when
/// dropped.
pub struct ClientSlot {
    slots: Slots,
    /// `None` in the gate's own database.
    origin: Option<Origin>,
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let mut state = self.slots.0.borrow_mut();
        let Some(origin) = self.origin else {
            assert!(state.consoles > 0, "a session ends twice");
            state.consoles -= 1;
            return;
        };
        assert!(state.clients > 0, "a client leaves twice");
        state.clients -= 1;
        if let Some(of) = state.of.get_mut(&origin) {
            of.clients -= 1;
        }
        state.forget_if_gone(origin);
    }
}

#[cfg(test)]
mod tests;
