//! The connections over HTTP/1 that several workers have to one server: together not more than it
//! takes requests at once.
//!
//! Each worker keeps connections of its own. A server may give each connection a process that does
//! nothing else (Apache prefork, a synchronous application server): then one that is idle at one
//! worker holds the process that a request of another worker was let in for. So a worker that opens
//! a connection beyond the server's limit ends an idle one first, whichever worker has it. One
//! worker alone needs none of that: it opens a connection only where it has no idle one.

use rustix::net::{Shutdown, shutdown};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most idle connections that all workers keep.
const IDLE_MAX: usize = 64;

/// What all workers have open to one server.
#[derive(Default)]
pub struct OpenConnections(Mutex<State>);

#[derive(Default)]
struct State {
    /// How many there are, or are being opened.
    count: usize,
    /// Those that wait for a request, in the order in which they began to.
    idle: BTreeMap<u64, OwnedFd>,
    /// How often one began to.
    numbers: u64,
}

/// The place of one connection; it is free when this is dropped.
pub struct Place {
    connections: Arc<OpenConnections>,
    /// Its socket, while it is not idle.
    socket: Option<OwnedFd>,
    /// Its number while it is idle.
    idle: Option<u64>,
}

impl OpenConnections {
    /// One more is opened. While more are there than `limit`, idle ones end before that.
    pub fn begin(self: &Arc<Self>, limit: usize) -> Place {
        let mut state = self.lock();
        state.count += 1;
        while state.count > limit && state.end_oldest() {}
        drop(state);
        Place {
            connections: self.clone(),
            socket: None,
            idle: None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ends the one that was not needed for the longest time; `false` where none is idle.
    fn end_oldest(&mut self) -> bool {
        let Some((_, socket)) = self.idle.pop_first() else {
            return false;
        };
        // The server sees the end before anything else comes. One that has ended already fails.
        let _ = shutdown(&socket, Shutdown::Both);
        self.count -= 1;
        true
    }
}

impl Place {
    /// The connection is there.
    pub fn connected(&mut self, stream: &impl AsFd) -> io::Result<()> {
        self.socket = Some(stream.as_fd().try_clone_to_owned()?);
        Ok(())
    }

    /// It waits for a request; `false`: there are more than `limit`, so it has to end.
    pub fn rest(&mut self, limit: usize) -> bool {
        let mut state = self.connections.lock();
        if state.count > limit {
            return false;
        }
        let Some(socket) = self.socket.take() else {
            return false;
        };
        if state.idle.len() >= IDLE_MAX {
            state.end_oldest();
        }
        let number = state.numbers;
        state.numbers += 1;
        state.idle.insert(number, socket);
        self.idle = Some(number);
        true
    }

    /// It gets a request; `false`: it was ended.
    pub fn take_up(&mut self) -> bool {
        let Some(number) = self.idle else {
            return true;
        };
        self.socket = self.connections.lock().idle.remove(&number);
        let is_there = self.socket.is_some();
        if is_there {
            self.idle = None;
        }
        is_there
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.connections.lock();
        let was_ended = self
            .idle
            .is_some_and(|number| state.idle.remove(&number).is_none());
        if !was_ended {
            state.count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn count(all: &Arc<OpenConnections>) -> (usize, usize) {
        let state = all.lock();
        (state.count, state.idle.len())
    }

    /// A connection, and its server's end.
    fn opened(all: &Arc<OpenConnections>, limit: usize) -> (Place, UnixStream) {
        let mut place = all.begin(limit);
        let (own, server) = UnixStream::pair().unwrap();
        place.connected(&own).unwrap();
        (place, server)
    }

    #[test]
    fn idle_ones_end_before_there_are_too_many() {
        let all = Arc::<OpenConnections>::default();
        let (mut first, mut first_server) = opened(&all, 2);
        let (mut second, _second_server) = opened(&all, 2);
        assert!(first.rest(2) && second.rest(2));
        assert_eq!(count(&all), (2, 2));
        let (third, _third_server) = opened(&all, 2);
        assert_eq!(count(&all), (2, 1));
        // The server knows already.
        assert_eq!(first_server.read(&mut [0]).unwrap(), 0);
        assert!(!first.take_up() && second.take_up());
        drop(first);
        assert_eq!(count(&all), (2, 0));
        drop((second, third));
        assert_eq!(count(&all), (0, 0));
    }

    #[test]
    fn what_was_opened_beside_busy_ones_makes_one_of_them_end_later() {
        let all = Arc::<OpenConnections>::default();
        let (mut first, _first_server) = opened(&all, 1);
        let (mut second, _second_server) = opened(&all, 1);
        assert_eq!(count(&all), (2, 0));
        assert!(!first.rest(1));
        drop(first);
        assert!(second.rest(1) && second.take_up());
        assert_eq!(count(&all), (1, 0));
    }

    #[test]
    fn so_many_are_kept_in_all() {
        let all = Arc::<OpenConnections>::default();
        let opened: Vec<_> = (0..IDLE_MAX + 3)
            .map(|_| opened(&all, usize::MAX))
            .collect();
        let kept: Vec<_> = opened
            .into_iter()
            .map(|(mut place, _)| (place.rest(usize::MAX), place))
            .collect();
        assert_eq!(count(&all), (IDLE_MAX, IDLE_MAX));
        drop(kept);
        assert_eq!(count(&all), (0, 0));
    }
}
