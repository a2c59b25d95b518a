//! What all clients share: the configuration in force, databases, upstreams, clients, statistics.

use crate::client::cancel::CancelKeys;
use crate::client::handle::{ClassCount, ClientHandle, Termination};
use crate::client::slots::{SlotLimits, Slots};
use crate::client::verifiers::Verifiers;
use crate::config::{DatabaseTable, ServerAddress};
use crate::configuration::Configuration;
use crate::console::command::Stop;
use crate::console::sessions::ConsoleSession;
use crate::gateway::Reload;
use crate::lock_waits::LockWaits;
use crate::log::Seldom;
use crate::pool::admission::{ClientClass, payer_of};
use crate::pool::database::{Database, User};
use crate::pool::upstream::{Upstream, new_limiter};
use crate::pool::{Owner, Pool};
use crate::priorities::Priorities;
use crate::random;
use crate::statistics::Statistics;
use sooner_admission::{JobId, Renewed};
use sooner_limiter::Limiter;
use sooner_postgres::auth::mock::Kind;
use sooner_postgres::statements::Statements;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tokio::sync::Notify;

/// So many names of databases that clients have asked for are kept: a few hundred kilobytes.
const REQUESTED_MAX: usize = 4096;

/// All of it.
pub struct Pooler {
    configuration: RefCell<Rc<Configuration>>,
    upstreams: RefCell<BTreeMap<ServerAddress, Rc<Upstream>>>,
    databases: RefCell<BTreeMap<String, Rc<Database>>>,
    users: RefCell<BTreeMap<String, Rc<User>>>,
    pub statements: RefCell<Statements>,
    pub cancel_keys: RefCell<CancelKeys>,
    /// Connections of clients, proved or not.
    pub slots: Slots,
    /// Those that had to end before they were proved, because others came.
    pub crowded_out: Seldom,
    /// Those that took too long.
    pub overdue: Seldom,
    /// Clients that were let in, by number.
    pub clients: RefCell<BTreeMap<u64, Rc<ClientHandle>>>,
    /// Sessions in the gate's own database, by number.
    pub consoles: RefCell<BTreeMap<u64, ConsoleSession>>,
    last_client: Cell<u64>,
    /// Names of databases that clients have asked for since the start, as many as are kept.
    pub requested: RefCell<BTreeSet<String>>,
    /// Commands to the gate itself since the start.
    pub console_commands: Cell<u64>,
    pub statistics: RefCell<Statistics>,
    /// How the configuration is read again.
    reload: Reload,
    is_stopping: Cell<bool>,
    /// Whether every database is paused, those without a client so far included.
    is_paused: Cell<bool>,
    /// Where the processor is told who goes first.
    pub priorities: Priorities,
    /// Who waits for whom inside.
    pub lock_waits: LockWaits,
    /// Told when the gate stops and when a client leaves.
    pub changed: Notify,
    /// Told when another configuration is in force.
    pub renewed: Notify,
    /// For the authentication of unknown users.
    pub mock_secret: [u8; 32],
    /// Of users with known passwords.
    pub verifiers: RefCell<Verifiers>,
    /// Whether the database answered when the gate last looked up a secret.
    pub lookups_answer: Cell<bool>,
    /// What the last secret that was looked up is like.
    pub last_kind: Cell<Option<Kind>>,
}

impl Pooler {
    /// Without clients.
    pub fn new(configuration: Configuration, reload: Reload) -> std::io::Result<Self> {
        let mut verifiers = Verifiers::default();
        verifiers.follow(&configuration.users);
        Ok(Self {
            configuration: RefCell::new(Rc::new(configuration)),
            upstreams: RefCell::default(),
            databases: RefCell::default(),
            users: RefCell::default(),
            statements: RefCell::default(),
            cancel_keys: RefCell::default(),
            slots: Slots::default(),
            crowded_out: Seldom::default(),
            consoles: RefCell::default(),
            overdue: Seldom::default(),
            clients: RefCell::default(),
            last_client: Cell::new(0),
            requested: RefCell::default(),
            console_commands: Cell::new(0),
            statistics: RefCell::default(),
            reload,
            is_stopping: Cell::new(false),
            is_paused: Cell::new(false),
            priorities: Priorities::default(),
            lock_waits: LockWaits::default(),
            changed: Notify::new(),
            renewed: Notify::new(),
            mock_secret: random::bytes()?,
            verifiers: RefCell::new(verifiers),
            lookups_answer: Cell::new(true),
            last_kind: Cell::default(),
        })
    }

    /// What is in force now.
    pub fn configuration(&self) -> Rc<Configuration> {
        self.configuration.borrow().clone()
    }

    /// How many clients there may be.
    pub fn slot_limits(&self) -> SlotLimits {
        let configuration = self.configuration.borrow();
        let limits = &configuration.config.limits;
        SlotLimits {
            clients: limits.clients.get_ref().get(),
            of_origin: limits.connections_per_address.map(|max| max.get()),
        }
    }

    /// The way to a database, if there is an entry for its name.
    pub fn database(&self, name: &str) -> Option<Rc<Database>> {
        if let Some(db) = self.databases.borrow().get(name) {
            return Some(db.clone());
        }
        let configuration = self.configuration();
        let table = configuration.config.database(name)?;
        let config = &configuration.config;
        let db = Rc::new(Database::new(name, table, self.upstream(table), config));
        if self.is_paused.get() {
            db.pause();
        }
        let mut databases = self.databases.borrow_mut();
        databases.insert(name.to_owned(), db.clone());
        Some(db)
    }

    fn upstream(&self, table: &DatabaseTable) -> Rc<Upstream> {
        let address = table.server.get_ref();
        let configuration = self.configuration();
        let mut upstreams = self.upstreams.borrow_mut();
        let upstream = upstreams.entry(address.clone());
        let new = || Rc::new(Upstream::new(address.clone(), &configuration));
        upstream.or_insert_with(new).clone()
    }

    /// What the clients of a user share.
    pub fn user(&self, name: &str) -> Rc<User> {
        let configuration = self.configuration();
        let bound = configuration
            .user(name)
            .and_then(|table| table.transactions);
        let mut users = self.users.borrow_mut();
        let user = users.entry(name.to_owned());
        let bound = bound.map(|limit| limit.get());
        let new = || Rc::new(User::new(bound, &configuration.config));
        user.or_insert_with(new).clone()
    }

    /// All databases that were requested.
    pub fn databases(&self) -> Vec<Rc<Database>> {
        self.databases.borrow().values().cloned().collect()
    }

    /// All users that were here.
    pub fn users(&self) -> Vec<(String, Rc<User>)> {
        let users = self.users.borrow();
        let copy = |(name, user): (&String, &Rc<User>)| (name.clone(), user.clone());
        users.iter().map(copy).collect()
    }

    /// All servers of databases that were requested.
    pub fn upstreams(&self) -> Vec<Rc<Upstream>> {
        self.upstreams.borrow().values().cloned().collect()
    }

    /// The clients of each class, in the order of the configuration, and behind the last of those
    /// in none.
    pub fn class_counts(&self) -> Vec<ClassCount> {
        let configuration = self.configuration();
        let classes = &configuration.config.class;
        let mut present = vec![ClassCount::default(); classes.len() + 1];
        for handle in self.clients.borrow().values() {
            present[handle.class(classes)].add(handle.shown_activity());
        }
        present
    }

    /// A number for a new client.
    pub fn next_client(&self) -> u64 {
        self.last_client.set(self.last_client.get() + 1);
        self.last_client.get()
    }

    /// Reads the configuration again; after a mistake, which is given in words, nothing has
    /// changed.
    pub fn reload(&self) -> Result<(), String> {
        let configuration = (self.reload)()?;
        self.replace(configuration);
        Ok(())
    }

    /// Another configuration from now on. No client is dropped: server connections that are wrong
    /// now are closed when they come back.
    fn replace(&self, configuration: Configuration) {
        let configuration = Rc::new(configuration);
        let before = self.configuration.replace(configuration.clone());
        self.verifiers.borrow_mut().follow(&configuration.users);
        for upstream in self.upstreams() {
            upstream.renew_limit(&before.config, &configuration.config);
            upstream.renew_connector(&configuration);
        }
        for db in self.databases() {
            self.replace_database(&db);
        }
        for (name, _) in self.users() {
            self.replace_user(&name);
        }
        let config = &configuration.config;
        let (order, goals, held) = (config.order(), config.goals(), config.held_goals());
        let uncapped = config.uncapped_goals();
        let waiting = self.waiting(&configuration);
        for (limiter, is_of_server) in self.limiters() {
            let handle = waiting.iter().filter(|(at, ..)| at.is(&limiter));
            let known = handle.map(|(_, job, renewed)| (*job, *renewed)).collect();
            let goals = match is_of_server {
                true if limiter.rehearses() => &goals,
                true => &held,
                false => &uncapped,
            };
            limiter.set_goals(order, goals.clone(), &known);
        }
        self.renewed.notify_waiters();
    }

    /// Where clients wait, as which job, and their classes and who is charged by these settings.
    fn waiting(&self, configuration: &Rc<Configuration>) -> Vec<(Limiter, JobId, Renewed)> {
        let clients = self.clients.borrow();
        let waiting = clients.values().filter_map(|handle| {
            let (limiter, job) = handle.queue_position()?;
            let renewed = Renewed {
                class: ClientClass::of(handle, configuration.clone()).number(),
                payer: Some(payer_of(handle, configuration)),
            };
            Some((limiter, job, renewed))
        });
        waiting.collect()
    }

    /// All queues: of servers, of their logins, of databases and users that are bounded; and
    /// whether it is a server's.
    fn limiters(&self) -> Vec<(Limiter, bool)> {
        let upstreams = self.upstreams();
        let of_servers = upstreams
            .iter()
            .map(|upstream| (upstream.limiter.clone(), true));
        let logins = upstreams
            .iter()
            .map(|upstream| upstream.logins.limiter.clone());
        let databases = self.databases();
        let databases = databases.iter().filter_map(|db| db.limiter.clone());
        let users = self.users();
        let users = users.iter().filter_map(|(_, user)| user.limiter());
        let others = logins.chain(databases).chain(users);
        of_servers
            .chain(others.map(|limiter| (limiter, false)))
            .collect()
    }

    fn replace_database(&self, old: &Rc<Database>) {
        let configuration = self.configuration();
        let Some(table) = configuration.config.database(&old.name) else {
            // No client is admitted any more, and each is told so when it asks.
            old.replaced();
            self.databases.borrow_mut().remove(&old.name);
            return;
        };
        if old.table.is_same(table) {
            return;
        }
        let upstream = self.upstream(table);
        let mut new = old.with_table(table, upstream, &configuration.config);
        if let (None, Some(bound)) = (&old.limiter, table.transactions) {
            let is_its = |handle: &ClientHandle| handle.database == old.name;
            new.limiter = Some(self.limiter_with_those_inside(bound.get(), is_its));
        }
        let mut databases = self.databases.borrow_mut();
        databases.insert(old.name.clone(), Rc::new(new));
        drop(databases);
        old.replaced();
    }

    fn replace_user(&self, name: &str) {
        let configuration = self.configuration();
        let bound = configuration
            .user(name)
            .and_then(|table| table.transactions);
        let Some(user) = self.users.borrow().get(name).cloned() else {
            return;
        };
        match (user.limiter(), bound) {
            (Some(limiter), Some(limit)) => limiter.set_limit(limit.get()),
            // A bound that is no longer there holds no client back.
            (Some(limiter), None) => limiter.set_limit(usize::MAX),
            (None, Some(limit)) => {
                let is_its = |handle: &ClientHandle| handle.user == name;
                user.bound(self.limiter_with_those_inside(limit.get(), is_its));
            }
            (None, None) => {}
        }
    }

    /// A bound where there was none: those of its clients that are inside count, and beside them
    /// only as many go in as it allows.
    fn limiter_with_those_inside(
        &self,
        limit: usize,
        is_its: impl Fn(&ClientHandle) -> bool,
    ) -> Limiter {
        let configuration = self.configuration();
        let limiter = new_limiter(usize::MAX, &configuration.config);
        let clients = self.clients.borrow();
        for handle in clients.values().filter(|handle| is_its(handle)) {
            let class = ClientClass::of(handle, configuration.clone());
            handle.count_in(&limiter, class.number());
        }
        limiter.set_limit(limit);
        limiter
    }

    /// Pauses every database, or goes on with all of them.
    pub fn set_paused(&self, is_paused: bool) {
        self.is_paused.set(is_paused);
        for db in self.databases() {
            if is_paused { db.pause() } else { db.resume() }
        }
    }

    /// Whether every database is paused.
    pub fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    /// Takes no more clients but admins; those that are connected leave as `how` says.
    pub fn stop(&self, how: Stop) {
        self.is_stopping.set(true);
        let leave = match how {
            Stop::Now => Termination::Now,
            Stop::WhenIdle => Termination::WhenIdle,
            Stop::WhenTheyLike => Termination::No,
        };
        let clients: Vec<_> = self.clients.borrow().values().cloned().collect();
        clients.iter().for_each(|client| client.terminate(leave));
        // A client that waits is admitted, or it would wait without end.
        self.set_paused(false);
        self.changed.notify_waiters();
    }

    /// Whether it has been told to stop.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    /// Waits until it has.
    pub async fn stopped(&self) {
        self.until(|| self.is_stopping()).await;
    }

    /// Waits until the last client has left.
    pub async fn is_empty(&self) {
        self.until(|| self.clients.borrow().is_empty()).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so() {
                return;
            }
            changed.await;
        }
    }

    /// Keeps the name of a database that a client asks for.
    pub fn note_requested(&self, name: &str) {
        let mut requested = self.requested.borrow_mut();
        if requested.len() < REQUESTED_MAX && !requested.contains(name) {
            requested.insert(name.to_owned());
        }
    }

    /// Forgets databases, users and upstreams that are not needed.
    pub fn forget_unused(&self) {
        // What is idle is closed by its entry, which also says of which generation it is.
        let has_connections = |db: &Rc<Database>| {
            let is_its = |owner: &Owner| owner.database == db.name;
            let of_pool = |pool: &RefCell<Pool>| {
                let pool = pool.borrow();
                pool.idle().any(|(owner, _)| is_its(owner)) || pool.waiters.has_opening(is_its)
            };
            of_pool(&db.upstream.pool) || of_pool(&db.upstream.lookup_pool)
        };
        self.databases.borrow_mut().retain(|_, db| {
            let is_closed = db.is_paused() || db.is_disabled.get();
            db.clients.get() > 0 || db.leases.count() > 0 || is_closed || has_connections(db)
        });
        self.users
            .borrow_mut()
            .retain(|_, user| user.clients.get() > 0);
        let databases = self.databases.borrow();
        let configuration = self.configuration();
        let is_used = |upstream: &Rc<Upstream>| {
            let mut all = databases.values();
            all.any(|db| Rc::ptr_eq(&db.upstream, upstream))
        };
        // What was counted and found there is kept for as long as there may be more of it.
        let is_named = |address: &ServerAddress| {
            let mut tables = configuration.config.database.iter();
            tables.any(|table| table.server.get_ref() == address)
        };
        let is_open = |pool: &RefCell<Pool>| pool.borrow().open() > 0;
        self.upstreams.borrow_mut().retain(|address, upstream| {
            let is_open = is_open(&upstream.pool) || is_open(&upstream.lookup_pool);
            is_named(address) || is_used(upstream) || is_open
        });
    }
}
