//! A client between two transactions, which may do nothing for as long as it likes.

use super::Client;
use crate::client::handle::{Activity, Termination};
use crate::client::refusal::{Departure, Refusal};
use crate::pool::admission::is_there;
use bytes::BytesMut;
use sooner_postgres::parameters::idle_session;
use sooner_postgres::wire::{Splitter, look_at_frontend};
use std::future::ready;

impl Client {
    /// Whether it has sent something that can be looked at: a message, or of a long one as much as
    /// is waited for. With less it is silent, and has no place inside.
    pub(super) fn has_spoken(&self) -> Result<bool, Departure> {
        // What answers such a one waits for the rest itself.
        if self.failed.is_some() {
            return Ok(!self.input.is_empty());
        }
        match Splitter::new(look_at_frontend).next(&self.input) {
            Ok(piece) => Ok(piece.is_some()),
            Err(error) => Err(Refusal::of_protocol(&error.to_string()).into()),
        }
    }

    /// Waits until it has spoken, for as long as it lets its session be idle; whether it is still
    /// there.
    pub(super) async fn hear(&mut self) -> Result<bool, Departure> {
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
        let mut has_spare = !self.input.is_empty();
        if !has_spare {
            // A silent client keeps no buffer.
            self.input = BytesMut::new();
        }
        loop {
            tokio::select! {
                biased;
                heard = self.stream.more(&mut self.input) => {
                    if !is_there(&heard) {
                        return Ok(false);
                    }
                    if self.has_spoken()? {
                        return Ok(true);
                    }
                }
                () = self.handle.terminated(Termination::WhenIdle) => {
                    return Err(self.handle.refusal().into());
                }
                // The rest of a message is not there yet: its part keeps no more room than it needs.
                () = ready(()), if has_spare => {
                    self.input = BytesMut::from(&self.input[..]);
                    has_spare = false;
                }
            }
        }
    }
}
