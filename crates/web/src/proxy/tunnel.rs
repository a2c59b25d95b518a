//! A connection that has switched to another protocol (WebSocket): bytes both ways until both sides are done, or silent for too long.

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional_with_sizes};
use tokio::time::sleep;

/// What is held of each direction, bytes.
const BUFFER_BYTES: usize = 16 << 10;

/// Joins two connections when both have switched; ends when they have, or after `silence` to twice `silence` without a byte.
pub async fn join(client: OnUpgrade, upstream: OnUpgrade, silence: Duration) {
    let (Ok(upstream), Ok(client)) = (upstream.await, client.await) else {
        // One of them went before the switch; dropping the other one ends it too.
        return;
    };
    let moved_bytes = Rc::new(Cell::new(0));
    let mut client = Watched::new(client, &moved_bytes);
    let mut upstream = Watched::new(upstream, &moved_bytes);
    tokio::select! {
        // How it ended concerns the two sides, and they know.
        _ = copy_bidirectional_with_sizes(&mut client, &mut upstream, BUFFER_BYTES, BUFFER_BYTES) => {}
        () = silent(&moved_bytes, silence) => {}
    }
}

async fn silent(moved_bytes: &Cell<u64>, silence: Duration) {
    loop {
        let before = moved_bytes.get();
        sleep(silence).await;
        if moved_bytes.get() == before {
            return;
        }
    }
}

/// A stream that counts what is read from it.
struct Watched {
    stream: TokioIo<Upgraded>,
    moved_bytes: Rc<Cell<u64>>,
}

impl Watched {
    fn new(stream: Upgraded, moved_bytes: &Rc<Cell<u64>>) -> Self {
        Self {
            stream: TokioIo::new(stream),
            moved_bytes: moved_bytes.clone(),
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        self.moved_bytes.set(self.moved_bytes.get() + read as u64);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
