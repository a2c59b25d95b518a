//! What a client is told at its login where every place inside is taken: a login is no transaction,
//! and waits for no place of one.
//!
//! Where no client with these settings has been told before, the gate logs in to the server for it,
//! as the server itself would let it in, and reads what a new session is told. That connection goes
//! to the pool, or is closed where there are as many as may be.

use super::Client;
use crate::client::refusal::{Departure, Refusal};
use crate::client::session_sync::apply_parameters;
use crate::pool::admission::{Interrupted, interruption};
use crate::pool::database::Database;
use crate::pool::lease::{COMMAND_PATIENCE, Lease, LeaseRequest, in_time, owner};
use crate::pool::server_session::LoginError;
use crate::pool::{Owner, ServerConnection};
use bytes::BytesMut;
use sooner_postgres::parameters::{Parameters, RequestedParameters};
use std::rc::Rc;
use std::time::Instant;

/// A server has accepted what a client asks for, by commands of the gate's, while the initial
/// parameters were of this version: the next client that asks for the same is told the same without
/// a server. Where the server remarks on it, each client is to hear that.
pub(super) fn note_answer(
    db: &Database,
    owner: &Owner,
    requested: &RequestedParameters,
    server: &ServerConnection,
    version: u64,
) {
    // One that is replaced meanwhile says nothing about the next.
    if server.session.notices.is_empty() && db.keeps(server) {
        let mut pool = db.upstream.pool.borrow_mut();
        let reported = &server.state.reported;
        let initial = &mut pool.initial;
        initial.note_answer(owner, requested, reported, version);
    }
}

impl Client {
    /// A lease, if it need not wait for one; none as well where the server connections are all in
    /// use.
    pub(super) async fn lease_if_free(
        &mut self,
        db: &Rc<Database>,
    ) -> Result<Option<Lease>, Departure> {
        let upstream = &db.upstream;
        let most = upstream.connections(&self.pooler.configuration().config.limits);
        let has_room = {
            let (pool, owner) = (upstream.pool.borrow(), owner(&self.handle.user, db));
            pool.has_idle(&owner) || pool.open() < most
        };
        match has_room {
            true => Box::pin(self.lease_now(db.clone())).await,
            false => Ok(None),
        }
    }

    /// Learns from a new server session what this client is told; gives what the server remarks.
    /// None where that cannot be had now, as in a pause: the client has to wait for its turn.
    pub(super) async fn greet(&mut self, db: &Rc<Database>) -> Result<Option<BytesMut>, Departure> {
        let (pooler, requested, state) = (&self.pooler, &self.requested, &mut self.state);
        let request = LeaseRequest {
            user: &self.handle.user,
            db: db.clone(),
            proof: self.handle.proof.as_deref(),
        };
        let owner = request.owner();
        let greeting = async {
            let _place = db.upstream.greetings.acquire().await;
            if db.is_paused() {
                return Err(LoginError::Full);
            }
            let mut lease = request.pending(Vec::new());
            let configuration = pooler.configuration();
            let mut server = request.open(&configuration, &owner).await?;
            let initial = server.state.reported.clone();
            let (has_room, version) = {
                let mut pool = db.upstream.pool.borrow_mut();
                let version = pool.note_initial_parameters(&owner, &initial, Instant::now());
                let most = db.upstream.connections(&configuration.config.limits);
                let has_room = pool.open() < most;
                if has_room {
                    pool.opens();
                }
                (has_room, version)
            };
            // One that has been counted is counted down when the lease drops it.
            let server = match has_room {
                true => &mut **lease.server.insert(server),
                false => &mut *server,
            };
            if apply_parameters(state, requested, Some(&initial), server).await? {
                note_answer(db, &owner, requested, server, version);
            }
            let notices = std::mem::take(&mut server.session.notices);
            let reported = server.state.reported.clone();
            lease.give_back(false).await;
            Ok((reported, notices))
        };
        let greeted = tokio::select! {
            biased;
            // A server that does not answer keeps the next clients waiting no longer than this one.
            greeted = in_time(COMMAND_PATIENCE, greeting) => greeted,
            interrupted = interruption(&mut self.stream, &mut self.input, &self.handle) => {
                return match interrupted {
                    Interrupted::Terminated => Err(self.handle.refusal().into()),
                    _ => Err(Departure::Left),
                };
            }
        };
        match greeted {
            Ok((reported, notices)) => {
                self.state.reported = reported;
                Ok(Some(notices))
            }
            Err(LoginError::Full | LoginError::AtLimit(..) | LoginError::Unreachable(_)) => {
                // It has been told nothing so far.
                self.state.reported = Parameters::new();
                Ok(None)
            }
            Err(error) => Err(Refusal::of_login(error, &db.upstream.address, &owner).into()),
        }
    }
}
