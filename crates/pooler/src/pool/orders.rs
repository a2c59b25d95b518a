//! What each order would give the transactions of each server, and which is taken where the order
//! follows that.

use crate::log::log;
use crate::pooler::Pooler;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Between two turns, in each of which a little is played.
const PLAY_EVERY: Duration = Duration::from_millis(100);

/// Transactions that are played.
pub const PLAYED: usize = 4096;

/// Plays for every server, without end.
pub async fn run(pooler: Rc<Pooler>) {
    let mut turns = interval(PLAY_EVERY);
    turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        turns.tick().await;
        for upstream in pooler.upstreams() {
            if let Some(taken) = upstream.limiter.play_orders() {
                log(&format!("{}: {taken}", upstream.address));
            }
        }
    }
}
