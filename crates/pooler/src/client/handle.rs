//! The handle of a client: what tables say of it, and how it is told to leave.

use crate::client::cancel::CancelTarget;
use crate::client::preemption::Preemption;
use crate::client::refusal::Refusal;
use crate::config::{ClassSubject, ClassTable, ShareBy};
use crate::pool::overtime::YieldedPlace;
use crate::pool::server_session::LoginSecret;
use crate::pool::upstream::IdleLease;
use sooner_admission::{ClientId, JobId, Payer, Subject};
use sooner_config::ClientNetwork;
use sooner_limiter::{Limiter, Permit};
use sooner_postgres::hints::Hints;
use sooner_postgres::parameters::RequestedParameters;
use sooner_postgres::session::ClientState;
use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Instant, SystemTime};
use tokio::sync::Notify;

/// What a client is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Nothing.
    Idle,
    /// It waits for admission.
    Waiting,
    /// It has a server connection.
    Active,
}

/// How many clients a class has, and of these those that wait for admission and those that
/// have a server connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCount {
    pub clients: usize,
    pub waiting: usize,
    pub active: usize,
}

impl ClassCount {
    /// One more, which does this.
    pub fn add(&mut self, activity: Activity) {
        self.clients += 1;
        match activity {
            Activity::Idle => {}
            Activity::Waiting => self.waiting += 1,
            Activity::Active => self.active += 1,
        }
    }
}

/// Whether a client has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Termination {
    /// No.
    No,
    /// When its transaction is over: the pooler stops.
    WhenIdle,
    /// At once: an admin said so.
    Now,
}

/// What a client holds while it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleHold {
    /// An open transaction.
    Transaction,
    /// A server connection that it keeps between transactions.
    Connection,
}

/// A client that waits in a queue.
pub struct Queued<'a>(&'a ClientHandle);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.queue_position.take();
    }
}

/// What is known of a client with a session.
pub struct ClientHandle {
    pub id: u64,
    pub user: String,
    pub database: String,
    pub peer: Option<SocketAddr>,
    /// Version and cipher.
    pub tls: Option<String>,
    pub since: SystemTime,
    /// Its user at its database from its address, and from any address: a statement may take
    /// longer for one of them than for others.
    pub ids: (ClientId, ClientId),
    pub application_name: RefCell<String>,
    /// Its own word for its transactions; empty if it has none.
    pub session_class: RefCell<String>,
    /// The hints of the transaction that it wants or has.
    pub hints: RefCell<Hints>,
    pub activity: Cell<Activity>,
    /// When it began to wait or work.
    pub activity_since: Cell<Instant>,
    /// When the cycle came that it waits or works for: a cancel request that came before does not
    /// mean it.
    pub asked_at: Cell<Instant>,
    /// Since when its open transaction has nothing to do, if it is so.
    pub idle_in_transaction_since: Cell<Option<Instant>>,
    /// Since when it sends nothing more of a message that it has begun inside, if it is so.
    pub cut_off_since: Cell<Option<Instant>>,
    /// Why it keeps its server connection.
    pub pinned_by: Cell<Option<&'static str>>,
    /// There while it keeps a server connection and does not use it.
    pub idle_lease: RefCell<Option<IdleLease>>,
    /// The server connection that it has, as cancel requests need it.
    pub cancel_target: RefCell<Option<CancelTarget>>,
    /// Its places in bounds that a reload has set since it has that.
    later_permits: RefCell<Vec<Permit>>,
    /// Since when its transaction is inside, if it has one there.
    pub inside_since: Cell<Option<Instant>>,
    /// There while that has given its place up.
    pub yielded_place: RefCell<Option<YieldedPlace>>,
    /// The statement, by when it began, that was cancelled last because it ran too long.
    pub cancelled_statement: Cell<Option<Instant>>,
    /// What its transaction is in others' way for, and what becomes of that.
    pub preemption: Preemption,
    /// By which a server connection of its own logs in.
    pub proof: Option<Rc<LoginSecret>>,
    /// The queue in which it waits, and as which job there.
    queue_position: RefCell<Option<(Limiter, JobId)>>,
    /// Told when its client cancels what waits for admission.
    wait_cancelled: Notify,
    termination: Cell<Termination>,
    /// What it held for too long, if that is why it has to leave.
    terminated_for: Cell<Option<IdleHold>>,
    termination_changed: Notify,
}

fn number(of: impl Hash) -> ClientId {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    ClientId(hasher.finish())
}

fn ids(user: &str, database: &str, peer: Option<SocketAddr>) -> (ClientId, ClientId) {
    // Two with one number would only be expected to take the same time.
    let mut hasher = DefaultHasher::new();
    (user, database).hash(&mut hasher);
    let everywhere = ClientId(hasher.finish());
    peer.map(|peer| ClientNetwork::from(peer.ip()))
        .hash(&mut hasher);
    (ClientId(hasher.finish()), everywhere)
}

impl ClientHandle {
    /// One that does nothing yet.
    pub fn new(
        id: u64,
        user: &str,
        database: &str,
        peer: Option<SocketAddr>,
        tls: Option<String>,
        proof: Option<Rc<LoginSecret>>,
    ) -> Rc<Self> {
        Rc::new(Self {
            id,
            user: user.to_owned(),
            database: database.to_owned(),
            peer,
            tls,
            since: SystemTime::now(),
            ids: ids(user, database, peer),
            application_name: RefCell::default(),
            session_class: RefCell::default(),
            hints: RefCell::default(),
            activity: Cell::new(Activity::Idle),
            activity_since: Cell::new(Instant::now()),
            asked_at: Cell::new(Instant::now()),
            idle_in_transaction_since: Cell::new(None),
            cut_off_since: Cell::new(None),
            pinned_by: Cell::new(None),
            idle_lease: RefCell::default(),
            cancel_target: RefCell::default(),
            later_permits: RefCell::default(),
            inside_since: Cell::new(None),
            yielded_place: RefCell::default(),
            cancelled_statement: Cell::new(None),
            preemption: Preemption::default(),
            proof,
            queue_position: RefCell::default(),
            wait_cancelled: Notify::new(),
            termination: Cell::new(Termination::No),
            terminated_for: Cell::new(None),
            termination_changed: Notify::new(),
        })
    }

    /// Who is charged for its transactions.
    pub fn payer(&self, share_by: ShareBy) -> Payer {
        let text = |text: &str| Payer {
            client: number(text),
            network: None,
        };
        match (share_by, self.peer) {
            (ShareBy::Client, Some(peer)) => ClientNetwork::from(peer.ip()).payer(),
            (ShareBy::Client, None) | (ShareBy::User, _) => text(&self.user),
            (ShareBy::Database, _) => text(&self.database),
            (ShareBy::ApplicationName, _) => text(&self.application_name.borrow()),
        }
    }

    /// The number of its class among these, the first that fits; behind the last if none does.
    pub fn class(&self, classes: &[ClassTable]) -> usize {
        let of = ClassSubject {
            user: &self.user,
            database: &self.database,
            application_name: &self.application_name.borrow(),
            address: self.peer.map(|peer| peer.ip()),
            session: &self.session_class.borrow(),
            hints: &self.hints.borrow(),
        };
        let at = classes.iter().position(|class| class.is_for(of));
        at.unwrap_or(classes.len())
    }

    /// What it says of itself by its settings.
    pub fn note_session(&self, state: &ClientState, requested: &RequestedParameters) {
        let name = state.reported.get(&b"application_name"[..]);
        let name = name.map(Vec::as_slice);
        // Before it knows what a server reports, what it asked for stands.
        let name = name.or_else(|| requested.value(b"application_name"));
        let name = name.unwrap_or_default();
        note(&self.application_name, &String::from_utf8_lossy(name));
        let word = state.session_class.as_ref();
        let word = word.or(requested.session_class.as_ref());
        note(&self.session_class, word.map_or("", String::as_str));
    }

    /// It works, if it did not before: what is sent again goes on, and a cancel request that has
    /// come meanwhile means it.
    pub fn set_active(&self) {
        if self.activity.get() != Activity::Active {
            self.set_activity(Activity::Active);
        }
    }

    /// It waits for admission, with what came then, since then: it may be sent back to wait again.
    pub fn set_waiting(&self, came_at: Instant) {
        self.set_activity(Activity::Waiting);
        self.asked_at.set(came_at);
        self.activity_since.set(came_at);
    }

    /// What tables and metrics say that it does. As in PgBouncer, a client that has a server
    /// connection is active.
    pub fn shown_activity(&self) -> Activity {
        match self.activity.get() {
            Activity::Idle if self.has_lease() => Activity::Active,
            activity => activity,
        }
    }

    /// It does something else from now on. What it has waited for is the same when it is let in.
    pub fn set_activity(&self, activity: Activity) {
        let is_let_in = (self.activity.get(), activity) == (Activity::Waiting, Activity::Active);
        if !is_let_in {
            self.asked_at.set(Instant::now());
        }
        if activity == Activity::Active {
            self.idle_lease.take();
            self.inside_since.set(Some(Instant::now()));
        } else {
            self.leave_place();
        }
        self.idle_in_transaction_since.set(None);
        self.cut_off_since.set(None);
        self.activity.set(activity);
        self.activity_since.set(Instant::now());
    }

    /// Its transaction is inside no more.
    pub fn leave_place(&self) {
        self.inside_since.set(None);
        self.yielded_place.take();
    }

    /// It waits in this queue as this job until the result is dropped.
    pub fn queued(&self, limiter: &Limiter, job: JobId) -> Queued<'_> {
        self.queue_position.replace(Some((limiter.clone(), job)));
        Queued(self)
    }

    /// The queue in which it waits, and as which job there.
    pub fn queue_position(&self) -> Option<(Limiter, JobId)> {
        self.queue_position.borrow().clone()
    }

    /// Tells it to go.
    pub fn terminate(&self, termination: Termination) {
        self.termination
            .set(termination.max(self.termination.get()));
        self.termination_changed.notify_waiters();
    }

    /// Whether it has a server connection.
    pub fn has_lease(&self) -> bool {
        self.cancel_target.borrow().is_some()
    }

    /// What it has a server connection for counts in another bound, if it has one.
    pub fn count_in(&self, limiter: &Limiter, class: u8) {
        if !self.has_lease() {
            return;
        }
        let entering = pin!(limiter.acquire(class, Subject::default()));
        let entered = entering.poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Ok(permit)) = entered {
            self.later_permits.borrow_mut().push(permit);
        }
    }

    /// It gives its server connection back.
    pub fn end_lease(&self) {
        self.cancel_target.take();
        self.later_permits.take();
    }

    /// What it holds and does not use at the moment, and since when.
    pub fn idle_hold(&self) -> Option<(IdleHold, Instant)> {
        let connection = |since| (IdleHold::Connection, since);
        match self.activity.get() {
            Activity::Active => {
                let transaction = |since| (IdleHold::Transaction, since);
                let idle = self.idle_in_transaction_since.get().map(transaction);
                idle.or(self.cut_off_since.get().map(connection))
            }
            Activity::Idle if self.has_lease() => Some(connection(self.activity_since.get())),
            _ => None,
        }
    }

    /// Tells it to go at once because of what it holds.
    pub fn terminate_idle(&self, hold: IdleHold) {
        self.terminated_for.set(Some(hold));
        self.terminate(Termination::Now);
    }

    /// What it is told when it has to go.
    pub fn refusal(&self) -> Refusal {
        match self.terminated_for.get() {
            Some(hold) => Refusal::idle_timeout(hold),
            None => Refusal::terminated(),
        }
    }

    /// The client cancels what waits for admission.
    pub fn cancel_wait(&self) {
        self.wait_cancelled.notify_waiters();
    }

    /// Ready when that is so.
    pub async fn wait_cancelled(&self) {
        self.wait_cancelled.notified().await;
    }

    /// Whether it has to go.
    pub fn termination(&self) -> Termination {
        self.termination.get()
    }

    /// Ready when it has to go as `termination` says, or sooner.
    pub async fn terminated(&self, termination: Termination) {
        loop {
            let changed = self.termination_changed.notified();
            if self.termination.get() >= termination {
                return;
            }
            changed.await;
        }
    }
}

fn note(noted: &RefCell<String>, text: &str) {
    let mut noted = noted.borrow_mut();
    if *noted != text {
        text.clone_into(&mut noted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_stops_in_the_middle_of_a_message_holds_a_connection() {
        let handle = ClientHandle::new(1, "ann", "shop", None, None, None);
        handle.set_active();
        assert_eq!(handle.idle_hold(), None);
        let (early, late) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        handle.cut_off_since.set(Some(early));
        assert_eq!(handle.idle_hold(), Some((IdleHold::Connection, early)));
        handle.idle_in_transaction_since.set(Some(late));
        assert_eq!(handle.idle_hold(), Some((IdleHold::Transaction, late)));
        handle.set_activity(Activity::Idle);
        handle.set_activity(Activity::Active);
        assert_eq!(handle.idle_hold(), None);
    }

    #[test]
    fn what_has_to_wait_again_has_waited_since_it_came() {
        let handle = ClientHandle::new(1, "ann", "shop", None, None, None);
        let came_at = Instant::now() - Duration::from_secs(5);
        for _ in 0..2 {
            handle.set_waiting(came_at);
            assert_eq!(handle.activity_since.get(), came_at);
            assert_eq!(handle.asked_at.get(), came_at);
        }
        handle.set_activity(Activity::Active);
        assert!(handle.activity_since.get() > came_at, "it is let in");
        assert_eq!(handle.asked_at.get(), came_at);
    }
}
