//! The clients that are here: what tables say of them, and how they are told to leave.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Instant, SystemTime};

use sooner_gate::{Gate, JobId};
use tokio::sync::Notify;

use super::cancel::Running;
use super::door::Kept;
use super::refusal::Refusal;
use crate::config::{ClassTable, Of};
use sooner_postgres::hints::Hints;
use sooner_postgres::parameters::RequestedParameters;
use sooner_postgres::session::ClientState;

/// What a client is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Nothing.
    Idle,
    /// It waits for its turn.
    Waits,
    /// It has a server connection.
    Works,
}

/// How many clients of a class are here, and of these those that wait for their turn and those that have a server connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Present {
    pub clients: usize,
    pub waiting: usize,
    pub working: usize,
}

impl Present {
    /// One more, which does this.
    pub fn add(&mut self, doing: Doing) {
        self.clients += 1;
        match doing {
            Doing::Idle => {}
            Doing::Waits => self.waiting += 1,
            Doing::Works => self.working += 1,
        }
    }
}

/// Whether a client has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leave {
    /// No.
    No,
    /// When its transaction is over: the gate stops.
    WhenIdle,
    /// At once: somebody said so.
    Now,
}

/// What a client holds while it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// An open transaction.
    Transaction,
    /// A server connection that it keeps between transactions.
    Connection,
}

/// A client that waits in a queue.
pub struct Waits<'a>(&'a Here);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waits_at.take();
    }
}

/// A client that has been let in.
pub struct Here {
    pub id: u64,
    pub user: String,
    pub database: String,
    pub peer: Option<SocketAddr>,
    /// Version and cipher.
    pub tls: Option<String>,
    pub since: SystemTime,
    pub application_name: RefCell<String>,
    /// Its own word for its transactions; empty if it has none.
    pub session_class: RefCell<String>,
    /// What the transaction that it wants, or has, says of itself.
    pub said: RefCell<Hints>,
    pub doing: Cell<Doing>,
    /// When it began to wait or work.
    pub doing_since: Cell<Instant>,
    /// Since when its open transaction has nothing to do, if it is so.
    pub rests_since: Cell<Option<Instant>>,
    /// Why it keeps its server connection.
    pub pinned_by: Cell<Option<&'static str>>,
    /// There while it keeps a server connection and does not use it.
    pub kept: RefCell<Option<Kept>>,
    /// The server connection that it has, as cancel requests need it.
    pub running: RefCell<Option<Running>>,
    /// The queue in which it waits, and as which job there.
    waits_at: RefCell<Option<(Gate, JobId)>>,
    /// Told when what waits for its turn is wanted no more.
    withdrawn: Notify,
    leave: Cell<Leave>,
    /// What it held for too long, if that is why it has to leave.
    ended_for: Cell<Option<Holds>>,
    told: Notify,
}

impl Here {
    /// One that does nothing yet.
    pub fn new(
        id: u64,
        user: &str,
        database: &str,
        peer: Option<SocketAddr>,
        tls: Option<String>,
    ) -> Rc<Self> {
        Rc::new(Self {
            id,
            user: user.to_owned(),
            database: database.to_owned(),
            peer,
            tls,
            since: SystemTime::now(),
            application_name: RefCell::default(),
            session_class: RefCell::default(),
            said: RefCell::default(),
            doing: Cell::new(Doing::Idle),
            doing_since: Cell::new(Instant::now()),
            rests_since: Cell::new(None),
            pinned_by: Cell::new(None),
            kept: RefCell::default(),
            running: RefCell::default(),
            waits_at: RefCell::default(),
            withdrawn: Notify::new(),
            leave: Cell::new(Leave::No),
            ended_for: Cell::new(None),
            told: Notify::new(),
        })
    }

    /// The number of its class among these, the first that fits; behind the last if none does.
    pub fn class(&self, classes: &[ClassTable]) -> usize {
        let of = Of {
            user: &self.user,
            database: &self.database,
            application_name: &self.application_name.borrow(),
            address: self.peer.map(|peer| peer.ip()),
            session: &self.session_class.borrow(),
            said: &self.said.borrow(),
        };
        let at = classes.iter().position(|class| class.is_for(of));
        at.unwrap_or(classes.len())
    }

    /// What it says of itself by its settings.
    pub fn note_words(&self, state: &ClientState, wanted: &RequestedParameters) {
        let name = state.reported.get(&b"application_name"[..]);
        let name = name.map(Vec::as_slice).unwrap_or_default();
        note(&self.application_name, &String::from_utf8_lossy(name));
        let word = state.session_class.as_ref();
        let word = word.or(wanted.session_class.as_ref());
        note(&self.session_class, word.map_or("", String::as_str));
    }

    /// It does something else from now on.
    pub fn does(&self, doing: Doing) {
        if doing == Doing::Works {
            self.kept.take();
        }
        self.rests_since.set(None);
        self.doing.set(doing);
        self.doing_since.set(Instant::now());
    }

    /// It waits in this queue as this job until the result is dropped.
    pub fn waits(&self, gate: &Gate, job: JobId) -> Waits<'_> {
        self.waits_at.replace(Some((gate.clone(), job)));
        Waits(self)
    }

    /// The queue in which it waits, and as which job there.
    pub fn waits_at(&self) -> Option<(Gate, JobId)> {
        self.waits_at.borrow().clone()
    }

    /// Tells it to go.
    pub fn tell(&self, leave: Leave) {
        self.leave.set(leave.max(self.leave.get()));
        self.told.notify_waiters();
    }

    /// Whether it has a server connection.
    pub fn has_server(&self) -> bool {
        self.running.borrow().is_some()
    }

    /// What it holds and does not use at the moment, and since when.
    pub fn holds(&self) -> Option<(Holds, Instant)> {
        match self.doing.get() {
            Doing::Works => Some((Holds::Transaction, self.rests_since.get()?)),
            Doing::Idle if self.has_server() => Some((Holds::Connection, self.doing_since.get())),
            _ => None,
        }
    }

    /// Tells it to go at once because of what it holds.
    pub fn end(&self, holds: Holds) {
        self.ended_for.set(Some(holds));
        self.tell(Leave::Now);
    }

    /// What it is told when it has to go.
    pub fn refusal(&self) -> Refusal {
        match self.ended_for.get() {
            Some(holds) => Refusal::held(holds),
            None => Refusal::told(),
        }
    }

    /// What waits for its turn is wanted no more.
    pub fn withdraw(&self) {
        self.withdrawn.notify_waiters();
    }

    /// Ready when that is so.
    pub async fn withdrawn(&self) {
        self.withdrawn.notified().await;
    }

    /// Whether it has to go.
    pub fn must(&self) -> Leave {
        self.leave.get()
    }

    /// Ready when it has to go as `leave` says, or sooner.
    pub async fn told(&self, leave: Leave) {
        loop {
            let told = self.told.notified();
            if self.leave.get() >= leave {
                return;
            }
            told.await;
        }
    }
}

fn note(noted: &RefCell<String>, text: &str) {
    let mut noted = noted.borrow_mut();
    if *noted != text {
        text.clone_into(&mut noted);
    }
}
