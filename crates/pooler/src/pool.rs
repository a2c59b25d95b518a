//! Idle server connections of one upstream, and what is known of the databases behind them.
//!
//! There are as many connections as a server may have, and fewer transactions are let in, so each
//! that was let in finds one: an idle one of its own user and database, the last used first,
//! because its caches are warm; else a new one, or what another gives back while that is opened.
//! Only where there are as many as there may be, the idle one that was used least recently is
//! closed for it.

pub mod admission;
pub mod capacity;
pub mod database;
pub mod idle_holders;
pub mod lease;
pub mod leases;
pub mod limit_controller;
pub mod login_admission;
pub mod opening;
pub mod orders;
pub mod overtime;
pub mod probe;
pub mod server_session;
pub mod upstream;
pub mod waiters;

use crate::client::cancel::CancelLock;
use crate::pool::opening::Opened;
use crate::pool::server_session::{LoginError, Rows, ServerKey, ServerSession};
use crate::pool::waiters::Waiters;
use crate::priorities::ToldProcess;
use sooner_postgres::parameters::Parameters;
use sooner_postgres::session::{ServerState, Unnamed};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The user and database that a server connection is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// As the server knows it.
    pub user: String,
    /// As clients call it.
    pub database: String,
}

/// A server connection.
pub struct ServerConnection {
    pub session: ServerSession,
    pub state: ServerState,
    pub cancel_lock: CancelLock,
    pub opened_at: Instant,
    pub used_at: Instant,
    /// Which connections of its database were good when it was opened.
    pub generation: u64,
    /// Its process, and which priority that was told to have.
    pub process: ToldProcess,
    /// How it was opened, until its first transaction has it or it is idle.
    pub opened: Option<Opened>,
}

impl ServerConnection {
    /// A new one.
    pub fn new(mut session: ServerSession, statements_max: usize, generation: u64) -> Self {
        let parameters = std::mem::take(&mut session.parameters);
        let now = Instant::now();
        Self {
            process: ToldProcess::new(session.key.process_id),
            session,
            state: ServerState::new(statements_max, parameters),
            cancel_lock: Rc::default(),
            opened_at: now,
            used_at: now,
            generation,
            opened: None,
        }
    }

    /// What a cancel request to it has to say.
    pub fn key(&self) -> &ServerKey {
        &self.session.key
    }

    /// Runs a command of the gate's own.
    pub async fn execute(&mut self, sql: &[u8]) -> Result<(), LoginError> {
        // It takes the place of the statement without a name.
        self.state.unnamed = Unnamed::Absent;
        self.session.execute(sql, &mut self.state.reported).await
    }

    /// Asks questions of the gate's own, and gives the rows of all of them.
    pub async fn query(&mut self, sql: &[u8]) -> Result<Rows, LoginError> {
        self.state.unnamed = Unnamed::Absent;
        let rows = self.session.query(sql, &mut self.state.reported);
        rows.await
    }
}

/// All of them that are idle.
#[derive(Default)]
pub struct Pool {
    /// By owner, the last used last.
    #[expect(
        clippy::vec_box,
        reason = "they are lent in their boxes, which are as small as a place in a client's task should be"
    )]
    idle: BTreeMap<Owner, Vec<Box<ServerConnection>>>,
    /// Those that are leased, being opened or asked whether they work.
    leased: usize,
    /// Those that are idle or leased.
    open: usize,
    /// How many of them were needed at a time, since some were closed because they were not needed.
    most: usize,
    /// Who waits for one.
    pub waiters: Waiters<Box<ServerConnection>, LoginError>,
    /// Whether one of them may have used temporary tables.
    pub has_used_temporary: bool,
    /// Settings as each database reported them to a new session.
    initial_parameters: BTreeMap<Owner, Parameters>,
}

impl Pool {
    /// An idle one that still works.
    pub fn take(&mut self, owner: &Owner) -> Option<Box<ServerConnection>> {
        let idle = self.idle.get_mut(owner)?;
        let mut taken = None;
        while let Some(mut server) = idle.pop() {
            if server.session.is_quiet() {
                self.leased += 1;
                taken = Some(server);
                break;
            }
            self.open -= 1;
        }
        self.check();
        taken
    }

    /// Each open connection is idle or leased, and by one client.
    fn check(&self) {
        assert!(self.leased <= self.open);
        debug_assert_eq!(self.open, self.leased + self.idle_count());
    }

    /// Whether a transaction of this owner takes another one's connection, where there may be
    /// `max`.
    pub fn must_yield(&self, owner: &Owner, max: usize) -> bool {
        let has_idle = self.idle.get(owner).is_some_and(|idle| !idle.is_empty());
        self.open >= max && !has_idle && !self.waiters.has_spare(owner)
    }

    /// Whether an idle one has not been used for so long.
    pub fn rests_for(&self, time: Duration) -> bool {
        let mut first = self.idle.values().filter_map(|idle| idle.first());
        first.any(|server| server.used_at.elapsed() >= time)
    }

    /// Makes room for one more among `max`; nothing where there is.
    pub fn make_room(&mut self, max: usize) {
        while self.open >= max && self.give_up().is_some() {}
        while self.open >= max && self.waiters.give_up_spare() {
            self.closed();
        }
        self.idle.retain(|_, idle| !idle.is_empty());
    }

    /// Gives up the idle one that was used least recently, if there is one.
    pub fn give_up(&mut self) -> Option<Box<ServerConnection>> {
        // Of each owner the first is the one that was used least recently.
        let idle = self.idle.values_mut().filter(|idle| !idle.is_empty());
        let idle = idle.min_by_key(|idle| idle[0].used_at)?;
        let given_up = idle.remove(0);
        self.open -= 1;
        self.check();
        Some(given_up)
    }

    /// One is being opened; whether there were never so many.
    pub fn opens(&mut self) -> bool {
        self.leased += 1;
        self.open += 1;
        self.check();
        let is_more = self.open > self.most;
        self.most = self.most.max(self.open);
        is_more
    }

    /// One that was lent or opened is no more.
    pub fn closed(&mut self) {
        assert!(self.leased > 0, "closed twice");
        self.leased -= 1;
        self.open -= 1;
        self.check();
    }

    /// One comes back: the first that waits for one has it, else it is idle.
    pub fn give_back(&mut self, owner: &Owner, server: Box<ServerConnection>) {
        assert!(self.leased > 0, "given back twice");
        self.has_used_temporary |= server.state.has_used_temporary;
        let unclaimed = if self.waiters.is_empty() {
            Some(server)
        } else {
            self.waiters.hand(owner, server, Instant::now())
        };
        let Some(mut server) = unclaimed else {
            return;
        };
        server.opened = None;
        self.leased -= 1;
        match self.idle.get_mut(owner) {
            Some(idle) => idle.push(server),
            None => drop(self.idle.insert(owner.clone(), vec![server])),
        }
        self.check();
    }

    /// Closes the idle ones of these owners, and gives up those that are being opened.
    pub fn close_idle(&mut self, is_theirs: impl Fn(&Owner) -> bool) {
        for _ in 0..self.waiters.give_up_all(&is_theirs) {
            self.closed();
        }
        self.close(|owner, _| is_theirs(owner));
        self.initial_parameters.retain(|owner, _| !is_theirs(owner));
    }

    /// Closes what has been idle or open for too long.
    pub fn close_old(&mut self, now: Instant, idle: Option<Duration>, life: Option<Duration>) {
        let is_over = |since: Instant, most: Option<Duration>| {
            most.is_some_and(|most| now.duration_since(since) >= most)
        };
        self.close(|_, server| is_over(server.used_at, idle) || is_over(server.opened_at, life));
    }

    /// Closes those which the server has closed already.
    pub fn close_dead(&mut self) {
        let mut dead = 0;
        for servers in self.idle.values_mut() {
            let before = servers.len();
            servers.retain_mut(|server| server.session.is_quiet());
            dead += before - servers.len();
        }
        self.open -= dead;
        self.check();
        if dead > 0 {
            self.most = self.open;
        }
    }

    fn close(&mut self, is_closed: impl Fn(&Owner, &ServerConnection) -> bool) {
        let before = self.idle_count();
        for (owner, servers) in &mut self.idle {
            servers.retain(|server| !is_closed(owner, server));
        }
        let closed = before - self.idle_count();
        self.open -= closed;
        self.check();
        if closed > 0 {
            self.most = self.open;
        }
        self.idle.retain(|_, idle| !idle.is_empty());
    }

    fn idle_count(&self) -> usize {
        self.idle.values().map(Vec::len).sum()
    }

    /// All that are idle, with their owners.
    pub fn idle(&self) -> impl Iterator<Item = (&Owner, &ServerConnection)> {
        let all = self.idle.iter();
        all.flat_map(|(owner, servers)| servers.iter().map(move |server| (owner, &**server)))
    }

    /// All that are open, lent or not.
    pub fn open(&self) -> usize {
        self.open
    }

    /// What a new session of this owner is told.
    pub fn initial_parameters(&self, owner: &Owner) -> Option<&Parameters> {
        self.initial_parameters.get(owner)
    }

    /// A new session has been told this.
    pub fn note_initial_parameters(&mut self, owner: &Owner, parameters: &Parameters) {
        self.initial_parameters
            .insert(owner.clone(), parameters.clone());
    }
}
