//! A client between two transactions, which may do nothing for as long as it likes.

use super::Client;
use crate::client::handle::{Activity, Termination};
use crate::client::refusal::{Departure, Refusal};
use crate::pool::admission::is_there;
use bytes::BytesMut;
use sooner_postgres::parameters::idle_session;

impl Client {
    /// Waits for something from the client, for as long as it lets its session be idle; whether it
    /// is still there.
    pub(super) async fn hear(&mut self) -> Result<bool, Departure> {
        // A silent client keeps no buffer.
        self.input = BytesMut::new();
        self.handle.set_activity(Activity::Idle);
        let timeout = idle_session::timeout(&self.requested, &self.state);
        match timeout.filter(|_| self.failed.is_none()) {
            None => self.hear_something().await,
            Some(timeout) => Box::pin(tokio::time::timeout(timeout, self.hear_something()))
                .await
                .unwrap_or_else(|_| Err(Refusal::idle_session().into())),
        }
    }

    async fn hear_something(&mut self) -> Result<bool, Departure> {
        tokio::select! {
            biased;
            heard = self.stream.more(&mut self.input) => Ok(is_there(&heard)),
            () = self.handle.terminated(Termination::WhenIdle) => Err(self.handle.refusal().into()),
        }
    }
}
