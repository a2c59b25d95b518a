//! An upstream: servers that answer the same requests, and one queue in front of them.
//!
//! There is one queue for all servers, and a request is given a server when it is admitted: none
//! waits for a busy server while another one is free, and the order holds across servers. The limit
//! of requests in flight is the capacity of the servers that are up, and one for each request that
//! is still in flight at a server that is out: such a request takes nothing from the others. Neither
//! does one that waits for another server than the one that failed it.
//!
//! All of that is one for all workers ([`SharedUpstream`]). Each of them has an [`Upstream`], with
//! connections and tasks of its own.

mod build;
mod capacity;
mod choice;
mod faults;
mod reload;
mod settings;
mod shared;

pub use choice::Choice;
pub use settings::{HealthCheck, HostRule, Settings, Times};
pub use shared::{Current, SharedUpstream};

use crate::proxy::facts::RequestFacts;
use crate::proxy::failure::Failure;
use crate::proxy::overtime::Overtimes;
use crate::proxy::pool::Pool;
use crate::proxy::server::Server;
use sooner_admission::{Order, Subject};
use sooner_config::classes::Longest;
use sooner_limiter::{Acquire, Permit};
use std::cell::{Cell, Ref, RefCell};
use std::ops::Deref;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// An upstream as one worker has it.
pub struct Upstream {
    shared: Arc<SharedUpstream>,
    /// What is said of it, as far as this worker has heard.
    heard: RefCell<Heard>,
    /// Its servers' connections.
    pools: RefCell<Vec<Rc<Pool>>>,
    /// Requests that may not run for longer than so.
    pub overtimes: Rc<Overtimes>,
    /// The time between comments for who waits; another one in tests.
    pub comment_period: Cell<Duration>,
    /// Whether this worker does what is done once for all of them.
    is_first: bool,
    /// The settings by which tasks run for it beside requests.
    runs_by: Cell<Option<u64>>,
    tasks: RefCell<Vec<AbortHandle>>,
}

/// What all workers know, as one of them has it: its clones are counted where no other one counts.
#[derive(Debug)]
pub struct Known<T>(Arc<T>);

impl<T> Deref for Known<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}

/// What is said of an upstream; looked at for each request, so without a lock.
struct Heard {
    /// How often something was said.
    times: u64,
    settings: Rc<Known<Settings>>,
    current: Rc<Known<Current>>,
}

impl Deref for Upstream {
    type Target = SharedUpstream;

    fn deref(&self) -> &SharedUpstream {
        &self.shared
    }
}

impl Upstream {
    /// What all workers have of it.
    pub fn shared(&self) -> &Arc<SharedUpstream> {
        &self.shared
    }

    fn heard(&self) -> Ref<'_, Heard> {
        if self.heard.borrow().times != self.shared.times_said() {
            self.heard.replace(Heard::of(&self.shared));
        }
        self.heard.borrow()
    }

    /// What is said of it now.
    pub fn settings(&self) -> Rc<Known<Settings>> {
        self.heard().settings.clone()
    }

    /// By what requests are let in now.
    pub fn current(&self) -> Rc<Known<Current>> {
        self.heard().current.clone()
    }

    /// Whether nothing was started here since this is said of it.
    pub fn starts_now(&self) -> bool {
        let settings = Some(self.settings_number());
        self.runs_by.replace(settings) != settings
    }

    /// Whether health checks and the like run here.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// These run for it from now on, and no others.
    pub fn run(&self, tasks: Vec<AbortHandle>) {
        for task in self.tasks.replace(tasks) {
            task.abort();
        }
    }

    /// This worker's connections to `server`.
    pub fn pool(&self, server: &Arc<Server>) -> Rc<Pool> {
        let mut pools = self.pools.borrow_mut();
        if let Some(pool) = pools.iter().find(|pool| pool.is_of(server)) {
            return pool.clone();
        }
        let pool = Rc::new(Pool::new(server.clone()));
        pools.push(pool.clone());
        pool
    }

    /// Closes connections that were not used for `keep`, and those to servers that are none of it
    /// any more.
    pub fn sweep(&self, keep: Duration) {
        self.forget_servers();
        for pool in &*self.pools.borrow() {
            pool.sweep(keep);
        }
    }

    /// Closes idle connections to servers that are none of it any more.
    pub fn forget_servers(&self) {
        let known = self.known_servers();
        let is_known = |pool: &Rc<Pool>| known.iter().any(|server| pool.is_of(server));
        self.pools.borrow_mut().retain(is_known);
    }

    /// Whether it has to be known what a request's body says, whatever the classes are.
    pub fn needs_body(&self) -> bool {
        self.heard().settings.fields().next().is_some()
    }

    /// By what a request's time is told, and who is charged for it: its client where none is named,
    /// as a reload may say that while it waits.
    pub fn subject(&self, of: &RequestFacts<'_>) -> Subject {
        let settings = self.settings();
        let subject = settings.kind.subject(of);
        let named = settings.share_by.as_ref().map(|by| by.payer(of));
        Subject {
            payer: named.or(subject.payer),
            ..subject
        }
    }

    /// In which order requests that wait go in.
    pub fn order(&self) -> Order {
        let heard = self.heard();
        heard.settings.order(&heard.current.classes)
    }

    /// Whether nothing is held.
    pub fn is_observed(&self) -> bool {
        self.heard().settings.is_observed()
    }

    /// Whether the class of this number has a name, so that a reload may bound it.
    pub fn is_class(&self, class: u8) -> bool {
        self.heard().current.classes.name(class).is_some()
    }

    /// For how long a request of `class` keeps its place, if that is bounded.
    pub fn longest(&self, class: u8) -> Option<Longest> {
        self.heard().current.classes.longest(class)
    }

    /// Waits for admission; fails at once while no server is up.
    pub async fn admit(&self, acquire: Acquire) -> Result<Permit, Failure> {
        let mut all_down = pin!(self.shared.all_down());
        // From here on no news is missed.
        all_down.as_mut().enable();
        if self.is_down() {
            return Err(self.all_down_failure());
        }
        tokio::select! {
            biased;
            permit = acquire => permit.map_err(|_| Failure::QueueFull { waiting: self.status().waiting }),
            () = all_down => Err(self.all_down_failure()),
        }
    }

    /// Whether no server is up, so that no request is admitted.
    pub fn is_down(&self) -> bool {
        self.heard().settings.is_down(self.now())
    }
}

impl Heard {
    fn of(shared: &SharedUpstream) -> Self {
        let (times, settings, current) = shared.said();
        Self {
            times,
            settings: Rc::new(Known(settings)),
            current: Rc::new(Known(current)),
        }
    }
}
