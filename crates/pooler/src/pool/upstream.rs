//! A PostgreSQL server behind the pooler: its pool, its admission queue and what bounds both.

use crate::config::{Config, Limits, ServerAddress};
use crate::configuration::Configuration;
use crate::lock_map::LockMap;
use crate::log::{Seldom, log};
use crate::pool::capacity::{Capacity, KnownCapacity, LoginShare};
use crate::pool::connection_limits::ConnectionLimits;
use crate::pool::login_admission::LoginAdmission;
use crate::pool::overtime::SparePlaces;
use crate::pool::{Pool, ServerConnection, limit_controller, orders};
use crate::tls::Connector;
use sooner_admission::{AdmissionSettings, Controller, Goal, Order};
use sooner_config::Limit;
use sooner_limiter::Limiter;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// A server, and the one queue of all who want into it.
pub struct Upstream {
    pub address: ServerAddress,
    /// What encrypts connections to it. Its own, so that those who wait for a server that stands in
    /// no entry any more are encrypted as they were.
    connector: RefCell<Option<Rc<Connector>>>,
    pub limiter: Limiter,
    /// Who may log in in place of another owner.
    pub logins: LoginAdmission,
    /// What finds the gate's limit, where that is not said.
    pub controller: RefCell<Option<Controller>>,
    /// Clients that keep a connection and do not use it at the moment.
    pub idle_leases: Cell<usize>,
    /// Who takes no place from others although it is inside.
    pub places: SparePlaces,
    pub pool: RefCell<Pool>,
    /// The bounds in force: a login may have begun under others.
    limits: RefCell<Limits>,
    /// How many connections the server allows.
    capacity: Cell<KnownCapacity>,
    /// How many transactions have to log in.
    pub login_share: RefCell<LoginShare>,
    /// Who is at a limit of the server's own.
    pub connection_limits: ConnectionLimits,
    /// That it has no connection left.
    pub full: Seldom,
    /// That it does not answer.
    pub unreachable: Seldom,
    /// That it ends idle connections.
    pub ends_idle: Seldom,
    /// Connections on which secrets are looked up: no client has had one, and who has proved
    /// nothing takes no place from those who have.
    pub lookup_pool: RefCell<Pool>,
    pub lookup_limiter: Limiter,
    /// Sessions that begin only to tell what new clients are told, at a time.
    pub greetings: Semaphore,
    /// The session that asks who waits for which lock, while it is not used.
    pub lock_watch: RefCell<Option<Box<ServerConnection>>>,
    /// Whether it is used.
    pub watches_locks: Cell<bool>,
    /// Whether it takes a command of that session to cancel what others run.
    pub cancels_by_command: Cell<bool>,
    /// Where the server is told who goes first in lock queues.
    pub lock_map: RefCell<Option<Rc<LockMap>>>,
    /// That it cannot be told.
    pub lock_map_failures: Seldom,
}

impl Upstream {
    /// Without connections so far.
    pub fn new(address: ServerAddress, configuration: &Configuration) -> Self {
        let config = &configuration.config;
        let upstream = Self {
            connector: RefCell::new(configuration.connector(&address)),
            address,
            limiter: limiter_of(
                first_limit(&config.limits, connections(&config.limits, None)),
                config.held_goals(),
                config,
            ),
            logins: LoginAdmission {
                limiter: new_limiter(1, config),
            },
            controller: RefCell::default(),
            idle_leases: Cell::default(),
            places: SparePlaces::default(),
            pool: RefCell::default(),
            limits: RefCell::new(config.limits.clone()),
            capacity: Cell::default(),
            login_share: RefCell::default(),
            connection_limits: ConnectionLimits::default(),
            full: Seldom::default(),
            unreachable: Seldom::default(),
            ends_idle: Seldom::default(),
            lookup_pool: RefCell::default(),
            lookup_limiter: Limiter::new(AdmissionSettings {
                limit: LOOKUPS,
                order: Order::Fcfs,
                waiting_max: None,
                kind_memory: KIND_MEMORY,
            }),
            greetings: Semaphore::new(GREETINGS),
            lock_watch: RefCell::default(),
            watches_locks: Cell::default(),
            cancels_by_command: Cell::new(true),
            lock_map: RefCell::default(),
            lock_map_failures: Seldom::default(),
        };
        upstream.limiter.remember(orders::PLAYED);
        if config.observe {
            log(&format!(
                "{}: only observed; nothing is held back (observe = true)",
                upstream.address
            ));
            upstream.limiter.rehearse(true);
            let numbers = HashMap::new();
            let limiter = &upstream.limiter;
            limiter.set_goals(config.order(), config.goals(), &numbers);
            upstream.apply_limit();
        }
        upstream
    }

    /// So many clients keep a connection and do not use it, and so many that run too long may give
    /// their places up, from now on.
    pub fn set_spare_places(&self, kept: usize, yielded_max: usize) {
        self.places.set(kept, yielded_max);
        self.limiter.set_kept(self.places.spare());
    }

    /// How many transactions wait for it.
    pub fn waiting(&self) -> usize {
        self.limiter.status().waiting + self.logins.limiter.status().waiting
    }

    /// How many connections there may be to it.
    pub fn connections(&self, limits: &Limits) -> usize {
        connections(limits, self.capacity.get().capacity())
    }

    /// The bounds are others now; a limit that was found within the same bounds stays.
    pub fn renew_limit(&self, before: &Config, now: &Config) {
        self.limits.replace(now.limits.clone());
        let said = |config: &Config| {
            let limits = &config.limits;
            let loss = limits.throughput_loss.get_ref().to_bits();
            let connections = self.connections(limits);
            (
                config.observe,
                limits.transactions,
                limits.transactions_most(),
                loss,
                connections,
            )
        };
        if said(before) != said(now) {
            self.limiter.rehearse(now.observe);
            self.apply_limit();
        }
    }

    fn apply_limit(&self) {
        let limits = &*self.limits.borrow();
        self.controller.replace(None);
        self.places.forget_kept();
        self.limiter.set_kept(self.places.spare());
        let limit = first_limit(limits, self.connections(limits));
        if self.limiter.rehearses() {
            self.limiter.set_rehearsed_limit(limit);
            self.limiter.set_limit(self.connections(limits));
        } else {
            self.limiter.set_limit(limit);
        }
    }

    /// Whether a new session has to be asked how many connections there may be; if so, this one is.
    pub fn asks_capacity(&self) -> bool {
        let changes = self.limits.borrow().connections.is_none() && self.capacity.get().is_old();
        if changes {
            self.capacity.set(self.capacity.get().changes());
        }
        changes
    }

    /// The server has said how many connections it allows, if it knows.
    pub fn learn_capacity(&self, capacity: Option<Capacity>) {
        let limits = &*self.limits.borrow();
        let before = self.capacity.get();
        self.capacity.set(before.answered(capacity));
        let (Some(now), true) = (capacity, capacity != before.capacity()) else {
            return;
        };
        let bound = |capacity| first_limit(limits, connections(limits, capacity));
        let is_other = bound(before.capacity()) != bound(capacity);
        if is_other || limits.transactions == Limit::Auto || self.limiter.rehearses() {
            self.apply_limit();
        }
        let (most, connections) = (limits.transactions_most(), self.connections(limits));
        if most > connections {
            log(&format!(
                "{}: the server allows {} connections (max_connections {}, of which {} are reserved), so of the {most} transactions of limits.transactions at most {connections} go in at a time",
                self.address,
                now.free(),
                now.max,
                now.reserved,
            ));
        }
    }

    /// The session that asks for locks is not kept for later: it would be in the way of who wants
    /// to drop the database or stop the server.
    pub fn close_idle_lock_watch(&self) {
        let mut watch = self.lock_watch.borrow_mut();
        watch.take_if(|server| server.used_at.elapsed() >= LOCK_WATCH_IDLE);
    }

    /// What encrypts a new connection.
    pub fn connector(&self) -> Option<Rc<Connector>> {
        self.connector.borrow().clone()
    }

    /// Files that it was read from may have changed; where it is named no more, it stays as it is.
    pub fn renew_connector(&self, configuration: &Configuration) {
        if let Some(connector) = configuration.connector(&self.address) {
            self.connector.replace(Some(connector));
        }
    }
}

/// A connection that its client keeps and does not use at the moment.
pub struct IdleLease(Rc<Upstream>);

impl IdleLease {
    /// One more of them.
    pub fn new(upstream: &Rc<Upstream>) -> Self {
        upstream.idle_leases.set(upstream.idle_leases.get() + 1);
        Self(upstream.clone())
    }
}

impl Drop for IdleLease {
    fn drop(&mut self) {
        let count = self.0.idle_leases.get();
        assert!(count > 0, "an idle lease ends twice");
        self.0.idle_leases.set(count - 1);
    }
}

/// How many transactions a server gets at a time at the beginning: each needs a connection.
fn first_limit(limits: &Limits, connections: usize) -> usize {
    let limit = match limits.transactions {
        Limit::Fixed(limit) => limit.get(),
        Limit::Auto => limit_controller::bounds(limits, connections).start,
    };
    limit.min(connections)
}

/// How many connections there may be to a server: before it has been asked, as many as transactions
/// need.
fn connections(limits: &Limits, capacity: Option<Capacity>) -> usize {
    let most = limits.transactions_most();
    match (limits.connections, capacity) {
        (Some(max), _) => max.get(),
        (None, Some(capacity)) => capacity.kept(most),
        (None, None) => most,
    }
}

/// How many transactions and connections a server gets that has not been asked yet.
pub fn bounds_unasked(limits: &Limits) -> (usize, usize) {
    let connections = connections(limits, None);
    (first_limit(limits, connections), connections)
}

/// How long the session that asks for locks is kept while no client waits for one.
const LOCK_WATCH_IDLE: Duration = Duration::from_secs(5);

/// Secrets that are looked up in a server at a time, and connections for that, idle ones included.
pub const LOOKUPS: usize = 2;
/// So many logins at a time may ask a server beside its places.
const GREETINGS: usize = 2;

/// So many transactions of a kind tell how long the next one will take: their times vary, and a
/// wrong guess admits it at the wrong time.
const KIND_MEMORY: u64 = 64;

/// Lets `limit` in at a time; its classes are numbered as in the configuration, and have these
/// goals.
fn limiter_of(limit: usize, goals: Vec<Goal>, config: &Config) -> Limiter {
    let limiter = Limiter::new(AdmissionSettings {
        limit,
        order: config.order(),
        waiting_max: None,
        kind_memory: KIND_MEMORY,
    });
    limiter.set_goals(config.order(), goals, &HashMap::new());
    limiter
}

/// The same for what is no server's: caps of classes hold at servers alone.
pub(crate) fn new_limiter(limit: usize, config: &Config) -> Limiter {
    limiter_of(limit, config.uncapped_goals(), config)
}
