//! What the clients of one database share, and those of one user: where the database is, how many of them may be inside, and whether it is
//! paused.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use sooner_gate::{Controller, Gate, GateLimits, Order};

use super::capacity::{Capacity, Known, LoginShare};
use super::lending::Lending;
use super::log::{Seldom, log};
use super::logins::Logins;
use super::pool::{Owner, Pool};
use super::settings::Settings;
use super::tls::Connector;
use super::tuning;
use crate::config::{Config, DatabaseTable, Limits, ServerAddress, Transactions};

/// A server, and the one queue of all who want into it.
pub struct Backend {
    pub address: ServerAddress,
    /// What encrypts connections to it. Its own, so that those who wait for a server that stands in no entry any more are encrypted as they were.
    connector: RefCell<Option<Rc<Connector>>>,
    pub gate: Gate,
    /// Who may log in in place of another owner.
    pub logins: Logins,
    /// What finds the gate's limit, where that is not said.
    pub controller: RefCell<Option<Controller>>,
    /// Clients that keep a connection and do not use it at the moment.
    pub kept: Cell<usize>,
    pub pool: RefCell<Pool>,
    /// How many connections the server allows.
    known: Cell<Known>,
    /// How many transactions have to log in.
    pub login_share: RefCell<LoginShare>,
    /// That it has no connection left.
    pub full: Seldom,
    /// That it does not answer.
    pub unreachable: Seldom,
    /// Connections on which secrets are looked up: no client has had one, and who has proved nothing takes no place from those who have.
    pub lookups: RefCell<Pool>,
    pub lookup_gate: Gate,
}

impl Backend {
    /// Nobody has been there yet.
    pub fn new(address: ServerAddress, settings: &Settings) -> Self {
        let config = &settings.config;
        Self {
            connector: RefCell::new(settings.connector(&address)),
            address,
            gate: gate(
                first_limit(&config.limits, connections(&config.limits, None)),
                config,
            ),
            logins: Logins {
                gate: gate(1, config),
            },
            controller: RefCell::default(),
            kept: Cell::default(),
            pool: RefCell::default(),
            known: Cell::default(),
            login_share: RefCell::default(),
            full: Seldom::default(),
            unreachable: Seldom::default(),
            lookups: RefCell::default(),
            lookup_gate: Gate::new(GateLimits {
                limit: LOOKUPS,
                order: Order::Fcfs,
                waiting_max: None,
                key_memory: KIND_MEMORY,
            }),
        }
    }

    /// How many transactions wait for it.
    pub fn waiting(&self) -> usize {
        self.gate.status().waiting + self.logins.gate.status().waiting
    }

    /// How many connections there may be to it.
    pub fn connections(&self, limits: &Limits) -> usize {
        connections(limits, self.known.get().capacity())
    }

    /// The bounds are others now; a limit that was found within the same bounds stays.
    pub fn renew_limit(&self, before: &Limits, now: &Limits) {
        let said = |limits: &Limits| {
            let loss = limits.throughput_loss.get_ref().to_bits();
            let connections = self.connections(limits);
            (
                limits.transactions,
                limits.transactions_most(),
                loss,
                connections,
            )
        };
        if said(before) != said(now) {
            self.apply_limit(now);
        }
    }

    fn apply_limit(&self, limits: &Limits) {
        self.controller.replace(None);
        self.gate.set_kept(0);
        let limit = first_limit(limits, self.connections(limits));
        self.gate.set_limit(limit);
    }

    /// Whether a new session has to be asked how many connections there may be; if so, this one is.
    pub fn asks_capacity(&self, limits: &Limits) -> bool {
        let changes = limits.connections.is_none() && self.known.get().is_old();
        if changes {
            self.known.set(self.known.get().changes());
        }
        changes
    }

    /// The server has said how many connections it allows, if it knows.
    pub fn learn_capacity(&self, capacity: Option<Capacity>, limits: &Limits) {
        let before = self.known.get();
        self.known.set(before.answered(capacity));
        let (Some(now), true) = (capacity, capacity != before.capacity()) else {
            return;
        };
        let bound = |capacity| first_limit(limits, connections(limits, capacity));
        if bound(before.capacity()) != bound(capacity) || limits.transactions == Transactions::Auto
        {
            self.apply_limit(limits);
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

    /// What encrypts a new connection.
    pub fn connector(&self) -> Option<Rc<Connector>> {
        self.connector.borrow().clone()
    }

    /// Files that it was read from may have changed; where it is named no more, it stays as it is.
    pub fn renew_connector(&self, settings: &Settings) {
        if let Some(connector) = settings.connector(&self.address) {
            self.connector.replace(Some(connector));
        }
    }
}

/// A connection that its client keeps and does not use at the moment.
pub struct Kept(Rc<Backend>);

impl Kept {
    /// One more of them.
    pub fn new(backend: &Rc<Backend>) -> Self {
        backend.kept.set(backend.kept.get() + 1);
        Self(backend.clone())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.kept.set(self.0.kept.get() - 1);
    }
}

/// How many transactions a server gets at a time at the beginning: each needs a connection.
fn first_limit(limits: &Limits, connections: usize) -> usize {
    let limit = match limits.transactions {
        Transactions::Fixed(limit) => limit.get(),
        Transactions::Auto => tuning::bounds(limits, connections).start,
    };
    limit.min(connections)
}

/// How many connections there may be to a server: before it has been asked, as many as transactions need.
fn connections(limits: &Limits, capacity: Option<Capacity>) -> usize {
    let most = limits.transactions_most();
    match (limits.connections, capacity) {
        (Some(max), _) => max.get(),
        (None, Some(capacity)) => capacity.kept(most),
        (None, None) => most,
    }
}

/// Secrets that are looked up in a server at a time.
const LOOKUPS: usize = 2;

/// The transactions of a kind whose times tell how long the next one will take: they vary, and one that is wrong goes in at the wrong time.
const KIND_MEMORY: u64 = 64;

/// Lets `limit` in at a time; its classes are numbered as in the configuration.
fn gate(limit: usize, config: &Config) -> Gate {
    let gate = Gate::new(GateLimits {
        limit,
        order: config.order(),
        waiting_max: None,
        key_memory: KIND_MEMORY,
    });
    gate.set_goals(config.order(), config.goals(), &HashMap::new());
    gate
}

/// The way to one database, by the name that clients use.
pub struct Door {
    pub name: String,
    pub table: DatabaseTable,
    pub backend: Rc<Backend>,
    /// Of its own transactions, where they are bounded.
    pub gate: Option<Gate>,
    is_paused: Cell<bool>,
    /// Whether new clients are sent away.
    pub is_disabled: Cell<bool>,
    /// Whether there is another one for this name, or none: nobody goes in here any more.
    is_replaced: Cell<bool>,
    /// Server connections that are in use, those of earlier entries of this name included.
    pub lending: Lending,
    /// Clients that are here.
    pub clients: Count,
}

impl Door {
    /// An open one.
    pub fn new(name: &str, table: &DatabaseTable, backend: Rc<Backend>, config: &Config) -> Self {
        let bound = table.transactions;
        Self {
            name: name.to_owned(),
            gate: bound.map(|limit| gate(limit.get(), config)),
            table: table.clone(),
            backend,
            is_paused: Cell::new(false),
            is_disabled: Cell::new(false),
            is_replaced: Cell::new(false),
            lending: Lending::default(),
            clients: Count::default(),
        }
    }

    /// Of another entry: whoever is here stays, and what was closed is.
    pub fn with_table(&self, table: &DatabaseTable, backend: Rc<Backend>, config: &Config) -> Self {
        let mut new = Self::new(&self.name, table, backend, config);
        new.clients = self.clients.clone();
        new.lending = self.lending.clone();
        new.is_paused.set(self.is_paused.get());
        new.is_disabled.set(self.is_disabled.get());
        new
    }

    /// Whether transactions wait.
    pub fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    /// Transactions wait from now on.
    pub fn pause(&self) {
        self.is_paused.set(true);
    }

    /// And no longer.
    pub fn resume(&self) {
        self.is_paused.set(false);
        self.lending.tell();
    }

    /// Another one takes its place, or none: those who wait here look for that one, and all server connections are closed when they come back.
    pub fn replaced(&self) {
        self.is_replaced.set(true);
        self.reconnect();
        self.lending.tell();
    }

    /// Whether that is so.
    pub fn is_replaced(&self) -> bool {
        self.is_replaced.get()
    }

    /// Waits until transactions need not wait here.
    pub async fn opened(&self) {
        let lending = &self.lending;
        lending
            .until(|| !self.is_paused() || self.is_replaced())
            .await;
    }

    /// Waits until it has been replaced.
    pub async fn until_replaced(&self) {
        self.lending.until(|| self.is_replaced()).await;
    }

    /// All server connections are replaced: idle ones now, the others when they come back.
    pub fn reconnect(&self) {
        self.lending.renew();
        let is_its = |owner: &Owner| owner.database == self.name;
        self.backend.pool.borrow_mut().close_idle(is_its);
        self.backend.lookups.borrow_mut().close_idle(is_its);
    }
}

/// How many there are of something.
#[derive(Clone, Default)]
pub struct Count(Rc<Cell<usize>>);

/// One of them, as long as this is there.
pub struct One(Count);

impl Count {
    /// One more.
    pub fn one_more(&self) -> One {
        self.0.set(self.0.get() + 1);
        One(self.clone())
    }

    /// How many.
    pub fn get(&self) -> usize {
        self.0.get()
    }
}

impl Drop for One {
    fn drop(&mut self) {
        let Self(Count(count)) = self;
        count.set(count.get() - 1);
    }
}

/// What the clients of one user share.
pub struct UserDoor {
    /// Of its own transactions, where they are bounded.
    pub gate: Option<Gate>,
    /// Clients that are here.
    pub clients: Count,
}

impl UserDoor {
    /// At most `transactions` at a time.
    pub fn new(transactions: Option<usize>, config: &Config) -> Self {
        Self {
            gate: transactions.map(|limit| gate(limit, config)),
            clients: Count::default(),
        }
    }

    /// The same with a bound.
    pub fn bounded(&self, transactions: usize, config: &Config) -> Self {
        Self {
            gate: Some(gate(transactions, config)),
            clients: self.clients.clone(),
        }
    }
}
