//! All connections of a server: room for new ones, what each client may have, and an end for those
//! that hold on to theirs without using it.
//!
//! At the bound no client is refused: the connection that has been idle longest is closed, and
//! others wait in the kernel's queue until there is room. Idle times and times for request heads
//! are looked at once a second, which costs a request no timer.
//!
//! All workers of a server share one table: a connection locks it when it comes and when it goes,
//! and a request does not.

mod departures;

pub use departures::AwaitedAnswer;

use super::activity::{Activity, CoarseClock, Phase};
use super::counts::ConnectionCounts;
use super::log_throttle::LogThrottle;
use super::settings::Limits;
use crate::clock::Clock;
use sooner_config::ClientNetwork;
use sooner_operate::say;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

const NS_PER_MS: u64 = 1_000_000;
/// How often overdue connections are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// How often idle ones are looked for while others wait for room.
const SWEEP_INTERVAL_WHEN_FULL: Duration = Duration::from_millis(20);
/// How long a connection that was asked to close is waited for before the next one is asked.
const EVICTION_MS: u64 = 100;
/// While others wait for room, how long a request head may take before its connection is taken for
/// an idle one.
const HEAD_MS_WHEN_FULL: u64 = 5_000;

/// All connections of a server; clones share them.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    /// A connection has gone.
    left: Notify,
    /// Connections of which a request waits for what a backend answers.
    awaiting: AtomicUsize,
    /// One does that was alone.
    awaits: Notify,
    clock: Arc<CoarseClock>,
    uptime: Clock,
}

struct State {
    counts: ConnectionCounts,
    connections: BTreeMap<u64, Entry>,
    next_id: u64,
    idle_ms_max: u64,
    head_ms_max: u64,
    /// Acceptors that wait for room.
    waiting: usize,
    /// When connections were asked to make room, ms; the last few.
    evicted_ms: Vec<u64>,
    refused: u64,
    log_throttle: LogThrottle,
}

struct Entry {
    activity: Arc<Activity>,
    closing: Arc<Closing>,
    socket: RawFd,
}

/// How a connection is asked to end.
#[derive(Default)]
struct Closing {
    /// A [`CloseReason`] and one, or 0: none yet.
    reason: AtomicU8,
    notified: Notify,
}

/// Why a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// It has been idle for too long, or others need the room: end it as at a graceful stop.
    Idle,
    /// Its request head does not come: end it at once.
    SlowHead,
    /// Its client has left while a request waits for what a backend answers: end it at once.
    Left,
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
        let counts = ConnectionCounts::new(
            limits.connections_max(descriptors),
            limits.connections_per_address_max(),
        );
        Self(Arc::new(Inner {
            state: Mutex::new(State {
                counts,
                connections: BTreeMap::new(),
                next_id: 0,
                idle_ms_max: milliseconds(limits.idle_time()),
                head_ms_max: milliseconds(limits.head_time()),
                waiting: 0,
                evicted_ms: Vec::new(),
                refused: 0,
                log_throttle: LogThrottle::default(),
            }),
            left: Notify::new(),
            awaiting: AtomicUsize::new(0),
            awaits: Notify::new(),
            clock: Arc::default(),
            uptime: Clock::start(),
        }))
    }

    /// Other limits from now on; connections beyond them stay.
    pub fn set_limits(&self, limits: &Limits, descriptors: u64) {
        let mut state = self.0.lock();
        state.idle_ms_max = milliseconds(limits.idle_time());
        state.head_ms_max = milliseconds(limits.head_time());
        state.counts.set_bounds(
            limits.connections_max(descriptors),
            limits.connections_per_address_max(),
        );
        drop(state);
        self.0.left.notify_waiters();
    }

    /// Connections now.
    pub fn total(&self) -> usize {
        self.0.lock().counts.total()
    }

    /// Connections that were closed because their client had too many.
    pub fn refused(&self) -> u64 {
        self.0.lock().refused
    }

    /// Waits until one more connection may be accepted. Several acceptors may wake for the same
    /// place; [`Connections::enter`] gives it to one of them.
    pub async fn wait_for_room(&self) {
        if !self.0.lock().counts.is_full() {
            return;
        }
        let _waiting = Waiting::begin(&self.0);
        loop {
            {
                let mut state = self.0.lock();
                if !state.counts.is_full() {
                    return;
                }
                state.make_room(self.0.uptime.now().as_ns() / NS_PER_MS);
            }
            // A connection that becomes idle notifies no task, so that requests pay nothing for
            // this.
            let _ = timeout(SWEEP_INTERVAL_WHEN_FULL, self.0.left.notified()).await;
        }
    }

    /// Asks the connection that has been idle longest to close, for its descriptor; false when none
    /// is idle.
    pub fn evict(&self) -> bool {
        self.0.lock().evict()
    }

    /// The server stops: asks all connections to close, those with requests in flight after their
    /// responses.
    pub fn drain(&self) {
        let state = self.0.lock();
        let connections = state.connections.values();
        for entry in connections.filter(|entry| !entry.closing.is_closing()) {
            entry.closing.close(CloseReason::Idle);
        }
    }

    /// Counts a connection that was just accepted, and that `socket` is; where another acceptor
    /// took its place meanwhile, once there is one.
    pub async fn enter(&self, socket: RawFd) -> ConnectionHandle {
        loop {
            if let Some(handle) = self.register(socket) {
                return handle;
            }
            self.wait_for_room().await;
        }
    }

    fn register(&self, socket: RawFd) -> Option<ConnectionHandle> {
        let mut state = self.0.lock();
        if state.counts.is_full() {
            return None;
        }
        state.counts.enter();
        let id = state.next_id;
        state.next_id += 1;
        let activity = Arc::new(Activity::new(&self.0.clock));
        let closing = Arc::<Closing>::default();
        state.connections.insert(
            id,
            Entry {
                activity: activity.clone(),
                closing: closing.clone(),
                socket,
            },
        );
        Some(ConnectionHandle {
            inner: self.0.clone(),
            id,
            activity,
            closing,
            client: Cell::new(None),
        })
    }

    /// Closes connections that are idle, or at their request head, for too long; never returns.
    pub async fn sweep(self) {
        loop {
            sleep(SWEEP_INTERVAL).await;
            let now_ms = self.0.uptime.now().as_ns() / NS_PER_MS;
            self.sweep_at(now_ms);
        }
    }

    /// It is `now_ms` after the start: closes overdue connections.
    fn sweep_at(&self, now_ms: u64) {
        self.0.clock.set(now_ms);
        self.0.lock().close_overdue();
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl State {
    /// Has as many connections leave as there are acceptors waiting, if so many are idle; others
    /// when those do not go at once.
    fn make_room(&mut self, now_ms: u64) {
        self.evicted_ms
            .retain(|evicted_ms| now_ms.saturating_sub(*evicted_ms) < EVICTION_MS);
        while self.evicted_ms.len() < self.waiting && self.evict() {
            self.evicted_ms.push(now_ms);
        }
    }

    fn evict(&mut self) -> bool {
        let idle = self.connections.values().filter(|entry| {
            !entry.closing.is_closing()
                && matches!(entry.activity.phase(), Phase::Idle | Phase::Lingering)
        });
        let Some(longest) = idle.max_by_key(|entry| entry.activity.phase_ms()) else {
            return false;
        };
        longest.closing.close(CloseReason::Idle);
        true
    }

    fn close_overdue(&mut self) {
        let step_ms = milliseconds(SWEEP_INTERVAL);
        let head_ms_max = if self.waiting > 0 {
            self.head_ms_max.min(HEAD_MS_WHEN_FULL)
        } else {
            self.head_ms_max
        };
        for entry in self
            .connections
            .values()
            .filter(|entry| !entry.closing.is_closing())
        {
            // What began after the clock's last step counts from that step: no connection is closed
            // too early.
            let for_ms = entry.activity.phase_ms().saturating_sub(step_ms);
            let reason = match entry.activity.phase() {
                Phase::Idle if for_ms > self.idle_ms_max => CloseReason::Idle,
                Phase::Head if for_ms > head_ms_max => CloseReason::SlowHead,
                _ => continue,
            };
            entry.closing.close(reason);
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Closing {
    fn is_closing(&self) -> bool {
        self.reason().is_some()
    }

    fn reason(&self) -> Option<CloseReason> {
        let reason = self.reason.load(Ordering::Acquire);
        CloseReason::ALL
            .into_iter()
            .find(|it| *it as u8 + 1 == reason)
    }

    fn close(&self, reason: CloseReason) {
        self.reason.store(reason as u8 + 1, Ordering::Release);
        self.notified.notify_one();
    }
}

impl CloseReason {
    const ALL: [Self; 3] = [Self::Idle, Self::SlowHead, Self::Left];
}

/// An acceptor that waits for room.
struct Waiting<'a>(&'a Inner);

impl<'a> Waiting<'a> {
    fn begin(inner: &'a Inner) -> Self {
        inner.lock().waiting += 1;
        Self(inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

/// One connection among all; its place is free again when this is dropped.
pub struct ConnectionHandle {
    inner: Arc<Inner>,
    id: u64,
    activity: Arc<Activity>,
    closing: Arc<Closing>,
    client: Cell<Option<ClientNetwork>>,
}

impl ConnectionHandle {
    /// Counts the connection for its client, once that is known (after the PROXY protocol). When it
    /// has too many already the connection is to be closed; the log has a line about it, at most
    /// once a minute.
    pub fn admit(&self, address: IpAddr) -> Result<(), TooManyConnections> {
        let now = self.inner.uptime.now();
        let mut state = self.inner.lock();
        let client = ClientNetwork::from(address);
        if state.counts.admit(client) {
            self.client.set(Some(client));
            return Ok(());
        }
        state.refused += 1;
        if let Some(times) = state.log_throttle.note(now) {
            say(format_args!(
                "closed {times} connection(s) of clients that have as many as [limits] connections_per_address allows; the last came from {address}"
            ));
        }
        Err(TooManyConnections { address })
    }

    /// What the connection is doing; for its streams to tell.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// The time for a request head starts anew: the TLS handshake is done, for which there is a
    /// time of its own.
    pub fn head_begins(&self) {
        self.activity.set_phase(Phase::Head);
    }

    /// A request is at hand; the connection is not idle before it is answered.
    pub fn request_started(&self) {
        self.activity.request_started();
    }

    /// No request is open and nothing is left to send.
    pub fn idle(&self) {
        self.activity.set_phase(Phase::Idle);
    }

    /// Whether the connection should end.
    pub fn is_closing(&self) -> bool {
        self.closing.is_closing()
    }

    /// Waits until the connection should end, and why.
    pub async fn closing(&self) -> CloseReason {
        loop {
            if let Some(reason) = self.closing.reason() {
                return reason;
            }
            self.closing.notified.notified().await;
        }
    }
}

impl Drop for ConnectionHandle {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        state.counts.leave(self.client.get());
        state.connections.remove(&self.id);
        drop(state);
        self.inner.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
