//! Waits for admission to a backend.
//!
//! A backend that is given everything at once orders its work by chance. A [`Limiter`] lets at most
//! a limit of jobs in; the rest wait outside in one queue, and [`Admission`] decides who goes next.
//! No job is dropped unless the operator bounds the queue, and none waits without a bound, but for
//! what the operator's cap of its class holds.
//!
//! The futures need no runtime: they are woken when they may go in. Jobs may come, wait and leave
//! on any threads: all is decided under one lock, and the time is read under it.

mod permit;
mod playing;

pub use permit::{JobClass, Permit};

use playing::Playing;
use sooner_admission::{
    Admission, AdmissionSettings, AdmissionStatus, ClassStatus, ControllerLimits, Ending, Goal,
    JobId, Need, Order, Quality, QueueFull, Rehearsal, Renewed, Subject, Ticket, Time, Window,
    WouldWait, quality, start,
};
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

/// Within which bounds the limit of a server is looked for that may have as many processors as this
/// machine: at most `max`, for so much of the throughput.
pub fn bounds(max: usize, throughput_loss: f64) -> ControllerLimits {
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    ControllerLimits {
        min: 1,
        max,
        start: start(processors, throughput_loss).min(max),
        throughput_loss,
    }
}

/// Holds jobs outside a backend. Clones are the same limiter.
#[derive(Clone)]
pub struct Limiter {
    shared: Arc<Mutex<Shared>>,
    playing: Arc<Mutex<Playing>>,
    origin: Instant,
}

struct Shared {
    admission: Admission,
    /// Jobs with a future that does not know yet that they are inside.
    waiting: HashMap<JobId, Waiting>,
    settings: AdmissionSettings,
    /// What was said last of who goes first.
    goals: Option<(Order, Vec<Goal>)>,
    /// There where nothing is held but what has no place at all.
    rehearsal: Option<Rehearsal>,
}

enum Waiting {
    Outside(Option<Waker>),
    /// Let in at this time, and woken.
    Admitted(Time),
}

impl Limiter {
    /// No job has come yet.
    pub fn new(settings: AdmissionSettings) -> Self {
        let shared = Shared {
            admission: Admission::new(settings),
            waiting: HashMap::new(),
            settings,
            goals: None,
            rehearsal: None,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
            playing: Arc::default(),
            origin: Instant::now(),
        }
    }

    /// A job of `class` comes, of which `subject` is known. It waits from now on, polled or not;
    /// dropping the future gives it up.
    pub fn acquire(&self, class: u8, subject: Subject) -> Acquire {
        self.acquire_after(class, subject, 0)
    }

    /// The same for a job that has waited elsewhere: its target counts from when it came there.
    pub fn acquire_after(&self, class: u8, subject: Subject, waited_ns: u64) -> Acquire {
        self.wait(|shared, now| {
            let ticket = shared.admission.arrive(class, subject, waited_ns, now)?;
            shared.rehearse(&ticket, class, now);
            Ok(ticket)
        })
    }

    /// The same for a job that has made room for others ([`Permit::yield_place`]): it goes in
    /// before all who wait.
    pub fn acquire_again(&self, class: u8, subject: Subject, waited_ns: u64) -> Acquire {
        self.wait(|shared, now| {
            let ticket = shared.admission.return_to(class, subject, waited_ns, now);
            shared.rehearse(&ticket, class, now);
            Ok(ticket)
        })
    }

    /// The same for one that is inside and leaves when this one waits: it is one job.
    pub(crate) fn acquire_instead(
        &self,
        before: JobId,
        class: u8,
        subject: Subject,
        waited_ns: u64,
    ) -> Acquire {
        self.wait(|shared, now| {
            let ticket = shared.admission.return_to(class, subject, waited_ns, now);
            if let Some(rehearsal) = &mut shared.rehearsal {
                rehearsal.go_on_as(before, ticket.job(), now);
            }
            Ok(ticket)
        })
    }

    fn wait(&self, arrive: impl FnOnce(&mut Shared, Time) -> Result<Ticket, QueueFull>) -> Acquire {
        let state = self.change(|shared, now| match arrive(shared, now) {
            Ok(ticket) => {
                shared.waiting.insert(ticket.job(), Waiting::Outside(None));
                State::Waiting {
                    ticket,
                    came_at: now,
                }
            }
            Err(full) => State::Refused(full),
        });
        Acquire {
            limiter: self.clone(),
            state,
        }
    }

    /// [`Admission::set_goals`].
    pub fn set_goals(&self, order: Order, goals: Vec<Goal>, known: &HashMap<JobId, Renewed>) {
        self.change(|shared, now| {
            let mut goals = goals;
            shared.goals = Some((order, goals.clone()));
            if let Some(rehearsal) = &mut shared.rehearsal {
                rehearsal.set_goals(order, goals.clone(), known, now);
                goals.iter_mut().for_each(|goal| goal.inside_max = None);
            }
            shared.admission.set_goals(order, goals, known, now);
        });
    }

    /// From now on at most so many wait; those that do stay. A rehearsal begins anew by that.
    pub fn set_waiting_max(&self, waiting_max: Option<usize>) {
        let (mut shared, now) = self.lock_at();
        if shared.settings.waiting_max == waiting_max {
            return;
        }
        shared.settings.waiting_max = waiting_max;
        shared.admission.set_waiting_max(waiting_max);
        let rehearsal = shared.rehearsal.as_ref();
        if let Some((limit, places)) = rehearsal.map(|it| (it.limit(), it.places())) {
            let mut rehearsal = shared.new_rehearsal(now);
            rehearsal.set_limit(limit, now);
            rehearsal.set_places(places);
            shared.rehearsal = Some(rehearsal);
        }
    }

    /// Whether nothing is held from now on, and it is found out what would be: caps of classes are
    /// none, and the owner sets a limit that lets in all for which there is room. What comes of
    /// that begins anew; goals have to be set again.
    pub fn rehearse(&self, rehearses: bool) {
        let (mut shared, now) = self.lock_at();
        if shared.rehearsal.is_some() != rehearses {
            shared.rehearsal = rehearses.then(|| shared.new_rehearsal(now));
        }
    }

    /// Whether it does.
    pub fn rehearses(&self) -> bool {
        self.lock().rehearsal.is_some()
    }

    /// How many may be inside in the rehearsal, if there is one.
    pub fn set_rehearsed_limit(&self, limit: usize) {
        let (mut shared, now) = self.lock_at();
        if let Some(rehearsal) = &mut shared.rehearsal {
            rehearsal.set_limit(limit, now);
        }
    }

    /// How long jobs would have waited, by the number of their class, and how many may be inside
    /// then;
    /// `None` where that is not rehearsed.
    pub fn rehearsed(&self) -> Option<(usize, BTreeMap<u8, WouldWait>)> {
        let (mut shared, now) = self.lock_at();
        let rehearsal = shared.rehearsal.as_mut()?;
        rehearsal.advance(now);
        Some((rehearsal.limit(), rehearsal.by_class().clone()))
    }

    /// [`Admission::class_statuses`].
    pub fn class_statuses(&self) -> Vec<ClassStatus> {
        self.lock().admission.class_statuses()
    }

    /// How good predictions were of late. Takes a time that grows with the squares of some hundred
    /// jobs, and holds none up.
    pub fn quality(&self) -> Quality {
        let (outcomes, places, order) = {
            let shared = self.lock();
            let admission = &shared.admission;
            (admission.outcomes(), shared.places(), admission.within())
        };
        Quality {
            order,
            played: self.played(),
            ..quality(&outcomes, places)
        }
    }

    /// [`Admission::remember`].
    pub fn remember(&self, jobs: usize) {
        self.lock().admission.remember(jobs);
    }

    /// [`Admission::needs`].
    pub fn needs(&self) -> Vec<Need> {
        let (shared, now) = self.lock_at();
        shared.admission.needs(now)
    }

    /// What was seen since the last call.
    pub fn take_window(&self) -> Window {
        self.change(|shared, _| shared.admission.take_window())
    }

    /// [`Admission::set_limit`].
    pub fn set_limit(&self, limit: usize) {
        self.change(|shared, _| shared.admission.set_limit(limit));
    }

    /// [`Admission::rescale`].
    pub fn rescale(&self, before: usize, after: usize) {
        self.change(|shared, _| shared.admission.rescale(before, after));
    }

    /// [`Admission::set_places`], which lets none in; in the rehearsal as well, if there is one.
    pub fn set_places(&self, places: usize) {
        let mut shared = self.lock();
        shared.admission.set_places(places);
        if let Some(rehearsal) = &mut shared.rehearsal {
            rehearsal.set_places(places);
        }
    }

    /// [`Admission::set_capacity`]. It is called whenever a job leaves, and is mostly what it was.
    pub fn set_capacity(&self, limit: usize) {
        if self.lock().admission.capacity() != limit {
            self.change(|shared, _| shared.admission.set_capacity(limit));
        }
    }

    /// [`Admission::set_kept`].
    pub fn set_kept(&self, kept: usize) {
        if self.lock().admission.kept() != kept {
            self.change(|shared, _| shared.admission.set_kept(kept));
        }
    }

    /// [`Admission::kept`].
    pub fn kept(&self) -> usize {
        self.lock().admission.kept()
    }

    /// [`Admission::note_overlong`].
    pub fn note_overlong(&self, class: u8) {
        self.lock().admission.note_overlong(class);
    }

    /// [`Admission::note_cancelled`].
    pub fn note_cancelled(&self, class: u8) {
        self.lock().admission.note_cancelled(class);
    }

    /// How it is doing.
    pub fn status(&self) -> AdmissionStatus {
        self.lock().admission.status()
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

    /// The lock, and the time of what is decided under it.
    fn lock_at(&self) -> (MutexGuard<'_, Shared>, Time) {
        let shared = self.lock();
        // Not before the lock: another thread may decide while this one waits for it.
        let now = self.now();
        (shared, now)
    }

    /// Changes who is where, lets in who can go in then, and wakes them when the lock is free.
    fn change<T>(&self, change: impl FnOnce(&mut Shared, Time) -> T) -> T {
        let (result, woken) = {
            let (mut shared, now) = self.lock_at();
            shared.admission.pass(now);
            let result = change(&mut shared, now);
            (result, shared.admit_all(now))
        };
        for waker in woken {
            waker.wake();
        }
        result
    }
}

impl Shared {
    /// One that has seen no job, by what is said now.
    fn new_rehearsal(&self, now: Time) -> Rehearsal {
        let status = self.admission.status();
        let here = status.inside + status.waiting;
        let mut rehearsal = Rehearsal::new(self.settings, here);
        rehearsal.follow(self.admission.taken(), now);
        if let Some((order, goals)) = &self.goals {
            rehearsal.set_goals(*order, goals.clone(), &HashMap::new(), now);
        }
        rehearsal
    }

    fn rehearse(&mut self, ticket: &Ticket, class: u8, now: Time) {
        if let Some(rehearsal) = &mut self.rehearsal {
            let (subject, waited_ns) = (ticket.subject().clone(), ticket.waited_ns());
            rehearsal.arrive(ticket.job(), class, subject, waited_ns, now);
        }
    }

    /// How many may be inside where all is well: where nothing is held, as many as there would be.
    fn places(&self) -> usize {
        let rehearsal = self.rehearsal.as_ref();
        rehearsal.map_or(self.admission.places(), Rehearsal::places)
    }

    /// A job leaves, from inside or from the queue.
    fn leave(&mut self, ticket: &Ticket, ending: Ending, now: Time) {
        self.admission.leave(ticket, now);
        if let Some(rehearsal) = &mut self.rehearsal {
            rehearsal.leave(ticket.job(), ending, now);
        }
    }

    fn admit_all(&mut self, now: Time) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(job) = self.admission.admit(now) {
            let before = self.waiting.insert(job, Waiting::Admitted(now));
            if let Some(Waiting::Outside(waker)) = before {
                woken.extend(waker);
            }
        }
        woken
    }
}

/// A job that waits for its permit.
pub struct Acquire {
    limiter: Limiter,
    state: State,
}

enum State {
    Refused(QueueFull),
    Waiting { ticket: Ticket, came_at: Time },
    Ended,
}

impl Acquire {
    /// The job that it is while it waits, for [`Limiter::set_goals`].
    pub fn job(&self) -> Option<JobId> {
        match &self.state {
            State::Waiting { ticket, .. } => Some(ticket.job()),
            State::Refused(_) | State::Ended => None,
        }
    }
}

impl Future for Acquire {
    type Output = Result<Permit, QueueFull>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (job, came_at) = match &this.state {
            State::Refused(full) => {
                let full = *full;
                this.state = State::Ended;
                return Poll::Ready(Err(full));
            }
            State::Waiting { ticket, came_at } => (ticket.job(), *came_at),
            // Polled again after it was ready: there is nothing more to say.
            State::Ended => return Poll::Pending,
        };
        let admitted_at = {
            let mut shared = this.limiter.lock();
            match shared.waiting.get_mut(&job) {
                Some(Waiting::Outside(waker)) => {
                    match waker {
                        Some(waker) => waker.clone_from(cx.waker()),
                        None => *waker = Some(cx.waker().clone()),
                    }
                    return Poll::Pending;
                }
                Some(Waiting::Admitted(at)) => {
                    let at = *at;
                    shared.waiting.remove(&job);
                    at
                }
                None => came_at,
            }
        };
        let State::Waiting { ticket, .. } = std::mem::replace(&mut this.state, State::Ended) else {
            return Poll::Pending;
        };
        let limiter = this.limiter.clone();
        Poll::Ready(Ok(Permit::new(limiter, ticket, came_at, admitted_at)))
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        if let State::Waiting { ticket, .. } = &self.state {
            self.limiter.change(|shared, now| {
                let state = shared.waiting.remove(&ticket.job());
                // One that was let in and did not know it took no more than its place.
                if let Some(Waiting::Admitted(at)) = state {
                    shared.admission.settle(ticket, now.since(at));
                }
                shared.leave(ticket, Ending::GivenUp, now);
            });
        }
    }
}
