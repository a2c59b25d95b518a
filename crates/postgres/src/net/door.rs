//! What the clients of one database share, and those of one user: where the database is, how many of them may be inside, and whether it is
//! paused.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use sooner_gate::{Gate, GateLimits};
use tokio::sync::Notify;

use super::pool::{Owner, Pool};
use crate::config::{Config, DatabaseTable, ServerAddress};

/// A server, and the one queue of all who want into it.
pub struct Backend {
    pub address: ServerAddress,
    pub gate: Gate,
    pub pool: RefCell<Pool>,
}

impl Backend {
    /// Nobody has been there yet.
    pub fn new(address: ServerAddress, config: &Config) -> Self {
        Self {
            address,
            gate: gate(config.limits.transactions.first(), config),
            pool: RefCell::default(),
        }
    }
}

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
    gate.set_goals(config.order(), config.goals());
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
    /// Told when the state changes or a server connection comes back.
    changed: Notify,
    /// Server connections that are in use.
    lent: Cell<usize>,
    /// Clients that are here.
    pub clients: Count,
    /// Server connections of earlier ones are closed when they come back.
    generation: Cell<u64>,
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
            changed: Notify::new(),
            lent: Cell::new(0),
            clients: Count::default(),
            generation: Cell::new(0),
        }
    }

    /// Of another entry: whoever is here stays, and what was closed is.
    pub fn with_table(&self, table: &DatabaseTable, backend: Rc<Backend>, config: &Config) -> Self {
        let mut new = Self::new(&self.name, table, backend, config);
        new.clients = self.clients.clone();
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
        self.changed.notify_waiters();
    }

    /// Waits until transactions need not wait.
    pub async fn opened(&self) {
        self.until(|| !self.is_paused()).await;
    }

    /// Waits until no server connection is in use.
    pub async fn is_empty(&self) {
        self.until(|| self.lent.get() == 0).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            // Before the look: what happens between the two is not missed.
            let change = self.changed.notified();
            if is_so() {
                return;
            }
            change.await;
        }
    }

    /// Server connections that are in use.
    pub fn lent(&self) -> usize {
        self.lent.get()
    }

    /// Which server connections are good.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// All server connections are replaced: idle ones now, the others when they come back.
    pub fn reconnect(&self) {
        self.generation.set(self.generation.get() + 1);
        let is_its = |owner: &Owner| owner.database == self.name;
        self.backend.pool.borrow_mut().close_idle(is_its);
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

/// A server connection in use.
pub struct InUse(Rc<Door>);

impl InUse {
    /// One more.
    pub fn one_more(door: &Rc<Door>) -> Self {
        door.lent.set(door.lent.get() + 1);
        Self(door.clone())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.lent.set(self.0.lent.get() - 1);
        self.0.changed.notify_waiters();
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
