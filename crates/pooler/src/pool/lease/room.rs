//! Room at a server that takes no more connections: those that the gate keeps for others, and those
//! that may come back.

use super::{LeaseRequest, RETRY_PAUSE};
use crate::pool::Owner;
use crate::pool::connection_limits::Limited;
use sooner_postgres::wire::message_of_error;

impl LeaseRequest<'_> {
    /// Others have all connections of the server: one that the gate keeps for lookups or another
    /// owner is given up for this one where it `may_yield`; whether one was. A transaction waits for that
    /// without end, because what could wait is not dropped.
    pub(super) async fn make_room_there(&self, may_yield: bool) -> bool {
        let upstream = &self.db.upstream;
        let address = &upstream.address;
        upstream.full.log(1, |_| {
            format!("{address} has no connection left (53300); transactions wait for one")
        });
        if !may_yield {
            return false;
        }
        let mut given_up = upstream.lookup_pool.borrow_mut().give_up();
        if given_up.is_none() {
            given_up = upstream.pool.borrow_mut().give_up();
        }
        let Some(server) = given_up else {
            return false;
        };
        // Where it takes longer, it is looked for again all the same.
        let _ = tokio::time::timeout(RETRY_PAUSE, server.session.end()).await;
        true
    }

    /// A role or a database is at a limit of its own: an idle connection that counts in it is given
    /// up, once; whether there may be one now.
    pub(super) async fn make_room_at(
        &self,
        limited: Limited,
        owner: &Owner,
        has_tried: bool,
    ) -> bool {
        if has_tried {
            return false;
        }
        let given_up = {
            let upstream = &self.db.upstream;
            let mut pool = upstream.pool.borrow_mut();
            if pool.has_idle(owner) {
                return true;
            }
            let counts = |other: &Owner| limited.is_shared(owner, other);
            let of_lookups = upstream.lookup_pool.borrow_mut().give_up_of(counts);
            of_lookups.or_else(|| pool.give_up_of(counts))
        };
        let Some(server) = given_up else {
            return false;
        };
        let _ = tokio::time::timeout(RETRY_PAUSE, server.session.end()).await;
        true
    }

    /// Whether a connection of the gate's that counts in a limit may come back.
    pub(super) fn may_come(&self, limited: Limited, owner: &Owner, message: &[u8]) -> bool {
        let upstream = &self.db.upstream;
        let is_opening = {
            let pool = upstream.pool.borrow();
            let is_shared = |other: &Owner| limited.is_shared(owner, other);
            pool.waiters.has_opening(is_shared)
        };
        let limits = &upstream.connection_limits;
        let may_come = is_opening || limits.has_open(limited, owner);
        if may_come {
            let address = &upstream.address;
            let what = match limited {
                Limited::Role => "role",
                Limited::Database => "database",
            };
            limits.reached.log(1, |_| {
                format!(
                    "{address}: {} (53300, the {what}'s CONNECTION LIMIT); its transactions wait outside until one of its connections is free",
                    message_of_error(message)
                )
            });
        }
        may_come
    }
}
