//! The beginning of a transaction: admission, then a lease with the client's parameters.

use super::Client;
use crate::client::cancel_queued::{CANCELLED, refuse_cycle};
use crate::client::greeting;
use crate::client::handle::Activity;
use crate::client::refusal::{Departure, Refusal};
use crate::client::session_sync;
use crate::pool::ServerConnection;
use crate::pool::admission::{AdmissionRequest, Admitted, ClientClass, Interrupted, interruption};
use crate::pool::connection_limits::{Line, Turn};
use crate::pool::database::{Database, User};
use crate::pool::lease::{Lease, LeaseRequest, Leased, owner};
use crate::pool::server_session::LoginError;
use crate::pooler::Pooler;
use sooner_postgres::hints::hints_of;
use sooner_postgres::wire::TransactionStatus;
use std::future::pending;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::sleep_until;

/// A transaction that has its server connection.
pub(super) struct Transaction {
    pub(super) lease: Lease,
    /// `None` where nothing was waited for: it is known when something comes.
    pub(super) class: Option<ClientClass>,
    pub(super) outside: Duration,
}

impl Client {
    /// Waits to be let in, then for a server connection with the client's settings; `None` where
    /// the client wants it no more.
    pub(super) async fn begin_transaction(&mut self) -> Result<Option<Transaction>, Departure> {
        let came_at = Instant::now();
        loop {
            match self.start_transaction(came_at).await? {
                Ok(transaction) => return Ok(Some(transaction)),
                // It is looked for where it is now.
                Err(Interrupted::DatabaseMoved | Interrupted::AtLimit) => {}
                Err(Interrupted::Cancelled) => {
                    Box::pin(refuse_cycle(
                        &mut self.stream,
                        &mut self.input,
                        &self.handle,
                        &CANCELLED,
                        TransactionStatus::Idle,
                    ))
                    .await?;
                    return Ok(None);
                }
                Err(Interrupted::Left) => return Err(Departure::Left),
                Err(Interrupted::Terminated) => return Err(self.handle.refusal().into()),
            }
        }
    }

    async fn start_transaction(
        &mut self,
        came_at: Instant,
    ) -> Result<Result<Transaction, Interrupted>, Departure> {
        let db = self.database()?;
        let user = self.pooler.user(&self.handle.user);
        let limits = &db.upstream.connection_limits;
        let mut line = limits.line(|| owner(&self.handle.user, &db));
        let mut turn = None;
        loop {
            if let Some(line) = &line {
                let waited = Box::pin(self.wait_in_line(&db, line, turn.take(), came_at));
                match waited.await? {
                    Ok(first) => turn = Some(first),
                    Err(interrupted) => return Ok(Err(interrupted)),
                }
            }
            let admitted = match self.wait_for_admission(&db, &user, came_at).await? {
                Ok(admitted) => admitted,
                Err(interrupted) => return Ok(Err(interrupted)),
            };
            let outside = came_at.elapsed();
            let class = admitted.class.clone();
            match self.lease(db.clone(), admitted).await? {
                Err(Interrupted::AtLimit) => {
                    let own = owner(&self.handle.user, &db);
                    line.get_or_insert_with(|| limits.new_line(&own));
                }
                lease => {
                    return Ok(lease.map(|lease| Transaction {
                        lease,
                        class: Some(class),
                        outside,
                    }));
                }
            }
        }
    }

    /// Its role or database is at a limit of the server's own: waits outside until it may try.
    async fn wait_in_line(
        &mut self,
        db: &Database,
        line: &Line,
        turn: Option<Turn>,
        came_at: Instant,
    ) -> Result<Result<Turn, Interrupted>, Departure> {
        self.handle.set_waiting(came_at);
        let own = owner(&self.handle.user, db);
        let has_idle = || db.upstream.pool.borrow().has_idle(&own);
        let wait = async {
            tokio::select! {
                biased;
                () = db.until_replaced() => Err(Interrupted::DatabaseMoved),
                turn = line.wait(turn, has_idle) => Ok(turn),
                interrupted = interruption(&mut self.stream, &mut self.input, &self.handle) => Err(interrupted),
            }
        };
        within_query_wait(&self.pooler, came_at, wait).await
    }

    /// A server connection with the client's settings, unless the client gives up before there is
    /// one.
    pub(super) async fn lease(
        &mut self,
        db: Rc<Database>,
        admitted: Admitted,
    ) -> Result<Result<Lease, Interrupted>, Refusal> {
        let request = LeaseRequest {
            user: &self.handle.user,
            db: db.clone(),
            proof: self.handle.proof.as_deref(),
        };
        let (requested, state, owner) = (&self.requested, &mut self.state, request.owner());
        let (pooler, priority) = (&self.pooler, admitted.class.priority());
        // What the client may set, it may set where others have used temporary tables before it.
        let needs_unused = db.upstream.pool.borrow().has_used_temporary
            && !state.has_used_temporary
            && names_buffers(&self.input);
        let apply = async |server: &mut ServerConnection| {
            if needs_unused && server.state.has_used_temporary {
                return Err(LoginError::Worn);
            }
            // Before its settings, which would wait behind those that matter less.
            let endpoint = &db.upstream.address.endpoint;
            let process = &server.process;
            process.tell(&pooler.priorities, endpoint, priority);
            // Copied only where it is needed, which is not at every transaction.
            let is_new = state.reported.is_empty();
            let pool = is_new.then(|| db.upstream.pool.borrow());
            let initial = pool.and_then(|pool| pool.initial.with_version(&owner));
            let parameters = initial.as_ref().map(|(parameters, _)| parameters);
            let applied = session_sync::apply_parameters(state, requested, parameters, server);
            if let (true, Some((_, version))) = (applied.await?, &initial) {
                greeting::note_answer(&db, &owner, requested, server, *version);
            }
            Ok(())
        };
        let leasing = request.lease(&self.pooler, admitted, apply);
        tokio::select! {
            biased;
            leased = leasing => Ok(match leased? {
                Leased::Lease(lease) => Ok(lease),
                Leased::DatabaseMoved => Err(Interrupted::DatabaseMoved),
                Leased::AtLimit => Err(Interrupted::AtLimit),
            }),
            interrupted = interruption(&mut self.stream, &mut self.input, &self.handle) => Ok(Err(interrupted)),
        }
    }

    /// A lease, where there need be no wait for it.
    pub(super) async fn lease_now(&mut self, db: Rc<Database>) -> Result<Option<Lease>, Departure> {
        let user = self.pooler.user(&self.handle.user);
        let request = AdmissionRequest {
            db: &db,
            user: &user,
            handle: &self.handle,
            pooler: &self.pooler,
            came_at: Instant::now(),
        };
        match request.admit_now().await {
            Some(admitted) => match self.lease(db.clone(), admitted).await? {
                Ok(lease) => Ok(Some(lease)),
                Err(Interrupted::Left) => Err(Departure::Left),
                Err(Interrupted::Terminated) => Err(self.handle.refusal().into()),
                Err(Interrupted::DatabaseMoved | Interrupted::Cancelled | Interrupted::AtLimit) => {
                    Ok(None)
                }
            },
            None => Ok(None),
        }
    }

    /// One that begins on a server connection that it has kept.
    pub(super) fn next_transaction(&self, lease: Lease) -> Transaction {
        self.handle.set_activity(Activity::Idle);
        Transaction {
            lease,
            class: None,
            outside: Duration::ZERO,
        }
    }

    /// What it says of its transaction in what it has sent.
    pub(super) fn note_hints(&self) {
        if self.pooler.configuration().needs_hints {
            let hints = hints_of(&self.input, &self.state.statements);
            self.handle.hints.replace(hints);
        }
    }

    /// Outside the database, together with all others; a client that leaves meanwhile is waited for
    /// no more.
    async fn wait_for_admission(
        &mut self,
        db: &Database,
        user: &User,
        came_at: Instant,
    ) -> Result<Result<Admitted, Interrupted>, Departure> {
        self.handle.set_waiting(came_at);
        self.note_hints();
        let request = AdmissionRequest {
            db,
            user,
            handle: &self.handle,
            pooler: &self.pooler,
            came_at,
        };
        let admit = request.admit(&mut self.stream, &mut self.input);
        within_query_wait(&self.pooler, came_at, admit).await
    }
}

/// What a transaction that came then waits for, for as long as the configuration in force lets it: a
/// reload changes that for those who wait as well.
async fn within_query_wait<T>(
    pooler: &Pooler,
    came_at: Instant,
    waiting: impl Future<Output = T>,
) -> Result<T, Departure> {
    let mut waiting = pin!(waiting);
    loop {
        // Before the look: a reload between the two is not missed.
        let renewed = pooler.renewed.notified();
        let most = pooler.configuration().query_wait();
        let is_over = async {
            match most {
                Some(most) => sleep_until((came_at + most).into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            done = &mut waiting => return Ok(done),
            () = is_over => {
                let seconds = most.unwrap_or_default().as_secs();
                return Err(Refusal::waited(seconds).into());
            }
            () = renewed => {}
        }
    }
}

/// Whether what begins a transaction names the setting that no process takes once it has used
/// temporary tables.
fn names_buffers(input: &[u8]) -> bool {
    const NAME: &[u8] = b"temp_buffers";
    const LOOKED_AT: usize = 1024;
    let mut places = input[..input.len().min(LOOKED_AT)].windows(NAME.len());
    places.any(|bytes| bytes.eq_ignore_ascii_case(NAME))
}
