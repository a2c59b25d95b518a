//! Bytes that lie in a sealed file leave by `sendfile`, which saves the copy into the socket.
//!
//! They are recognized by their address among what is written, so hyper writes as always. Ciphertext and frames of HTTP/2 are other bytes.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use sooner_kernel::sealed_file::{self, Place, WORTHWHILE_BYTES_MIN};
use sooner_kernel::socket;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// A write up to the end of its first slice that lies in a sealed file; the rest is for the next write.
pub struct InFile<'a> {
    before: &'a [IoSlice<'a>],
    before_bytes: usize,
    place: Place,
    bytes: usize,
}

impl<'a> InFile<'a> {
    /// None when no slice that lies in a sealed file is long enough to pay.
    pub fn find(slices: &'a [IoSlice<'a>]) -> Option<Self> {
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

    /// Sends as much as the socket takes, as a write would; none when the kernel cannot and nothing was sent.
    pub fn poll_send(
        &self,
        io: &TcpStream,
        cx: &mut Context<'_>,
    ) -> Option<Poll<io::Result<usize>>> {
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
            // What is wrong will still be wrong at the next write, which has nothing to report before it.
            Err(_) if sent_bytes > 0 => Ok(sent_bytes),
            result => Ok(sent_bytes + result?),
        }
    }
}
