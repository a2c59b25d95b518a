//! What the clients of one database share, and those of one user: where the database is, how many
//! of them may be inside, and whether it is paused.

use crate::config::{Config, DatabaseTable};
use crate::pool::leases::Leases;
use crate::pool::upstream::{Upstream, new_limiter};
use crate::pool::{Owner, ServerConnection};
use sooner_limiter::Limiter;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// One database, by the name that clients use.
pub struct Database {
    pub name: String,
    pub table: DatabaseTable,
    pub upstream: Rc<Upstream>,
    /// Of its own transactions, where they are bounded.
    pub limiter: Option<Limiter>,
    is_paused: Cell<bool>,
    /// Whether new clients are sent away.
    pub is_disabled: Cell<bool>,
    /// Whether there is another one for this name, or none: no client is admitted here any more.
    is_replaced: Cell<bool>,
    /// Server connections that are in use, those of earlier entries of this name included.
    pub leases: Leases,
    /// Its clients.
    pub clients: ClientCount,
}

impl Database {
    /// An open one.
    pub fn new(name: &str, table: &DatabaseTable, upstream: Rc<Upstream>, config: &Config) -> Self {
        let bound = table.transactions;
        Self {
            name: name.to_owned(),
            limiter: bound.map(|limit| new_limiter(limit.get(), config)),
            table: table.clone(),
            upstream,
            is_paused: Cell::new(false),
            is_disabled: Cell::new(false),
            is_replaced: Cell::new(false),
            leases: Leases::default(),
            clients: ClientCount::default(),
        }
    }

    /// Of another entry: its clients stay, and what was paused or disabled is.
    pub fn with_table(
        &self,
        table: &DatabaseTable,
        upstream: Rc<Upstream>,
        config: &Config,
    ) -> Self {
        let mut new = Self::new(&self.name, table, upstream, config);
        if let (Some(limiter), Some(limit)) = (&self.limiter, table.transactions) {
            // Those inside count on: beside them only as many go in as the new bound allows.
            limiter.set_limit(limit.get());
            new.limiter = Some(limiter.clone());
        }
        new.clients = self.clients.clone();
        new.leases = self.leases.clone();
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

    /// And no longer. The server may be another one by now: what new sessions are told is asked
    /// again. Until then clients were told what those of before the pause were.
    pub fn resume(&self) {
        if self.is_paused.replace(false) {
            self.forget_initial_parameters();
        }
        self.leases.notify();
    }

    /// Another one takes its place, or none: those who wait here look for that one, and all server
    /// connections are closed when they come back.
    pub fn replaced(&self) {
        self.is_replaced.set(true);
        self.reconnect();
        self.leases.notify();
    }

    /// Whether that is so.
    pub fn is_replaced(&self) -> bool {
        self.is_replaced.get()
    }

    /// Whether a connection is kept for others when it comes back.
    pub fn keeps(&self, server: &ServerConnection) -> bool {
        server.generation == self.leases.generation() && !self.is_replaced()
    }

    /// Waits until transactions need not wait here.
    pub async fn opened(&self) {
        let leases = &self.leases;
        leases
            .wait_until(|| !self.is_paused() || self.is_replaced())
            .await;
    }

    /// Waits until it has been replaced.
    pub async fn until_replaced(&self) {
        self.leases.wait_until(|| self.is_replaced()).await;
    }

    /// All server connections are replaced: idle ones now, the others when they come back; and so is
    /// what is known of what new sessions are told.
    pub fn reconnect(&self) {
        self.replace_connections();
        self.forget_initial_parameters();
    }

    /// The connections alone.
    pub fn replace_connections(&self) {
        self.leases.retire();
        let is_its = |owner: &Owner| owner.database == self.name;
        self.upstream.pool.borrow_mut().close_idle(is_its);
        self.upstream.lookup_pool.borrow_mut().close_idle(is_its);
    }

    fn forget_initial_parameters(&self) {
        let is_its = |owner: &Owner| owner.database == self.name;
        self.upstream.pool.borrow_mut().initial.forget(is_its);
        self.upstream
            .lookup_pool
            .borrow_mut()
            .initial
            .forget(is_its);
    }
}

/// How many there are of something.
#[derive(Clone, Default)]
pub struct ClientCount(Rc<Cell<usize>>);

/// One of them, as long as this is there.
pub struct CountedClient(ClientCount);

impl ClientCount {
    /// One more.
    pub fn count_one(&self) -> CountedClient {
        self.0.set(self.0.get() + 1);
        CountedClient(self.clone())
    }

    /// How many.
    pub fn get(&self) -> usize {
        self.0.get()
    }
}

impl Drop for CountedClient {
    fn drop(&mut self) {
        let Self(ClientCount(count)) = self;
        assert!(count.get() > 0, "a client leaves twice");
        count.set(count.get() - 1);
    }
}

/// What the clients of one user share.
pub struct User {
    limiter: RefCell<Option<Limiter>>,
    /// Its clients.
    pub clients: ClientCount,
}

impl User {
    /// At most `transactions` at a time.
    pub fn new(transactions: Option<usize>, config: &Config) -> Self {
        Self {
            limiter: RefCell::new(transactions.map(|limit| new_limiter(limit, config))),
            clients: ClientCount::default(),
        }
    }

    /// Of its own transactions, where they are bounded.
    pub fn limiter(&self) -> Option<Limiter> {
        self.limiter.borrow().clone()
    }

    /// They are bounded by this one from now on.
    pub fn bound(&self, limiter: Limiter) {
        self.limiter.replace(Some(limiter));
    }
}
