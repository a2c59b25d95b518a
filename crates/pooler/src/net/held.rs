//! Clients that hold a place inside and do not use it: the operator is told where others wait for it, and such clients are ended where the
//! configuration says so.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::door::Backend;
use super::here::Holds;
use super::log;
use super::shared::Shared;
use crate::config::ServerAddress;

/// For how long others wait before it is worth a line.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two lines about the same server.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// Places that are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// By open transactions.
    pub transactions: usize,
    /// By clients that keep their server connection.
    pub connections: usize,
}

/// How many are held at a server.
pub fn held(shared: &Shared, backend: &Rc<Backend>) -> Held {
    let mut held = Held::default();
    for here in shared.clients.borrow().values() {
        let running = here.running.borrow();
        let is_there = running
            .as_ref()
            .is_some_and(|running| Rc::ptr_eq(&running.backend, backend));
        match here.holds().filter(|_| is_there) {
            Some((Holds::Transaction, _)) => held.transactions += 1,
            Some((Holds::Connection, _)) => held.connections += 1,
            None => {}
        }
    }
    held
}

/// Ends the clients that have held something for longer than they may.
pub fn end_idle(shared: &Shared, now: Instant) {
    let settings = shared.settings();
    let limits = &settings.config.limits;
    for here in shared.clients.borrow().values() {
        let Some((holds, since)) = here.holds() else {
            continue;
        };
        let seconds = match holds {
            Holds::Transaction => limits.idle_in_transaction_seconds,
            Holds::Connection => limits.kept_idle_seconds,
        };
        let may = Duration::from_secs(seconds);
        if seconds > 0 && now.saturating_duration_since(since) >= may {
            here.end(holds);
        }
    }
}

/// What has been said, and since when there is something to say.
#[derive(Default)]
pub struct Watch(BTreeMap<ServerAddress, Watched>);

#[derive(Default)]
struct Watched {
    since: Option<Instant>,
    said_at: Option<Instant>,
}

impl Watch {
    /// Says where clients wait for places that others hold and do not use.
    pub fn look(&mut self, shared: &Shared, now: Instant) {
        let backends = shared.backends();
        self.0
            .retain(|address, _| backends.iter().any(|backend| backend.address == *address));
        for backend in backends {
            let status = backend.gate.status();
            let held = held(shared, &backend);
            let watched = self.0.entry(backend.address.clone()).or_default();
            if status.waiting == 0 || held == Held::default() {
                watched.since = None;
                continue;
            }
            let since = *watched.since.get_or_insert(now);
            let is_quiet = watched.said_at.is_some_and(|at| now - at < LINE_EVERY);
            if now - since >= PATIENCE && !is_quiet {
                watched.said_at = Some(now);
                log(&line(&backend.address, status.waiting, status.limit, held));
            }
        }
    }
}

fn line(address: &ServerAddress, waiting: usize, limit: usize, held: Held) -> String {
    let Held {
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
        let held = Held {
            transactions: 1,
            connections: 3,
        };
        assert_eq!(
            line(&address, 7, 4, held),
            "db:5432: 7 waiting; of 4 places 3 are held by clients that keep their server connection and 1 by open transactions, all of them idle (SHOW CLIENTS; limits.kept_idle_seconds and limits.idle_in_transaction_seconds end such clients)"
        );
    }
}
