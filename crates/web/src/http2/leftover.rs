//! The rest of a request's body after the request was answered (RFC 9113, 8.1).
//!
//! An answer may come before the request is over: nobody may ask, the body is too long, the path leads nowhere. When the stream
//! is then reset at once, clients that are still sending lose the answer: curl 7.88 takes the reset for a failure before it has
//! looked at what came with it. So the rest is read and thrown away, and the window opened, as HTTP/1 does with its connection;
//! but only for a while: then the stream is reset with NO_ERROR, which tells the client to keep the answer.

use crate::clock::Clock;
use crate::limits::Linger;
use h2::RecvStream;
use std::future::poll_fn;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

/// The most that is read: as much as on a connection of HTTP/1.
const BYTES_MAX: u64 = 64 << 20;

/// Throws away what comes of the body whose rest `rest` brings when its reader lets go of it; nothing, if that read all of it.
pub async fn discard(rest: oneshot::Receiver<RecvStream>) {
    let Ok(mut stream) = rest.await else {
        return;
    };
    let clock = Clock::start();
    let mut linger = Linger::begin(BYTES_MAX, clock.now());
    while !linger.is_over() {
        let piece = poll_fn(|cx| stream.poll_data(cx));
        let Ok(Some(Ok(bytes))) = timeout_at(clock.at(linger.deadline()), piece).await else {
            // All of it was here, or nothing more comes, or the client is gone.
            return;
        };
        // Fails only for more than was received.
        let _ = stream.flow_control().release_capacity(bytes.len());
        linger.received(bytes.len(), clock.now());
    }
}
