//! A client with a session, served transaction by transaction.

pub mod auth_query;
pub mod authentication;
pub mod cancel;
pub mod cancel_queued;
pub mod connection;
mod departing;
mod greeting;
pub mod handle;
mod hearing;
mod made_room;
pub mod preemption;
pub mod refusal;
pub mod relay;
mod renewal;
mod rows;
pub mod session_sync;
pub mod slots;
pub mod startup;
mod transaction;
pub mod verifiers;

use crate::client::cancel::CancelKey;
use crate::client::handle::{Activity, ClientHandle};
use crate::client::refusal::{Departure, Refusal};
use crate::client::relay::{End, RelayOutcome, relay};
use crate::client::slots::ClientSlot;
use crate::client::startup::AuthenticatedClient;
use crate::pool::admission::ClientClass;
use crate::pool::database::Database;
use crate::pool::lease::{Lease, owner};
use crate::pooler::Pooler;
use crate::statistics::LeaseUsage;
use crate::stream::Stream;
use bytes::BytesMut;
use sooner_postgres::parameters::RequestedParameters;
use sooner_postgres::rewriter::Rewriter;
use sooner_postgres::session::ClientState;
use sooner_postgres::wire::{
    ParameterStatus, TransactionStatus, Version, write_authentication, write_key_data,
    write_parameter_status, write_ready,
};
use std::rc::Rc;
use std::time::Duration;
use transaction::Transaction;

/// What is known of a client with a session.
pub struct Client {
    pub stream: Stream,
    input: BytesMut,
    pub handle: Rc<ClientHandle>,
    requested: RequestedParameters,
    state: ClientState,
    /// There while the transaction that it believes to be in was rolled back by the gate: whether
    /// it has been told.
    failed: Option<bool>,
    pooler: Rc<Pooler>,
    _client_slot: ClientSlot,
}

/// The kind of what began with no more than BEGIN.
const UNSAID: &str = "(not said)";

impl Client {
    /// One that has proved who it is.
    pub fn new(pooler: &Rc<Pooler>, authenticated: AuthenticatedClient, input: BytesMut) -> Self {
        let stream = authenticated.stream;
        let (peer, tls) = (stream.peer(), stream.cipher());
        let id = pooler.next_client();
        Self {
            handle: ClientHandle::new(
                id,
                &authenticated.user,
                &authenticated.database,
                peer,
                tls,
                authenticated.proof.map(Rc::new),
            ),
            stream,
            input,
            state: ClientState::of(&authenticated.requested),
            requested: authenticated.requested,
            failed: None,
            pooler: pooler.clone(),
            _client_slot: authenticated.client_slot,
        }
    }

    /// Serves it by transactions until it leaves, or is to be told why it must.
    pub async fn begin_and_serve(&mut self, version: Version) -> Result<(), Departure> {
        // No client has its key yet, so nothing is cancelled.
        let learned = self.learn_parameters().await;
        let (held, notices) = learned.map_err(Departure::before_welcome)?;
        let server = held.as_ref().and_then(|lease| lease.server.as_ref());
        let kept_id = server.map(|server| server.key().process_id);
        let takes_long_key = version >= Version::V3_2;
        let cancel_key =
            self.pooler
                .cancel_keys
                .borrow_mut()
                .issue(&self.handle, takes_long_key, kept_id);
        let cancel_key = cancel_key.map_err(|error| Refusal::internal(&error))?;
        let served = match self.welcome(&cancel_key, notices).await {
            Ok(()) => self.serve(held).await,
            Err(departure) => Err(departure),
        };
        self.pooler
            .cancel_keys
            .borrow_mut()
            .revoke(cancel_key.process_id);
        served
    }

    /// `held` is the server connection that it has already.
    async fn serve(&mut self, mut held: Option<Lease>) -> Result<(), Departure> {
        loop {
            // A client with a lease waits for its server connection as well.
            let is_awaited = held.is_none() || self.failed.is_some();
            if is_awaited && !self.has_spoken()? && !self.hear().await? {
                return Ok(());
            }
            if rows::come_first(&self.input) {
                match Box::pin(self.pass_over_rows()).await? {
                    true => continue,
                    false => return Ok(()),
                }
            }
            if self.failed.is_some() && Box::pin(self.answer_failed()).await? {
                continue;
            }
            if held.is_none() && self.input.first() == Some(&b'X') {
                return Ok(());
            }
            let transaction = match held.take() {
                Some(lease) => Some(self.next_transaction(lease)),
                // In boxes, like all else that a client is rarely in: a silent client keeps no room
                // for it.
                None => Box::pin(self.begin_transaction()).await?,
            };
            held = match transaction {
                Some(transaction) => Box::pin(self.serve_transaction(transaction)).await?,
                None => None,
            };
        }
    }

    /// What it is told at the beginning depends on its database, which may have to be asked. One
    /// that keeps its server connection has it from here on, if one is free: the number that it is
    /// told is that of the server process then. Gives what the server remarks on its first packet
    /// besides.
    async fn learn_parameters(&mut self) -> Result<(Option<Lease>, BytesMut), Departure> {
        // The question may have to wait for its turn, which is that of the client's class.
        self.note_session();
        let db = self.database()?;
        let owner = owner(&self.handle.user, &db);
        let by_session = self
            .pooler
            .configuration()
            .by_session(&self.handle.user, &db.table);
        self.renew_parameters(&db, &owner).await?;
        let known = {
            let mut pool = db.upstream.pool.borrow_mut();
            pool.initial.answer(&owner, &self.requested)
        };
        let (mut held, mut notices) = (None, BytesMut::new());
        match known {
            Some(settings) => {
                self.state.reported = settings;
                if by_session {
                    held = Box::pin(self.lease_now(db)).await?;
                }
            }
            None => (held, notices) = Box::pin(self.ask_parameters(&db, by_session)).await?,
        }
        if let Some(lease) = &held {
            lease.show(&self.handle);
            self.handle.set_activity(Activity::Idle);
            self.handle.idle_lease.replace(Some(lease.keep()));
        }
        self.note_session();
        Ok((held, notices))
    }

    /// Asks the server: on a connection of its pool, on a new one where no place is free, or when it
    /// has had its turn.
    async fn ask_parameters(
        &mut self,
        db: &Rc<Database>,
        by_session: bool,
    ) -> Result<(Option<Lease>, BytesMut), Departure> {
        let mut lease = match Box::pin(self.lease_if_free(db)).await? {
            Some(lease) => lease,
            None => {
                if let Some(notices) = Box::pin(self.greet(db)).await? {
                    return Ok((None, notices));
                }
                let transaction = Box::pin(self.begin_transaction()).await?;
                transaction.ok_or(Departure::Left)?.lease
            }
        };
        let mut notices = BytesMut::new();
        if let Some(server) = &mut lease.server {
            self.state.reported = server.state.reported.clone();
            notices = std::mem::take(&mut server.session.notices);
        }
        if by_session {
            return Ok((Some(lease), notices));
        }
        // No transaction: its time says nothing about its class's.
        lease.fail();
        Box::pin(self.give_back(lease)).await;
        Ok((None, notices))
    }

    async fn welcome(
        &mut self,
        cancel_key: &CancelKey,
        notices: BytesMut,
    ) -> Result<(), Departure> {
        let mut out = BytesMut::new();
        write_authentication(&mut out, 0, b"");
        out.unsplit(notices);
        for (name, value) in &self.state.reported {
            write_parameter_status(&mut out, &ParameterStatus { name, value });
        }
        write_key_data(&mut out, cancel_key.process_id, &cancel_key.secret);
        write_ready(&mut out, TransactionStatus::Idle);
        self.send(out).await
    }

    fn database(&self) -> Result<Rc<Database>, Departure> {
        let name = &self.handle.database;
        let db = self.pooler.database(name);
        db.ok_or_else(|| Refusal::no_database(name).into())
    }

    /// One transaction; gives the lease, if the client keeps it.
    async fn serve_transaction(
        &mut self,
        transaction: Transaction,
    ) -> Result<Option<Lease>, Departure> {
        let Transaction {
            mut lease,
            class,
            outside,
        } = transaction;
        let (outcome, rolled_back) = self.relay_to_end(&mut lease, class.as_ref()).await?;
        // Before its own SET changes what it is.
        let class =
            class.unwrap_or_else(|| ClientClass::of(&self.handle, self.pooler.configuration()));
        if outcome.has_conflicted {
            lease.fail();
        }
        let (opening, is_new) = (lease.opening, lease.is_new);
        self.account(&outcome, &class, [outside, opening], is_new);
        self.pooler
            .lock_waits
            .end(&self.handle, outcome.has_made_room);
        (lease.opening, lease.is_new) = (Duration::ZERO, false);
        let mut for_client = rolled_back;
        for_client.unsplit(match outcome.end {
            End::Over | End::RolledBack => {
                let by_session = self.by_session(&lease);
                let (state, requested) = (&mut self.state, &self.requested);
                let synced =
                    session_sync::read_back(state, requested, &self.handle, &mut lease, by_session);
                synced.await?
            }
            _ => BytesMut::new(),
        });
        self.note_session();
        self.handle.hints.take();
        match outcome.end {
            End::Over | End::RolledBack if self.keeps(&lease) => {
                if !outcome.has_conflicted {
                    lease.done(outcome.inside);
                }
                self.handle.idle_lease.replace(Some(lease.keep()));
                self.send(for_client).await?;
                Ok(Some(lease))
            }
            End::Over | End::RolledBack => {
                self.handle.cancel_target.take();
                self.give_back(lease).await;
                self.handle.end_lease();
                self.send(for_client).await?;
                Ok(None)
            }
            _ => {
                self.handle.end_lease();
                self.handle.idle_lease.take();
                Box::pin(self.abandon(lease, outcome)).await
            }
        }
    }

    /// Relays it, and rolls it back where it has to make room; gives what its client is to be told
    /// of that.
    async fn relay_to_end(
        &mut self,
        lease: &mut Lease,
        class: Option<&ClientClass>,
    ) -> Result<(RelayOutcome, BytesMut), Departure> {
        let needs_hints = class.is_none() && self.pooler.configuration().needs_hints;
        let has_failed = self.failed.take().is_some();
        if has_failed {
            let for_client = Box::pin(made_room::fail(lease)).await?;
            self.send(for_client).await?;
        }
        let relayed = self.relay(lease, class, (needs_hints, has_failed));
        let relayed = relayed.await;
        // Before its permits go: what has given a place up takes none with it.
        self.handle.leave_place();
        let is_rolled_back = |end: &End| matches!(end, End::RolledBack);
        let makes_room =
            |outcome: &RelayOutcome| outcome.has_made_room || is_rolled_back(&outcome.end);
        let has_made_room = matches!(&relayed, Ok(Some(outcome)) if makes_room(outcome));
        // What gives up a transaction that made room is no transaction that is through.
        self.pooler
            .lock_waits
            .end(&self.handle, has_made_room || has_failed);
        let Some(mut outcome) = relayed? else {
            return Err(Departure::Left);
        };
        if let Some(server) = &lease.server {
            // A cancel request that is on its way means nothing that comes now.
            drop(server.cancel_lock.lock().await);
        }
        let mut rolled_back = BytesMut::new();
        if let End::RolledBack = outcome.end {
            rolled_back = Box::pin(self.roll_back(lease, &mut outcome)).await?;
        }
        Ok((outcome, rolled_back))
    }

    async fn relay(
        &mut self,
        lease: &mut Lease,
        class: Option<&ClientClass>,
        (needs_hints, has_failed): (bool, bool),
    ) -> Result<Option<RelayOutcome>, Departure> {
        lease.show(&self.handle);
        let mut earlier: Option<RelayOutcome> = None;
        loop {
            let Some(mut outcome) = self
                .relay_once(lease, class, (needs_hints, has_failed))
                .await
            else {
                return Ok(None);
            };
            if let Some(earlier) = &earlier {
                outcome.add(earlier);
            }
            let End::Again(cycle) = &mut outcome.end else {
                return Ok(Some(outcome));
            };
            cycle.unsplit(std::mem::take(&mut self.input));
            self.input = std::mem::take(cycle);
            if let Some(server) = &lease.server {
                // For one request the server's process may be signalled twice, a while apart.
                drop(server.cancel_lock.lock().await);
            }
            if self.handle.preemption.is_cancelled_by_client() {
                Box::pin(self.tell_cancelled()).await?;
                outcome.end = End::Over;
                outcome.has_made_room = false;
                outcome.repeats -= 1;
                return Ok(Some(outcome));
            }
            earlier = Some(outcome);
        }
    }

    async fn relay_once(
        &mut self,
        lease: &mut Lease,
        class: Option<&ClientClass>,
        (needs_hints, has_failed): (bool, bool),
    ) -> Option<RelayOutcome> {
        let server = lease.server.as_mut()?;
        let process = &server.process;
        let (pooler, handle) = (&self.pooler, &self.handle);
        let endpoint = &lease.db.upstream.address.endpoint;
        let begins = || {
            let own = || ClientClass::of(handle, pooler.configuration());
            let class = class.cloned().unwrap_or_else(own);
            process.tell(&pooler.priorities, endpoint, class.priority());
            pooler.lock_waits.begin(handle, &class);
        };
        let statements = &self.pooler.statements;
        let mut rewriter = Rewriter::new(&mut self.state, &mut server.state, statements);
        if has_failed {
            rewriter.begin_failed();
        }
        let (client, input) = (&mut self.stream, &mut self.input);
        let outcome = relay(
            client,
            input,
            &mut server.session,
            &mut rewriter,
            &self.handle,
            (needs_hints, &begins),
        )
        .await;
        Some(outcome)
    }

    fn account(
        &self,
        outcome: &RelayOutcome,
        class: &ClientClass,
        [outside, opening]: [Duration; 2],
        is_login: bool,
    ) {
        let configuration = self.pooler.configuration();
        let usage = LeaseUsage {
            is_transaction: outcome.is_free && outcome.cycles > 0,
            is_conflict: outcome.has_conflicted,
            queries: outcome.cycles,
            is_login,
            is_preempted: outcome.has_made_room,
            repeats: outcome.repeats,
            outside_us: outside.as_micros() as u64,
            opening_us: opening.as_micros() as u64,
            inside_us: outcome.inside.as_micros() as u64,
            busy_us: outcome.busy.as_micros() as u64,
            received_bytes: outcome.received_bytes,
            sent_bytes: outcome.sent_bytes,
            statements: self.state.statement_counts.take(),
        };
        let ClientHandle { user, database, .. } = &*self.handle;
        let mut statistics = self.pooler.statistics.borrow_mut();
        statistics.record(database, user, class.name(), &usage);
        if configuration.needs_hints {
            let hints = self.handle.hints.borrow();
            let shape = hints.shape.as_ref().map(|shape| shape.text.as_str());
            let kind = hints.kind();
            statistics.record_kind(kind.as_deref().unwrap_or(UNSAID), shape, &usage);
        }
    }

    /// Whether it has its server connection until it leaves.
    fn keeps(&self, lease: &Lease) -> bool {
        self.state.tied_by().is_some() || self.by_session(lease)
    }

    fn by_session(&self, lease: &Lease) -> bool {
        let configuration = self.pooler.configuration();
        configuration.by_session(&self.handle.user, &lease.db.table)
    }

    async fn give_back(&mut self, lease: Lease) {
        let is_unsettled = !self.state.changes.parameters.is_empty() || self.state.has_discarded;
        let changes_session = self.keeps(&lease) || is_unsettled;
        lease.give_back(changes_session).await;
    }

    fn note_session(&self) {
        self.handle.note_session(&self.state, &self.requested);
    }
}
