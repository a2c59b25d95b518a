//! What all clients share: the settings in force, the ways to the databases, who is here, what was measured.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use sooner_gate::{Gate, JobId};
use tokio::sync::Notify;

use super::arrivals::{Arrivals, Bounds};
use super::cancel::Sessions;
use super::door::{Backend, Door, UserDoor};
use super::here::{Here, Leave, Present};
use super::log::Seldom;
use super::outside::Class;
use super::settings::Settings;
use super::verifiers::Verifiers;
use super::{Reload, system_random};
use crate::command::Stop;
use crate::config::{DatabaseTable, ServerAddress};
use crate::measured::Measured;
use sooner_postgres::auth::mock::Kind;
use sooner_postgres::statements::Statements;

/// All of it.
pub struct Shared {
    settings: RefCell<Rc<Settings>>,
    backends: RefCell<BTreeMap<ServerAddress, Rc<Backend>>>,
    doors: RefCell<BTreeMap<String, Rc<Door>>>,
    users: RefCell<BTreeMap<String, Rc<UserDoor>>>,
    pub statements: RefCell<Statements>,
    pub sessions: RefCell<Sessions>,
    /// Connections of clients, proved or not.
    pub arrivals: Arrivals,
    /// Those that had to end before they were proved, because others came.
    pub crowded_out: Seldom,
    /// Those that took too long.
    pub overdue: Seldom,
    /// Clients that were let in, by number.
    pub clients: RefCell<BTreeMap<u64, Rc<Here>>>,
    last_client: Cell<u64>,
    pub measured: RefCell<Measured>,
    /// How the configuration is read again.
    reload: Reload,
    is_stopping: Cell<bool>,
    /// Whether every database is paused, those that nobody has asked for yet included.
    is_paused: Cell<bool>,
    /// Told when the gate stops and when a client leaves.
    pub changed: Notify,
    /// For the exchange with those whom nobody knows.
    pub nobodys_secret: [u8; 32],
    /// Of users whose passwords are known.
    pub verifiers: RefCell<Verifiers>,
    /// Whether the database has answered when it was last asked for a secret.
    pub lookups_answer: Cell<bool>,
    /// What the last secret that was looked up is like.
    pub last_kind: Cell<Option<Kind>>,
}

impl Shared {
    /// Nobody is here yet.
    pub fn new(settings: Settings, reload: Reload) -> std::io::Result<Self> {
        let mut verifiers = Verifiers::default();
        verifiers.follow(&settings.users);
        Ok(Self {
            settings: RefCell::new(Rc::new(settings)),
            backends: RefCell::default(),
            doors: RefCell::default(),
            users: RefCell::default(),
            statements: RefCell::default(),
            sessions: RefCell::default(),
            arrivals: Arrivals::default(),
            crowded_out: Seldom::default(),
            overdue: Seldom::default(),
            clients: RefCell::default(),
            last_client: Cell::new(0),
            measured: RefCell::default(),
            reload,
            is_stopping: Cell::new(false),
            is_paused: Cell::new(false),
            changed: Notify::new(),
            nobodys_secret: system_random::bytes()?,
            verifiers: RefCell::new(verifiers),
            lookups_answer: Cell::new(true),
            last_kind: Cell::default(),
        })
    }

    /// What is in force now.
    pub fn settings(&self) -> Rc<Settings> {
        self.settings.borrow().clone()
    }

    /// How many clients there may be.
    pub fn bounds(&self) -> Bounds {
        let settings = self.settings.borrow();
        let limits = &settings.config.limits;
        Bounds {
            clients: limits.clients.get_ref().get(),
            of_origin: limits.connections_per_address.map(|max| max.get()),
        }
    }

    /// The way to a database, if there is an entry for its name.
    pub fn door(&self, name: &str) -> Option<Rc<Door>> {
        if let Some(door) = self.doors.borrow().get(name) {
            return Some(door.clone());
        }
        let settings = self.settings();
        let table = settings.config.database(name)?;
        let config = &settings.config;
        let door = Rc::new(Door::new(name, table, self.backend(table), config));
        if self.is_paused.get() {
            door.pause();
        }
        let mut doors = self.doors.borrow_mut();
        doors.insert(name.to_owned(), door.clone());
        Some(door)
    }

    fn backend(&self, table: &DatabaseTable) -> Rc<Backend> {
        let address = table.server.get_ref();
        let settings = self.settings();
        let mut backends = self.backends.borrow_mut();
        let backend = backends.entry(address.clone());
        let new = || Rc::new(Backend::new(address.clone(), &settings));
        backend.or_insert_with(new).clone()
    }

    /// What the clients of a user share.
    pub fn user(&self, name: &str) -> Rc<UserDoor> {
        let settings = self.settings();
        let bound = settings.user(name).and_then(|table| table.transactions);
        let mut users = self.users.borrow_mut();
        let user = users.entry(name.to_owned());
        let bound = bound.map(|limit| limit.get());
        let new = || Rc::new(UserDoor::new(bound, &settings.config));
        user.or_insert_with(new).clone()
    }

    /// All databases that were asked for.
    pub fn doors(&self) -> Vec<Rc<Door>> {
        self.doors.borrow().values().cloned().collect()
    }

    /// All users that were here.
    pub fn users(&self) -> Vec<(String, Rc<UserDoor>)> {
        let users = self.users.borrow();
        let copy = |(name, user): (&String, &Rc<UserDoor>)| (name.clone(), user.clone());
        users.iter().map(copy).collect()
    }

    /// All servers that were asked for.
    pub fn backends(&self) -> Vec<Rc<Backend>> {
        self.backends.borrow().values().cloned().collect()
    }

    /// The clients of each class, in the order of the configuration, and behind the last of those in none.
    pub fn present(&self) -> Vec<Present> {
        let settings = self.settings();
        let classes = &settings.config.class;
        let mut present = vec![Present::default(); classes.len() + 1];
        for here in self.clients.borrow().values() {
            present[here.class(classes)].add(here.doing.get());
        }
        present
    }

    /// A number for a new client.
    pub fn next_client(&self) -> u64 {
        self.last_client.set(self.last_client.get() + 1);
        self.last_client.get()
    }

    /// Reads the configuration again; after a mistake, which is given in words, nothing has changed.
    pub fn reload(&self) -> Result<(), String> {
        let settings = (self.reload)()?;
        self.replace(settings);
        Ok(())
    }

    /// Other settings from now on. Nobody is dropped: server connections that are wrong now are closed when they come back.
    fn replace(&self, settings: Settings) {
        let settings = Rc::new(settings);
        let before = self.settings.replace(settings.clone());
        self.verifiers.borrow_mut().follow(&settings.users);
        for backend in self.backends() {
            backend.renew_limit(&before.config.limits, &settings.config.limits);
            backend.renew_connector(&settings);
        }
        for door in self.doors() {
            self.replace_door(&door);
        }
        for (name, _) in self.users() {
            self.replace_user(&name);
        }
        let (order, goals) = (settings.config.order(), settings.config.goals());
        let waiting = self.waiting(&settings);
        for gate in self.gates() {
            let here = waiting.iter().filter(|(at, ..)| at.is(&gate));
            let numbers = here.map(|(_, job, number)| (*job, *number)).collect();
            gate.set_goals(order, goals.clone(), &numbers);
        }
    }

    /// Where clients wait, as which job, and their classes by these settings.
    fn waiting(&self, settings: &Rc<Settings>) -> Vec<(Gate, JobId, u8)> {
        let clients = self.clients.borrow();
        let waiting = clients.values().filter_map(|here| {
            let (gate, job) = here.waits_at()?;
            Some((gate, job, Class::of(here, settings.clone()).number()))
        });
        waiting.collect()
    }

    /// All queues: of servers, of databases and users that are bounded.
    fn gates(&self) -> Vec<Gate> {
        let backends = self.backends();
        let backends = backends
            .iter()
            .flat_map(|backend| [backend.gate.clone(), backend.logins.gate.clone()]);
        let doors = self.doors();
        let doors = doors.iter().filter_map(|door| door.gate.clone());
        let users = self.users();
        let users = users.iter().filter_map(|(_, user)| user.gate.clone());
        backends.chain(doors).chain(users).collect()
    }

    fn replace_door(&self, old: &Rc<Door>) {
        let settings = self.settings();
        let Some(table) = settings.config.database(&old.name) else {
            // Nobody new comes in; those who are here are told when they ask.
            old.replaced();
            self.doors.borrow_mut().remove(&old.name);
            return;
        };
        if old.table.is_same(table) {
            return;
        }
        let backend = self.backend(table);
        let new = Rc::new(old.with_table(table, backend, &settings.config));
        self.doors.borrow_mut().insert(old.name.clone(), new);
        old.replaced();
    }

    fn replace_user(&self, name: &str) {
        let settings = self.settings();
        let bound = settings.user(name).and_then(|table| table.transactions);
        let mut users = self.users.borrow_mut();
        let Some(user) = users.get_mut(name) else {
            return;
        };
        match (&user.gate, bound) {
            (Some(gate), Some(limit)) => gate.set_limit(limit.get()),
            // Nobody is held back by what is no longer said.
            (Some(gate), None) => gate.set_limit(usize::MAX),
            (None, Some(limit)) => {
                *user = Rc::new(user.bounded(limit.get(), &settings.config));
            }
            (None, None) => {}
        }
    }

    /// Pauses every database, or goes on with all of them.
    pub fn set_paused(&self, is_paused: bool) {
        self.is_paused.set(is_paused);
        for door in self.doors() {
            match is_paused {
                true => door.pause(),
                false => door.resume(),
            }
        }
    }

    /// Whether every database is paused.
    pub fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    /// Nobody new comes in; those who are here leave as `how` says.
    pub fn stop(&self, how: Stop) {
        self.is_stopping.set(true);
        let leave = match how {
            Stop::Now => Leave::Now,
            Stop::WhenIdle => Leave::WhenIdle,
            Stop::WhenTheyLike => Leave::No,
        };
        let clients: Vec<_> = self.clients.borrow().values().cloned().collect();
        clients.iter().for_each(|client| client.tell(leave));
        // Whoever waits is let in, or it would wait for ever.
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

    /// Forgets ways to databases and users that nobody needs.
    pub fn forget_unused(&self) {
        let is_idle = |door: &Rc<Door>| {
            let pool = door.backend.pool.borrow();
            pool.idle().any(|(owner, _)| owner.database == door.name)
        };
        self.doors.borrow_mut().retain(|_, door| {
            let is_closed = door.is_paused() || door.is_disabled.get();
            door.clients.get() > 0 || door.lending.lent() > 0 || is_closed || is_idle(door)
        });
        self.users
            .borrow_mut()
            .retain(|_, user| user.clients.get() > 0);
        let used: Vec<ServerAddress> = {
            let doors = self.doors.borrow();
            doors
                .values()
                .map(|door| door.backend.address.clone())
                .collect()
        };
        let mut backends = self.backends.borrow_mut();
        backends
            .retain(|address, backend| used.contains(address) || backend.pool.borrow().open() > 0);
    }
}
