//! How many transactions a server gets at a time, where the gate finds that out by itself.

use std::rc::Rc;
use std::time::Duration;

use sooner_gate::{Controller, ControllerLimits, Why, start};
use tokio::time::{MissedTickBehavior, interval};

use super::door::Backend;
use super::log::log;
use super::shared::Shared;
use crate::config::{Limits, Transactions};

/// How often somebody looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks at every server, for ever.
pub async fn tune(shared: Rc<Shared>) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        looks.tick().await;
        let settings = shared.settings();
        if settings.config.limits.transactions == Transactions::Auto {
            for backend in shared.backends() {
                look(&backend, &settings.config.limits);
            }
        }
    }
}

fn look(backend: &Backend, limits: &Limits) {
    let mut controller = backend.controller.borrow_mut();
    let connections = backend.connections(limits);
    let controller = controller.get_or_insert_with(|| Controller::new(bounds(limits, connections)));
    // Who keeps a connection and asks for nothing takes no place from those who do, or what is found would be too few, or none.
    // Each of them needs a connection of its own.
    let left = connections.saturating_sub(controller.limit());
    let kept = backend.kept.get().min(limits.transactions_most()).min(left);
    backend.gate.set_kept(kept);
    let window = backend.gate.take_window();
    let Some(change) = controller.observe(&window, &backend.gate.needs()) else {
        return;
    };
    if change.why != Why::Turn {
        log(&format!(
            "{}: {} transactions at a time ({}{})",
            backend.address,
            change.limit,
            change.why,
            of_class(backend, change.why)
        ));
    }
    backend.gate.set_limit(change.limit);
}

/// Which class is the reason, if one is.
fn of_class(backend: &Backend, why: Why) -> String {
    let number = why.class().map(usize::from);
    let class = number.and_then(|number| backend.gate.standings().into_iter().nth(number));
    class.map_or_else(String::new, |class| format!("; class {:?}", class.name))
}

/// The controller's, for a server that may have as many processors as this machine.
pub fn bounds(limits: &Limits, connections: usize) -> ControllerLimits {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let loss = *limits.throughput_loss.get_ref();
    let max = limits.transactions_most().min(connections);
    ControllerLimits {
        min: 1,
        max,
        start: start(processors, loss).min(max),
        throughput_loss: loss,
    }
}
