//! What is done every second, whoever comes or not.

use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use super::shared::Shared;

const SECOND: Duration = Duration::from_secs(1);
/// How often what was measured becomes that of the last minute, seconds.
const MINUTE: u64 = 60;

/// Closes server connections that are old, idle for long or dead, and forgets what nobody needs; for ever.
pub async fn keep_up(shared: Rc<Shared>) {
    let mut seconds = interval(SECOND);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut count = 0;
    loop {
        seconds.tick().await;
        count += 1;
        if count % MINUTE == 0 {
            shared.measured.borrow_mut().minute_passed();
        }
        close_old(&shared);
        shared.forget_unused();
    }
}

fn close_old(shared: &Shared) {
    let settings = shared.settings();
    let limits = &settings.config.limits;
    let time = |seconds| (seconds > 0).then(|| Duration::from_secs(seconds));
    let (idle, life) = (
        time(limits.server_idle_seconds),
        time(limits.server_lifetime_seconds),
    );
    let now = Instant::now();
    for backend in shared.backends() {
        for pool in [&backend.pool, &backend.lookups] {
            let mut pool = pool.borrow_mut();
            pool.close_dead();
            pool.close_old(now, idle, life);
        }
    }
}
