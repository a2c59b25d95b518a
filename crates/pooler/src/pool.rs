//! Idle server connections of one upstream, and what is known of the databases behind them.
//!
//! There are as many connections as a server may have, and fewer transactions are let in, so each
//! that was let in finds one: an idle one of its own user and database, the last used first,
//! because its caches are warm; else a new one, or what another gives back while that is opened.
//! Only where there are as many as there may be, the idle one that was used least recently is
//! closed for it.

pub mod admission;
pub mod capacity;
pub mod connection_limits;
pub mod database;
pub mod idle_holders;
pub mod initial_parameters;
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
use crate::pool::connection_limits::CountedConnection;
use crate::pool::initial_parameters::InitialParameters;
use crate::pool::opening::Opened;
use crate::pool::server_session::{LoginError, Rows, ServerKey, ServerSession};
use crate::pool::waiters::Waiters;
use crate::priorities::ToldProcess;
use sooner_postgres::parameters::Parameters;
use sooner_postgres::session::{ServerState, Unnamed};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The user and database that a server connection is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// As the server knows it.
    pub user: String,
    /// As clients call it.
    pub database: String,
    /// As the server calls it, where that is another name.
    pub there: Option<String>,
}

impl Owner {
    /// The database as the server knows it: clients may have several names for one.
    pub fn database_there(&self) -> &str {
        self.there.as_deref().unwrap_or(&self.database)
    }
}

/// What tables show of a connection and what stays the same.
pub struct ShownConnection {
    pub opened_at: Instant,
    /// As the server knows it, which may be another one than the client's.
    pub user: String,
    /// The server's end of it, by TCP.
    pub peer: Option<SocketAddr>,
    /// The gate's end of it, by TCP.
    pub local: Option<SocketAddr>,
    /// Version and cipher.
    pub tls: Option<String>,
}

/// A server connection.
pub struct ServerConnection {
    pub session: ServerSession,
    pub state: ServerState,
    pub cancel_lock: CancelLock,
    pub shown: Rc<ShownConnection>,
    pub used_at: Instant,
    /// Which connections of its database were good when it was opened.
    pub generation: u64,
    /// Its process, and which priority that was told to have.
    pub process: ToldProcess,
    /// How it was opened, until its first transaction has it or it is idle.
    pub opened: Option<Opened>,
    /// Its place among those of its owner, where it is one for transactions.
    pub counted: Option<CountedConnection>,
}

impl ServerConnection {
    /// A new one of this user.
    pub fn new(
        user: &str,
        mut session: ServerSession,
        statements_max: usize,
        generation: u64,
    ) -> Self {
        let parameters = std::mem::take(&mut session.parameters);
        let now = Instant::now();
        let stream = &session.stream;
        let shown = ShownConnection {
            opened_at: now,
            user: user.to_owned(),
            peer: stream.peer(),
            local: stream.local(),
            tls: stream.cipher(),
        };
        Self {
            process: ToldProcess::new(session.key.process_id),
            session,
            state: ServerState::new(statements_max, parameters),
            cancel_lock: Rc::default(),
            shown: Rc::new(shown),
            used_at: now,
            generation,
            opened: None,
            counted: None,
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
    /// How many idle ones the server has ended since that was last told, and its last words.
    ended: (usize, String),
    /// Who waits for one.
    pub waiters: Waiters<Box<ServerConnection>, LoginError>,
    /// Whether one of them may have used temporary tables.
    pub has_used_temporary: bool,
    /// Settings as each database reported them to a new session.
    pub initial: InitialParameters,
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
            note_ended(&mut self.ended, &server);
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
        self.open >= max && !self.has_idle(owner) && !self.waiters.has_spare(owner)
    }

    /// Whether there is an idle one of this owner.
    pub fn has_idle(&self, owner: &Owner) -> bool {
        self.idle.get(owner).is_some_and(|idle| !idle.is_empty())
    }

    /// Whether an idle one has not been used for so long.
    pub fn rests_for(&self, time: Duration) -> bool {
        let mut first = self.idle.values().filter_map(|idle| idle.first());
        first.any(|server| server.used_at.elapsed() >= time)
    }

    /// Makes room for one more among `max`; whether something was given up for it.
    pub fn make_room(&mut self, max: usize) -> bool {
        let before = self.open;
        while self.open >= max && self.give_up().is_some() {}
        while self.open >= max && self.waiters.give_up_spare() {
            self.closed();
        }
        self.idle.retain(|_, idle| !idle.is_empty());
        self.open < before
    }

    /// Gives up the idle one that was used least recently, if there is one.
    pub fn give_up(&mut self) -> Option<Box<ServerConnection>> {
        self.give_up_of(|_| true)
    }

    /// The same, among those of some owners.
    pub fn give_up_of(
        &mut self,
        is_theirs: impl Fn(&Owner) -> bool,
    ) -> Option<Box<ServerConnection>> {
        // Of each owner the first is the one that was used least recently.
        let idle = self.idle.iter_mut().filter(|(_, idle)| !idle.is_empty());
        let idle = idle.filter(|(owner, _)| is_theirs(owner));
        let (_, idle) = idle.min_by_key(|(_, idle)| idle[0].used_at)?;
        let given_up = idle.remove(0);
        self.open -= 1;
        self.check();
        Some(given_up)
    }

    /// One is being opened.
    pub fn opens(&mut self) {
        self.leased += 1;
        self.open += 1;
        self.check();
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
        self.initial.compare(owner, &server.state.reported);
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
        self.close_unused(&is_theirs);
    }

    /// Closes the idle ones of these owners.
    pub fn close_unused(&mut self, is_theirs: impl Fn(&Owner) -> bool) {
        self.close(|owner, _| is_theirs(owner));
    }

    /// Closes those of an owner that have been idle for so long.
    pub fn close_unchecked(&mut self, owner: &Owner, now: Instant, check: Duration) {
        self.close(|other, server| other == owner && now.duration_since(server.used_at) >= check);
    }

    /// Closes what has been idle or open for too long.
    pub fn close_old(&mut self, now: Instant, idle: Option<Duration>, life: Option<Duration>) {
        let is_over = |since: Instant, most: Option<Duration>| {
            most.is_some_and(|most| now.duration_since(since) >= most)
        };
        self.close(|_, server| {
            is_over(server.used_at, idle) || is_over(server.shown.opened_at, life)
        });
    }

    /// Closes those which the server has closed already.
    pub fn close_dead(&mut self) {
        let mut dead = 0;
        for servers in self.idle.values_mut() {
            for server in servers.extract_if(.., |server| !server.session.is_quiet()) {
                dead += 1;
                note_ended(&mut self.ended, &server);
            }
        }
        self.open -= dead;
        self.check();
    }

    /// How many idle ones the server has ended since this was last asked, and its last words.
    pub fn take_ended(&mut self) -> (usize, String) {
        std::mem::take(&mut self.ended)
    }

    fn close(&mut self, is_closed: impl Fn(&Owner, &ServerConnection) -> bool) {
        let before = self.idle_count();
        for (owner, servers) in &mut self.idle {
            servers.retain(|server| !is_closed(owner, server));
        }
        self.open -= before - self.idle_count();
        self.check();
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
        self.initial.get(owner)
    }

    /// A new session has been told this now; the version of it.
    pub fn note_initial_parameters(
        &mut self,
        owner: &Owner,
        parameters: &Parameters,
        now: Instant,
    ) -> u64 {
        self.initial.note(owner, parameters, now)
    }
}

/// An idle connection is quiet no more; where the server has ended it, that is counted.
fn note_ended((count, words): &mut (usize, String), server: &ServerConnection) {
    if let Some(last) = server.session.last_words() {
        *count += 1;
        *words = last;
    }
}
