//! Rows that come when their COPY is over. A client may have sent many of them before it hears that
//! it failed. Outside a COPY they mean nothing in PostgreSQL's protocol, so no server has to see
//! them.

use super::Client;
use crate::client::handle::Termination;
use crate::client::refusal::{Departure, Refusal};
use crate::pool::admission::is_there;
use bytes::{Buf, BytesMut};
use sooner_postgres::wire::{Splitter, look_at_frontend};

/// Whether the first message is a row, or the end of some.
pub(super) fn come_first(input: &[u8]) -> bool {
    matches!(input.first(), Some(b'd' | b'c' | b'f'))
}

impl Client {
    /// Takes them away up to another message, and waits for the rest of one that is cut off;
    /// whether the client is still there.
    pub(super) async fn pass_over_rows(&mut self) -> Result<bool, Departure> {
        let mut splitter = Splitter::new(look_at_frontend);
        while !splitter.is_between_messages() || come_first(&self.input) {
            let piece = splitter.next(&self.input);
            let piece = piece.map_err(|error| Refusal::of_protocol(&error.to_string()))?;
            if let Some(piece) = piece {
                let count = piece.bytes.len();
                self.input.advance(count);
                continue;
            }
            if self.input.is_empty() {
                // A silent client keeps no buffer.
                self.input = BytesMut::new();
            }
            tokio::select! {
                biased;
                heard = self.stream.more(&mut self.input) => if !is_there(&heard) {
                    return Ok(false);
                },
                () = self.handle.terminated(Termination::WhenIdle) => {
                    return Err(self.handle.refusal().into());
                }
            }
        }
        Ok(true)
    }
}
