//! One server of an upstream: how it stands, how much it does, and its connections.

use super::connect::Connector;
use super::health::{Health, HealthLimits, Standing};
use super::pool::Pool;
use super::trouble::Trouble;
use sooner_admission::{Mean, Time};
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
    /// Requests it did not answer, as the operator is told of them.
    pub trouble: Trouble,
    health: RefCell<Health>,
    inside: Cell<usize>,
    /// Those of them that went in before it went out the last time.
    left_over: Cell<usize>,
    /// How often it went out.
    outs: Cell<u64>,
    requests: Cell<u64>,
    failures: Cell<u64>,
    retries: Cell<u64>,
    service_ns: RefCell<Mean>,
}

impl Server {
    /// A server nobody has asked anything yet.
    pub fn new(connector: Connector, limits: HealthLimits) -> Self {
        Self {
            name: connector.endpoint().to_string().into(),
            pool: Rc::new(Pool::new(connector)),
            trouble: Trouble::default(),
            health: RefCell::new(Health::new(limits)),
            inside: Cell::new(0),
            left_over: Cell::new(0),
            outs: Cell::new(0),
            requests: Cell::new(0),
            failures: Cell::new(0),
            retries: Cell::new(0),
            service_ns: RefCell::new(Mean::new(SERVICE_MEMORY)),
        }
    }

    /// How it stands.
    pub fn standing(&self, now: Time) -> Standing {
        self.health.borrow().standing(now)
    }

    /// How many jobs may be inside for another one to go in, where `limit` is what the operator says. Those that are left over from
    /// before it went out may stay for hours and tell nothing of how it is now: they are not the one job of a probation.
    pub fn places(&self, limit: usize, now: Time) -> usize {
        match self.standing(now) {
            Standing::Up => limit,
            Standing::OnProbation => limit.min(self.left_over.get() + 1),
            Standing::Down => 0,
        }
    }

    /// A job goes in; gives what it has to say when it leaves.
    pub fn enter(&self) -> Entry {
        self.inside.set(self.inside.get() + 1);
        Entry {
            outs: self.outs.get(),
        }
    }

    /// The job of `entry` leaves.
    pub fn leave(&self, entry: Entry) {
        self.inside.set(self.inside.get() - 1);
        if entry.outs < self.outs.get() {
            self.left_over.set(self.left_over.get() - 1);
        }
    }

    /// How many jobs are inside.
    pub fn inside(&self) -> usize {
        self.inside.get()
    }

    /// It is sent a request, or cannot be reached with one.
    pub fn asked(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// A request it did not answer is sent again, to it or to another one.
    pub fn asked_again(&self) {
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

    /// The mean time of a job inside, of late, ns.
    pub fn mean_service_ns(&self) -> Option<u64> {
        self.service_ns.borrow().get()
    }

    /// A job took `service_ns` from the request to the last byte of the response.
    pub fn served(&self, service_ns: u64) {
        self.service_ns.borrow_mut().add(service_ns);
    }

    /// It answered. Whether that changes how it stands.
    pub fn succeeded(&self, now: Time) -> bool {
        self.change_health(now, Health::succeeded)
    }

    /// It gave no answer, or not all of one. What that says of its health is for others to judge.
    pub fn count_failure(&self) {
        self.failures.set(self.failures.get() + 1);
    }

    /// It could not be reached, or did not answer what others answer. Whether that changes how it stands.
    pub fn failed(&self, now: Time) -> bool {
        self.change_health(now, |health| health.failed(now))
    }

    /// It did not answer a request for the path with this hash. Whether that changes how it stands.
    pub fn failed_at(&self, path: u64, now: Time) -> bool {
        self.change_health(now, |health| health.failed_at(path, now))
    }

    /// It answered a regular question, well or not. Whether that changes how it stands.
    pub fn checked(&self, is_well: bool, now: Time) -> bool {
        self.change_health(now, |health| health.checked(is_well))
    }

    /// When it stands differently without anything happening.
    pub fn changes_at(&self, now: Time) -> Option<Time> {
        self.health.borrow().changes_at(now)
    }

    fn change_health(&self, now: Time, change: impl FnOnce(&mut Health)) -> bool {
        let mut health = self.health.borrow_mut();
        let before = (health.standing(now), health.changes_at(now));
        change(&mut health);
        let after = (health.standing(now), health.changes_at(now));
        if after.0 == Standing::Down && before.0 != Standing::Down {
            self.outs.set(self.outs.get() + 1);
            self.left_over.set(self.inside.get());
        }
        before != after
    }
}

/// What a job is told when it goes in.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// How often the server had gone out by then.
    outs: u64,
}
