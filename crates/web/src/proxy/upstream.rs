//! An upstream: servers that answer the same requests, and one queue in front of them.
//!
//! There is one queue for all servers, and a request is given a server when it is admitted: none
//! waits for a busy server while another one is free, and the order holds across servers. The limit
//! of requests in flight is the capacity of the servers that are up, and one for each request that
//! is still in flight at a server that is out: such a request takes nothing from the others. Neither
//! does one that waits for another server than the one that failed it.

mod build;
mod capacity;
mod reload;
mod settings;

pub use settings::{HealthCheck, HostRule, Settings, Times};

use crate::clock::Clock;
use crate::proxy::classes::Classes;
use crate::proxy::facts::RequestFacts;
use crate::proxy::failure::Failure;
use crate::proxy::failure_log::{FailureLog, RequestSummary, one_line};
use crate::proxy::health::Standing;
use crate::proxy::in_flight::ServerSlot;
use crate::proxy::overtime::Overtimes;
use crate::proxy::server::Server;
use sooner_admission::{
    AdmissionStatus, ClassStatus, Order, Quality, Subject, Taken, Time, WouldWait,
};
use sooner_config::classes::Longest;
use sooner_http::json_fields::FieldPath;
use sooner_limiter::{Acquire, Limiter, Permit};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// `Retry-After` of a status 503 where it is unknown when a server comes back, s.
const RETRY_SECONDS: u64 = 5;

/// Servers that answer the same requests.
pub struct Upstream {
    /// Its name.
    pub name: Arc<str>,
    settings: RefCell<Rc<Settings>>,
    limiter: Limiter,
    /// Requests that may not run for longer than so.
    pub overtimes: Rc<Overtimes>,
    /// Round robin: the server that is looked at first for the next request.
    next_server: Cell<usize>,
    all_down: Notify,
    /// A server may have a place that had none.
    freed: Notify,
    /// Requests that wait for that, and use no place.
    redirected: Cell<usize>,
    /// Which server failed last, and how.
    last_failure: RefCell<Option<Arc<str>>>,
    /// Lines about requests that were sent to no server.
    rejected_log: FailureLog,
    /// Lines about requests for which this host had nothing left to connect with.
    exhausted_log: FailureLog,
    clock: Clock,
    is_started: Cell<bool>,
    /// What runs for it beside requests.
    tasks: RefCell<Vec<AbortHandle>>,
    current: RefCell<Rc<Current>>,
}

/// By what requests are let in now.
#[derive(Default)]
pub struct Current {
    /// The classes.
    pub classes: Classes,
    /// The fields of bodies that are named somewhere.
    pub fields: Vec<FieldPath>,
}

/// The server for a request.
pub enum Choice {
    /// This one.
    Server(ServerSlot),
    /// None right now: a server was ejected after the request was admitted.
    Full,
    /// None that has not been tried right now, but one that is up is only full.
    OthersFull,
    /// No server is up.
    AllDown,
}

impl Upstream {
    /// What is said of it now.
    pub fn settings(&self) -> Rc<Settings> {
        self.settings.borrow().clone()
    }

    /// Whether nothing was started since this is said of it.
    pub fn starts_now(&self) -> bool {
        !self.is_started.replace(true)
    }

    /// These run for it from now on, and no others.
    pub fn run(&self, tasks: Vec<AbortHandle>) {
        for task in self.tasks.replace(tasks) {
            task.abort();
        }
    }

    /// Time as its servers' health counts it.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// How its queue is doing.
    pub fn status(&self) -> AdmissionStatus {
        self.limiter.status()
    }

    /// Whether it has to be known what a request's body says, whatever the classes are.
    pub fn needs_body(&self) -> bool {
        self.settings().fields().next().is_some()
    }

    /// By what a request's time is told, and who is charged for it: its client where none is named,
    /// as a reload may say that while it waits.
    pub fn subject(&self, of: &RequestFacts<'_>) -> Subject {
        let settings = self.settings();
        let subject = settings.kind.subject(of);
        let named = settings.share_by.as_ref().map(|by| by.payer(of));
        Subject {
            payer: named.or(subject.payer),
            ..subject
        }
    }

    /// By what requests are let in now.
    pub fn current(&self) -> Rc<Current> {
        self.current.borrow().clone()
    }

    /// In which order requests that wait go in.
    pub fn order(&self) -> Order {
        self.settings().order(&self.current.borrow().classes)
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

    /// Whether nothing is held.
    pub fn is_observed(&self) -> bool {
        self.settings().is_observed()
    }

    /// Whether the class of this number has a name, so that a reload may bound it.
    pub fn is_class(&self, class: u8) -> bool {
        self.current.borrow().classes.name(class).is_some()
    }

    /// For how long a request of `class` keeps its place, if that is bounded.
    pub fn longest(&self, class: u8) -> Option<Longest> {
        self.current.borrow().classes.longest(class)
    }

    /// A request of `class` has run for longer than that.
    pub fn note_overlong(&self, class: u8) {
        self.limiter.note_overlong(class);
    }

    /// It is cancelled for that.
    pub fn note_cancelled(&self, class: u8) {
        self.limiter.note_cancelled(class);
    }

    /// A request of `class`, of which `subject` is known, waits for admission: see
    /// [`Upstream::admit`].
    pub fn acquire(&self, class: u8, subject: Subject) -> Acquire {
        self.limiter.acquire(class, subject)
    }

    /// Waits for admission; fails at once while no server is up.
    pub async fn admit(&self, acquire: Acquire) -> Result<Permit, Failure> {
        let mut all_down = pin!(self.all_down.notified());
        // From here on no news is missed.
        all_down.as_mut().enable();
        if self.is_down() {
            return Err(self.all_down_failure());
        }
        tokio::select! {
            biased;
            permit = acquire => permit.map_err(|_| Failure::QueueFull { waiting: self.limiter.status().waiting }),
            () = all_down => Err(self.all_down_failure()),
        }
    }

    /// A server for an admitted request: the one with the fewest in flight, round robin among
    /// equals; one of `tried` only where no other is up.
    pub fn choose_server(self: &Rc<Self>, tried: &[Arc<str>]) -> Choice {
        let (now, settings) = (self.now(), self.settings());
        let servers = &settings.servers;
        let capacity = settings.capacities(now);
        let mut best: Option<(bool, usize, usize)> = None;
        let (mut is_up, mut is_other_up) = (false, false);
        for step in 0..servers.len() {
            let index = (self.next_server.get() + step) % servers.len();
            let server = &servers[index];
            let was_tried = tried.contains(&server.name);
            let is_there = server.standing(now) != Standing::Down;
            is_up |= is_there;
            is_other_up |= is_there && !was_tried;
            if server.in_flight() >= capacity(server) {
                continue;
            }
            let rank = (was_tried, server.in_flight());
            if best.is_none_or(|(was_tried, in_flight, _)| rank < (was_tried, in_flight)) {
                best = Some((rank.0, rank.1, index));
            }
        }
        match best {
            Some((true, _, _)) if is_other_up => Choice::OthersFull,
            Some((_, _, index)) => {
                self.next_server.set(index + 1);
                Choice::Server(ServerSlot::take(self, &servers[index]))
            }
            None if is_up => Choice::Full,
            None => Choice::AllDown,
        }
    }

    /// Why no request is admitted, and when one may be.
    pub fn all_down_failure(&self) -> Failure {
        let (now, settings) = (self.now(), self.settings());
        let again = |server: &Rc<Server>| match &settings.check {
            Some(check) if server.is_ejected_by_checks() => Some(check.interval),
            _ => Some(Duration::from_nanos(server.changes_at(now)?.since(now))),
        };
        let first = settings.servers.iter().filter_map(again).min();
        let first = first.unwrap_or(Duration::from_secs(RETRY_SECONDS));
        Failure::AllDown {
            retry_seconds: first.as_nanos().div_ceil(1_000_000_000) as u64,
            last: self.last_failure.borrow().clone(),
        }
    }

    /// `server` answered.
    pub fn succeeded(self: &Rc<Self>, server: &Rc<Server>) {
        if server.succeeded(self.now()) {
            self.standing_changed(server);
        }
    }

    /// A connection to `server` was opened.
    pub fn connected(self: &Rc<Self>, server: &Rc<Server>) {
        if server.connected(self.now()) {
            self.standing_changed(server);
        }
    }

    /// `server` could not be reached, and `why`; try number `tries` of `summary`. No request brings
    /// that about.
    pub fn note_unreachable(
        self: &Rc<Self>,
        server: &Rc<Server>,
        why: &dyn Display,
        summary: &RequestSummary,
        tries: u32,
    ) {
        self.note_failed_attempt(server, why, summary, tries);
        if server.unreachable(self.now()) {
            self.standing_changed(server);
        }
    }

    /// `server` took `summary` and did not answer it, or not to the end, and `why`; try number
    /// `tries`. That says nothing of the server yet: see [`Upstream::note_server_fault`] and
    /// [`Upstream::note_possible_fault`].
    pub fn note_failed_attempt(
        &self,
        server: &Server,
        why: &dyn Display,
        summary: &RequestSummary,
        tries: u32,
    ) {
        self.report_failure(server, why, summary, tries);
        self.note_failure(server, why);
        server.count_failure();
    }

    /// What `server` did not answer is not the request's fault: another server did.
    pub fn note_server_fault(self: &Rc<Self>, server: &Rc<Server>) {
        if server.failed(self.now()) {
            self.standing_changed(server);
        }
    }

    /// What `server` did not answer may be the fault of `summary`: its path counts once, and never
    /// against the last server that is up.
    pub fn note_possible_fault(self: &Rc<Self>, server: &Rc<Server>, summary: &RequestSummary) {
        let now = self.now();
        let is_up = |other: &Rc<Server>| other.standing(now) == Standing::Up;
        let has_another = (self.settings().servers.iter())
            .any(|other| !Rc::ptr_eq(other, server) && is_up(other));
        if has_another && server.failed_at(summary.path_hash(), now) {
            self.standing_changed(server);
        }
    }

    /// `server` passed a health check, or why it did not.
    pub fn checked(self: &Rc<Self>, server: &Rc<Server>, result: Result<(), String>) {
        if let Err(why) = &result {
            let why = format!("its health check failed: {why}");
            let line = format!(
                "upstream `{}`, {}: {}",
                self.name,
                server.name,
                one_line(&why)
            );
            server.failure_log.report(self.now(), line);
            self.note_failure(server, &why);
        }
        if server.checked(result.is_ok(), self.now()) {
            self.standing_changed(server);
        }
    }

    /// Tells the operator why `server` gave no answer to try number `tries` of `summary`.
    pub fn report_failure(
        &self,
        server: &Server,
        why: &dyn Display,
        summary: &RequestSummary,
        tries: u32,
    ) {
        let (name, server_name, why) = (&self.name, &server.name, one_line(why));
        server.failure_log.report(
            self.now(),
            format_args!("upstream `{name}`, {server_name}: {why}; try {tries} of {summary}"),
        );
    }

    /// Tells the operator why `summary` was sent to no server.
    pub fn report_rejected(&self, summary: &RequestSummary, why: &Failure) {
        let (name, status, why) = (&self.name, why.status().as_u16(), one_line(why));
        self.rejected_log.report(
            self.now(),
            format_args!("upstream `{name}`: {why}; status {status} for {summary}"),
        );
    }

    /// Tells the operator why this host cannot connect to `server` now, which is not the server's
    /// fault.
    pub fn report_exhausted(&self, server: &Server, why: &Failure, summary: &RequestSummary) {
        let (name, server_name, why) = (&self.name, &server.name, one_line(why));
        self.exhausted_log.report(
            self.now(),
            format_args!("upstream `{name}`, {server_name}: {why}; {summary} waits"),
        );
    }

    fn note_failure(&self, server: &Server, why: &dyn Display) {
        let text = format!("{}: {}", server.name, one_line(why));
        self.last_failure.replace(Some(text.into()));
    }
}
