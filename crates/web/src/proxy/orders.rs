//! What each order would give the requests of an upstream, and which is taken where its order
//! follows that.

use super::upstream::Upstream;
use sooner_operate::say;
use std::rc::Weak;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Between two turns, in each of which a little is played.
const PLAY_EVERY: Duration = Duration::from_millis(100);

/// Requests that are played.
pub const PLAYED: usize = 4096;

/// Plays until the upstream is dropped.
pub async fn run(upstream: Weak<Upstream>) {
    let mut turns = interval(PLAY_EVERY);
    turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        turns.tick().await;
        let Some(upstream) = upstream.upgrade() else {
            return;
        };
        if let Some(taken) = upstream.play_orders() {
            say(format!("upstream `{}`: {taken}", upstream.name));
        }
    }
}
