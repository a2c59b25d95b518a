//! How many requests an upstream's servers take together: as they come and go, and as limits are
//! found.

use super::Upstream;
use crate::proxy::health::Standing;
use crate::proxy::server::Server;
use sooner_admission::{Change, Time};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::sleep;

/// From one request more on probation to the next.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// A request that was let in, has no place at a server, and waits for one: others may have the place
/// meanwhile.
struct Redirected<'a>(&'a Upstream);

impl<'a> Redirected<'a> {
    fn begin(upstream: &'a Upstream) -> Self {
        upstream.redirected.set(upstream.redirected.get() + 1);
        upstream.update_kept();
        Self(upstream)
    }
}

impl Drop for Redirected<'_> {
    fn drop(&mut self) {
        let redirected = &self.0.redirected;
        redirected.set(redirected.get() - 1);
        self.0.update_kept();
    }
}

impl Upstream {
    /// Waits until a server may have a place that had none. The request that waits uses none.
    pub async fn freed(&self) {
        let _redirected = Redirected::begin(self);
        self.freed.notified().await;
    }

    /// At most as many as there are places: a server that fails whatever it gets would empty the
    /// queue, and those who wait here are in no order.
    fn update_kept(&self) {
        let places = self.places(self.now());
        self.limiter.set_kept(self.redirected.get().min(places));
    }

    /// How many requests all servers that are there take.
    fn places(&self, now: Time) -> usize {
        let settings = self.settings();
        let there = settings.servers.iter();
        let there = there.filter(|server| server.standing(now) != Standing::Down);
        let places = there.map(|server| server.limit());
        places.fold(0, usize::saturating_add)
    }

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

    pub(super) fn standing_changed(self: &Rc<Self>, server: &Rc<Server>) {
        let now = self.now();
        self.update_capacity();
        if let Some(at) = server.changes_at(now) {
            let upstream = Rc::downgrade(self);
            let wait = Duration::from_nanos(at.since(now));
            spawn_local(try_again_after(wait, upstream, Rc::downgrade(server)));
        }
    }

    /// Whether no server is up, so that no request is admitted.
    pub fn is_down(&self) -> bool {
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
        let capacity = settings.capacities(now);
        let takes = |server: &Rc<Server>| capacity(server).max(server.in_flight());
        let limit = (settings.servers.iter().map(takes))
            .chain(left)
            .fold(0, usize::saturating_add);
        self.limiter.set_capacity(limit);
        if settings.is_observed() {
            let all = settings.servers.iter();
            let limits = all.map(|server| server.rehearsed_capacity(now));
            let limiter = &self.limiter;
            limiter.set_rehearsed_limit(limits.fold(0, usize::saturating_add));
        }
        // Behind the limit of a rehearsal: its places are the same.
        self.limiter.set_places(self.places(now));
        self.freed.notify_waiters();
        if self.is_down() {
            self.all_down.notify_waiters();
        }
    }
}

/// A server's time out has an end that nothing else announces, and from then on it may take one
/// request more each second, until it is known how it is.
async fn try_again_after(wait: Duration, upstream: Weak<Upstream>, server: Weak<Server>) {
    let Some(ejections) = server.upgrade().map(|server| server.ejections()) else {
        return;
    };
    let mut wait = wait;
    loop {
        sleep(wait).await;
        let (Some(upstream), Some(server)) = (upstream.upgrade(), server.upgrade()) else {
            return;
        };
        upstream.update_capacity();
        let is_tried = server.standing(upstream.now()) == Standing::OnProbation;
        if !is_tried || server.ejections() != ejections {
            return;
        }
        wait = PROBE_PAUSE;
    }
}
