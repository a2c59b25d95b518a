//! How many requests an upstream's servers take together: as they come and go, and as limits are
//! found.

use super::Upstream;
use crate::proxy::health::Standing;
use crate::proxy::server::Server;
use sooner_admission::Change;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::sleep;

impl Upstream {
    /// Looks for the limits of servers that have none of the operator's; gives what changed, by the
    /// server's name.
    pub fn look_for_limits(&self) -> Vec<(Arc<str>, Change)> {
        let (whole, now) = (self.limiter.take_window(), self.now());
        // Times inside are known of all servers together: with several, what one of them tries
        // would be held against the others.
        let settings = self.settings();
        let servers = &settings.servers;
        let needs = match servers.len() {
            1 => self.limiter.needs(),
            _ => Vec::new(),
        };
        let before = servers.first().map_or(0, |server| server.limit());
        let look = |server: &Rc<Server>| {
            let change = server.look_for_limit(&whole, &needs, now)?;
            Some((server.name.clone(), change))
        };
        let changes: Vec<_> = servers.iter().filter_map(look).collect();
        if let ([server], [(_, change)]) = (&servers[..], &changes[..])
            && server.standing(now) == Standing::Up
        {
            // Not from one capacity to the next: those beyond a lower limit leave one by one.
            self.limiter.rescale(before, change.limit);
        }
        if !changes.is_empty() {
            self.update_capacity();
        }
        changes
    }

    pub(super) fn standing_changed(self: &Rc<Self>, server: &Server) {
        let now = self.now();
        self.update_capacity();
        if let Some(at) = server.changes_at(now) {
            let upstream = Rc::downgrade(self);
            let wait = Duration::from_nanos(at.since(now));
            spawn_local(update_capacity_later(upstream, wait));
        }
    }

    pub(super) fn is_down(&self) -> bool {
        let now = self.now();
        self.settings()
            .servers
            .iter()
            .all(|server| server.standing(now) == Standing::Down)
    }

    /// Sets the limit of requests in flight. To be called whenever a server's capacity changes:
    /// with a limit above this sum a request would be admitted that finds no slot, again and again.
    pub fn update_capacity(&self) {
        let (now, settings) = (self.now(), self.settings());
        let mut leaving = settings.leaving.borrow_mut();
        leaving.retain(|server| server.in_flight() > 0);
        let left: Vec<usize> = leaving.iter().map(|server| server.in_flight()).collect();
        drop(leaving);
        let takes = |server: &Rc<Server>| {
            let capacity = server.capacity(now, settings.load_elsewhere(server));
            capacity.max(server.in_flight())
        };
        let limit = (settings.servers.iter().map(takes))
            .chain(left)
            .fold(0, usize::saturating_add);
        self.limiter.set_capacity(limit);
        let there = settings.servers.iter();
        let there = there.filter(|server| server.standing(now) != Standing::Down);
        let places = there.map(|server| server.limit());
        self.limiter
            .set_places(places.fold(0, usize::saturating_add));
        if settings.is_observed() {
            let all = settings.servers.iter();
            let limits = all.map(|server| server.rehearsed_capacity(now));
            let limiter = &self.limiter;
            limiter.set_rehearsed_limit(limits.fold(0, usize::saturating_add));
        }
        self.freed.notify_waiters();
        if self.is_down() {
            self.all_down.notify_waiters();
        }
    }
}

/// A server's time out has an end that nothing else announces.
async fn update_capacity_later(upstream: Weak<Upstream>, wait: Duration) {
    sleep(wait).await;
    if let Some(upstream) = upstream.upgrade() {
        upstream.update_capacity();
    }
}
