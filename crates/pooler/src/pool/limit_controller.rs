//! How many transactions a server gets at a time, where the gate finds that out by itself.

use crate::config::Limits;
use crate::log::log;
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use sooner_admission::{Controller, ControllerLimits, Why};
use sooner_config::Limit;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks at every upstream, without end.
pub async fn run(pooler: Rc<Pooler>) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        looks.tick().await;
        let configuration = pooler.configuration();
        if configuration.config.limits.transactions == Limit::Auto {
            for upstream in pooler.upstreams() {
                look(&upstream, &configuration.config.limits);
            }
        }
    }
}

fn look(upstream: &Upstream, limits: &Limits) {
    // What lets everything in learns nothing of a limit.
    if upstream.limiter.rehearses() {
        upstream.limiter.take_window();
        return;
    }
    let mut controller = upstream.controller.borrow_mut();
    let is_first_look = controller.is_none();
    let connections = upstream.connections(limits);
    let controller = controller.get_or_insert_with(|| Controller::new(bounds(limits, connections)));
    // Who keeps a connection and asks for nothing takes no place from those who do, or what is
    // found would be too few, or none. Each of them needs a connection of its own.
    let left = connections.saturating_sub(controller.limit());
    let kept = upstream
        .idle_leases
        .get()
        .min(limits.transactions_most())
        .min(left);
    upstream.set_spare_places(kept, upstream.places.yielded_max());
    let window = upstream.limiter.take_window();
    // Of another limit, or of none: it began with the upstream.
    if is_first_look {
        return;
    }
    let Some(change) = controller.observe(&window, &upstream.limiter.needs()) else {
        return;
    };
    if change.why != Why::Turn {
        log(&format!(
            "{}: {} transactions at a time ({}{})",
            upstream.address,
            change.limit,
            change.why,
            of_class(upstream, change.why)
        ));
    }
    upstream.limiter.set_limit(change.limit);
}

/// Which class is the reason, if one is.
fn of_class(upstream: &Upstream, why: Why) -> String {
    let number = why.class().map(usize::from);
    let class = number.and_then(|number| upstream.limiter.class_statuses().into_iter().nth(number));
    class.map_or_else(String::new, |class| format!("; class {:?}", class.name))
}

/// The controller's.
pub fn bounds(limits: &Limits, connections: usize) -> ControllerLimits {
    let max = limits.transactions_most().min(connections);
    sooner_limiter::bounds(max, *limits.throughput_loss.get_ref())
}
