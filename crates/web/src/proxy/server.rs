//! One server of an upstream: how it stands, how much it does, and its connections.

use super::connect::Connector;
use super::failure_log::FailureLog;
use super::health::{Health, HealthLimits, Standing};
use super::pool::Pool;
use super::server_limit::{LimitFinder, ServerLimit};
use sooner_admission::{Change, Mean, Need, Time, Window};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// The samples a server's mean time remembers.
const SERVICE_MEMORY: u64 = 64;

/// A server of an upstream.
pub struct Server {
    /// Its name as the configuration writes it.
    pub name: Arc<str>,
    /// Its connections.
    pub pool: Rc<Pool>,
    /// Lines about requests without a response.
    pub failure_log: FailureLog,
    health: RefCell<Health>,
    in_flight: Cell<usize>,
    /// Those of them from before its last ejection.
    left_over: Cell<usize>,
    /// Since when it has had a request that came on probation.
    probed_since: Cell<Option<Time>>,
    /// Those that run for longer than they may, and take no place from others.
    yielders: Cell<usize>,
    /// How often it was ejected.
    ejections: Cell<u64>,
    requests: Cell<u64>,
    failures: Cell<u64>,
    retries: Cell<u64>,
    service_ns: RefCell<Mean>,
    /// What is said of how many requests it gets at once.
    said: Cell<ServerLimit>,
    /// How many it gets.
    limit: Cell<usize>,
    /// Whether it gets all that comes all the same.
    is_observed: Cell<bool>,
    finder: RefCell<Option<LimitFinder>>,
}

impl Server {
    /// A server without a request yet.
    pub fn new(connector: Connector, health: HealthLimits, limit: ServerLimit) -> Self {
        Self {
            name: connector.endpoint().to_string().into(),
            pool: Rc::new(Pool::new(connector)),
            failure_log: FailureLog::default(),
            health: RefCell::new(Health::new(health)),
            in_flight: Cell::new(0),
            left_over: Cell::new(0),
            probed_since: Cell::new(None),
            yielders: Cell::new(0),
            ejections: Cell::new(0),
            requests: Cell::new(0),
            failures: Cell::new(0),
            retries: Cell::new(0),
            service_ns: RefCell::new(Mean::new(SERVICE_MEMORY)),
            said: Cell::new(limit),
            limit: Cell::new(limit.start()),
            is_observed: Cell::new(false),
            finder: RefCell::new(limit.finder()),
        }
    }

    /// From now on this is said of it. What is known of it stays, and so does a limit that was
    /// found, if it is looked for within the same bounds as before.
    pub fn configure(&self, limit: ServerLimit, health: HealthLimits, is_observed: bool) {
        self.health.borrow_mut().set_limits(health);
        self.is_observed.set(is_observed);
        if self.said.replace(limit) != limit {
            self.limit.set(limit.start());
            self.finder.replace(limit.finder());
        }
    }

    /// It was none of its upstream's for a while: what was seen meanwhile tells nothing of its limit.
    pub fn comes_back(&self) {
        if let Some(finder) = self.finder.borrow_mut().as_mut() {
            finder.begin_anew();
        }
    }

    /// How it stands.
    pub fn standing(&self, now: Time) -> Standing {
        self.health.borrow().standing(now)
    }

    /// How many requests it gets at once while it is up; `usize::MAX`: all.
    pub fn limit(&self) -> usize {
        self.limit.get()
    }

    /// How many requests may be in flight: as many as its limit says, and one more for each that
    /// has run for longer than it may, but at most twice as many. Those left over from before its
    /// ejection may stay for hours and tell nothing of its health now: they are not the one request
    /// of a probation.
    ///
    /// The server that is there has as many besides as are elsewhere, and they take its places.
    pub fn capacity(&self, now: Time, beside: Beside) -> usize {
        let elsewhere = beside.elsewhere;
        let all = match (self.standing(now), self.is_observed.get()) {
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
        let limit = self.limit.get();
        let yielders = self.yielders.get() + elsewhere.yielders;
        limit.saturating_add(yielders.min(limit))
    }

    /// One request, and where no other server is up, one more for each second in which one has run
    /// and not failed: one that takes long does not shut out all others.
    fn on_probation(&self, now: Time, beside: Beside) -> usize {
        let since = self.probed_since.get().filter(|_| !beside.is_another_up);
        let seconds = since.map_or(0, |since| now.since(since) / 1_000_000_000);
        let more = usize::try_from(seconds).unwrap_or(usize::MAX);
        (self.left_over.get() + beside.elsewhere.in_flight + 1).saturating_add(more)
    }

    /// How many requests it would get at once.
    pub fn rehearsed_capacity(&self, now: Time) -> usize {
        match self.standing(now) {
            Standing::Up => self.limit.get(),
            Standing::OnProbation => self.limit.get().min(self.left_over.get() + 1),
            Standing::Down => 0,
        }
    }

    /// Whether `other` is the same server, and reached in the same way.
    pub fn is_reached_like(&self, other: &Self) -> bool {
        let (own, other) = (self.pool.connector(), other.pool.connector());
        own.is_like(other)
    }

    /// A request has given its place up and goes on.
    pub fn yielded(&self) {
        self.yielders.set(self.yielders.get() + 1);
    }

    /// Such a request leaves.
    pub fn yielder_left(&self) {
        self.yielders.set(self.yielders.get() - 1);
    }

    /// Looks for its limit; what the queue before it saw is in `whole`.
    pub fn look_for_limit(&self, whole: &Window, needs: &[Need], now: Time) -> Option<Change> {
        let mut finder = self.finder.borrow_mut();
        let finder = finder.as_mut()?;
        let is_up = self.standing(now) == Standing::Up;
        let change = finder.look((self.in_flight.get(), is_up), whole, needs, now)?;
        self.limit.set(change.limit);
        Some(change)
    }

    /// As many as now were in flight until now.
    fn pass(&self, now: Time) {
        if let Some(finder) = self.finder.borrow_mut().as_mut() {
            finder.pass(self.in_flight.get(), now);
        }
    }

    /// A request goes in; gives what [`Server::leave`] takes.
    pub fn enter(&self, now: Time) -> Entry {
        self.pass(now);
        if self.in_flight.get() == self.left_over.get() {
            let is_probe = self.standing(now) == Standing::OnProbation;
            self.probed_since.set(is_probe.then_some(now));
        }
        self.in_flight.set(self.in_flight.get() + 1);
        Entry {
            ejections: self.ejections.get(),
        }
    }

    /// The request of `entry` leaves.
    pub fn leave(&self, entry: Entry, now: Time) {
        self.pass(now);
        self.in_flight.set(self.in_flight.get() - 1);
        if entry.ejections < self.ejections.get() {
            self.left_over.set(self.left_over.get() - 1);
        }
        if self.in_flight.get() == self.left_over.get() {
            self.probed_since.set(None);
        }
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// The same, and how many of them take no place.
    pub fn load(&self) -> Load {
        Load {
            in_flight: self.in_flight.get(),
            yielders: self.yielders.get(),
        }
    }

    /// It is sent a request, or cannot be reached with one.
    pub fn count_request(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// A request it did not answer is sent again, to it or to another one.
    pub fn count_retry(&self) {
        self.retries.set(self.retries.get() + 1);
    }

    /// How many requests it was sent.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// How many of them it did not answer.
    pub fn failures(&self) -> u64 {
        self.failures.get()
    }

    /// How many requests it did not answer were sent again.
    pub fn retries(&self) -> u64 {
        self.retries.get()
    }

    /// The recent mean time of a request in flight, ns.
    pub fn mean_service_ns(&self) -> Option<u64> {
        self.service_ns.borrow().get()
    }

    /// A request took `service_ns` from the request to the last byte of the response. Where that
    /// is an error (`is_error`), it is no work that was done: a server that sheds what is too much
    /// for it would seem to do more the more it gets.
    pub fn served(&self, service_ns: u64, is_error: bool) {
        self.service_ns.borrow_mut().add(service_ns);
        if let (Some(finder), false) = (self.finder.borrow_mut().as_mut(), is_error) {
            finder.completed(service_ns);
        }
    }

    /// It responded. Whether that changes its standing.
    pub fn succeeded(&self, now: Time) -> bool {
        self.change_health(now, Health::succeeded)
    }

    /// It gave no response, or not all of one. The caller judges what that means for its health.
    pub fn count_failure(&self) {
        self.failures.set(self.failures.get() + 1);
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
        self.health.borrow().is_ejected_by_checks()
    }

    /// How often it went out.
    pub fn ejections(&self) -> u64 {
        self.ejections.get()
    }

    /// When its time out by requests has passed.
    pub fn changes_at(&self, now: Time) -> Option<Time> {
        self.health.borrow().changes_at(now)
    }

    fn change_health(&self, now: Time, change: impl FnOnce(&mut Health)) -> bool {
        let mut health = self.health.borrow_mut();
        let before = (health.standing(now), health.changes_at(now));
        change(&mut health);
        let after = (health.standing(now), health.changes_at(now));
        if after.0 == Standing::Down && before.0 != Standing::Down {
            self.ejections.set(self.ejections.get() + 1);
            self.left_over.set(self.in_flight.get());
            self.probed_since.set(None);
        }
        before != after
    }
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
mod tests {
    use super::*;
    use crate::proxy::endpoint::Endpoint;
    use sooner_limiter::bounds;

    fn server(limit: ServerLimit) -> Server {
        let endpoint = Endpoint::parse("http://127.0.0.1:1").unwrap();
        let connector = Connector::new(endpoint, None).unwrap();
        let health = HealthLimits {
            fails: 1,
            checks: None,
        };
        Server::new(connector, health, limit)
    }

    /// Whether another limit is tried within a minute in which requests wait and are answered.
    fn tries_another(is_error: bool) -> bool {
        let server = server(ServerLimit::Found(bounds(256, 0.05)));
        (1..600).any(|look| {
            let now = Time::from_ns(look * 100_000_000);
            let entry = server.enter(now);
            for _ in 0..100 {
                server.served(1_000_000, is_error);
            }
            server.leave(entry, now);
            let whole = Window {
                duration_ns: 100_000_000,
                backlogged_ns: 100_000_000,
                ..Window::default()
            };
            server.look_for_limit(&whole, &[], now).is_some()
        })
    }

    #[test]
    fn errors_are_no_work_by_which_a_limit_is_found() {
        assert!(tries_another(false) && !tries_another(true));
    }

    #[test]
    fn what_is_left_from_another_way_to_reach_it_takes_places() {
        let server = server(ServerLimit::Fixed(4));
        let now = Time::ZERO;
        let left = |in_flight, yielders| {
            let elsewhere = Load {
                in_flight,
                yielders,
            };
            let beside = Beside {
                elsewhere,
                is_another_up: true,
            };
            server.capacity(now, beside)
        };
        assert_eq!([left(0, 0), left(3, 0), left(4, 0)], [4, 1, 0]);
        assert_eq!([left(3, 2), left(9, 9), left(6, 6)], [3, 0, 2]);
        // One finds out how it is, whatever is left.
        server.failed(now);
        let later = now.after(2_000_000_000);
        let beside = |in_flight| Beside {
            elsewhere: Load {
                in_flight,
                yielders: 0,
            },
            is_another_up: true,
        };
        assert_eq!(server.capacity(now, beside(3)), 0);
        assert_eq!(server.capacity(later, beside(3)), 1);
        assert_eq!(server.capacity(later, beside(0)), 1);
    }

    #[test]
    fn a_probe_that_takes_long_makes_room_for_others_where_no_other_server_is_up() {
        let server = server(ServerLimit::Fixed(4));
        let at = |tenths: u64| Time::from_ns(tenths * 100_000_000);
        let capacity = |tenths, is_another_up| {
            let beside = Beside {
                elsewhere: Load::default(),
                is_another_up,
            };
            server.capacity(at(tenths), beside)
        };
        let left_over = server.enter(at(0));
        server.failed(at(0));
        assert_eq!([9, 10, 90].map(|now| capacity(now, false)), [0, 2, 2]);
        let probe = server.enter(at(90));
        assert_eq!([99, 100, 110].map(|now| capacity(now, false)), [2, 3, 4]);
        // It gets no more than its limit, and what is left from before takes places.
        assert_eq!((capacity(999, false), capacity(999, true)), (4, 2));
        // One that ends and tells nothing begins nothing.
        server.leave(probe, at(120));
        assert_eq!(capacity(999, false), 2);
        let failing = server.enter(at(999));
        server.failed(at(1020));
        assert_eq!([1021, 1040].map(|now| capacity(now, false)), [0, 3]);
        server.leave(failing, at(1040));
        server.leave(left_over, at(1040));
        assert_eq!(capacity(1099, false), 1);
    }
}
