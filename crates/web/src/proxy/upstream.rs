//! An upstream: servers that answer the same requests, and one queue in front of them.
//!
//! There is one queue for all servers, and a request is given a server when it is admitted: none
//! waits for a busy server while another one is free, and the order holds across servers. The limit
//! of requests in flight is the capacity of the servers that are up, and one for each request that
//! is still in flight at a server that is out: such a request takes nothing from the others.

mod build;
mod capacity;
use crate::clock::Clock;
use crate::proxy::classes::Classes;
use crate::proxy::config::UpstreamTable;
use crate::proxy::facts::RequestFacts;
use crate::proxy::failure::Failure;
use crate::proxy::failure_log::{FailureLog, RequestSummary, one_line};
use crate::proxy::fastcgi::FastCgi;
use crate::proxy::health::Standing;
use crate::proxy::in_flight::ServerSlot;
use crate::proxy::overtime::Overtimes;
use crate::proxy::server::Server;
use crate::proxy::share_by::ShareBy;
use crate::proxy::subject::Kind;
use crate::proxy::tell_wait::TellWait;
use crate::proxy::waiting_stream::Comments;
use hyper::header::HeaderValue;
use sooner_admission::{AdmissionStatus, ClassStatus, Quality, Subject, Taken, Time, WouldWait};
use sooner_config::classes::Longest;
use sooner_http::json_fields::FieldPath;
use sooner_limiter::{Acquire, Limiter, Permit};
use sooner_tls::Authorities;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// `Retry-After` of a status 503 where it is unknown when a server comes back, s.
const RETRY_SECONDS: u64 = 5;

/// How long each step with a server may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Waiting to go in; `None`: as long as the client does.
    pub queue: Option<Duration>,
    /// Connecting, TLS included.
    pub connect: Duration,
    /// From the end of the request to the beginning of the response.
    pub response: Duration,
    /// Between two pieces of the response.
    pub idle: Duration,
}

/// The `Host` a server gets.
#[derive(Clone, Debug, PartialEq)]
pub enum HostRule {
    /// The client's.
    Client,
    /// The server's own.
    Server,
    /// This.
    Fixed(HeaderValue),
}

/// The health check of the servers.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    /// The path to get.
    pub path: String,
    /// The time from one check to the next, and for a response.
    pub interval: Duration,
}

/// Servers that answer the same requests.
pub struct Upstream {
    /// Its name.
    pub name: Arc<str>,
    /// What it was made from.
    pub table: UpstreamTable,
    /// What its servers are trusted by; `None` where none speaks TLS.
    pub authorities: Option<Authorities>,
    /// Its servers.
    pub servers: Vec<Rc<Server>>,
    /// Who is told how long requests waited.
    pub tell_wait: TellWait,
    /// How long each step may take.
    pub times: Times,
    /// How often a request that may be repeated is.
    pub retries: u32,
    /// Which `Host` its servers get.
    pub host: HostRule,
    /// What makes two of its requests alike.
    pub kind: Kind,
    /// Who is charged for what requests take; `None`: all alike.
    pub share_by: Option<ShareBy>,
    /// The health check.
    pub check: Option<HealthCheck>,
    /// How long an idle connection is kept.
    pub keep: Duration,
    fastcgi: RefCell<Option<Rc<FastCgi>>>,
    limiter: Limiter,
    /// Requests that may not run for longer than so.
    pub overtimes: Rc<Overtimes>,
    /// Round robin: the server that is looked at first for the next request.
    next_server: Cell<usize>,
    all_down: Notify,
    /// Which server failed last, and how.
    last_failure: RefCell<Option<Arc<str>>>,
    /// Lines about requests that were sent to no server.
    rejected_log: FailureLog,
    /// Lines about requests for which this host had nothing left to connect with.
    exhausted_log: FailureLog,
    clock: Clock,
    is_started: Cell<bool>,
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
    /// No server is up.
    AllDown,
}

impl Upstream {
    /// Whether `table` and `authorities` would make the same one.
    pub fn is_of(&self, table: &UpstreamTable, authorities: Option<&Authorities>) -> bool {
        self.table == *table && self.authorities.as_ref() == authorities
    }

    /// Where its scripts are, if its servers run some.
    pub fn fastcgi(&self) -> Option<Rc<FastCgi>> {
        self.fastcgi.borrow().clone()
    }

    /// From now on its scripts are there.
    pub fn set_fastcgi(&self, fastcgi: Option<FastCgi>) {
        self.fastcgi.replace(fastcgi.map(Rc::new));
    }

    /// Whether this is the first call: its tasks are to be started.
    pub fn starts_now(&self) -> bool {
        !self.is_started.replace(true)
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
        self.own_fields().next().is_some()
    }

    /// The fields of bodies that kinds, who is charged, and comments go by.
    fn own_fields(&self) -> impl Iterator<Item = &FieldPath> {
        let share_by = self.share_by.as_ref().and_then(ShareBy::field);
        let comments = self.tell_wait.stream.as_ref().map(Comments::field);
        self.kind.fields().chain(share_by).chain(comments)
    }

    /// By what a request's time is told, and who is charged for it.
    pub fn subject(&self, of: &RequestFacts<'_>) -> Subject {
        Subject {
            payer: self.share_by.as_ref().map(|share_by| share_by.payer(of)),
            ..self.kind.subject(of)
        }
    }

    /// By what requests are let in now.
    pub fn current(&self) -> Rc<Current> {
        self.current.borrow().clone()
    }

    /// The most requests that are ever inside, while all its servers are up.
    pub fn most(&self) -> usize {
        let all = self.servers.iter().map(|server| server.limit_max());
        all.fold(0, usize::saturating_add)
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
        self.table.observe
    }

    /// For how long a request of `class` keeps its place, if that is bounded.
    pub fn longest(&self, class: u8) -> Option<Longest> {
        self.current.borrow().classes.longest(class)
    }

    /// A request of `class` has run for longer than that; it is cancelled if that `cancels`.
    pub fn note_overlong(&self, class: u8, cancels: bool) {
        self.limiter.note_overlong(class);
        if cancels && !self.is_observed() {
            self.limiter.note_cancelled(class);
        }
    }

    /// A request of `class`, of which `subject` is known, waits for admission: see
    /// [`Upstream::admit`].
    pub fn acquire(&self, class: u8, subject: Subject) -> Acquire {
        self.limiter.acquire(class, subject)
    }

    /// Waits for admission, for `queue` at most; fails at once while no server is up.
    pub async fn admit(
        &self,
        acquire: Acquire,
        queue: Option<Duration>,
    ) -> Result<Permit, Failure> {
        let mut all_down = pin!(self.all_down.notified());
        // From here on no news is missed.
        all_down.as_mut().enable();
        if self.is_down() {
            return Err(self.all_down_failure());
        }
        let too_long = async {
            match queue {
                Some(queue) => sleep(queue).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            permit = acquire => permit.map_err(|_| Failure::QueueFull { waiting: self.limiter.status().waiting }),
            () = all_down => Err(self.all_down_failure()),
            () = too_long => Err(Failure::QueuedTooLong(queue.unwrap_or_default())),
        }
    }

    /// A server for an admitted request: the one with the fewest in flight, round robin among
    /// equals; rather none of `tried`.
    pub fn choose_server(self: &Rc<Self>, tried: &[Arc<str>]) -> Choice {
        let now = self.now();
        let mut best: Option<(bool, usize, usize)> = None;
        let mut is_up = false;
        for step in 0..self.servers.len() {
            let index = (self.next_server.get() + step) % self.servers.len();
            let server = &self.servers[index];
            let capacity = server.capacity(now);
            is_up |= capacity > 0;
            if server.in_flight() >= capacity {
                continue;
            }
            let rank = (tried.contains(&server.name), server.in_flight());
            if best.is_none_or(|(was_tried, in_flight, _)| rank < (was_tried, in_flight)) {
                best = Some((rank.0, rank.1, index));
            }
        }
        match best {
            Some((_, _, index)) => {
                self.next_server.set(index + 1);
                Choice::Server(ServerSlot::take(self, &self.servers[index]))
            }
            None if is_up => Choice::Full,
            None => Choice::AllDown,
        }
    }

    /// Why no request is admitted, and when one may be.
    pub fn all_down_failure(&self) -> Failure {
        let now = self.now();
        let first = self
            .servers
            .iter()
            .filter_map(|server| server.changes_at(now))
            .min();
        let retry_seconds = match (first, &self.check) {
            (Some(at), _) => at.since(now).div_ceil(1_000_000_000),
            (None, Some(check)) => check.interval.as_secs_f64().ceil() as u64,
            (None, None) => RETRY_SECONDS,
        };
        Failure::AllDown {
            retry_seconds,
            last: self.last_failure.borrow().clone(),
        }
    }

    /// `server` answered.
    pub fn succeeded(self: &Rc<Self>, server: &Server) {
        if server.succeeded(self.now()) {
            self.standing_changed(server);
        }
    }

    /// `server` could not be reached, and `why`; try number `tries` of `summary`. No request brings
    /// that about.
    pub fn note_unreachable(
        self: &Rc<Self>,
        server: &Server,
        why: &dyn Display,
        summary: &RequestSummary,
        tries: u32,
    ) {
        self.note_failed_attempt(server, why, summary, tries);
        self.note_server_fault(server);
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
    pub fn note_server_fault(self: &Rc<Self>, server: &Server) {
        if server.failed(self.now()) {
            self.standing_changed(server);
        }
    }

    /// What `server` did not answer may be the fault of `summary`: its path counts once, and never
    /// against the last server that is up.
    pub fn note_possible_fault(self: &Rc<Self>, server: &Server, summary: &RequestSummary) {
        let now = self.now();
        let is_up = |other: &Rc<Server>| other.standing(now) == Standing::Up;
        let has_another = (self.servers.iter())
            .any(|other| !std::ptr::eq(other.as_ref(), server) && is_up(other));
        if has_another && server.failed_at(summary.path_hash(), now) {
            self.standing_changed(server);
        }
    }

    /// `server` passed a health check, or why it did not.
    pub fn checked(self: &Rc<Self>, server: &Server, result: Result<(), String>) {
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
