//! What each order would give the requests of an upstream, and which is taken where its order
//! follows that.

use super::upstream::Upstream;
use sooner_operate::say;
use std::rc::Weak;
use std::time::Duration;
use tokio::time::sleep;

/// Between two looks whether there is something to play.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between two turns, in each of which a little is played.
const PLAY_EVERY: Duration = Duration::from_millis(50);

/// Requests that are played.
pub const PLAYED: usize = 4096;

/// Plays until the upstream is dropped.
pub async fn run(upstream: Weak<Upstream>) {
    let mut wait = LOOK_EVERY;
    loop {
        sleep(wait).await;
        let Some(upstream) = upstream.upgrade() else {
            return;
        };
        if let Some(taken) = upstream.play_orders() {
            say(format!("upstream `{}`: {taken}", upstream.name));
        }
        wait = match upstream.is_playing() {
            true => PLAY_EVERY,
            false => LOOK_EVERY,
        };
    }
}
