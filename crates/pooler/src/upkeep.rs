//! What is done every second.

use crate::config::Limits;
use crate::log::log;
use crate::pool::Owner;
use crate::pool::capacity::ManyLogins;
use crate::pool::idle_holders;
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

const SECOND: Duration = Duration::from_secs(1);
/// How often what was measured becomes that of the last minute, seconds.
const MINUTE: u64 = 60;

/// Closes server connections that are old, idle for long or dead, and forgets what is not needed;
/// without end.
pub async fn keep_up(pooler: Rc<Pooler>) {
    let mut seconds = interval(SECOND);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut count = 0;
    let mut watch = idle_holders::IdleWatch::default();
    loop {
        seconds.tick().await;
        count += 1;
        if count % MINUTE == 0 {
            pooler.statistics.borrow_mut().minute_passed();
        }
        close_old(&pooler);
        close_paused(&pooler);
        let now = Instant::now();
        idle_holders::terminate_idle(&pooler, now);
        watch.look(&pooler, now);
        pooler.forget_unused();
    }
}

fn close_old(pooler: &Pooler) {
    let configuration = pooler.configuration();
    let limits = &configuration.config.limits;
    let time = |seconds| (seconds > 0).then(|| Duration::from_secs(seconds));
    let (idle, life) = (
        time(limits.server_idle_seconds),
        time(limits.server_lifetime_seconds),
    );
    let now = Instant::now();
    for upstream in pooler.upstreams() {
        let most = upstream.connections(limits);
        // Where there may be fewer than before, idle ones go.
        upstream.pool.borrow_mut().make_room(most.saturating_add(1));
        tell_logins(&upstream, limits, now);
        upstream.close_idle_lock_watch();
        for pool in [&upstream.pool, &upstream.lookup_pool] {
            let mut pool = pool.borrow_mut();
            pool.close_dead();
            pool.close_old(now, idle, life);
            let (ended, words) = pool.take_ended();
            let address = &upstream.address;
            upstream.ends_idle.log(ended, |times| match words.as_str() {
                "" => format!("{address} has closed idle connections: {times}"),
                words => {
                    format!("{address} has closed idle connections: {times}, last with: {words}")
                }
            });
        }
    }
}

/// A server that is to be stopped need not wait for the gate, also where no admin waits for the
/// pause.
fn close_paused(pooler: &Pooler) {
    let databases = pooler.databases();
    for db in databases.iter().filter(|db| db.is_paused()) {
        let is_its = |owner: &Owner| owner.database == db.name;
        db.upstream.pool.borrow_mut().close_unused(is_its);
        db.upstream.lookup_pool.borrow_mut().close_unused(is_its);
    }
}

/// A line where many transactions have to log in, or to wait for that.
fn tell_logins(upstream: &Upstream, limits: &Limits, now: Instant) {
    let Some(many) = upstream.login_share.borrow_mut().look(now) else {
        return;
    };
    let ManyLogins {
        logins,
        transactions,
        waits,
        mean,
    } = many;
    let ms = mean.as_secs_f64() * 1e3;
    let connections = upstream.connections(limits);
    log(&format!(
        "{}: {logins} of {transactions} transactions had to log in in place of another user or database, {ms:.1} ms each, and {waits} to wait before they could: they come by turns for {connections} connections; raise limits.connections, or name one database.user",
        upstream.address
    ));
}
