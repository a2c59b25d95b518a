//! Admission: a client waits for its database to be open, for its own bounds, then in the one queue
//! of all.
//!
//! The narrower bound comes first: a client that waits for it takes no place from others, and then
//! waits in the common queue, of which the order is the one that counts. Permits are acquired in
//! this order everywhere, so no clients wait in a circle.

use crate::client::handle::{ClientHandle, Termination};
use crate::config::{ClassTable, LockWait, ShareBy};
use crate::configuration::Configuration;
use crate::pool::database::{Database, User};
use crate::pool::lease::owner;
use crate::pool::login_admission::LoginPermit;
use crate::pooler::Pooler;
use crate::stream::Stream;
use bytes::BytesMut;
use sooner_admission::{Payer, Subject};
use sooner_limiter::{Limiter, Permit};
use sooner_postgres::wire::{Splitter, look_at_frontend};
use std::io;
use std::rc::Rc;
use std::time::Instant;
use tokio::task::yield_now;

/// What a client may send ahead while it waits for admission.
const AHEAD_BYTES: usize = 64 * 1024;

/// A client that wants a server connection.
pub struct AdmissionRequest<'a> {
    pub db: &'a Database,
    pub user: &'a User,
    pub handle: &'a ClientHandle,
    pub pooler: &'a Pooler,
    /// When it began to wait.
    pub came_at: Instant,
}

/// A class by its number in the configuration that was in force when it came to the queue.
#[derive(Clone)]
pub struct ClientClass {
    configuration: Rc<Configuration>,
    number: usize,
}

impl ClientClass {
    /// That of a client.
    pub fn of(handle: &ClientHandle, configuration: Rc<Configuration>) -> Self {
        let number = handle.class(&configuration.config.class);
        Self {
            configuration,
            number,
        }
    }

    /// Its name; empty for that of all who are in none.
    pub fn name(&self) -> &str {
        let class = self.configuration.config.class.get(self.number);
        class.map_or("", |class| class.name.get_ref())
    }

    /// Its priority; 0 for that of all who are in none.
    pub fn priority(&self) -> u8 {
        let class = self.configuration.config.class.get(self.number);
        class.map_or(0, |class| *class.priority.get_ref())
    }

    /// What becomes of its waits for locks, if anything does.
    pub fn lock_wait(&self) -> Option<LockWait> {
        let class = self.configuration.config.class.get(self.number);
        class.and_then(ClassTable::lock_wait)
    }

    /// Whether any class's waits for locks are looked at.
    pub fn are_locks_watched(&self) -> bool {
        self.configuration.watches_locks
    }

    /// Its number; behind the last for all who are in none.
    pub fn number(&self) -> u8 {
        // There are fewer classes than that.
        u8::try_from(self.number).unwrap_or(u8::MAX)
    }
}

/// Who is charged for a client's transactions: its user where nothing is said, as a reload may say
/// it while they wait.
pub fn payer_of(handle: &ClientHandle, configuration: &Configuration) -> Payer {
    let share_by = configuration.config.share_by.as_ref();
    handle.payer(share_by.map_or(ShareBy::User, |share_by| *share_by.get_ref()))
}

/// A client that may use a server connection.
pub struct Admitted {
    /// Of the user's transactions and the database's where these have a bound, and the server's.
    pub permits: Vec<Permit>,
    /// To log in in place of another owner, where that is needed.
    pub login: Option<LoginPermit>,
    /// In which it was admitted.
    pub class: ClientClass,
    /// When it began to wait.
    pub came_at: Instant,
}

/// Why a client waits no longer.
pub enum Interrupted {
    /// It has left.
    Left,
    /// It has been told to.
    Terminated,
    /// It wants what it waits for no more.
    Cancelled,
    /// Its database is at another upstream now.
    DatabaseMoved,
    /// It has been admitted, and its role or database is at a limit of the server's own.
    AtLimit,
}

impl AdmissionRequest<'_> {
    /// Waits for admission. Where the client must log in in place of another owner it needs a
    /// permit for that as well: it makes room for others while it waits, and goes first when it is
    /// back.
    async fn wait(&self) -> Admitted {
        let mut login = None;
        let mut is_back = false;
        let mut was_let_in = false;
        loop {
            self.opened(is_back || was_let_in).await;
            let of_user = self.acquire_bounded(&self.user.limiter(), is_back).await;
            let of_database = self.acquire_bounded(&self.db.limiter, is_back).await;
            let class = self.class();
            let upstream = &self.db.upstream;
            let of_server = self.acquire(&upstream.limiter, &class, is_back).await;
            // Meanwhile the database may have been paused, or the user been given a bound. It had no
            // place yet that it could use: it queues again, before those who come later, and behind
            // those of more important classes.
            let is_unbounded = of_user.is_none() && self.user.limiter().is_some();
            let permits = [of_user, of_database, of_server];
            if self.db.is_paused() || is_unbounded {
                was_let_in = true;
                continue;
            }
            let must_log_in = self.must_log_in();
            login = login.filter(|_| must_log_in);
            if must_log_in && login.is_none() {
                if !upstream.logins.has_room(upstream.limiter.status().limit) {
                    permits.into_iter().flatten().for_each(Permit::yield_place);
                    upstream.login_share.borrow_mut().note_wait();
                    login = self.acquire_login().await;
                    is_back = true;
                    continue;
                }
                login = self.acquire_login().await;
            }
            let mut all = Vec::with_capacity(permits.len());
            all.extend(permits.into_iter().flatten());
            return Admitted {
                permits: all,
                login,
                class,
                came_at: self.came_at,
            };
        }
    }

    /// Waits for the database to be open; behind those who were let in before it was paused.
    async fn opened(&self, was_let_in: bool) {
        if self.db.is_paused() {
            self.db.opened().await;
            if !was_let_in {
                yield_now().await;
            }
        }
    }

    fn must_log_in(&self) -> bool {
        let (upstream, configuration) = (&self.db.upstream, self.pooler.configuration());
        let most = upstream.connections(&configuration.config.limits);
        let pool = upstream.pool.borrow();
        // In the usual case there is room, and no need to look at owners.
        pool.open() >= most && pool.must_yield(&owner(&self.handle.user, self.db), most)
    }

    /// The class that the client has now: it may have changed while it waited elsewhere.
    fn class(&self) -> ClientClass {
        ClientClass::of(self.handle, self.pooler.configuration())
    }

    async fn acquire_bounded(&self, limiter: &Option<Limiter>, is_back: bool) -> Option<Permit> {
        let limiter = limiter.as_ref()?;
        self.acquire(limiter, &self.class(), is_back).await
    }

    async fn acquire_login(&self) -> Option<LoginPermit> {
        let limiter = &self.db.upstream.logins.limiter;
        let permit = self.acquire(limiter, &self.class(), false).await;
        permit.map(LoginPermit::new)
    }

    async fn acquire(
        &self,
        limiter: &Limiter,
        class: &ClientClass,
        is_back: bool,
    ) -> Option<Permit> {
        // Its like tell how long it will take: the guard against starvation counts time, not heads.
        let kind = self.handle.hints.borrow().kind();
        let kind = kind.unwrap_or_else(|| class.name().to_owned());
        let (client, user) = self.handle.ids;
        let configuration = self.pooler.configuration();
        let subject = Subject {
            kind,
            amount: None,
            client: Some(client),
            neighbourhood: Some(user),
            payer: Some(payer_of(self.handle, &configuration)),
            ..Subject::default()
        };
        let waited_ns = self.came_at.elapsed().as_nanos() as u64;
        let acquire = if is_back {
            limiter.acquire_again(class.number(), subject, waited_ns)
        } else {
            limiter.acquire_after(class.number(), subject, waited_ns)
        };
        let _queued = acquire.job().map(|job| self.handle.queued(limiter, job));
        // The queue has no bound, so no job is refused.
        acquire.await.ok()
    }

    /// Admits the client if it need not wait.
    pub async fn admit_now(&self) -> Option<Admitted> {
        tokio::select! {
            biased;
            admitted = self.wait() => Some(admitted),
            () = std::future::ready(()) => None,
        }
    }

    /// Waits for a client, which may leave meanwhile and is heard while it does not say too much.
    pub async fn admit(
        &self,
        stream: &mut Stream,
        input: &mut BytesMut,
    ) -> Result<Admitted, Interrupted> {
        let wait = self.wait();
        tokio::select! {
            biased;
            () = self.db.until_replaced() => Err(Interrupted::DatabaseMoved),
            admitted = wait => Ok(admitted),
            interrupted = interruption(stream, input, self.handle) => Err(interrupted),
        }
    }
}

/// Ready when a client gives up what it waits for. What it sends meanwhile is kept, as long as it
/// is not too much.
pub async fn interruption(
    stream: &mut Stream,
    input: &mut BytesMut,
    handle: &ClientHandle,
) -> Interrupted {
    let mut has_left = false;
    loop {
        tokio::select! {
            biased;
            () = handle.terminated(Termination::Now) => return Interrupted::Terminated,
            () = handle.wait_cancelled() => return Interrupted::Cancelled,
            heard = stream.more(input), if !has_left && input.len() < AHEAD_BYTES => {
                if is_there(&heard) {
                    continue;
                }
                // What stands before a goodbye is done before it, however long that takes.
                has_left = says_goodbye(input);
                if !has_left {
                    return Interrupted::Left;
                }
            }
        }
    }
}

/// Whether these messages end with a Terminate.
fn says_goodbye(mut messages: &[u8]) -> bool {
    let mut splitter = Splitter::new(look_at_frontend);
    while let Ok(Some(piece)) = splitter.next(messages) {
        if piece.tag == b'X' {
            return true;
        }
        messages = &messages[piece.bytes.len()..];
    }
    false
}

/// Whether the client said something, and did not leave.
pub fn is_there(heard: &io::Result<usize>) -> bool {
    matches!(heard, Ok(1..))
}
