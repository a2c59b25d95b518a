//! The server for a request.

use super::Upstream;
use super::shared::{SharedUpstream, State};
use crate::proxy::health::Standing;
use crate::proxy::in_flight::ServerSlot;
use sooner_admission::Time;
use std::pin::pin;
use std::sync::Arc;

/// The server for a request.
pub enum Choice {
    /// This one.
    Server(ServerSlot),
    /// None right now: a server was ejected after the request was admitted.
    Full,
    /// None that has not been tried right now, but one that is up is only full.
    OthersFull,
    /// No server is up.
    AllDown,
}

/// What a look at all servers finds.
enum Found {
    /// The one of this index has a place.
    Server(usize),
    Full,
    OthersFull,
    AllDown,
}

/// A request that was let in, has no place at a server, and waits for one: others may have the place
/// meanwhile.
struct Redirected<'a>(&'a SharedUpstream);

impl<'a> Redirected<'a> {
    fn begin(upstream: &'a SharedUpstream) -> Self {
        let mut state = upstream.lock();
        state.redirected += 1;
        upstream.update_kept(&state);
        Self(upstream)
    }
}

impl Drop for Redirected<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.redirected -= 1;
        self.0.update_kept(&state);
    }
}

impl State {
    /// The server with the fewest in flight, round robin among equals; one of `tried` only where no
    /// other is up.
    fn look(&self, tried: &[Arc<str>], now: Time) -> Found {
        let servers = &self.settings.servers;
        let capacity = self.capacities(now);
        let mut best: Option<(bool, usize, usize)> = None;
        let (mut is_up, mut is_other_up) = (false, false);
        for step in 0..servers.len() {
            let index = (self.next_server + step) % servers.len();
            let server = &servers[index];
            let was_tried = tried.contains(&server.name);
            let is_there = server.standing(now) != Standing::Down;
            is_up |= is_there;
            is_other_up |= is_there && !was_tried;
            if server.in_flight() >= capacity(server) {
                continue;
            }
            let rank = (was_tried, server.in_flight());
            if best.is_none_or(|(was_tried, in_flight, _)| rank < (was_tried, in_flight)) {
                best = Some((rank.0, rank.1, index));
            }
        }
        match best {
            Some((true, _, _)) if is_other_up => Found::OthersFull,
            Some((_, _, index)) => Found::Server(index),
            None if is_up => Found::Full,
            None => Found::AllDown,
        }
    }
}

impl Upstream {
    /// A server for an admitted request: the one with the fewest in flight, round robin among
    /// equals; one of `tried` only where no other is up.
    pub fn choose_server(&self, tried: &[Arc<str>]) -> Choice {
        let (server, entry) = {
            let mut state = self.lock();
            let now = self.now();
            match state.look(tried, now) {
                Found::Server(index) => {
                    state.next_server = index + 1;
                    let server = state.settings.servers[index].clone();
                    let entry = server.enter(now);
                    (server, entry)
                }
                Found::Full => return Choice::Full,
                Found::OthersFull => return Choice::OthersFull,
                Found::AllDown => return Choice::AllDown,
            }
        };
        Choice::Server(ServerSlot::new(self.shared(), self.pool(&server), entry))
    }

    /// Waits until a server that is not among `tried` may have a place, where they had none. The
    /// request that waits uses none.
    pub async fn freed(&self, tried: &[Arc<str>]) {
        let mut freed = pin!(self.shared.freed.notified());
        freed.as_mut().enable();
        let _redirected = Redirected::begin(self);
        // Another worker may have made room since it was looked.
        let found = self.lock().look(tried, self.now());
        if matches!(found, Found::OthersFull) {
            freed.await;
        }
    }
}
