//! What each order would give the transactions of each server, and which is taken where the order
//! follows that.

use crate::log::log;
use crate::pooler::Pooler;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;

/// Between two looks whether there is something to play.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between two turns, in each of which a little is played.
const PLAY_EVERY: Duration = Duration::from_millis(50);

/// Transactions that are played.
pub const PLAYED: usize = 4096;

/// Plays for every server, without end.
pub async fn run(pooler: Rc<Pooler>) {
    let mut wait = LOOK_EVERY;
    loop {
        sleep(wait).await;
        wait = LOOK_EVERY;
        for upstream in pooler.upstreams() {
            if let Some(taken) = upstream.limiter.play_orders() {
                log(&format!("{}: {taken}", upstream.address));
            }
            if upstream.limiter.is_playing() {
                wait = PLAY_EVERY;
            }
        }
    }
}
