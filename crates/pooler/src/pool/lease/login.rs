//! New server connections of an owner, and what logs in as it.

use super::{LeaseRequest, Opens, in_time};
use crate::configuration::Configuration;
use crate::lock_map;
use crate::pool::server_session::{self, LoginError, LoginSecret};
use crate::pool::{Owner, ServerConnection, capacity};
use sooner_postgres::auth::Secret;
use std::rc::Rc;
use std::time::Instant;

impl LeaseRequest<'_> {
    /// The secret of the file in force goes first, as the server may have another one now than the
    /// client has proved: but a hash is less than its password, and a verifier logs in nowhere.
    fn secret(&self, configuration: &Configuration) -> Option<LoginSecret> {
        if let Some(there) = &self.db.table.user {
            let own = configuration.logins.get(self.db.table.name.get_ref());
            let known = own.or_else(|| configuration.users.get(there));
            return known.cloned().map(LoginSecret::Kept);
        }
        let of_file = configuration.users.get(self.user);
        let is_better = match (of_file, self.proof) {
            (None | Some(Secret::Scram(_)), _) => false,
            (Some(Secret::Plain(_)), _) | (Some(Secret::Md5(_)), None) => true,
            (Some(hash), Some(LoginSecret::Kept(Secret::Plain(password)))) => {
                !hash.is_password(self.user, password)
            }
            (Some(_), Some(LoginSecret::Kept(_))) => true,
            (Some(_), Some(LoginSecret::Learned(_))) => false,
        };
        match of_file {
            Some(secret) if is_better => Some(LoginSecret::Kept(secret.clone())),
            _ => self.proof.cloned(),
        }
    }

    /// Opens one, with leave to log in in place of another owner where it was needed.
    pub(super) fn opening(
        &self,
        configuration: &Rc<Configuration>,
        owner: &Owner,
        opens: Opens<'_>,
    ) -> impl Future<Output = Result<Box<ServerConnection>, LoginError>> + use<> {
        let (configuration, owner) = (configuration.clone(), owner.clone());
        let (patience, login) = (opens.patience, opens.login.cloned());
        let (user, db, proof) = (self.user.to_owned(), self.db.clone(), self.proof.cloned());
        async move {
            let begin = Instant::now();
            let request = LeaseRequest {
                user: &user,
                db: db.clone(),
                proof: proof.as_ref(),
            };
            let server = in_time(patience, request.open(&configuration, &owner)).await?;
            if let Some(login) = login.and_then(|login| login.take()) {
                login.done(&db.upstream, begin.elapsed());
            }
            Ok(server)
        }
    }

    pub(crate) async fn open(
        &self,
        configuration: &Configuration,
        owner: &Owner,
    ) -> Result<Box<ServerConnection>, LoginError> {
        // Before it is opened: a RECONNECT that comes meanwhile means this one too.
        let generation = self.db.leases.generation();
        let address = &self.db.upstream.address;
        let connector = self.db.upstream.connector();
        let stream = server_session::connect(address, connector.as_deref()).await?;
        let (database, secret) = (owner.database_there(), self.secret(configuration));
        let mut session =
            server_session::log_in(stream, &owner.user, database, secret.as_ref()).await?;
        let upstream = &self.db.upstream;
        if upstream.asks_capacity() {
            let capacity = capacity::ask(&mut session).await?;
            upstream.learn_capacity(capacity);
        }
        let statements_max = configuration.config.limits.statements.get();
        let server = ServerConnection::new(&owner.user, session, statements_max, generation);
        let mut server = Box::new(server);
        server.counted = Some(upstream.connection_limits.count_one(owner));
        if let Some(path) = &self.db.table.lock_map {
            server.process.lock_slot =
                Box::pin(lock_map::slot_of(path, upstream, &mut server)).await;
        }
        Ok(server)
    }
}
