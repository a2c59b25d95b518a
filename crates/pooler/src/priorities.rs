//! Tells `sooner attach postgres` which priority the transaction has that a server process runs,
//! so that the processor goes to the right one first.
//!
//! Nothing is waited for: eight bytes into a socket of this machine, and only when a process gets a
//! transaction of another priority than its last one. Where the socket takes nothing the process is
//! told anew at its next transaction. Each server has a socket of its own: numbers of processes mean
//! nothing on another one.

use crate::config::Endpoint;
use crate::lock_map::LockSlot;
use crate::log::log;
use crate::pooler::Pooler;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::task::{AbortHandle, JoinSet};

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

/// A server connection's process, and what was told of it last.
pub struct ToldProcess {
    /// As the server numbers it.
    process_id: i32,
    last_told: Cell<LastTold>,
    /// Its place in the lock map, where the server has one.
    pub lock_slot: Option<LockSlot>,
}

impl ToldProcess {
    /// One of which nothing was told.
    pub fn new(process_id: i32) -> Self {
        Self {
            process_id,
            last_told: Cell::default(),
            lock_slot: None,
        }
    }

    /// It works for a transaction of this priority from now on; 0 is that of no class.
    pub fn tell(&self, priorities: &Priorities, server: &Endpoint, priority: u8) {
        priorities.tell((server, self.process_id), priority, &self.last_told);
        if let Some(slot) = &self.lock_slot {
            slot.tell(self.process_id, priority);
        }
    }
}

/// The ways to them, by server.
#[derive(Default)]
pub struct Priorities {
    ways: RefCell<BTreeMap<Endpoint, Rc<Way>>>,
    /// Counts connections of all ways: what was told over an earlier one is forgotten there.
    epoch: Rc<Cell<u64>>,
    /// Frames that a socket did not take.
    pub lost: Cell<u64>,
}

/// To one of them.
#[derive(Default)]
struct Way {
    stream: RefCell<Option<Rc<UnixStream>>>,
    /// The number of its connection.
    epoch: Cell<u64>,
}

impl Priorities {
    /// A process of a server begins a transaction of this priority; 0 is that of no class, and is
    /// told as well: what sees the gate's own user there knows less.
    fn tell(
        &self,
        (server, process_id): (&Endpoint, i32),
        priority: u8,
        last_told: &Cell<LastTold>,
    ) {
        let ways = self.ways.borrow();
        let Some(way) = ways.get(server) else { return };
        let stream = way.stream.borrow();
        let Some(stream) = stream.as_ref() else {
            return;
        };
        let now = LastTold {
            epoch: way.epoch.get(),
            priority,
        };
        if last_told.get() == now {
            return;
        }
        let told = Told {
            process_id,
            priority,
        };
        match stream.try_write(&told.frame()) {
            Ok(FRAME_BYTES) => last_told.set(now),
            _ => self.lost.set(self.lost.get() + 1),
        }
    }
}

/// Keeps a connection to each that the configuration names; a reload may name others.
pub async fn keep_connected(pooler: Rc<Pooler>) {
    let mut tasks = JoinSet::new();
    let mut kept: BTreeMap<PathBuf, (Rc<Way>, AbortHandle)> = BTreeMap::new();
    loop {
        let named = pooler.configuration().config.priority_sockets();
        kept.retain(|path, (_, task)| {
            let is_named = named.values().any(|own| own == path);
            if !is_named {
                task.abort();
            }
            is_named
        });
        let own = &pooler.priorities;
        let mut ways = BTreeMap::new();
        for (server, path) in named {
            let (way, _) = kept.entry(path).or_insert_with_key(|path| {
                let way = Rc::new(Way::default());
                let task = keep(path.clone(), way.clone(), own.epoch.clone());
                (way, tasks.spawn_local(task))
            });
            ways.insert(server, way.clone());
        }
        own.ways.replace(ways);
        tokio::time::sleep(RETRY_PAUSE).await;
        while tasks.try_join_next().is_some() {}
    }
}

async fn keep(path: PathBuf, way: Rc<Way>, epoch: Rc<Cell<u64>>) {
    let mut has_complained = false;
    loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => {
                has_complained = false;
                let stream = Rc::new(stream);
                epoch.set(epoch.get() + 1);
                way.epoch.set(epoch.get());
                way.stream.replace(Some(stream.clone()));
                until_gone(&stream).await;
                way.stream.replace(None);
            }
            Err(error) if !has_complained => {
                complain(&path, &error);
                has_complained = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

fn complain(path: &Path, error: &std::io::Error) {
    let place = path.display();
    log(&format!(
        "priorities {place}: {error}; trying again every second"
    ));
}

/// It never says anything; what can be read is its end.
async fn until_gone(stream: &UnixStream) {
    let mut byte = [0];
    loop {
        if stream.readable().await.is_err() {
            return;
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

    #[tokio::test]
    async fn each_server_has_its_own_and_no_class_is_told_too() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let priorities = Priorities::default();
        let at = |port| Endpoint::Tcp("db".into(), port);
        let way = Way {
            stream: RefCell::new(Some(Rc::new(ours))),
            epoch: Cell::new(1),
        };
        priorities.ways.borrow_mut().insert(at(1), Rc::new(way));
        let [one, other] = [Cell::default(), Cell::default()];
        for (port, process_id, priority, last_told) in [
            (1, 7, 0, &one),
            (1, 7, 0, &one),
            (2, 8, 3, &other),
            (1, 7, 3, &one),
            (1, 7, 0, &one),
        ] {
            priorities.tell((&at(port), process_id), priority, last_told);
        }
        let mut bytes = [0; 64];
        theirs.readable().await.unwrap();
        let count = theirs.try_read(&mut bytes).unwrap();
        let frames = bytes[..count].chunks_exact(FRAME_BYTES);
        let told = frames.filter_map(|frame| Told::read(frame.try_into().ok()?));
        let told: Vec<(i32, u8)> = told.map(|own| (own.process_id, own.priority)).collect();
        assert_eq!(told, [(7, 0), (7, 3), (7, 0)]);
        assert_eq!(priorities.lost.get(), 0);
    }
}
