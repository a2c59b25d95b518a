//! Leases of server connections: opened or taken from the idle ones, given a client's parameters,
//! and given back as they were.

mod idle;
mod login;
mod room;

use crate::client::cancel::CancelTarget;
use crate::client::handle::ClientHandle;
use crate::client::refusal::Refusal;
use crate::configuration::Configuration;
use crate::pool::admission::Admitted;
use crate::pool::connection_limits::Limited;
use crate::pool::database::Database;
use crate::pool::leases::LeaseGuard;
use crate::pool::login_admission::LoginPermit;
use crate::pool::opening::{HandedServer, PoolOf, Wait};
use crate::pool::server_session::{LoginError, LoginSecret};
use crate::pool::upstream::IdleLease;
use crate::pool::waiters::{Handed, Waiting};
use crate::pool::{Owner, Pool, ServerConnection};
use crate::pooler::Pooler;
use bytes::Bytes;
use sooner_limiter::Permit;
use sooner_postgres::parameters::idle_session;
use sooner_postgres::session::Unnamed;
use sooner_postgres::wire::{BackendMessage, HEADER_BYTES};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Between two attempts to reach a server that does not answer.
pub const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How long a command of the gate's own may take.
pub const COMMAND_PATIENCE: Duration = Duration::from_secs(10);

/// What a client that has been admitted gets.
pub enum Leased {
    /// A server connection.
    Lease(Lease),
    /// None, because the database has been moved.
    DatabaseMoved,
    /// None, before one of its role or its database comes back.
    AtLimit,
}

/// A server connection, or why there is none.
type Obtained = Result<Box<ServerConnection>, Leased>;

/// Between two connections of other owners that are given up for one that the server refuses:
/// another one may have had the place.
const YIELD_PAUSE: Duration = Duration::from_secs(1);

/// Leave to log in in place of another owner, of a transaction and of what is opened for it.
type SharedPermit = Rc<Cell<Option<LoginPermit>>>;

/// How a connection may be opened.
#[derive(Clone, Copy)]
struct Opens<'a> {
    /// Not sooner.
    at: Instant,
    /// How long it may take.
    patience: Duration,
    /// With this leave, where it was needed.
    login: Option<&'a SharedPermit>,
}

/// A server connection that a client has; closed when dropped, unless it was given back.
pub struct Lease {
    pub server: Option<Box<ServerConnection>>,
    pub owner: Owner,
    pub db: Rc<Database>,
    /// How long it took to have it, since its transaction was admitted.
    pub opening: Duration,
    /// Whether it had to be opened.
    pub is_new: bool,
    _guard: LeaseGuard,
    permits: Vec<Permit>,
}

impl Lease {
    /// Its transaction begins: the time that the lease took is not the transaction's.
    fn begin(&mut self, opening: Duration) {
        self.opening = opening;
        self.permits.iter_mut().for_each(Permit::begin);
    }

    /// A transaction is done that was inside for so long, and its client keeps the lease: how
    /// long it does is no time of a transaction.
    pub fn done(&mut self, inside: Duration) {
        let permits = self.permits.iter_mut();
        permits.for_each(|permit| permit.done_again(inside.as_nanos() as u64));
    }

    /// Its client is shown with it, and cancel requests of the client's go there.
    pub fn show(&self, handle: &ClientHandle) {
        handle.cancel_target.replace(self.cancel_target());
    }

    /// Where cancel requests go.
    pub fn cancel_target(&self) -> Option<CancelTarget> {
        let server = self.server.as_ref()?;
        Some(CancelTarget {
            key: server.key().clone(),
            upstream: self.db.upstream.clone(),
            cancel_lock: server.cancel_lock.clone(),
            shown: server.shown.clone(),
        })
    }

    /// Its client keeps it and does not use it.
    pub fn keep(&self) -> IdleLease {
        IdleLease::new(&self.db.upstream)
    }

    /// The transaction was in the way of others and did nothing: it counts as none that was done,
    /// or a limit under which many fail would seem good.
    pub fn fail(&mut self) {
        self.permits.iter_mut().for_each(Permit::fail);
    }

    fn close_server(&mut self) {
        if self.server.take().is_some() {
            self.db.upstream.pool.borrow_mut().closed();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.close_server();
    }
}

/// The owner of the server connections that a user can have in a database.
pub fn owner(user: &str, db: &Database) -> Owner {
    let there = db.table.user.as_deref();
    Owner {
        user: there.unwrap_or(user).to_owned(),
        database: db.name.clone(),
        there: db.table.name_there.clone(),
    }
}

/// Who needs a server connection, and what logs in as it.
pub struct LeaseRequest<'a> {
    pub user: &'a str,
    pub db: Rc<Database>,
    pub proof: Option<&'a LoginSecret>,
}

impl LeaseRequest<'_> {
    /// The owner of the server connections that it can have.
    pub fn owner(&self) -> Owner {
        owner(self.user, &self.db)
    }

    /// A lease without its server connection, for a client that has been admitted.
    pub fn pending(&self, permits: Vec<Permit>) -> Lease {
        let owner = self.owner();
        Lease {
            server: None,
            owner,
            db: self.db.clone(),
            opening: Duration::ZERO,
            is_new: false,
            _guard: self.db.leases.begin(),
            permits,
        }
    }

    /// Finds or opens one for a client that has been admitted, and has `apply` give it the
    /// client's settings.
    pub async fn lease(
        &self,
        pooler: &Pooler,
        admitted: Admitted,
        mut apply: impl AsyncFnMut(&mut ServerConnection) -> Result<(), LoginError>,
    ) -> Result<Leased, Refusal> {
        let begin = Instant::now();
        let Admitted {
            permits,
            login,
            class,
            came_at,
        } = admitted;
        // It is the transaction's until a login has taken it, and the login's until that is over.
        let login = login.map(|login| Rc::new(Cell::new(Some(login))));
        let mut lease = self.pending(permits);
        let waiting = Waiting::of(class.priority(), begin);
        let mut again = None;
        loop {
            let times = (waiting, came_at);
            let obtained = self.obtain(pooler, &lease.owner, times, login.as_ref());
            let mut server = match obtained.await? {
                Ok(server) => server,
                Err(none) => return Ok(none),
            };
            if let Some(opened) = server.opened.take() {
                lease.is_new = true;
                again = opened.is_again.then_some(opened.took).or(again);
            }
            let Err(error) = apply(lease.server.insert(server)).await else {
                lease.begin(begin.elapsed());
                let mut share = self.db.upstream.login_share.borrow_mut();
                share.note(again);
                return Ok(Leased::Lease(lease));
            };
            lease.close_server();
            if matches!(error, LoginError::Worn) {
                continue;
            }
            let is_late = begin.elapsed() >= pooler.configuration().patience();
            if is_late || !matches!(error, LoginError::Unreachable(_)) {
                let address = &self.db.upstream.address;
                return Err(Refusal::of_login(error, address, &lease.owner));
            }
            // It has ended a moment ago, and nothing of the client's was on it: another one will
            // do.
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// An idle one, or the first that comes: one that is opened for it or given back. Its patience
    /// has begun when it began to wait here, or when a server that is full answered last; how long
    /// it may wait counts from when its client came.
    async fn obtain(
        &self,
        pooler: &Pooler,
        owner: &Owner,
        (waiting, came_at): (Waiting, Instant),
        login: Option<&SharedPermit>,
    ) -> Result<Obtained, Refusal> {
        let address = &self.db.upstream.address;
        let mut heard_at = waiting.since;
        let (mut yields_at, mut opens_at) = (heard_at, heard_at);
        let mut is_at_limit = false;
        while !self.db.is_replaced() {
            // A reload reaches those who wait as well.
            let configuration = pooler.configuration();
            let asked_at = Instant::now();
            if let Some(server) = self.take(&configuration, owner).await {
                return Ok(Ok(server));
            }
            let opens = Opens {
                at: opens_at,
                patience: configuration.patience().saturating_sub(asked_at.elapsed()),
                login,
            };
            // In a box, as all here that few transactions need: the others have no room for it.
            let handed = Box::pin(self.wait(&configuration, owner, waiting, opens));
            match handed.await {
                Handed::Server(server) => return Ok(Ok(server)),
                Handed::LookAgain => {}
                Handed::Failed(LoginError::Unreachable(error))
                    if heard_at.elapsed() < configuration.patience() =>
                {
                    let upstream = &self.db.upstream;
                    upstream.unreachable.log(1, |_| {
                        format!("{address} does not answer: {error}; trying again")
                    });
                    opens_at = Instant::now() + RETRY_PAUSE;
                }
                Handed::Failed(LoginError::Full) => {
                    heard_at = Instant::now();
                    if let Some(most) = configuration.query_wait()
                        && came_at.elapsed() >= most
                    {
                        return Err(Refusal::waited(most.as_secs()));
                    }
                    let made_room = Box::pin(self.make_room_there(yields_at <= Instant::now()));
                    if made_room.await {
                        yields_at = Instant::now() + YIELD_PAUSE;
                    } else {
                        opens_at = Instant::now() + RETRY_PAUSE;
                    }
                }
                Handed::Failed(LoginError::AtLimit(limited, message)) => {
                    let looks_again = Box::pin(self.make_room_at(limited, owner, is_at_limit));
                    if looks_again.await {
                        is_at_limit = true;
                    } else if self.may_come(limited, owner, &message) {
                        return Ok(Err(Leased::AtLimit));
                    } else {
                        let error = LoginError::AtLimit(limited, message);
                        return Err(Refusal::of_login(error, address, owner));
                    }
                }
                Handed::Failed(error) => return Err(Refusal::of_login(error, address, owner)),
            }
        }
        Ok(Err(Leased::DatabaseMoved))
    }

    /// Waits for one that comes back, and has one opened meanwhile.
    async fn wait(
        &self,
        configuration: &Rc<Configuration>,
        owner: &Owner,
        waiting: Waiting,
        opens: Opens<'_>,
    ) -> HandedServer {
        let pool = (&self.db, (|upstream| &upstream.pool) as PoolOf);
        let most = self.db.upstream.connections(&configuration.config.limits);
        // What it looked at before may have taken its time.
        if self.db.is_replaced() {
            return Handed::LookAgain;
        }
        let may_open = Instant::now() >= opens.at;
        let opening = may_open.then(|| self.opening(configuration, owner, opens));
        let mut wait = Wait::begin(pool, owner, waiting, (most, opening));
        tokio::select! {
            biased;
            handed = wait.handed() => handed,
            () = self.db.until_replaced() => Handed::LookAgain,
            () = tokio::time::sleep_until(opens.at.into()), if !may_open => Handed::LookAgain,
        }
    }
}

impl Lease {
    /// Gives the connection back, as it was when it was new but for what is kept track of;
    /// `changes_session` where more than that may have been left.
    pub async fn give_back(mut self, changes_session: bool) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        let pool = &self.db.upstream.pool;
        let permits = std::mem::take(&mut self.permits);
        let cancel_lock = server.cancel_lock.clone();
        // A cancel request that is on its way is this client's, and must not hit the next.
        let may_still_come = cancel_lock.lock().await;
        if server.state.is_tainted || !self.db.keeps(&server) || *may_still_come {
            pool.borrow_mut().closed();
            return;
        }
        let reset = if changes_session {
            server.state.statements.forget_all();
            server.state.unnamed = Unnamed::Absent;
            server.state.unreported.clear();
            server.state.set_for_clients.clear();
            Some("DISCARD ALL")
        } else {
            idle_session::reset(&mut server.state)
        };
        if let Some(sql) = reset
            && Box::pin(run(&mut server, sql.as_bytes())).await.is_err()
        {
            pool.borrow_mut().closed();
            return;
        }
        server.used_at = Instant::now();
        pool.borrow_mut().give_back(&self.owner, server);
        self.db.upstream.connection_limits.returned(&self.owner);
        permits.into_iter().for_each(Permit::complete);
    }
}

/// Runs a command of the gate's own.
pub async fn run(server: &mut ServerConnection, sql: &[u8]) -> Result<(), LoginError> {
    in_time(COMMAND_PATIENCE, server.execute(sql)).await
}

/// A database that takes a connection and says nothing is one that does not answer. One that is
/// starting is one as well: it will be there later. One that is full answers, and is waited for.
pub async fn in_time<T>(
    patience: Duration,
    asking: impl Future<Output = Result<T, LoginError>>,
) -> Result<T, LoginError> {
    match tokio::time::timeout(patience, asking).await {
        Ok(Err(LoginError::Refused(message))) => Err(classify(message)),
        Ok(answer) => answer,
        Err(_) => Err(LoginError::Unreachable(io::ErrorKind::TimedOut.into())),
    }
}

/// What a server's error means: that it starts or stops (57P03, 57P01), is full (53300), or
/// something that lasts.
fn classify(message: Bytes) -> LoginError {
    let read = BackendMessage::read(message[0], &message[HEADER_BYTES..]);
    let code = match &read {
        Ok(BackendMessage::Error(code)) => code.unwrap_or_default(),
        _ => b"",
    };
    match code {
        b"57P03" | b"57P01" => {
            let words = "it takes no sessions at the moment";
            LoginError::Unreachable(io::Error::other(words))
        }
        b"53300" => {
            // Of one role or one database: connections of others are not in the way (the names of
            // PostgreSQL's functions).
            let is_in = |words: &[u8]| message.windows(words.len()).any(|part| part == words);
            if is_in(b"RInitializeSessionUserId\0") {
                LoginError::AtLimit(Limited::Role, message)
            } else if is_in(b"RCheckMyDatabase\0") {
                LoginError::AtLimit(Limited::Database, message)
            } else {
                LoginError::Full
            }
        }
        _ => LoginError::Refused(message),
    }
}

/// The place of a server connection that was taken out of a pool, while it is asked something; given
/// up when dropped.
pub struct PoolSlot<'a> {
    pool: Option<&'a RefCell<Pool>>,
}

impl<'a> PoolSlot<'a> {
    /// That of one which was taken out.
    pub fn taken(pool: &'a RefCell<Pool>) -> Self {
        Self { pool: Some(pool) }
    }

    /// The connection has it from now on.
    pub fn done(mut self) {
        self.pool = None;
    }
}

impl Drop for PoolSlot<'_> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool {
            pool.borrow_mut().closed();
        }
    }
}
