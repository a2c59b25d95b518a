//! How a session ends in the middle of something: its server connection is let go, and the client
//! is told why, unless it has heard a part of a message and not the rest.

use super::Client;
use crate::client::cancel;
use crate::client::handle::{ClientHandle, Termination};
use crate::client::refusal::{Departure, Refusal};
use crate::client::relay::{End, RelayOutcome};
use crate::pool::lease::{COMMAND_PATIENCE, Lease};
use crate::stream::Stream;
use bytes::BytesMut;

impl Client {
    /// A transaction that did not end as it should is the client's last.
    pub(super) async fn abandon(
        &mut self,
        lease: Lease,
        outcome: RelayOutcome,
    ) -> Result<Option<Lease>, Departure> {
        if outcome.is_free && !matches!(outcome.end, End::ServerBroke(_)) {
            self.give_back(lease).await;
        } else if let Some(target) = lease.cancel_target().filter(|_| outcome.is_busy) {
            // No client waits for what it runs any more; until that is over it keeps its permits.
            let cancelled = cancel::send(&target, || true);
            let _ = tokio::time::timeout(COMMAND_PATIENCE, cancelled).await;
            drop(lease);
        }
        let refusal = match outcome.end {
            End::ClientBroke(what) => Refusal::of_protocol(&what),
            End::ServerBroke(what) if outcome.has_said_goodbye => Refusal::after(&what),
            End::ServerBroke(what) => Refusal::lost(&what),
            End::Terminated => self.handle.refusal(),
            End::ClientLeft | End::Over | End::RolledBack | End::Again(_) => {
                return Err(Departure::Left);
            }
        };
        Err(if outcome.is_cut_off {
            refusal.unsaid().into()
        } else {
            refusal.into()
        })
    }

    /// Tells it what came with the answers to the gate's own questions.
    pub(super) async fn send(&mut self, mut for_client: BytesMut) -> Result<(), Departure> {
        write_all(&mut self.stream, &mut for_client, &self.handle).await
    }
}

/// Writes to a client that may have to go meanwhile, because it does not read.
pub(super) async fn write_all(
    stream: &mut Stream,
    out: &mut BytesMut,
    handle: &ClientHandle,
) -> Result<(), Departure> {
    tokio::select! {
        biased;
        written = stream.flush_all(out) => written.map_err(|_| Departure::Left),
        () = handle.terminated(Termination::Now) => Err(handle.refusal().unsaid().into()),
    }
}
