//! A client that comes where what the gate would tell it may be out of date asks the server first.

use super::Client;
use crate::client::refusal::Departure;
use crate::pool::Owner;
use crate::pool::database::Database;
use crate::pool::lease::{COMMAND_PATIENCE, in_time};
use sooner_postgres::parameters::Parameters;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A server that does not answer sooner is believed to be as it was.
const PATIENCE: Duration = Duration::from_secs(2);

impl Client {
    /// Asks where that is needed.
    pub(super) async fn renew_parameters(
        &mut self,
        db: &Rc<Database>,
        owner: &Owner,
    ) -> Result<(), Departure> {
        let now = Instant::now();
        let pool = &db.upstream.pool;
        let must_look = pool.borrow_mut().initial.must_look(owner, now);
        if !must_look {
            return Ok(());
        }
        let looked = tokio::time::timeout(PATIENCE, Box::pin(self.look(db, owner))).await;
        // It has been told nothing so far.
        self.state.reported = Parameters::new();
        match looked {
            Ok(Err(Departure::Left)) => Err(Departure::Left),
            _ => Ok(()),
        }
    }

    async fn look(&mut self, db: &Rc<Database>, owner: &Owner) -> Result<(), Departure> {
        let Some(mut lease) = self.lease_if_free(db).await? else {
            return self.greet(db).await.map(|_| ());
        };
        let upstream = lease.db.upstream.clone();
        let question = upstream.pool.borrow().initial.question(owner);
        if let (Some(server), Some(question)) = (&mut lease.server, question) {
            let asked = in_time(COMMAND_PATIENCE, server.query(question.as_bytes())).await;
            // In the middle of an answer it is of no use to others.
            let Ok(rows) = asked else {
                return Ok(());
            };
            upstream.pool.borrow_mut().initial.learn(owner, &rows);
        }
        // No transaction: its time says nothing about its class's.
        lease.fail();
        Box::pin(self.give_back(lease)).await;
        Ok(())
    }
}
