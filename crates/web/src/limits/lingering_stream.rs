//! A stream that lingers at its end, so that the client does not lose the last response: see
//! [`Linger`].

use super::activity::Activity;
use super::linger::Linger;
use crate::clock::Clock;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep_until};

/// What is read and thrown away at once, bytes; on the stack, so that lingering holds no memory.
const DISCARDED_BYTES: usize = 16 << 10;
/// The most that is read of a client without a request, bytes: there is no response to lose, only
/// the news that the connection ends.
const UNASKED_BYTES_MAX: u64 = 64 << 10;

/// A stream that completes its shutdown when the client has closed too, or has had time enough. It
/// lingers only where its [`Activity`] says that the client may still be sending, or where bytes
/// lie unread.
pub struct LingeringStream<S> {
    io: S,
    activity: Arc<Activity>,
    bytes_max: u64,
    /// The client has closed its side.
    is_at_end: bool,
    lingering: Option<Box<Lingering>>,
}

/// This side is shut down.
struct Lingering {
    linger: Linger,
    clock: Clock,
    timer: Pin<Box<Sleep>>,
}

impl<S> LingeringStream<S> {
    /// `io`, which does `activity`; at its end up to `bytes_max` are read and thrown away.
    pub fn new(io: S, activity: Arc<Activity>, bytes_max: u64) -> Self {
        Self {
            io,
            activity,
            bytes_max,
            is_at_end: false,
            lingering: None,
        }
    }
}

impl Lingering {
    fn begin(bytes_max: u64) -> Self {
        let clock = Clock::start();
        let linger = Linger::begin(bytes_max, clock.now());
        Self {
            linger,
            clock,
            timer: Box::pin(sleep_until(clock.at(linger.deadline()))),
        }
    }

    /// Ready when the client has had time enough; wakes the task then.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.clock.at(self.linger.deadline());
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        self.timer.as_mut().poll(cx)
    }
}

impl<S: AsyncRead + Unpin> LingeringStream<S> {
    /// Ready when nothing of the client is to be waited for any more.
    fn poll_lingering(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(lingering) = &mut self.lingering else {
            return Poll::Ready(());
        };
        let mut room = [const { MaybeUninit::<u8>::uninit() }; DISCARDED_BYTES];
        loop {
            let mut discarded = ReadBuf::uninit(&mut room);
            match Pin::new(&mut self.io).poll_read(cx, &mut discarded) {
                Poll::Ready(Ok(())) if !discarded.filled().is_empty() => {
                    self.activity.set_sending(true);
                    let now = lingering.clock.now();
                    lingering.linger.received(discarded.filled().len(), now);
                    if lingering.linger.is_over() || now >= lingering.linger.deadline() {
                        return Poll::Ready(());
                    }
                }
                // It has closed, or is gone.
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending if !self.activity.is_sending() => return Poll::Ready(()),
                Poll::Pending => return lingering.poll_timer(cx),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LingeringStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, buf));
        // For a client that is gone this side does not linger either.
        self.is_at_end = buf.filled().len() == before && (read.is_err() || buf.remaining() > 0);
        Poll::Ready(read)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LingeringStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if stream.lingering.is_none() {
            ready!(Pin::new(&mut stream.io).poll_shutdown(cx))?;
            // What comes on a connection that speaks another protocol is wanted elsewhere.
            if stream.is_at_end || stream.activity.is_switched() {
                return Poll::Ready(Ok(()));
            }
            let bytes_max = if stream.activity.has_no_request() {
                stream.bytes_max.min(UNASKED_BYTES_MAX)
            } else {
                stream.bytes_max
            };
            stream.activity.linger();
            stream.lingering = Some(Box::new(Lingering::begin(bytes_max)));
        }
        stream.poll_lingering(cx).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::super::activity::{CoarseClock, Phase};
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::timeout;

    const BYTES_MAX: u64 = 100_000;
    /// Longer than any silence, and than all of it.
    const LONG: Duration = Duration::from_secs(60);

    fn pair() -> (LingeringStream<DuplexStream>, DuplexStream, Arc<Activity>) {
        let (near, far) = duplex(1000);
        let activity = Arc::new(Activity::new(&Arc::<CoarseClock>::default()));
        let stream = LingeringStream::new(near, activity.clone(), BYTES_MAX);
        (stream, far, activity)
    }

    /// Whether the shutdown of `stream` takes longer than the client may take at most.
    async fn ends(stream: &mut LingeringStream<DuplexStream>) -> bool {
        timeout(LONG, stream.shutdown()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_client_still_sends_is_taken_until_it_closes() {
        let (mut stream, mut far, activity) = pair();
        activity.set_sending(true);
        let sending = async {
            // More than the pipe holds, with pauses.
            for _ in 0..10 {
                far.write_all(&[1; 3000]).await.unwrap();
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            assert_eq!(far.read(&mut [0]).await.unwrap(), 0, "the answer has ended");
            drop(far);
        };
        let both = async { tokio::join!(ends(&mut stream), sending) };
        let (ended, ()) = timeout(2 * LONG, both).await.expect("no reader takes it");
        assert!(ended && activity.is_lingering());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_closes_is_left() {
        for pause in [Duration::from_secs(4), LONG] {
            let (mut stream, mut far, activity) = pair();
            activity.set_sending(true);
            let sending = async {
                while far.write_all(&[1]).await.is_ok() {
                    tokio::time::sleep(pause).await;
                }
            };
            tokio::select! {
                ended = ends(&mut stream) => assert!(ended),
                () = sending => {}
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_without_end_is_left() {
        for (has_requested, bytes_max) in [(true, BYTES_MAX), (false, UNASKED_BYTES_MAX)] {
            let (mut stream, mut far, activity) = pair();
            if !has_requested {
                activity.set_phase(Phase::Idle);
            }
            activity.set_sending(true);
            let mut sent_bytes = 0;
            let sending = async {
                while far.write_all(&[1; 1000]).await.is_ok() {
                    sent_bytes += 1000;
                }
            };
            tokio::select! {
                ended = stream.shutdown() => ended.unwrap(),
                () = sending => {}
            }
            let taken = bytes_max..bytes_max + 20_000;
            assert!(taken.contains(&sent_bytes), "{sent_bytes}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_nothing_is_not_waited_for() {
        let (mut stream, far, _) = pair();
        let shutdown = timeout(Duration::from_millis(1), stream.shutdown()).await;
        assert!(shutdown.is_ok(), "nothing was asked for");
        drop(far);
        let (mut stream, far, activity) = pair();
        activity.set_sending(true);
        drop(far);
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
        let shutdown = timeout(Duration::from_millis(1), stream.shutdown()).await;
        assert!(shutdown.is_ok(), "it had closed before");
    }

    #[tokio::test(start_paused = true)]
    async fn another_protocol_keeps_what_comes() {
        let (mut stream, mut far, activity) = pair();
        activity.switch();
        far.write_all(b"more").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = [0; 4];
        stream.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"more");
    }
}
