//! SYN-ACKs go before all responses, unless a flood of SYNs would fill the link with them.

use sooner_kernel::handshakes::count;
use sooner_link::flood::{FloodWatch, Handshakes};
use sooner_operate::say;
use sooner_uplink::Uplink;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often is looked.
const LOOK: Duration = Duration::from_secs(1);

/// Puts the listeners' handshakes first.
pub fn put_first(uplink: &Uplink, listeners: impl Iterator<Item = impl AsFd>) {
    for listener in listeners {
        if let Err(error) = uplink.mark_listener(listener, false) {
            say(format_args!("handshakes are not put first: {error}"));
        }
    }
}

/// Puts them last for as long as there is a flood; never returns. Of no use, and nothing done,
/// where handshakes have no place in the order.
pub async fn watch(uplink: Uplink, listeners: Vec<OwnedFd>) {
    if !uplink.orders_handshakes() {
        return;
    }
    let mut flood = FloodWatch::default();
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        looks.tick().await;
        // Without the counts no flood is suspected.
        let Some(is_flood) = count().ok().and_then(|counts| {
            flood.note(Handshakes {
                unanswered: counts.unanswered,
                completed: counts.completed,
            })
        }) else {
            continue;
        };
        for listener in &listeners {
            // One that cannot be marked stays where it was.
            let _ = uplink.mark_listener(listener, is_flood);
        }
        say(format_args!(
            "{}",
            if is_flood {
                "far more handshakes begin than complete: they go last until that ends"
            } else {
                "handshakes go first again"
            }
        ));
    }
}
