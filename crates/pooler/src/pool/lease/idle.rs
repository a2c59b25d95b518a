//! Idle server connections, which may not work any more after a while.

use super::{COMMAND_PATIENCE, LeaseRequest, PoolSlot, in_time};
use crate::configuration::Configuration;
use crate::pool::server_session::LoginError;
use crate::pool::{Owner, ServerConnection};
use std::io;
use std::time::{Duration, Instant};

impl LeaseRequest<'_> {
    /// An idle one; what has been idle for long is asked first whether it works. Where one says
    /// nothing, the others that would have to be asked are closed: each would take as long.
    pub(super) async fn take(
        &self,
        configuration: &Configuration,
        owner: &Owner,
    ) -> Option<Box<ServerConnection>> {
        let check = Duration::from_secs(configuration.config.limits.server_check_seconds);
        // A new one may answer where the way to an old one is lost: it has the other half.
        let patience = COMMAND_PATIENCE.min(configuration.patience() / 2);
        let upstream = &self.db.upstream;
        loop {
            let mut server = upstream.pool.borrow_mut().take(owner)?;
            if server.used_at.elapsed() < check {
                return Some(server);
            }
            // A client that gives up meanwhile drops it.
            let slot = PoolSlot::taken(&upstream.pool);
            match Box::pin(in_time(patience, server.execute(b""))).await {
                Ok(()) => {
                    slot.done();
                    return Some(server);
                }
                Err(LoginError::Unreachable(error)) if is_silence(&error) => {
                    let mut pool = upstream.pool.borrow_mut();
                    pool.close_unchecked(owner, Instant::now(), check);
                }
                Err(_) => {}
            }
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}
