//! An upstream: servers that answer the same requests, and one gate in front of them.
//!
//! There is one queue for all servers, and a job is given a server when it goes in: nobody waits for a busy server while another one
//! is free, and the order holds across servers. The gate has as many places as the servers that are up have together.

use super::config::{OrderName, UpstreamTable, at_least_one, duration, some_duration};
use super::connect::{self, Connector};
use super::endpoint::{Endpoint, Speech};
use super::failure::Failure;
use super::health::HealthLimits;
use super::server::{Place, Server};
use crate::config::Misconfigured;
use hyper::header::HeaderValue;
use sooner_gate::{Gate, GateLimits, GateStatus, Order, Permit, Time};
use std::cell::Cell;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

/// Failures in a row that put a server out, unless said otherwise.
const FAILS: u32 = 3;
/// Bad answers to regular questions in a row that do.
const CHECK_FAILS: u32 = 2;
/// Good ones in a row that take it back in.
const CHECK_PASSES: u32 = 1;
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
    gate: Gate,
    /// The server that is looked at first for the next job.
    turn: Cell<usize>,
    all_down: Notify,
    origin: Instant,
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
    /// The upstream of `table`. Nothing is connected, but certificates are read.
    pub fn build(table: &UpstreamTable) -> Result<Rc<Self>, Misconfigured> {
        let (check, limits) = health(table)?;
        let limit = limit(table)?;
        let upstream = Self {
            name: table.name.get_ref().as_str().into(),
            table: table.clone(),
            servers: servers(table, limits)?,
            times: times(table)?,
            retries: table.retries.unwrap_or(1),
            host: host_rule(table)?,
            check,
            keep: duration(&table.keep_seconds, "upstream.keep_seconds", 60.0)?,
            limit,
            gate: Gate::new(GateLimits {
                limit: 0,
                order: match table.order {
                    OrderName::Expected => Order::Expected,
                    OrderName::Fcfs => Order::Fcfs,
                },
                waiting_max: table.waiting_max,
            }),
            turn: Cell::new(0),
            all_down: Notify::new(),
            origin: Instant::now(),
            is_started: Cell::new(false),
        };
        upstream.count_places();
        Ok(Rc::new(upstream))
    }

    /// Whether one of its servers speaks TLS, so that files may have changed though the table has not.
    pub fn has_tls(&self) -> bool {
        self.servers
            .iter()
            .any(|server| server.pool.connector().is_tls())
    }

    /// Whether this is the first time it is asked to start its tasks.
    pub fn starts_now(&self) -> bool {
        !self.is_started.replace(true)
    }

    /// Time as its servers' health counts it.
    pub fn now(&self) -> Time {
        Time::from_ns(self.origin.elapsed().as_nanos() as u64)
    }

    /// How its queue is doing.
    pub fn status(&self) -> GateStatus {
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
        if self.places() == 0 {
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
            permit = self.gate.enter(class, key) => permit.map_err(|_| Failure::QueueFull),
            () = all_down => Err(self.down()),
            () = too_long => Err(Failure::QueuedTooLong),
        }
    }

    /// A server for a job that is in: the one with the least jobs, of those the one whose turn it is; rather none of `tried`.
    pub fn choose(&self, tried: &[Arc<str>]) -> Choice {
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
                Choice::Server(Place::take(&self.servers[index]))
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
        Failure::AllDown { retry_seconds }
    }

    /// `server` answered.
    pub fn succeeded(self: &Rc<Self>, server: &Server) {
        if server.succeeded(self.now()) {
            self.standing_changed(server);
        }
    }

    /// `server` did not.
    pub fn failed(self: &Rc<Self>, server: &Server) {
        if server.failed(self.now()) {
            self.standing_changed(server);
        }
    }

    /// `server` answered the regular question, well or not.
    pub fn checked(self: &Rc<Self>, server: &Server, is_well: bool) {
        if server.checked(is_well, self.now()) {
            self.standing_changed(server);
        }
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

    fn places(&self) -> usize {
        let now = self.now();
        self.servers
            .iter()
            .map(|server| server.places(self.limit, now))
            .fold(0, usize::saturating_add)
    }

    fn count_places(&self) {
        let places = self.places();
        self.gate.set_limit(places);
        if places == 0 {
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

fn servers(table: &UpstreamTable, limits: HealthLimits) -> Result<Vec<Rc<Server>>, Misconfigured> {
    if table.servers.is_empty() {
        return Err(Misconfigured::at(
            &table.name,
            "upstream.servers",
            "an upstream needs a server: servers = [\"http://127.0.0.1:3000\"]",
        ));
    }
    let mut servers: Vec<Rc<Server>> = Vec::with_capacity(table.servers.len());
    for text in &table.servers {
        let wrong =
            |what: &dyn std::fmt::Display| Misconfigured::at(text, "upstream.servers", what);
        let endpoint = Endpoint::parse(text.get_ref()).map_err(|error| wrong(&error))?;
        let connector = Connector::new(endpoint, || connect::roots(table)).map_err(|error| {
            if error.span.is_none() {
                wrong(&error.message)
            } else {
                error
            }
        })?;
        let server = Server::new(connector, limits);
        if servers.iter().any(|other| other.name == server.name) {
            return Err(wrong(&"the same server twice; each may be named once"));
        }
        servers.push(Rc::new(server));
    }
    let speaks_tls = |server: &Rc<Server>| server.pool.connector().endpoint().speech == Speech::Tls;
    match &table.ca {
        Some(ca) if !servers.iter().any(speaks_tls) => Err(Misconfigured::at(
            ca,
            "upstream.ca",
            "no server of this upstream speaks TLS; write https:// or leave it out",
        )),
        _ => Ok(servers),
    }
}

fn limit(table: &UpstreamTable) -> Result<usize, Misconfigured> {
    match &table.limit {
        Some(limit) if *limit.get_ref() == 0 => Err(Misconfigured::at(
            limit,
            "upstream.limit",
            "0 lets nobody in; write 1 or more, or leave it out",
        )),
        Some(limit) => Ok(*limit.get_ref()),
        None => Ok(usize::MAX),
    }
}

fn times(table: &UpstreamTable) -> Result<Times, Misconfigured> {
    Ok(Times {
        queue: some_duration(&table.queue_seconds, "upstream.queue_seconds")?,
        connect: duration(&table.connect_seconds, "upstream.connect_seconds", 5.0)?,
        response: duration(&table.response_seconds, "upstream.response_seconds", 60.0)?,
        idle: duration(&table.idle_seconds, "upstream.idle_seconds", 60.0)?,
    })
}

fn host_rule(table: &UpstreamTable) -> Result<HostRule, Misconfigured> {
    let Some(host) = &table.host else {
        return Ok(HostRule::Client);
    };
    let text = host.get_ref();
    if text == "upstream" {
        return Ok(HostRule::Server);
    }
    let is_host =
        hyper::http::uri::Authority::try_from(text.as_str()).is_ok() && !text.contains('@');
    HeaderValue::from_str(text)
        .ok()
        .filter(|_| is_host)
        .map(HostRule::Fixed)
        .ok_or_else(|| {
            Misconfigured::at(
                host,
                "upstream.host",
                format!("`{text}` is no host; write \"upstream\" or a name"),
            )
        })
}

fn health(table: &UpstreamTable) -> Result<(Option<Check>, HealthLimits), Misconfigured> {
    let fails = at_least_one(&table.fails, "upstream.fails", FAILS)?;
    let Some(health) = &table.health else {
        let limits = HealthLimits {
            fails,
            check_fails: CHECK_FAILS,
            check_passes: CHECK_PASSES,
        };
        return Ok((None, limits));
    };
    let path = health.path.get_ref();
    let is_path =
        path.starts_with('/') && hyper::http::uri::PathAndQuery::try_from(path.as_str()).is_ok();
    if !is_path {
        return Err(Misconfigured::at(
            &health.path,
            "upstream.health.path",
            format!("`{path}` is no path; write for example /health"),
        ));
    }
    let check = Check {
        path: path.clone(),
        interval: duration(&health.seconds, "upstream.health.seconds", 5.0)?,
    };
    let limits = HealthLimits {
        fails,
        check_fails: at_least_one(&health.fails, "upstream.health.fails", CHECK_FAILS)?,
        check_passes: at_least_one(&health.passes, "upstream.health.passes", CHECK_PASSES)?,
    };
    Ok((Some(check), limits))
}
