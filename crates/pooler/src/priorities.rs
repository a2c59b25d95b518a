//! Tells `sooner attach postgres` which priority the transaction has that a server process runs,
//! so that the processor goes to the right one first.
//!
//! Nothing is waited for: eight bytes into a socket of this machine, and only when a process gets a
//! transaction of another priority than its last one. Where the socket takes nothing the process is
//! told anew at its next transaction.

use crate::log::log;
use crate::pooler::Pooler;
use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UnixStream;

/// Length of what is told at once.
pub const FRAME_BYTES: usize = 8;
/// Between two attempts to reach it.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A process and its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// As the server numbers it.
    pub process_id: i32,
    /// Of its class; 0 where it is in none.
    pub priority: u8,
}

impl Told {
    /// As it is sent.
    pub fn frame(self) -> [u8; FRAME_BYTES] {
        let mut frame = [0; FRAME_BYTES];
        frame[..4].copy_from_slice(&self.process_id.to_le_bytes());
        frame[4] = self.priority;
        frame
    }

    /// From what was sent; none where it is none.
    pub fn read(frame: [u8; FRAME_BYTES]) -> Option<Self> {
        let [a, b, c, d, priority, 0, 0, 0] = frame else {
            return None;
        };
        let process_id = i32::from_le_bytes([a, b, c, d]);
        (process_id > 0).then_some(Self {
            process_id,
            priority,
        })
    }
}

/// What a server connection's process was told to be, and over which connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastTold {
    epoch: u64,
    priority: u8,
}

/// The way to it.
#[derive(Default)]
pub struct Priorities {
    stream: RefCell<Option<Rc<UnixStream>>>,
    /// Counts connections: what was told over an earlier one is forgotten there.
    epoch: Cell<u64>,
    /// Frames that the socket did not take.
    pub lost: Cell<u64>,
}

impl Priorities {
    /// A process begins a transaction of this priority; 0 is that of no class.
    pub fn tell(&self, process_id: i32, priority: u8, last_told: &Cell<LastTold>) {
        let stream = self.stream.borrow();
        let Some(stream) = stream.as_ref() else {
            return;
        };
        let (epoch, last) = (self.epoch.get(), last_told.get());
        let is_known = last.epoch == epoch && last.priority == priority;
        // Nothing was said of it yet, and there is nothing to say.
        let is_nothing = last.epoch != epoch && priority == 0;
        if is_known || is_nothing {
            return;
        }
        let told = Told {
            process_id,
            priority,
        };
        match stream.try_write(&told.frame()) {
            Ok(FRAME_BYTES) => last_told.set(LastTold { epoch, priority }),
            _ => self.lost.set(self.lost.get() + 1),
        }
    }
}

/// Keeps a connection to it where the configuration names one.
pub async fn keep_connected(pooler: Rc<Pooler>) {
    let mut complained_of: Option<PathBuf> = None;
    loop {
        let path = pooler.configuration().config.priorities.clone();
        let Some(path) = path.map(|path| path.get_ref().clone()) else {
            tokio::time::sleep(RETRY_PAUSE).await;
            continue;
        };
        match UnixStream::connect(&path).await {
            Ok(stream) => {
                complained_of = None;
                let stream = Rc::new(stream);
                let own = &pooler.priorities;
                own.epoch.set(own.epoch.get() + 1);
                own.stream.replace(Some(stream.clone()));
                until_gone(&stream, &pooler, &path).await;
                own.stream.replace(None);
            }
            Err(error) if complained_of.as_ref() != Some(&path) => {
                let place = path.display();
                log(&format!(
                    "priorities {place}: {error}; it is tried every second"
                ));
                complained_of = Some(path);
            }
            Err(_) => {}
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// It never says anything; what can be read is its end. A reload may name another one.
async fn until_gone(stream: &UnixStream, pooler: &Pooler, path: &PathBuf) {
    let mut byte = [0];
    loop {
        let named = pooler.configuration().config.priorities.clone();
        if named.is_none_or(|named| named.get_ref() != path) {
            return;
        }
        let ready = tokio::time::timeout(RETRY_PAUSE, stream.readable()).await;
        if !matches!(ready, Ok(Ok(()))) {
            continue;
        }
        match stream.try_read(&mut byte) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(1..) => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_is_read() {
        let told = Told {
            process_id: 70_000,
            priority: 3,
        };
        assert_eq!(Told::read(told.frame()), Some(told));
        for wrong in [[0; 8], [1, 0, 0, 0, 1, 0, 0, 1], [255; 8]] {
            assert_eq!(Told::read(wrong), None);
        }
    }
}
