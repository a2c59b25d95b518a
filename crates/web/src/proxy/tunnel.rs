//! A connection that has switched to another protocol (WebSocket): bytes both ways until both sides
//! are done, or silent for too long, and how it ended, for the account of its response.
//!
//! The uplink's account of the response may be closed before the tunnel ends or after it. The
//! record of the response needs both, so it is written when the later one is there.

use super::counted_stream::{CountedStream, StreamCounts};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::time::sleep;

/// What is held of each direction, bytes.
const BUFFER_BYTES: usize = 16 << 10;

/// Joins two connections when both have switched; ends when they have, or after `silence` to twice
/// `silence` without a byte. `ending` tells how.
pub async fn join(
    client: OnUpgrade,
    upstream: OnUpgrade,
    silence: Duration,
    mut ending: TunnelGuard,
) {
    let (of_client, of_upstream) = (ending.to_client().clone(), Arc::<StreamCounts>::default());
    let (Ok(upstream), Ok(client)) = (upstream.await, client.await) else {
        // One of them went before the switch; dropping the other one ends it too.
        return;
    };
    let mut client = CountedStream::new(TokioIo::new(client), &of_client);
    let mut upstream = CountedStream::new(TokioIo::new(upstream), &of_upstream);
    tokio::select! {
        copied = copy(&mut client, &mut upstream) => {
            // When the upstream is done and the client has been told, what the client still sends
            // changes nothing.
            let is_told = of_upstream.is_read_closed() && of_client.is_write_closed();
            ending.set_clean(copied.is_ok() || is_told);
        }
        () = silent(|| of_client.read_bytes() + of_upstream.read_bytes(), silence) => {}
    }
}

type Side = CountedStream<TokioIo<Upgraded>>;

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

/// How a tunnel ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelEnd {
    /// Bytes that were written to the client after the switch.
    pub to_client_bytes: u64,
    /// Whether both sides ended it, or the upstream did and the client was told.
    pub is_clean: bool,
}

type Listener = Box<dyn FnOnce(TunnelEnd) + Send>;

/// A connection that has switched. Clones are the same.
#[derive(Clone, Default)]
pub struct Tunnel(Arc<Mutex<TunnelState>>);

#[derive(Default)]
enum TunnelState {
    #[default]
    Open,
    Awaited(Listener),
    Over(TunnelEnd),
    Reported,
}

impl Tunnel {
    /// A connection that is about to switch, and what tells of its end.
    pub fn begin() -> (Self, TunnelGuard) {
        let tunnel = Self::default();
        let ending = TunnelGuard {
            tunnel: tunnel.clone(),
            to_client: Arc::default(),
            is_clean: false,
        };
        (tunnel, ending)
    }

    /// Calls `listener` at the end; only the first listener is called.
    pub fn on_end(&self, listener: impl FnOnce(TunnelEnd) + Send + 'static) {
        let end = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match &*state {
                TunnelState::Over(end) => {
                    let end = *end;
                    *state = TunnelState::Reported;
                    end
                }
                TunnelState::Open => {
                    *state = TunnelState::Awaited(Box::new(listener));
                    return;
                }
                TunnelState::Awaited(_) | TunnelState::Reported => return,
            }
        };
        listener(end);
    }

    fn end(&self, end: TunnelEnd) {
        let listener = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match std::mem::replace(&mut *state, TunnelState::Reported) {
                TunnelState::Awaited(listener) => listener,
                TunnelState::Open => {
                    *state = TunnelState::Over(end);
                    return;
                }
                TunnelState::Over(_) | TunnelState::Reported => return,
            }
        };
        listener(end);
    }
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Switched")
    }
}

/// Tells of the end of a tunnel when dropped, however that comes about.
pub struct TunnelGuard {
    tunnel: Tunnel,
    to_client: Arc<StreamCounts>,
    is_clean: bool,
}

impl TunnelGuard {
    /// What goes to and comes from the client is to be counted here.
    pub fn to_client(&self) -> &Arc<StreamCounts> {
        &self.to_client
    }

    /// It ended as it should, or not.
    pub fn set_clean(&mut self, is_clean: bool) {
        self.is_clean = is_clean;
    }
}

impl Drop for TunnelGuard {
    fn drop(&mut self) {
        self.tunnel.end(TunnelEnd {
            to_client_bytes: self.to_client.written_bytes(),
            is_clean: self.is_clean,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_end_is_told_once_whoever_comes_later() {
        for tunnel_first in [true, false] {
            let (tunnel, mut ending) = Tunnel::begin();
            ending.set_clean(true);
            let (tell, told) = channel();
            let listen = || tunnel.on_end(move |end| tell.send(end).unwrap());
            if tunnel_first {
                drop(ending);
                listen();
            } else {
                listen();
                assert!(told.try_recv().is_err());
                drop(ending);
            }
            assert!(told.try_recv().unwrap().is_clean);
        }
    }

    #[test]
    fn a_tunnel_that_is_cut_is_not_regular() {
        let (tunnel, ending) = Tunnel::begin();
        drop(ending);
        let (tell, told) = channel();
        tunnel.on_end(move |end| tell.send(end).unwrap());
        assert_eq!(told.recv().unwrap(), TunnelEnd::default());
    }
}
