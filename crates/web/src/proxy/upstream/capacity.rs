//! How many requests an upstream's servers take together: as they come and go, and as limits are
//! found.

use super::shared::{SharedUpstream, State};
use crate::proxy::health::Standing;
use crate::proxy::server::{Beside, Entry, Load, Server};
use sooner_admission::{Change, Time};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::sleep;

/// From one request more on probation to the next.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

impl State {
    /// How many requests each of its servers may have in flight now.
    pub(super) fn capacities(&self, now: Time) -> impl Fn(&Arc<Server>) -> usize {
        let is_up = |server: &Arc<Server>| server.standing(now) == Standing::Up;
        // Another one, for those of which it is asked: they are on probation.
        let is_another_up = self.settings.servers.iter().any(is_up);
        move |server| {
            let beside = Beside {
                elsewhere: self.load_elsewhere(server),
                is_another_up,
            };
            server.capacity(now, beside)
        }
    }

    /// What `server` has in truth beside what is counted here of it: it was reached in another way
    /// before, and what it got then is still under way.
    fn load_elsewhere(&self, server: &Server) -> Load {
        let others = self.leaving.iter();
        let others = others.filter(|other| other.name == server.name);
        others.fold(Load::default(), |all, other| all.with(other.load()))
    }

    /// How many requests all servers that are there take.
    fn places(&self, now: Time) -> usize {
        let there = self.settings.servers.iter();
        let there = there.filter(|server| server.standing(now) != Standing::Down);
        let places = there.map(|server| server.limit());
        places.fold(0, usize::saturating_add)
    }
}

impl SharedUpstream {
    /// At most as many as there are places: a server that fails whatever it gets would empty the
    /// queue, and those who wait here are in no order.
    pub(super) fn update_kept(&self, state: &State) {
        let places = state.places(self.now());
        self.limiter.set_kept(state.redirected.min(places));
    }

    /// Looks for the limits of servers that have none of the operator's; gives what changed, by the
    /// server's name.
    pub fn look_for_limits(&self) -> Vec<(Arc<str>, Change)> {
        let whole = self.limiter.take_window();
        let mut state = self.lock();
        let (settings, now) = (state.settings.clone(), self.now());
        let servers = &settings.servers;
        // Times inside are known of all servers together: with several, what one of them tries
        // would be held against the others.
        let needs = match servers.len() {
            1 => self.limiter.needs(),
            _ => Vec::new(),
        };
        let before = servers.first().map_or(0, |server| server.limit());
        let look = |server: &Arc<Server>| {
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
            self.update_capacity_in(&mut state);
        }
        changes
    }

    pub(super) fn standing_changed(&self, state: &mut State, server: &Arc<Server>) {
        let now = self.now();
        self.update_capacity_in(state);
        if let Some(at) = server.changes_at(now) {
            let upstream = self.this.clone();
            let wait = Duration::from_nanos(at.since(now));
            spawn_local(try_again_after(wait, upstream, Arc::downgrade(server)));
        }
    }

    /// The request of `entry` leaves `server`.
    pub fn leave(&self, server: &Server, entry: Entry) {
        let mut state = self.lock();
        server.leave(entry, self.now());
        self.update_capacity_in(&mut state);
    }

    /// Sets the limit of requests in flight. To be called whenever a server's capacity changes:
    /// with a limit above this sum a request would be admitted that finds no slot, again and again.
    pub fn update_capacity(&self) {
        self.update_capacity_in(&mut self.lock());
    }

    pub(super) fn update_capacity_in(&self, state: &mut State) {
        let now = self.now();
        state.leaving.retain(|server| server.in_flight() > 0);
        let (settings, capacity) = (&state.settings, state.capacities(now));
        let takes = |server: &Arc<Server>| capacity(server).max(server.in_flight());
        let left = state.leaving.iter().map(|server| server.in_flight());
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
        self.limiter.set_places(state.places(now));
        self.freed.notify_waiters();
        if settings.is_down(now) {
            self.all_down.notify_waiters();
        }
    }
}

/// A server's time out has an end that nothing else announces, and from then on it may take one
/// request more each second, until it is known how it is.
async fn try_again_after(wait: Duration, upstream: Weak<SharedUpstream>, server: Weak<Server>) {
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
