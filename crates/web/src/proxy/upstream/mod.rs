//! An upstream: servers that answer the same requests, and one gate in front of them.
//!
//! There is one queue for all servers, and a job is given a server when it goes in: nobody waits for a busy server while another one
//! is free, and the order holds across servers. The gate has as many places as the servers that are up have together, and one for each
//! job that is still inside a server that is out: such a job takes nothing from the others.

mod build;
mod place;

pub use place::Place;

use crate::clock::Clock;
use crate::proxy::config::UpstreamTable;
use crate::proxy::failure::Failure;
use crate::proxy::health::Standing;
use crate::proxy::server::Server;
use crate::proxy::trouble::{Inquiry, Trouble, reason};
use hyper::header::HeaderValue;
use rustls::RootCertStore;
use sooner_admission::{AdmissionStatus, Time};
use sooner_limiter::{Limiter, Permit};
use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::sleep;

/// What a status of 503 says where nobody knows when a server comes back, s.
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

/// The `Host` a server is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum HostRule {
    /// The client's.
    Client,
    /// The server's own.
    Server,
    /// This.
    Fixed(HeaderValue),
}

/// The regular question to the servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The path to get.
    pub path: String,
    /// The time from one question to the next, and for an answer.
    pub interval: Duration,
}

/// Servers that answer the same requests.
pub struct Upstream {
    /// Its name.
    pub name: Arc<str>,
    /// What it was made from.
    pub table: UpstreamTable,
    /// What the certificates of its servers must lead to; empty where none speaks TLS.
    pub roots: Arc<RootCertStore>,
    /// Its servers.
    pub servers: Vec<Rc<Server>>,
    /// How long each step may take.
    pub times: Times,
    /// How often a request that may be repeated is.
    pub retries: u32,
    /// Which host is asked for.
    pub host: HostRule,
    /// The regular question.
    pub check: Option<Check>,
    /// How long a connection is kept that nobody uses.
    pub keep: Duration,
    limit: usize,
    gate: Limiter,
    /// The server that is looked at first for the next job.
    turn: Cell<usize>,
    all_down: Notify,
    /// Which server failed last, and how.
    last_failure: RefCell<Option<Arc<str>>>,
    /// Requests nobody was asked to answer, as the operator is told of them.
    turned_away: Trouble,
    /// Those for which nothing was left here to connect with.
    lack: Trouble,
    clock: Clock,
    is_started: Cell<bool>,
}

/// Where a job may go.
pub enum Choice {
    /// There.
    Server(Place),
    /// Nowhere right now: a server went out after the job was let in.
    NoPlace,
    /// No server is up.
    AllDown,
}

impl Upstream {
    /// Whether `table` and `roots` would make the same one.
    pub fn is_of(&self, table: &UpstreamTable, roots: &RootCertStore) -> bool {
        self.table == *table && self.roots.roots == roots.roots
    }

    /// Whether this is the first time it is asked to start its tasks.
    pub fn starts_now(&self) -> bool {
        !self.is_started.replace(true)
    }

    /// Time as its servers' health counts it.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// How its queue is doing.
    pub fn status(&self) -> AdmissionStatus {
        self.gate.status()
    }

    /// Waits to go in, for `queue` at most; never while no server is up.
    pub async fn enter(
        &self,
        class: u8,
        key: String,
        queue: Option<Duration>,
    ) -> Result<Permit, Failure> {
        let mut all_down = pin!(self.all_down.notified());
        // From here on no news is missed.
        all_down.as_mut().enable();
        if self.is_down() {
            return Err(self.down());
        }
        let too_long = async {
            match queue {
                Some(queue) => sleep(queue).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            permit = self.gate.acquire(class, key) => permit.map_err(|_| Failure::QueueFull { waiting: self.gate.status().waiting }),
            () = all_down => Err(self.down()),
            () = too_long => Err(Failure::QueuedTooLong(queue.unwrap_or_default())),
        }
    }

    /// A server for a job that is in: the one with the least jobs, of those the one whose turn it is; rather none of `tried`.
    pub fn choose(self: &Rc<Self>, tried: &[Arc<str>]) -> Choice {
        let now = self.now();
        let mut best: Option<(bool, usize, usize)> = None;
        let mut is_up = false;
        for step in 0..self.servers.len() {
            let index = (self.turn.get() + step) % self.servers.len();
            let server = &self.servers[index];
            let places = server.places(self.limit, now);
            is_up |= places > 0;
            if server.inside() >= places {
                continue;
            }
            let rank = (tried.contains(&server.name), server.inside());
            if best.is_none_or(|(was_tried, inside, _)| rank < (was_tried, inside)) {
                best = Some((rank.0, rank.1, index));
            }
        }
        match best {
            Some((_, _, index)) => {
                self.turn.set(index + 1);
                Choice::Server(Place::take(self, &self.servers[index]))
            }
            None if is_up => Choice::NoPlace,
            None => Choice::AllDown,
        }
    }

    /// Why nobody goes in, and when somebody may.
    pub fn down(&self) -> Failure {
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

    /// `server` could not be reached, and `why`; try number `tries` of `inquiry`. No request brings that about.
    pub fn unreachable(
        self: &Rc<Self>,
        server: &Server,
        why: &dyn Display,
        inquiry: &Inquiry,
        tries: u32,
    ) {
        self.note_unanswered(server, why, inquiry, tries);
        self.blame(server);
    }

    /// `server` took `inquiry` and did not answer it, or not to the end, and `why`; try number `tries`. That says nothing of the server
    /// yet: see [`Upstream::blame`] and [`Upstream::suspect`].
    pub fn note_unanswered(
        &self,
        server: &Server,
        why: &dyn Display,
        inquiry: &Inquiry,
        tries: u32,
    ) {
        self.tell_of(server, why, inquiry, tries);
        self.note_failure(server, why);
        server.count_failure();
    }

    /// What `server` did not answer is not the request's fault: another server did.
    pub fn blame(self: &Rc<Self>, server: &Server) {
        if server.failed(self.now()) {
            self.standing_changed(server);
        }
    }

    /// What `server` did not answer may be the fault of `inquiry`: its path counts once, and never against the last server that is up.
    pub fn suspect(self: &Rc<Self>, server: &Server, inquiry: &Inquiry) {
        let now = self.now();
        let is_up = |other: &Rc<Server>| other.standing(now) == Standing::Up;
        let has_another = (self.servers.iter())
            .any(|other| !std::ptr::eq(other.as_ref(), server) && is_up(other));
        if has_another && server.failed_at(inquiry.path_hash(), now) {
            self.standing_changed(server);
        }
    }

    /// `server` answered the regular question well, or not, and why not.
    pub fn checked(self: &Rc<Self>, server: &Server, answer: Result<(), String>) {
        if let Err(why) = &answer {
            let why = format!("asked how it is: {why}");
            let told = format!(
                "upstream `{}`, {}: {}",
                self.name,
                server.name,
                reason(&why)
            );
            server.trouble.tell(self.now(), told);
            self.note_failure(server, &why);
        }
        if server.checked(answer.is_ok(), self.now()) {
            self.standing_changed(server);
        }
    }

    /// Tells the operator why `server` gave no answer to try number `tries` of `inquiry`.
    pub fn tell_of(&self, server: &Server, why: &dyn Display, inquiry: &Inquiry, tries: u32) {
        let (name, server_name, why) = (&self.name, &server.name, reason(why));
        server.trouble.tell(
            self.now(),
            format_args!("upstream `{name}`, {server_name}: {why}; try {tries} of {inquiry}"),
        );
    }

    /// Tells the operator why no server was asked to answer `inquiry`.
    pub fn turned_away(&self, inquiry: &Inquiry, why: &Failure) {
        let (name, status, why) = (&self.name, why.status().as_u16(), reason(why));
        self.turned_away.tell(
            self.now(),
            format_args!("upstream `{name}`: {why}; status {status} for {inquiry}"),
        );
    }

    /// Tells the operator why `server` cannot be asked now, which is not its fault.
    pub fn lacks(&self, server: &Server, why: &Failure, inquiry: &Inquiry) {
        let (name, server_name, why) = (&self.name, &server.name, reason(why));
        self.lack.tell(
            self.now(),
            format_args!("upstream `{name}`, {server_name}: {why}; {inquiry} waits"),
        );
    }

    fn note_failure(&self, server: &Server, why: &dyn Display) {
        let text = format!("{}: {}", server.name, reason(why));
        self.last_failure.replace(Some(text.into()));
    }

    fn standing_changed(self: &Rc<Self>, server: &Server) {
        let now = self.now();
        self.count_places();
        if let Some(at) = server.changes_at(now) {
            let upstream = Rc::downgrade(self);
            let wait = Duration::from_nanos(at.since(now));
            spawn_local(count_later(upstream, wait));
        }
    }

    fn is_down(&self) -> bool {
        let now = self.now();
        self.servers
            .iter()
            .all(|server| server.standing(now) == Standing::Down)
    }

    /// Tells the gate how many jobs may be inside. To be called whenever a place changes: with a limit above this sum a job would be
    /// let in that finds no place, again and again.
    fn count_places(&self) {
        let now = self.now();
        let limit = self
            .servers
            .iter()
            .map(|server| server.places(self.limit, now).max(server.inside()))
            .fold(0, usize::saturating_add);
        self.gate.set_limit(limit);
        if self.is_down() {
            self.all_down.notify_waiters();
        }
    }
}

/// A server's time out has an end that nothing else announces.
async fn count_later(upstream: Weak<Upstream>, wait: Duration) {
    sleep(wait).await;
    if let Some(upstream) = upstream.upgrade() {
        upstream.count_places();
    }
}
