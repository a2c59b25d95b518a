//! All connections of a server: room for new ones, what each client may have, and an end for those that hold on to
//! theirs without using it.
//!
//! At the bound nobody is refused: the connection that has been idle longest is closed, and others wait in the kernel's
//! queue until there is room. Idle times and times for request heads are looked at once a second, which costs a request
//! no timer.

use super::address::ClientNetwork;
use super::complaint::Complaint;
use super::counts::Counts;
use super::phases::{ConnectionId, Phase, PhaseLimits, Phases};
use super::settings::Limits;
use sooner_policy::Time;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// How often overdue connections are looked for.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// While others wait for room, how long a request head may take before its connection is taken for an idle one, ns.
const HEAD_NS_WHEN_FULL: u64 = 5_000_000_000;

/// All connections of a server; clones share them.
#[derive(Clone)]
pub struct Connections(Rc<Shared>);

struct Shared {
    state: RefCell<State>,
    /// A connection has gone or become idle.
    changed: Notify,
    origin: Instant,
}

struct State {
    counts: Counts,
    phases: Phases,
    limits: PhaseLimits,
    closings: HashMap<ConnectionId, Rc<Closing>>,
    /// Acceptors that wait for room.
    waiting: usize,
    /// Connections that were asked to close and are still there.
    leaving: usize,
    refused: u64,
    complaint: Complaint,
}

/// What a connection is told when it is to end.
#[derive(Default)]
struct Closing {
    reason: Cell<Option<CloseReason>>,
    told: Notify,
}

/// Why a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// It has been idle for too long, or others need the room: end it as at a graceful stop.
    Idle,
    /// Its request head does not come: end it at once.
    SlowHead,
}

/// The client has as many connections as one client may have.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{address} has as many connections as connections_per_address allows")]
pub struct TooManyConnections {
    /// The client's address.
    pub address: IpAddr,
}

impl Connections {
    /// No connections yet, within `limits`, in a process that may have `descriptors` open.
    pub fn new(limits: &Limits, descriptors: u64) -> Self {
        let counts = Counts::new(
            limits.connections_max(descriptors),
            limits.connections_per_address_max(),
        );
        Self(Rc::new(Shared {
            state: RefCell::new(State {
                counts,
                phases: Phases::default(),
                limits: phase_limits(limits),
                closings: HashMap::new(),
                waiting: 0,
                leaving: 0,
                refused: 0,
                complaint: Complaint::default(),
            }),
            changed: Notify::new(),
            origin: Instant::now(),
        }))
    }

    /// Other limits from now on; connections beyond them stay.
    pub fn set_limits(&self, limits: &Limits, descriptors: u64) {
        let mut state = self.0.state.borrow_mut();
        state.limits = phase_limits(limits);
        state.counts.set_bounds(
            limits.connections_max(descriptors),
            limits.connections_per_address_max(),
        );
        drop(state);
        self.0.changed.notify_waiters();
    }

    /// Connections now.
    pub fn total(&self) -> usize {
        self.0.state.borrow().counts.total()
    }

    /// Connections that were closed because their client had too many.
    pub fn refused(&self) -> u64 {
        self.0.state.borrow().refused
    }

    /// Waits until one more connection may be accepted. Several acceptors may be told so for the same place, so the
    /// bound may be exceeded by one less than there are acceptors.
    pub async fn room(&self) {
        if !self.0.state.borrow().counts.is_full() {
            return;
        }
        let _waiting = Waiting::begin(&self.0);
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = self.0.state.borrow_mut();
                if !state.counts.is_full() {
                    return;
                }
                state.make_room();
            }
            changed.await;
        }
    }

    /// Asks the connection that has been idle longest to close, for its descriptor; false when none is idle.
    pub fn evict(&self) -> bool {
        self.0.state.borrow_mut().evict()
    }

    /// Counts a connection that was just accepted.
    pub fn enter(&self) -> Guest {
        let now = self.0.now();
        let mut state = self.0.state.borrow_mut();
        state.counts.enter();
        let id = state.phases.enter(now);
        let closing = Rc::<Closing>::default();
        state.closings.insert(id, closing.clone());
        Guest {
            shared: self.0.clone(),
            id,
            closing,
            client: Cell::new(None),
            phase: Cell::new(Phase::Head),
            is_answered: Cell::new(false),
        }
    }

    /// Asks connections to close that are idle, or at their request head, for too long; for ever.
    pub async fn watch(self) {
        loop {
            sleep(LOOK_AFTER).await;
            let now = self.0.now();
            self.0.state.borrow_mut().close_overdue(now);
        }
    }
}

fn phase_limits(limits: &Limits) -> PhaseLimits {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    PhaseLimits {
        idle_ns: ns(limits.idle_time()),
        head_ns: ns(limits.head_time()),
    }
}

impl Shared {
    fn now(&self) -> Time {
        let since_origin = self.origin.elapsed().as_nanos();
        Time::from_ns(u64::try_from(since_origin).unwrap_or(u64::MAX))
    }
}

impl State {
    /// Has as many connections leave as there are acceptors waiting, if so many are idle.
    fn make_room(&mut self) {
        while self.leaving < self.waiting && self.evict() {}
    }

    fn evict(&mut self) -> bool {
        let longest = self.phases.longest(Phase::Idle);
        longest.is_some_and(|(id, _)| self.close(id))
    }

    fn close_overdue(&mut self, now: Time) {
        let mut limits = self.limits;
        if self.leaving < self.waiting {
            limits.head_ns = limits.head_ns.min(HEAD_NS_WHEN_FULL);
        }
        while let Some(id) = self.phases.overdue(limits, now) {
            self.close(id);
        }
    }

    /// Tells a connection to end; it is in no list any more, so it is told once.
    fn close(&mut self, id: ConnectionId) -> bool {
        let reason = match self.phases.phase(id) {
            Phase::Head => CloseReason::SlowHead,
            Phase::Idle | Phase::Busy => CloseReason::Idle,
        };
        self.phases.put(id, Phase::Busy, Time::ZERO);
        let Some(closing) = self.closings.get(&id) else {
            return false;
        };
        closing.reason.set(Some(reason));
        closing.told.notify_one();
        self.leaving += 1;
        true
    }
}

/// An acceptor that waits for room.
struct Waiting<'a>(&'a Shared);

impl<'a> Waiting<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.state.borrow_mut().waiting += 1;
        Self(shared)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.borrow_mut().waiting -= 1;
    }
}

/// One connection's place; free again when dropped.
pub struct Guest {
    shared: Rc<Shared>,
    id: ConnectionId,
    closing: Rc<Closing>,
    client: Cell<Option<ClientNetwork>>,
    phase: Cell<Phase>,
    is_answered: Cell<bool>,
}

impl Guest {
    /// Counts the connection for its client, once that is known (after the PROXY protocol). When it has too many already
    /// the connection is to be closed; that is said in the log, once a minute.
    pub fn claim(&self, address: IpAddr) -> Result<(), TooManyConnections> {
        let now = self.shared.now();
        let mut state = self.shared.state.borrow_mut();
        let client = ClientNetwork::from(address);
        if state.counts.claim(client) {
            self.client.set(Some(client));
            return Ok(());
        }
        state.refused += 1;
        if let Some(times) = state.complaint.note(now) {
            eprintln!(
                "sooner: closed {times} connection(s) of clients that have as many as [limits] connections_per_address allows; the last came from {address}"
            );
        }
        Err(TooManyConnections { address })
    }

    /// Bytes came in: after a silence, the start of a request head.
    pub fn received(&self) {
        if self.phase.get() == Phase::Idle {
            self.put(Phase::Head);
        }
    }

    /// The time for a request head starts anew: the TLS handshake is done, for which there is a time of its own.
    pub fn head_begins(&self) {
        self.put(Phase::Head);
    }

    /// A request is at hand; the connection is not idle before it is answered.
    pub fn asked(&self) {
        self.is_answered.set(false);
        self.put(Phase::Busy);
    }

    /// All bytes of the answer were given to the connection; when they are flushed it is idle.
    pub fn answered(&self) {
        self.is_answered.set(true);
    }

    /// What was written has gone to the socket.
    pub fn flushed(&self) {
        if self.is_answered.replace(false) {
            self.idle();
        }
    }

    /// Nothing is asked for and nothing left to send.
    pub fn idle(&self) {
        self.put(Phase::Idle);
        let state = self.shared.state.borrow();
        if state.leaving < state.waiting {
            drop(state);
            self.shared.changed.notify_waiters();
        }
    }

    /// Waits until the connection should end, and why.
    pub async fn closing(&self) -> CloseReason {
        loop {
            if let Some(reason) = self.closing.reason.get() {
                return reason;
            }
            self.closing.told.notified().await;
        }
    }

    fn put(&self, phase: Phase) {
        if self.closing.reason.get().is_some() || self.phase.get() == phase && phase == Phase::Busy
        {
            return;
        }
        self.phase.set(phase);
        let now = self.shared.now();
        self.shared.state.borrow_mut().phases.put(self.id, phase, now);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut state = self.shared.state.borrow_mut();
        state.counts.leave(self.client.get());
        state.phases.leave(self.id);
        state.closings.remove(&self.id);
        if self.closing.reason.get().is_some() {
            state.leaving -= 1;
        }
        drop(state);
        self.shared.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    fn connections(text: &str) -> Connections {
        let limits: Limits = toml::from_str(text).unwrap();
        Connections::new(&limits, 1 << 20)
    }

    fn is_ready<T>(future: impl Future<Output = T>) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        matches!(pin!(future).poll(&mut cx), Poll::Ready(_))
    }

    fn with_runtime(test: impl FnOnce()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        test();
    }

    #[test]
    fn when_full_the_longest_idle_makes_room() {
        with_runtime(|| {
            let connections = connections("connections = 2");
            let first = connections.enter();
            let second = connections.enter();
            let mut cx = Context::from_waker(Waker::noop());
            let mut room = pin!(connections.room());
            assert!(room.as_mut().poll(&mut cx).is_pending());
            assert!(!is_ready(first.closing()) && !is_ready(second.closing()));
            second.idle();
            assert!(room.as_mut().poll(&mut cx).is_pending());
            first.idle();
            assert!(room.as_mut().poll(&mut cx).is_pending());
            assert!(is_ready(second.closing()));
            assert!(!is_ready(first.closing()), "one is enough");
            drop(second);
            assert!(room.as_mut().poll(&mut cx).is_ready());
            assert_eq!(connections.total(), 1);
        });
    }

    #[test]
    fn an_acceptor_that_gives_up_wants_no_room() {
        with_runtime(|| {
            let connections = connections("connections = 1");
            let guest = connections.enter();
            assert!(!is_ready(connections.room()));
            guest.idle();
            assert!(!is_ready(guest.closing()));
            assert!(connections.evict());
            assert!(is_ready(guest.closing()));
            assert!(!connections.evict(), "it was asked already");
        });
    }

    #[test]
    fn a_connection_is_idle_when_its_answer_is_flushed() {
        with_runtime(|| {
            let connections = connections("");
            let guest = connections.enter();
            guest.asked();
            guest.flushed();
            assert!(!connections.evict());
            guest.answered();
            assert!(!connections.evict());
            guest.flushed();
            guest.received();
            assert!(!connections.evict(), "the next head has begun");
            guest.asked();
            guest.answered();
            guest.flushed();
            assert!(connections.evict());
        });
    }

    #[test]
    fn one_client_has_no_more_than_its_share() {
        with_runtime(|| {
            let connections = connections("connections_per_address = 1");
            let address = "192.0.2.1".parse().unwrap();
            let (first, second) = (connections.enter(), connections.enter());
            assert_eq!(first.claim(address), Ok(()));
            assert_eq!(second.claim(address), Err(TooManyConnections { address }));
            assert_eq!(connections.refused(), 1);
            drop(second);
            drop(first);
            assert_eq!(connections.enter().claim(address), Ok(()));
            assert_eq!(connections.total(), 0);
        });
    }

    #[test]
    fn overdue_connections_are_told_why() {
        with_runtime(|| {
            let connections = connections("head_seconds = 1\nidle_seconds = 2");
            let (head, idle, busy) = (connections.enter(), connections.enter(), connections.enter());
            idle.idle();
            busy.asked();
            let later = connections.0.now().after(10_000_000_000);
            connections.0.state.borrow_mut().close_overdue(later);
            assert_eq!(head.closing.reason.get(), Some(CloseReason::SlowHead));
            assert_eq!(idle.closing.reason.get(), Some(CloseReason::Idle));
            assert_eq!(busy.closing.reason.get(), None);
        });
    }
}
