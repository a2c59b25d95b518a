//! A connection that has switched to another protocol (WebSocket): bytes both ways until both sides are done, or silent for too long.

use super::counted::{Counted, Counts};
use super::switched::Ending;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::time::sleep;

/// What is held of each direction, bytes.
const BUFFER_BYTES: usize = 16 << 10;

/// Joins two connections when both have switched; ends when they have, or after `silence` to twice `silence` without a byte. `ending`
/// tells how.
pub async fn join(client: OnUpgrade, upstream: OnUpgrade, silence: Duration, mut ending: Ending) {
    let (of_client, of_upstream) = (ending.to_client().clone(), Arc::<Counts>::default());
    let (Ok(upstream), Ok(client)) = (upstream.await, client.await) else {
        // One of them went before the switch; dropping the other one ends it too.
        return;
    };
    let mut client = Counted::new(TokioIo::new(client), &of_client);
    let mut upstream = Counted::new(TokioIo::new(upstream), &of_upstream);
    tokio::select! {
        copied = copy(&mut client, &mut upstream) => {
            // When the upstream is done and the client has been told, what the client still says or does not say changes nothing.
            let is_told = of_upstream.has_ended() && of_client.is_shut();
            ending.set_regular(copied.is_ok() || is_told);
        }
        () = silent(|| of_client.read_bytes() + of_upstream.read_bytes(), silence) => {}
    }
}

type Side = Counted<TokioIo<Upgraded>>;

async fn copy(client: &mut Side, upstream: &mut Side) -> io::Result<(u64, u64)> {
    copy_bidirectional_with_sizes(client, upstream, BUFFER_BYTES, BUFFER_BYTES).await
}

async fn silent(moved_bytes: impl Fn() -> u64, silence: Duration) {
    loop {
        let before = moved_bytes();
        sleep(silence).await;
        if moved_bytes() == before {
            return;
        }
    }
}
