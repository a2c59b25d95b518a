//! The byte stream below the HTTP/2 library, looked into on the way: PRIORITY_UPDATE frames are found in what is read, one setting is added
//! to what is written first. Everything else passes as it is.

use super::frame_scanner::FrameScanner;
use super::opening::{self, Opening};
use super::priorities::Priorities;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A byte stream that is looked into.
pub struct Tap<Io> {
    io: Io,
    scanner: FrameScanner,
    priorities: Rc<RefCell<Priorities>>,
    start: Start,
}

/// How far the first write is.
enum Start {
    /// Nothing was written.
    Expected,
    /// The amended frame is being written.
    Writing {
        opening: Opening,
        written_bytes: usize,
    },
    /// From here on bytes pass.
    Over,
}

impl<Io> Tap<Io> {
    /// Looks into `io` from its first byte in both directions; what is found goes to `priorities`.
    pub fn new(io: Io, priorities: Rc<RefCell<Priorities>>) -> Self {
        Self {
            io,
            scanner: FrameScanner::default(),
            priorities,
            start: Start::Expected,
        }
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for Tap<Io> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        let read_before = buf.filled().len();
        ready!(Pin::new(&mut tap.io).poll_read(cx, buf))?;
        let priorities = &tap.priorities;
        tap.scanner.feed(&buf.filled()[read_before..], |found| {
            priorities.borrow_mut().note(found);
        });
        Poll::Ready(Ok(()))
    }
}

impl<Io: AsyncWrite + Unpin> Tap<Io> {
    /// Writes the beginning; ready with the bytes of the caller's that are written by it, `None` when it is over.
    ///
    /// Between two calls that end in `Pending` the caller offers the same bytes, as is the rule for writes.
    fn poll_start(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<Option<usize>>> {
        if matches!(self.start, Start::Expected) {
            self.start = match opening::amend(bytes) {
                Some(opening) => Start::Writing {
                    opening,
                    written_bytes: 0,
                },
                None => Start::Over,
            };
        }
        let Start::Writing {
            opening,
            written_bytes,
        } = &mut self.start
        else {
            return Poll::Ready(Ok(None));
        };
        while *written_bytes < opening.frame.len() {
            let left = &opening.frame[*written_bytes..];
            match ready!(Pin::new(&mut self.io).poll_write(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => *written_bytes += written,
            }
        }
        let replaced_bytes = opening.replaced_bytes;
        self.start = Start::Over;
        Poll::Ready(Ok(Some(replaced_bytes)))
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Tap<Io> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tap = self.get_mut();
        if !matches!(tap.start, Start::Over)
            && let Some(written) = ready!(tap.poll_start(cx, bytes))?
        {
            return Poll::Ready(Ok(written));
        }
        Pin::new(&mut tap.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tap = self.get_mut();
        if !matches!(tap.start, Start::Over) {
            let first = slices.iter().find(|slice| !slice.is_empty());
            if let Some(first) = first
                && let Some(written) = ready!(tap.poll_start(cx, first))?
            {
                return Poll::Ready(Ok(written));
            }
        }
        Pin::new(&mut tap.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const SETTINGS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x80";
    const AMENDED: &[u8] = b"\0\0\x0c\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x09\0\0\0\x01";

    fn tap<Io>(io: Io) -> Tap<Io> {
        Tap::new(io, Rc::new(RefCell::new(Priorities::new(1))))
    }

    #[tokio::test]
    async fn bytes_pass_in_both_directions_whatever_the_buffers() {
        for buffer_bytes in [1, 7, 1000] {
            let (near, mut far) = tokio::io::duplex(buffer_bytes);
            let mut tap = tap(near);
            let writing = async {
                tap.write_all(SETTINGS).await.unwrap();
                tap.write_all(SETTINGS).await.unwrap();
                let mut read = [0; 5];
                tap.read_exact(&mut read).await.unwrap();
                assert_eq!(&read, b"hello");
            };
            let reading = async {
                let mut read = vec![0; AMENDED.len() + SETTINGS.len()];
                far.read_exact(&mut read).await.unwrap();
                assert_eq!(read, [AMENDED, SETTINGS].concat());
                far.write_all(b"hello").await.unwrap();
            };
            tokio::join!(writing, reading);
        }
    }

    #[tokio::test]
    async fn updates_are_found_on_the_way() {
        let (near, mut far) = tokio::io::duplex(3);
        let table = Rc::new(RefCell::new(Priorities::new(1)));
        let mut tap = Tap::new(near, table.clone());
        let sent = [&[0; 24][..], b"\0\0\x07\x10\0\0\0\0\0\0\0\0\0u=1"].concat();
        let writing = async { far.write_all(&sent).await.unwrap() };
        let reading = async {
            let mut read = vec![0; sent.len()];
            tap.read_exact(&mut read).await.unwrap();
            assert_eq!(read, sent);
        };
        tokio::join!(writing, reading);
        assert!(table.borrow().violation().is_some(), "of stream 0");
    }
}
