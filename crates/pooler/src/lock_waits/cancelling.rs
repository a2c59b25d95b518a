//! Statements that the server is to cancel because others that matter more wait: all at once by a
//! command, where the role that asks for locks may, else each by a cancel request, for which the
//! server makes a process.

use crate::client::cancel::{self, CancelTarget};
use crate::client::handle::ClientHandle;
use crate::pool::lease::{COMMAND_PATIENCE, in_time};
use crate::pool::server_session::LoginError;
use crate::pool::upstream::Upstream;
use std::rc::Rc;
use std::time::Instant;

/// A client's transaction that is to be cancelled.
pub struct Cancelled {
    /// The session that is cancelled.
    pub handle: Rc<ClientHandle>,
    /// Which of its transactions.
    pub number: u64,
    /// Since when its statement runs: the next one is not meant.
    pub busy_since: Option<Instant>,
}

impl Cancelled {
    /// The server connection that it has, if it still runs.
    fn target(&self) -> Option<CancelTarget> {
        let preemption = &self.handle.preemption;
        let is_it = preemption.running.get()?.number == self.number
            && preemption.busy_since.get() == self.busy_since
            && preemption.ordered(Instant::now()).is_some();
        let target = self.handle.cancel_target.borrow().clone();
        target.filter(|_| is_it)
    }

    fn is_at(&self, target: &CancelTarget) -> bool {
        self.target().is_some_and(|now| now.key == target.key)
    }
}

/// Has the server cancel these, if they still run; it has been told when this is over.
pub async fn cancel_statements(upstream: &Rc<Upstream>, all: &[Cancelled]) {
    let targets = all.iter();
    let targets = targets.filter_map(|one| Some((one, one.target()?)));
    let targets: Vec<(&Cancelled, CancelTarget)> = targets.collect();
    if upstream.cancels_by_command.get() {
        match by_command(upstream, &targets).await {
            // They are told at the next look, if they still are in the way.
            Ok(()) | Err(LoginError::Unreachable(_)) => return,
            Err(_) => upstream.cancels_by_command.set(false),
        }
    }
    for (one, _) in &targets {
        let is_due = || one.target().is_some();
        cancel::interrupt(&one.handle, is_due).await;
    }
}

/// No connection goes to another client meanwhile. One to which a cancel request is on its way is
/// left out. An error where the server refuses.
async fn by_command(
    upstream: &Upstream,
    targets: &[(&Cancelled, CancelTarget)],
) -> Result<(), LoginError> {
    let Some(mut server) = upstream.lock_watch.take() else {
        return Ok(());
    };
    let free = targets.iter().filter_map(|(one, target)| {
        let may_still_come = target.cancel_lock.try_lock().ok()?;
        (!*may_still_come).then_some((one, target, may_still_come))
    });
    let mut held: Vec<_> = free.filter(|(one, target, _)| one.is_at(target)).collect();
    let numbers = held
        .iter()
        .map(|(_, target, _)| target.key.process_id.to_string());
    let numbers = numbers.collect::<Vec<_>>().join(",");
    // Where this is dropped while the command is on its way, they stay so.
    held.iter_mut()
        .for_each(|(.., may_still_come)| **may_still_come = true);
    let command = format!(
        "SELECT pg_catalog.pg_cancel_backend(p) FROM pg_catalog.unnest('{{{numbers}}}'::pg_catalog.int4[]) AS p"
    );
    let answer = in_time(COMMAND_PATIENCE, server.query(command.as_bytes())).await;
    match answer {
        Err(error @ LoginError::Unreachable(_)) => Err(error),
        answer => {
            held.iter_mut()
                .for_each(|(.., may_still_come)| **may_still_come = false);
            upstream.lock_watch.replace(Some(server));
            answer.map(drop)
        }
    }
}
