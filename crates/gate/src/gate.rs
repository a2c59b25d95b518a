//! The gate as futures: wait to go in, hold a permit while inside, let the next one in by dropping it.

use crate::admission::{Admission, Coming, QueueFull};
use crate::estimate::Estimates;
use crate::goals::{Goal, Goals, Need, Standing};
use crate::order::Order;
use crate::window::{Window, Windows};
use sooner_policy::{JobId, Promise, Time};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The keys whose expected times are remembered.
const KEYS_MAX: usize = 1024;

/// What a gate holds back.
#[derive(Clone, Copy, Debug)]
pub struct GateLimits {
    /// How many jobs may be inside at once.
    pub limit: usize,
    /// In which order those of one class go in.
    pub order: Order,
    /// How many may wait; `None`: all that come.
    pub waiting_max: Option<usize>,
    /// How many jobs of a key its expected time remembers.
    pub key_memory: u64,
}

/// How a gate is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateStatus {
    /// How many jobs may be inside.
    pub limit: usize,
    /// How many are.
    pub inside: usize,
    /// How many wait.
    pub waiting: usize,
    /// How many have gone in since the start.
    pub admitted: u64,
    /// How many of these were completed.
    pub completed: u64,
    /// The mean time inside of those completed recently, ns; `None` before the first.
    pub mean_service_ns: Option<u64>,
}

/// Holds jobs outside a backend. Clones are the same gate.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<Mutex<Shared>>,
    origin: Instant,
}

struct Shared {
    admission: Admission,
    order: Order,
    estimates: Estimates,
    goals: Goals,
    /// Which goals: jobs that came under earlier ones are counted nowhere.
    generation: u64,
    windows: Windows,
    /// How many may be inside besides those that keep their places.
    limit: usize,
    /// Places that are kept and not used.
    kept: usize,
    /// Jobs whose future has not been told yet that they are inside.
    outside: HashMap<JobId, Outside>,
    jobs: u64,
    admitted: u64,
    completed: u64,
}

enum Outside {
    Waiting(Option<Waker>),
    /// Let in at this time, and called.
    Called(Time),
}

impl Gate {
    /// A gate nobody has come to yet.
    pub fn new(limits: GateLimits) -> Self {
        let shared = Shared {
            admission: Admission::new(limits.order, limits.limit, limits.waiting_max),
            order: limits.order,
            estimates: Estimates::with_memory(KEYS_MAX, limits.key_memory),
            goals: Goals::default(),
            generation: 0,
            windows: Windows::default(),
            limit: limits.limit,
            kept: 0,
            outside: HashMap::new(),
            jobs: 0,
            admitted: 0,
            completed: 0,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
            origin: Instant::now(),
        }
    }

    /// A job of `class` comes, like others of `key`. It waits from now on, polled or not; dropping the future gives it up.
    pub fn enter(&self, class: u8, key: String) -> Enter {
        self.enter_after(class, key, 0)
    }

    /// The same for a job that has already waited elsewhere: its target counts from when it came there.
    pub fn enter_after(&self, class: u8, key: String, waited_ns: u64) -> Enter {
        self.come(class, key, waited_ns, false)
    }

    /// The same for a job that has made room for others ([`Permit::step_out`]): it goes in before all who wait.
    pub fn come_back(&self, class: u8, key: String, waited_ns: u64) -> Enter {
        self.come(class, key, waited_ns, true)
    }

    fn come(&self, class: u8, key: String, waited_ns: u64, is_back: bool) -> Enter {
        let mut generation = 0;
        let state = self.change(|shared, now| {
            let job = JobId(shared.jobs);
            shared.jobs += 1;
            generation = shared.generation;
            let coming = shared.coming(class, &key, waited_ns, now);
            match shared.arrive(job, coming, is_back, now) {
                Ok(()) => {
                    shared.outside.insert(job, Outside::Waiting(None));
                    State::Waiting { job, came_at: now }
                }
                Err(full) => State::Refused(full),
            }
        });
        Enter {
            gate: self.clone(),
            visit: Visit {
                class,
                key,
                waited_ns,
                generation,
            },
            state,
        }
    }

    /// From now on classes have these goals, by number, and those who wait go in by `order`, as if they had come under these goals: each in the class
    /// that `numbers` has for it, or else in that of its name, or where that is gone, in the last one. What was learned of classes that stay, stays, and
    /// so does what was promised to jobs whose class is to get the same as before.
    pub fn set_goals(&self, order: Order, goals: Vec<Goal>, numbers: &HashMap<JobId, u8>) {
        self.change(|shared, now| {
            shared.order = order;
            shared.generation += 1;
            for (number, goal) in (0..=u8::MAX).zip(&goals) {
                shared.admission.set_weight(number, goal.weight);
            }
            let by_name = shared.goals.renumbered(&goals);
            shared.goals.replace(goals);
            let goals = &shared.goals;
            let renewed = |job: JobId, coming: Coming| {
                let named = by_name.get(usize::from(coming.number)).copied();
                let (named, is_same) = named.unwrap_or((coming.number, false));
                let number = numbers.get(&job).copied().unwrap_or(named);
                let promise = match is_same && number == named {
                    true => coming.promise.map(|promise| Promise {
                        group: number,
                        ..promise
                    }),
                    false => goals.promise(number, coming.expected_ns, coming.came_ns),
                };
                Coming {
                    class: goals.rank(order, number),
                    number,
                    promise,
                    ..coming
                }
            };
            shared.admission.set_order(order, renewed, now);
        });
    }

    /// How the classes are doing, by number.
    pub fn standings(&self) -> Vec<Standing> {
        self.lock().goals.standings()
    }

    /// What the targets of classes of which something comes need of the backend.
    pub fn needs(&self) -> Vec<Need> {
        let now = self.now();
        self.lock().goals.needs(now).collect()
    }

    /// What was seen since the last time somebody asked.
    pub fn take_window(&self) -> Window {
        // Whatever changes brings the sums up to date.
        self.change(|shared, _| shared.windows.take())
    }

    /// From now on `limit` jobs may be inside; those beyond it stay until they leave.
    pub fn set_limit(&self, limit: usize) {
        self.change(|shared, _| {
            // While nobody waits, how many may be inside says nothing about how many are; nor does no limit at all.
            let is_bounded = limit != usize::MAX && shared.limit != usize::MAX;
            if is_bounded && shared.admission.waiting() > 0 {
                let factor = limit as f64 / shared.limit.max(1) as f64;
                shared.goals.rescale(factor);
            }
            shared.limit = limit;
            shared.apply_limit();
        });
    }

    /// So many are inside and have nothing to do: as many more may go in from now on.
    pub fn set_kept(&self, kept: usize) {
        if self.lock().kept != kept {
            self.change(|shared, _| {
                shared.kept = kept;
                shared.apply_limit();
            });
        }
    }

    /// How it is doing.
    pub fn status(&self) -> GateStatus {
        let shared = self.lock();
        GateStatus {
            limit: shared.admission.limit(),
            inside: shared.admission.inside(),
            waiting: shared.admission.waiting(),
            admitted: shared.admitted,
            completed: shared.completed,
            mean_service_ns: shared.estimates.overall_ns(),
        }
    }

    /// Whether both are the same.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn now(&self) -> Time {
        Time::from_ns(self.origin.elapsed().as_nanos() as u64)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes who is where, lets in whoever can go in then, and calls them when the lock is free again.
    fn change<T>(&self, change: impl FnOnce(&mut Shared, Time) -> T) -> T {
        let now = self.now();
        let (result, called) = {
            let mut shared = self.lock();
            let (inside, waiting) = (shared.admission.inside(), shared.admission.waiting());
            shared.windows.pass(inside, waiting, now);
            let result = change(&mut shared, now);
            (result, shared.admit_all(now))
        };
        for waker in called {
            waker.wake();
        }
        result
    }
}

impl Shared {
    fn coming(&mut self, number: u8, key: &str, waited_ns: u64, now: Time) -> Coming {
        let expected_ns = self.estimates.expected_ns(key);
        let waited_ns = i64::try_from(waited_ns).unwrap_or(i64::MAX);
        let came_ns = (now.as_ns() as i64).saturating_sub(waited_ns);
        let promise = self.goals.arrive(number, expected_ns, came_ns);
        Coming {
            class: self.goals.rank(self.order, number),
            number,
            expected_ns,
            promise,
            came_ns,
        }
    }

    fn arrive(
        &mut self,
        job: JobId,
        coming: Coming,
        is_back: bool,
        now: Time,
    ) -> Result<(), QueueFull> {
        if is_back {
            self.admission.come_back(job, coming);
            return Ok(());
        }
        let came = self.admission.arrive(job, coming, now);
        if came.is_err() {
            self.goals.leave(coming.number);
        }
        came
    }

    fn apply_limit(&mut self) {
        self.admission
            .set_limit(self.limit.saturating_add(self.kept));
    }

    fn leave(&mut self, job: JobId, visit: &Visit, now: Time) {
        if visit.generation == self.generation {
            self.goals.leave(visit.class);
        }
        self.admission.leave(job, now);
    }

    /// The backend has done one more, which took so long.
    fn done_inside(&mut self, inside_ns: u64) {
        self.completed += 1;
        self.windows.completed(inside_ns);
    }

    /// A job was inside for so long, and is done.
    fn done(&mut self, job: JobId, visit: &Visit, outside_ns: u64, inside_ns: u64, now: Time) {
        self.done_inside(inside_ns);
        self.estimates.observe(&visit.key, inside_ns);
        self.admission.settle(job, inside_ns);
        if visit.generation == self.generation {
            let outside_ns = visit.waited_ns + outside_ns;
            self.goals.done(visit.class, outside_ns, inside_ns, now);
        }
    }

    fn admit_all(&mut self, now: Time) -> Vec<Waker> {
        let mut called = Vec::new();
        while let Some(job) = self.admission.admit(now) {
            self.admitted += 1;
            if let Some(Outside::Waiting(waker)) = self.outside.insert(job, Outside::Called(now)) {
                called.extend(waker);
            }
        }
        called
    }
}

/// Who comes.
#[derive(Default)]
struct Visit {
    class: u8,
    key: String,
    waited_ns: u64,
    generation: u64,
}

/// A job in front of the gate.
pub struct Enter {
    gate: Gate,
    visit: Visit,
    state: State,
}

enum State {
    Refused(QueueFull),
    Waiting { job: JobId, came_at: Time },
    Told,
}

impl Enter {
    /// The job that it is while it waits, for [`Gate::set_goals`].
    pub fn job(&self) -> Option<JobId> {
        match self.state {
            State::Waiting { job, .. } => Some(job),
            State::Refused(_) | State::Told => None,
        }
    }
}

impl Future for Enter {
    type Output = Result<Permit, QueueFull>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (job, came_at) = match this.state {
            State::Refused(full) => {
                this.state = State::Told;
                return Poll::Ready(Err(full));
            }
            State::Waiting { job, came_at } => (job, came_at),
            // Polled again after it was ready: there is nothing more to say.
            State::Told => return Poll::Pending,
        };
        let admitted_at = {
            let mut shared = this.gate.lock();
            match shared.outside.get_mut(&job) {
                Some(Outside::Waiting(waker)) => {
                    match waker {
                        Some(waker) => waker.clone_from(cx.waker()),
                        None => *waker = Some(cx.waker().clone()),
                    }
                    return Poll::Pending;
                }
                Some(Outside::Called(at)) => {
                    let at = *at;
                    shared.outside.remove(&job);
                    at
                }
                None => came_at,
            }
        };
        this.state = State::Told;
        Poll::Ready(Ok(Permit {
            gate: this.gate.clone(),
            visit: std::mem::take(&mut this.visit),
            job,
            came_at,
            admitted_at,
            is_done: false,
        }))
    }
}

impl Drop for Enter {
    fn drop(&mut self) {
        if let State::Waiting { job, .. } = self.state {
            self.gate.change(|shared, now| {
                shared.outside.remove(&job);
                shared.leave(job, &self.visit, now);
            });
        }
    }
}

/// Leave to be inside; dropping it leaves the backend and lets the next job in.
#[must_use = "dropping the permit leaves the backend"]
pub struct Permit {
    gate: Gate,
    visit: Visit,
    job: JobId,
    came_at: Time,
    admitted_at: Time,
    is_done: bool,
}

impl Permit {
    /// How long the job waited outside, ns.
    pub fn wait_ns(&self) -> u64 {
        self.admitted_at.since(self.came_at)
    }

    /// It begins only now: what it needed since it was let in is no time that the backend worked on it.
    pub fn begin(&mut self) {
        self.admitted_at = self.gate.now();
    }

    /// Leaves the backend as done: the time inside tells what to expect of jobs like this one. Jobs that were given up or failed are
    /// dropped instead: they say nothing, but their class is charged for what they took.
    pub fn complete(mut self) {
        self.done();
    }

    /// The same for a job whose place is kept until the permit is dropped: what comes until then says nothing about jobs like this one.
    pub fn done(&mut self) {
        if !std::mem::replace(&mut self.is_done, true) {
            let mut shared = self.gate.lock();
            let now = self.gate.now();
            let inside_ns = now.since(self.admitted_at);
            shared.done(self.job, &self.visit, self.wait_ns(), inside_ns, now);
        }
    }

    /// The same, of a job that was inside for `inside_ns` at last: where the permit's own is done already, it is another one in the place that is
    /// kept, which did not wait. The backend has done it, so it counts in what the backend does, but it says nothing about the order.
    pub fn done_again(&mut self, inside_ns: u64) {
        match self.is_done {
            false => self.done(),
            true => self.gate.lock().done_inside(inside_ns),
        }
    }

    /// Makes room for others, to come back ([`Gate::come_back`]): its class stays charged for it.
    pub fn step_out(mut self) {
        self.is_done = true;
    }

    /// What the job did until now is void, whatever comes: it says nothing about jobs like this one, but its class is charged for it.
    pub fn fail(&mut self) {
        if !std::mem::replace(&mut self.is_done, true) {
            let mut shared = self.gate.lock();
            let inside_ns = self.gate.now().since(self.admitted_at);
            shared.admission.settle(self.job, inside_ns);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // Where nobody said that it was done, it was given up.
        self.fail();
        self.gate
            .change(|shared, now| shared.leave(self.job, &self.visit, now));
    }
}
