//! How granted bytes get into the socket.
//!
//! Bytes that lie in a sealed file leave by `sendfile`, which saves the copy into the socket. They
//! are recognized by their address among what is written, so hyper writes as always. Ciphertext and
//! frames of HTTP/2 are other bytes.

use super::GatedStream;
use sooner_kernel::sealed_file::{self, FileSlice, WORTHWHILE_BYTES_MIN};
use sooner_kernel::socket;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;

/// Slices of a vectored write that are passed on; hyper offers a head and up to 16 chunks, and
/// comes back for what was left.
const SLICES_MAX: usize = 16;
/// Up to here copying pieces together is cheaper than a system call with several of them.
const GATHERED_BYTES_MAX: usize = 4096;

thread_local! {
    /// Room for one small write; what is in it is of no use after the call.
    static GATHERED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl GatedStream {
    pub(super) fn write_granted(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
        granted_bytes: usize,
    ) -> Poll<io::Result<usize>> {
        if granted_bytes <= GATHERED_BYTES_MAX && bufs.len() > 1 {
            return self.write_gathered(cx, bufs, granted_bytes);
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut left = granted_bytes;
        let mut count = 0;
        for buf in bufs.iter().filter(|buf| !buf.is_empty()).take(SLICES_MAX) {
            if left == 0 {
                break;
            }
            let taken = buf.len().min(left);
            slices[count] = IoSlice::new(&buf[..taken]);
            count += 1;
            left -= taken;
        }
        let slices = &slices[..count];
        if let Some(in_file) = InFile::find(slices)
            && let Some(result) = in_file.poll_send(&self.io, cx)
        {
            return result;
        }
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    /// Writes the pieces as one, which costs a small response less than to have the kernel gather
    /// them.
    fn write_gathered(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
        granted_bytes: usize,
    ) -> Poll<io::Result<usize>> {
        GATHERED.with_borrow_mut(|gathered| {
            gathered.clear();
            for buf in bufs {
                let left = granted_bytes - gathered.len();
                gathered.extend_from_slice(&buf[..buf.len().min(left)]);
            }
            Pin::new(&mut self.io).poll_write(cx, gathered)
        })
    }
}

/// A write up to the end of its first slice that lies in a sealed file; the rest is for the next
/// write.
struct InFile<'a> {
    before: &'a [IoSlice<'a>],
    before_bytes: usize,
    place: FileSlice,
    bytes: usize,
}

impl<'a> InFile<'a> {
    /// None when no slice that lies in a sealed file is long enough to pay.
    fn find(slices: &'a [IoSlice<'a>]) -> Option<Self> {
        slices.iter().enumerate().find_map(|(index, slice)| {
            if slice.len() < WORTHWHILE_BYTES_MIN {
                return None;
            }
            let before = &slices[..index];
            Some(Self {
                before,
                before_bytes: before.iter().map(|slice| slice.len()).sum(),
                place: sealed_file::find(slice)?,
                bytes: slice.len(),
            })
        })
    }

    /// Sends as much as the socket takes, as a write would; none when the kernel cannot and nothing
    /// was sent.
    fn poll_send(&self, io: &TcpStream, cx: &mut Context<'_>) -> Option<Poll<io::Result<usize>>> {
        match self.poll_sent(io, cx) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Unsupported => None,
            result => Some(result),
        }
    }

    fn poll_sent(&self, io: &TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        loop {
            ready!(io.poll_write_ready(cx))?;
            match io.try_io(Interest::WRITABLE, || self.send(io)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn send(&self, io: &TcpStream) -> io::Result<usize> {
        let mut sent_bytes = 0;
        if self.before_bytes > 0 {
            sent_bytes = socket::write_with_more_to_come(io, self.before)?;
            if sent_bytes < self.before_bytes {
                return Ok(sent_bytes);
            }
        }
        match sealed_file::send(io, &self.place, self.bytes) {
            // What is wrong will still be wrong at the next write, which has nothing to report
            // before it.
            Err(_) if sent_bytes > 0 => Ok(sent_bytes),
            result => Ok(sent_bytes + result?),
        }
    }
}
