//! Clients that hold a place inside and do not use it: the operator is told where others wait for
//! it, and such clients are ended where the configuration says so.

use crate::client::handle::IdleHold;
use crate::config::ServerAddress;
use crate::log::log;
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// For how long others wait before it is worth a line.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two lines about the same server.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// Places that are held and not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleHolders {
    /// By open transactions.
    pub transactions: usize,
    /// By clients that keep their server connection.
    pub connections: usize,
}

impl IdleHolders {
    /// A line, where others wait for these places of `upstream`.
    pub fn held_up(self, upstream: &Upstream) -> Option<String> {
        let status = upstream.limiter.status();
        let is_in_the_way = status.waiting > 0 && self != Self::default();
        is_in_the_way.then(|| line(&upstream.address, status.waiting, status.limit, self))
    }
}

/// How many are held at a server.
pub fn idle_holders(pooler: &Pooler, upstream: &Rc<Upstream>) -> IdleHolders {
    let mut held = IdleHolders::default();
    for handle in pooler.clients.borrow().values() {
        let running = handle.cancel_target.borrow();
        let is_there = running
            .as_ref()
            .is_some_and(|running| Rc::ptr_eq(&running.upstream, upstream));
        match handle.idle_hold().filter(|_| is_there) {
            Some((IdleHold::Transaction, _)) => held.transactions += 1,
            Some((IdleHold::Connection, _)) => held.connections += 1,
            None => {}
        }
    }
    held
}

/// Ends the clients that have held something for longer than they may.
pub fn terminate_idle(pooler: &Pooler, now: Instant) {
    let configuration = pooler.configuration();
    let limits = &configuration.config.limits;
    for handle in pooler.clients.borrow().values() {
        let Some((holds, since)) = handle.idle_hold() else {
            continue;
        };
        let seconds = match holds {
            IdleHold::Transaction => limits.idle_in_transaction_seconds,
            IdleHold::Connection => limits.kept_idle_seconds,
        };
        let may = Duration::from_secs(seconds);
        if seconds > 0 && now.saturating_duration_since(since) >= may {
            handle.terminate_idle(holds);
        }
    }
}

/// What has been said, and since when there is something to say.
#[derive(Default)]
pub struct IdleWatch(BTreeMap<ServerAddress, WatchedUpstream>);

#[derive(Default)]
struct WatchedUpstream {
    since: Option<Instant>,
    said_at: Option<Instant>,
}

impl IdleWatch {
    /// Says where clients wait for places that others hold and do not use.
    pub fn look(&mut self, pooler: &Pooler, now: Instant) {
        let upstreams = pooler.upstreams();
        self.0.retain(|address, _| {
            upstreams
                .iter()
                .any(|upstream| upstream.address == *address)
        });
        for upstream in upstreams {
            let watched = self.0.entry(upstream.address.clone()).or_default();
            let Some(line) = idle_holders(pooler, &upstream).held_up(&upstream) else {
                watched.since = None;
                continue;
            };
            let since = *watched.since.get_or_insert(now);
            let is_quiet = watched.said_at.is_some_and(|at| now - at < LINE_EVERY);
            if now - since >= PATIENCE && !is_quiet {
                watched.said_at = Some(now);
                log(&line);
            }
        }
    }
}

fn line(address: &ServerAddress, waiting: usize, limit: usize, held: IdleHolders) -> String {
    let IdleHolders {
        transactions,
        connections,
    } = held;
    format!(
        "{address}: {waiting} waiting; of {limit} places {connections} are held by clients that keep their server connection and {transactions} by open transactions, all of them idle (SHOW CLIENTS; limits.kept_idle_seconds and limits.idle_in_transaction_seconds end such clients)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_who_waits_for_whom() {
        let address = "postgresql://db:5432".parse().unwrap();
        let held = IdleHolders {
            transactions: 1,
            connections: 3,
        };
        assert_eq!(
            line(&address, 7, 4, held),
            "db:5432: 7 waiting; of 4 places 3 are held by clients that keep their server connection and 1 by open transactions, all of them idle (SHOW CLIENTS; limits.kept_idle_seconds and limits.idle_in_transaction_seconds end such clients)"
        );
    }
}
