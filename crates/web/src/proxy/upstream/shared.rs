//! What all workers have in common of an upstream: its queue, how its servers are doing, and what is
//! said of it.
//!
//! What is decided of it is decided under one lock: which server gets a request, how many go in
//! together, what a reload says. Lock order: this one, then a server's own, then the limiter's. The
//! time is read under the lock, so that it never goes back from one decision to the next.

use super::settings::Settings;
use crate::clock::Clock;
use crate::proxy::classes::Classes;
use crate::proxy::failure_log::FailureLog;
use crate::proxy::server::Server;
use sooner_admission::{AdmissionStatus, ClassStatus, Quality, Subject, Taken, Time, WouldWait};
use sooner_http::json_fields::FieldPath;
use sooner_limiter::{Acquire, Limiter};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Servers that answer the same requests, for all workers.
pub struct SharedUpstream {
    /// Its name.
    pub name: Arc<str>,
    pub(super) limiter: Limiter,
    state: Mutex<State>,
    /// How often something was said of it; changes under the lock.
    times_said: AtomicU64,
    pub(super) all_down: Notify,
    /// A server may have a place that had none.
    pub(super) freed: Notify,
    /// Which server failed last, and how.
    pub(super) last_failure: Mutex<Option<Arc<str>>>,
    /// Lines about requests that were sent to no server.
    pub(super) rejected_log: FailureLog,
    /// Lines about requests for which this host had nothing left to connect with.
    pub(super) exhausted_log: FailureLog,
    clock: Clock,
    /// Itself, for tasks.
    pub(super) this: Weak<Self>,
}

/// What decisions go by.
pub(super) struct State {
    pub settings: Arc<Settings>,
    /// Another one where tasks have to begin anew.
    pub settings_number: u64,
    pub current: Arc<Current>,
    /// Servers that are named no more, or reached in another way, and still have requests.
    pub leaving: Vec<Arc<Server>>,
    /// Round robin: the server that is looked at first for the next request.
    pub next_server: usize,
    /// Requests that wait for a place at another server, and use none.
    pub redirected: usize,
}

/// By what requests are let in now.
#[derive(Debug, Default)]
pub struct Current {
    /// The classes.
    pub classes: Classes,
    /// The fields of bodies that are named somewhere.
    pub fields: Vec<FieldPath>,
}

impl SharedUpstream {
    /// One that lets nothing in yet.
    pub(super) fn new(settings: Arc<Settings>, limiter: Limiter) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            name: settings.table.name.get_ref().as_str().into(),
            limiter,
            state: Mutex::new(State {
                settings,
                settings_number: 0,
                current: Arc::default(),
                leaving: Vec::new(),
                next_server: 0,
                redirected: 0,
            }),
            times_said: AtomicU64::new(0),
            all_down: Notify::new(),
            freed: Notify::new(),
            last_failure: Mutex::new(None),
            rejected_log: FailureLog::default(),
            exhausted_log: FailureLog::default(),
            clock: Clock::start(),
            this: this.clone(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time as its servers' health counts it.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// How often something was said of it.
    pub fn times_said(&self) -> u64 {
        self.times_said.load(Ordering::Acquire)
    }

    /// Something else is said now.
    pub(super) fn note_said(&self, _: &mut State) {
        self.times_said.fetch_add(1, Ordering::Release);
    }

    /// How often something was said of it, and what.
    pub fn said(&self) -> (u64, Arc<Settings>, Arc<Current>) {
        let state = self.lock();
        let (settings, current) = (state.settings.clone(), state.current.clone());
        (self.times_said(), settings, current)
    }

    /// Another one where tasks have to begin anew.
    pub fn settings_number(&self) -> u64 {
        self.lock().settings_number
    }

    /// Its servers, and those that still have requests of it.
    pub fn known_servers(&self) -> Vec<Arc<Server>> {
        let state = self.lock();
        let leaving = state.leaving.iter();
        leaving.chain(&state.settings.servers).cloned().collect()
    }

    /// Ready when no server is up any more.
    pub fn all_down(&self) -> Notified<'_> {
        self.all_down.notified()
    }

    /// How its queue is doing.
    pub fn status(&self) -> AdmissionStatus {
        self.limiter.status()
    }

    /// How its classes are doing, by number.
    pub fn class_statuses(&self) -> Vec<ClassStatus> {
        self.limiter.class_statuses()
    }

    /// How good expectations of its requests were of late.
    pub fn quality(&self) -> Quality {
        self.limiter.quality()
    }

    /// Plays a little of what each order would give its requests; gives another one that is taken by
    /// that.
    pub fn play_orders(&self) -> Option<Taken> {
        self.limiter.play_orders()
    }

    /// Whether there is more to play soon.
    pub fn is_playing(&self) -> bool {
        self.limiter.is_playing()
    }

    /// How long requests would have waited, by the number of their class, where nothing is held.
    pub fn would_wait(&self) -> BTreeMap<u8, WouldWait> {
        let rehearsed = self.limiter.rehearsed();
        rehearsed.map(|(_, by_class)| by_class).unwrap_or_default()
    }

    /// A request of `class` has run for longer than that may.
    pub fn note_overlong(&self, class: u8) {
        self.limiter.note_overlong(class);
    }

    /// It is cancelled for that.
    pub fn note_cancelled(&self, class: u8) {
        self.limiter.note_cancelled(class);
    }

    /// A request of `class`, of which `subject` is known, waits for admission: see
    /// [`Upstream::admit`](super::Upstream::admit). Its class was found `by` what held then; another
    /// worker may have adopted a reload since.
    pub fn acquire(&self, class: u8, subject: Subject, by: &Arc<Current>) -> Acquire {
        // Until it waits, no reload gives other numbers to classes.
        let state = self.lock();
        let class = match Arc::ptr_eq(by, &state.current) {
            true => class,
            false => {
                let plain = subject.plain_class;
                state.current.classes.renumbered(&by.classes, class, plain)
            }
        };
        self.limiter.acquire(class, subject)
    }
}
