//! One server of an upstream: how it stands, and how much it does, for all workers.
//!
//! What takes part in a decision (requests in flight, health, limit) changes under the lock of its
//! upstream ([`SharedUpstream`](super::upstream::SharedUpstream)), and may be read without.

use super::connect::Connector;
use super::failure_log::FailureLog;
use super::health::{Health, HealthLimits, Standing};
use super::open_connections::{OpenConnections, Place};
use super::server_limit::{LimitFinder, ServerLimit};
use sooner_admission::{Change, Mean, Need, Time, Window};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The samples a server's mean time remembers.
const SERVICE_MEMORY: u64 = 64;
/// A time that is none, ns.
const NEVER_NS: u64 = u64::MAX;

/// A server of an upstream.
pub struct Server {
    /// Its name as the configuration writes it.
    pub name: Arc<str>,
    /// How it is reached.
    pub connector: Connector,
    /// Lines about requests without a response.
    pub failure_log: FailureLog,
    health: Mutex<Health>,
    /// [`Health::out_until_ns`], for all who ask how it stands.
    out_until_ns: AtomicU64,
    in_flight: AtomicUsize,
    /// Those of them from before its last ejection.
    left_over: AtomicUsize,
    /// Since when it has had a request that came on probation, or [`NEVER_NS`].
    probed_since_ns: AtomicU64,
    /// Those that run for longer than they may, and take no place from others.
    yielders: AtomicUsize,
    /// How often it was ejected.
    ejections: AtomicU64,
    requests: AtomicU64,
    failures: AtomicU64,
    retries: AtomicU64,
    service_ns: Mutex<Mean>,
    /// What is said of how many requests it gets at once.
    said: Mutex<ServerLimit>,
    /// How many it gets.
    limit: AtomicUsize,
    /// Whether it gets all that comes all the same.
    is_observed: AtomicBool,
    finder: Mutex<Option<LimitFinder>>,
    /// What several workers have open; none where there is one, which uses its own first.
    open: Option<Arc<OpenConnections>>,
}

impl Server {
    /// A server without a request yet, for so many workers.
    pub fn new(
        connector: Connector,
        health: HealthLimits,
        limit: ServerLimit,
        workers: usize,
    ) -> Self {
        Self {
            name: connector.endpoint().to_string().into(),
            open: (workers > 1 && connector.keeps_connections()).then(Arc::default),
            connector,
            failure_log: FailureLog::default(),
            health: Mutex::new(Health::new(health)),
            out_until_ns: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            left_over: AtomicUsize::new(0),
            probed_since_ns: AtomicU64::new(NEVER_NS),
            yielders: AtomicUsize::new(0),
            ejections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            service_ns: Mutex::new(Mean::new(SERVICE_MEMORY)),
            said: Mutex::new(limit),
            limit: AtomicUsize::new(limit.start()),
            is_observed: AtomicBool::new(false),
            finder: Mutex::new(limit.finder()),
        }
    }

    /// From now on this is said of it. What is known of it stays, and so does a limit that was
    /// found, if it is looked for within the same bounds as before.
    pub fn configure(&self, limit: ServerLimit, health: HealthLimits, is_observed: bool) {
        self.with_health(|it| it.set_limits(health));
        self.is_observed.store(is_observed, Relaxed);
        if std::mem::replace(&mut *lock(&self.said), limit) != limit {
            self.limit.store(limit.start(), Relaxed);
            *lock(&self.finder) = limit.finder();
        }
    }

    /// It was none of its upstream's for a while: what was seen meanwhile tells nothing of its limit.
    pub fn comes_back(&self) {
        if let Some(finder) = lock(&self.finder).as_mut() {
            finder.begin_anew();
        }
    }

    /// How it stands.
    pub fn standing(&self, now: Time) -> Standing {
        match self.out_until_ns.load(Relaxed) {
            0 => Standing::Up,
            until_ns if now.as_ns() < until_ns => Standing::Down,
            _ => Standing::OnProbation,
        }
    }

    /// How many requests it gets at once while it is up; `usize::MAX`: all.
    pub fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// A place for a connection that is opened now; `None` where one worker has all.
    pub fn place(&self) -> Option<Place> {
        let open = self.open.as_ref()?;
        Some(open.begin(self.connections_max()))
    }

    /// How many connections there may be beside busy ones: as many as it gets requests at once;
    /// where nothing is held, so are connections not.
    pub fn connections_max(&self) -> usize {
        match self.is_observed.load(Relaxed) {
            true => usize::MAX,
            false => self.limit(),
        }
    }

    /// How many requests may be in flight: as many as its limit says, and one more for each that
    /// has run for longer than it may, but at most twice as many. Those left over from before its
    /// ejection may stay for hours and tell nothing of its health now: they are not the one request
    /// of a probation.
    ///
    /// The server that is there has as many besides as are elsewhere, and they take its places.
    pub fn capacity(&self, now: Time, beside: Beside) -> usize {
        let elsewhere = beside.elsewhere;
        let all = match (self.standing(now), self.is_observed.load(Relaxed)) {
            (Standing::Up, true) => usize::MAX,
            (Standing::Up, false) => self.most(elsewhere),
            (Standing::OnProbation, true) => self.on_probation(now, beside),
            (Standing::OnProbation, false) => {
                self.most(elsewhere).min(self.on_probation(now, beside))
            }
            (Standing::Down, _) => 0,
        };
        all.saturating_sub(elsewhere.in_flight)
    }

    fn most(&self, elsewhere: Load) -> usize {
        let limit = self.limit();
        let yielders = self.yielders.load(Relaxed) + elsewhere.yielders;
        limit.saturating_add(yielders.min(limit))
    }

    /// One request, and where no other server is up, one more for each second in which one has run
    /// and not failed: one that takes long does not shut out all others.
    fn on_probation(&self, now: Time, beside: Beside) -> usize {
        let since_ns = self.probed_since_ns.load(Relaxed);
        let counts = since_ns != NEVER_NS && !beside.is_another_up;
        let since = counts.then(|| Time::from_ns(since_ns));
        let seconds = since.map_or(0, |since| now.since(since) / 1_000_000_000);
        let more = usize::try_from(seconds).unwrap_or(usize::MAX);
        (self.left_over.load(Relaxed) + beside.elsewhere.in_flight + 1).saturating_add(more)
    }

    /// How many requests it would get at once.
    pub fn rehearsed_capacity(&self, now: Time) -> usize {
        match self.standing(now) {
            Standing::Up => self.limit(),
            Standing::OnProbation => self.limit().min(self.left_over.load(Relaxed) + 1),
            Standing::Down => 0,
        }
    }

    /// Whether `other` is the same server, and reached in the same way.
    pub fn is_reached_like(&self, other: &Self) -> bool {
        self.connector.is_like(&other.connector)
    }

    /// A request has given its place up and goes on.
    pub fn yielded(&self) {
        self.yielders.fetch_add(1, Relaxed);
    }

    /// Such a request leaves.
    pub fn yielder_left(&self) {
        self.yielders.fetch_sub(1, Relaxed);
    }

    /// Looks for its limit; what the queue before it saw is in `whole`.
    pub fn look_for_limit(&self, whole: &Window, needs: &[Need], now: Time) -> Option<Change> {
        let mut finder = lock(&self.finder);
        let finder = finder.as_mut()?;
        let is_up = self.standing(now) == Standing::Up;
        let change = finder.look((self.in_flight(), is_up), whole, needs, now)?;
        self.limit.store(change.limit, Relaxed);
        Some(change)
    }

    /// As many as now were in flight until now.
    fn pass(&self, now: Time) {
        if let Some(finder) = lock(&self.finder).as_mut() {
            finder.pass(self.in_flight(), now);
        }
    }

    /// A request goes in; gives what [`Server::leave`] takes.
    pub fn enter(&self, now: Time) -> Entry {
        self.pass(now);
        if self.in_flight() == self.left_over.load(Relaxed) {
            let is_probe = self.standing(now) == Standing::OnProbation;
            let since_ns = if is_probe { now.as_ns() } else { NEVER_NS };
            self.probed_since_ns.store(since_ns, Relaxed);
        }
        self.in_flight.fetch_add(1, Relaxed);
        Entry {
            ejections: self.ejections(),
        }
    }

    /// The request of `entry` leaves.
    pub fn leave(&self, entry: Entry, now: Time) {
        self.pass(now);
        self.in_flight.fetch_sub(1, Relaxed);
        if entry.ejections < self.ejections() {
            self.left_over.fetch_sub(1, Relaxed);
        }
        if self.in_flight() == self.left_over.load(Relaxed) {
            self.probed_since_ns.store(NEVER_NS, Relaxed);
        }
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }

    /// The same, and how many of them take no place.
    pub fn load(&self) -> Load {
        Load {
            in_flight: self.in_flight(),
            yielders: self.yielders.load(Relaxed),
        }
    }

    /// It is sent a request, or cannot be reached with one.
    pub fn count_request(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    /// A request it did not answer is sent again, to it or to another one.
    pub fn count_retry(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    /// How many requests it was sent.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// How many of them it did not answer.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// How many requests it did not answer were sent again.
    pub fn retries(&self) -> u64 {
        self.retries.load(Relaxed)
    }

    /// The recent mean time of a request in flight, ns.
    pub fn mean_service_ns(&self) -> Option<u64> {
        lock(&self.service_ns).get()
    }

    /// A request took `service_ns` from the request to the last byte of the response. Where that
    /// is an error (`is_error`), it is no work that was done: a server that sheds what is too much
    /// for it would seem to do more the more it gets.
    pub fn served(&self, service_ns: u64, is_error: bool) {
        lock(&self.service_ns).add(service_ns);
        if let (Some(finder), false) = (lock(&self.finder).as_mut(), is_error) {
            finder.completed(service_ns);
        }
    }

    /// It responded. Whether that changes its standing.
    pub fn succeeded(&self, now: Time) -> bool {
        self.change_health(now, Health::succeeded)
    }

    /// It gave no response, or not all of one. The caller judges what that means for its health.
    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    /// A connection to it was opened. Whether that changes its standing.
    pub fn connected(&self, now: Time) -> bool {
        self.change_health(now, |health| health.connected(now))
    }

    /// It could not be reached. Whether that changes how it stands.
    pub fn unreachable(&self, now: Time) -> bool {
        self.change_health(now, |health| health.unreachable(now))
    }

    /// It did not answer what others answer. Whether that changes how it stands.
    pub fn failed(&self, now: Time) -> bool {
        self.change_health(now, |health| health.failed(now))
    }

    /// It did not answer a request for the path with this hash. Whether that changes how it stands.
    pub fn failed_at(&self, path: u64, now: Time) -> bool {
        self.change_health(now, |health| health.failed_at(path, now))
    }

    /// It passed a health check, or not. Whether that changes its standing.
    pub fn checked(&self, is_well: bool, now: Time) -> bool {
        self.change_health(now, |health| health.checked(is_well))
    }

    /// Whether only health checks take it back in.
    pub fn is_ejected_by_checks(&self) -> bool {
        lock(&self.health).is_ejected_by_checks()
    }

    /// How often it went out.
    pub fn ejections(&self) -> u64 {
        self.ejections.load(Relaxed)
    }

    /// When its time out by requests has passed.
    pub fn changes_at(&self, now: Time) -> Option<Time> {
        lock(&self.health).changes_at(now)
    }

    fn change_health(&self, now: Time, change: impl FnOnce(&mut Health)) -> bool {
        let (before, after) = self.with_health(|health| {
            let before = (health.standing(now), health.changes_at(now));
            change(health);
            (before, (health.standing(now), health.changes_at(now)))
        });
        if after.0 == Standing::Down && before.0 != Standing::Down {
            self.ejections.fetch_add(1, Relaxed);
            self.left_over.store(self.in_flight(), Relaxed);
            self.probed_since_ns.store(NEVER_NS, Relaxed);
        }
        before != after
    }

    fn with_health<T>(&self, change: impl FnOnce(&mut Health) -> T) -> T {
        let mut health = lock(&self.health);
        let result = change(&mut health);
        self.out_until_ns.store(health.out_until_ns(), Relaxed);
        result
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a server has in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// How many requests.
    in_flight: usize,
    /// Those of them that run for longer than they may.
    yielders: usize,
}

impl Load {
    /// With that of another.
    pub fn with(self, other: Self) -> Self {
        Self {
            in_flight: self.in_flight + other.in_flight,
            yielders: self.yielders + other.yielders,
        }
    }
}

/// What is to be known beside a server of how many requests it may have.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// What it has besides: it was reached in another way before.
    pub elsewhere: Load,
    /// Whether another server of its upstream is up.
    pub is_another_up: bool,
}

/// When a request went in.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// How often the server had gone out by then.
    ejections: u64,
}

#[cfg(test)]
mod tests;
