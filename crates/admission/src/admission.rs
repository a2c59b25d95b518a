//! Everything that is decided about the jobs of one backend: who goes in, what a job is expected to
//! take, by when its class needs it, and what was seen since the limit was last looked at.
//!
//! The order of calls for a job: [`arrive`](Admission::arrive), then perhaps
//! [`complete`](Admission::complete) or [`settle`](Admission::settle), then
//! [`leave`](Admission::leave). Before a change [`pass`](Admission::pass) accounts for the time
//! until then; after it [`admit`](Admission::admit) is called until it says `None`.

mod renewal;

pub use renewal::Renewed;

use crate::goals::{ClassStatus, Goals, Need};
use crate::order::{Order, Within};
use crate::player::Recorded;
use crate::predict::{Outcome, Outcomes, Predictor};
use crate::queue::{AdmissionQueue, QueueFull, Request};
use crate::subject::Subject;
use crate::ticket::Ticket;
use crate::waiting::WaitingSubjects;
use crate::window::{Window, Windows};
use sooner_policy::{JobId, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the jobs of a backend are held back.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionSettings {
    /// How many jobs may be inside at once.
    pub limit: usize,
    /// In which order those of one class go in.
    pub order: Order,
    /// How many may wait; `None`: all that come.
    pub waiting_max: Option<usize>,
    /// How many jobs of a kind the fast mean of their times remembers.
    pub kind_memory: u64,
}

/// How a backend is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionStatus {
    /// How many jobs may be inside.
    pub limit: usize,
    /// How many are.
    pub inside: usize,
    /// How many wait.
    pub waiting: usize,
    /// How many of these are held by the cap of their class, and not by the limit.
    pub held: usize,
    /// How many have gone in since the start.
    pub admitted: u64,
    /// How many of these were completed.
    pub completed: u64,
    /// The mean time inside of those completed recently, ns; `None` before the first.
    pub mean_service_ns: Option<u64>,
}

/// The jobs of one backend.
pub struct Admission {
    queue: AdmissionQueue,
    /// Those in the queue, but for those that came back.
    waiting: WaitingSubjects,
    /// As it is configured.
    order: Order,
    /// What is taken where that follows what is played.
    taken: Within,
    predictor: Predictor,
    outcomes: Outcomes,
    /// How many of them there are when something is learnt from them next.
    learns_at: u64,
    goals: Goals,
    windows: Windows,
    /// How many may be inside besides those that keep their places.
    limit: usize,
    /// The same where all servers that are there take as many as they may.
    places: usize,
    /// Places that are kept and not used.
    kept: usize,
    arrived: u64,
    admitted: u64,
    completed: u64,
}

impl Admission {
    /// No job has come yet.
    pub fn new(settings: AdmissionSettings) -> Self {
        let taken = Within::Fcfs;
        let order = settings.order.resolved(taken);
        Self {
            queue: AdmissionQueue::new(order, settings.limit, settings.waiting_max),
            waiting: WaitingSubjects::default(),
            order: settings.order,
            taken,
            predictor: Predictor::new(settings.kind_memory),
            outcomes: Outcomes::default(),
            learns_at: 0,
            goals: Goals::default(),
            windows: Windows::default(),
            limit: settings.limit,
            places: settings.limit,
            kept: 0,
            arrived: 0,
            admitted: 0,
            completed: 0,
        }
    }

    /// From now on at most so many wait; those that do stay.
    pub fn set_waiting_max(&mut self, waiting_max: Option<usize>) {
        self.queue.set_waiting_max(waiting_max);
    }

    /// From now on so many of the last jobs that are done are remembered.
    pub fn remember(&mut self, jobs: usize) {
        self.outcomes.remember(jobs);
    }

    /// A job of `class` comes, of which `subject` is known, and which has waited for `waited_ns`
    /// elsewhere: its target counts from when it came there.
    pub fn arrive(
        &mut self,
        class: u8,
        subject: Subject,
        waited_ns: u64,
        now: Time,
    ) -> Result<Ticket, QueueFull> {
        let (ticket, request) = self.ticket(class, subject, waited_ns, now);
        match self.queue.arrive(ticket.job, request, now) {
            Ok(()) => {
                self.waiting.came(ticket.job, &ticket.subject);
                Ok(ticket)
            }
            Err(full) => {
                self.goals.leave(class);
                Err(full)
            }
        }
    }

    /// A job comes back that has made room for others: it goes in before all who wait.
    pub fn return_to(&mut self, class: u8, subject: Subject, waited_ns: u64, now: Time) -> Ticket {
        let (ticket, request) = self.ticket(class, subject, waited_ns, now);
        self.queue.return_to(ticket.job, request);
        ticket
    }

    fn ticket(
        &mut self,
        class: u8,
        subject: Subject,
        waited_ns: u64,
        now: Time,
    ) -> (Ticket, Request) {
        let prediction = self.predictor.predict(&subject);
        let expected_ns = prediction.map(|prediction| prediction.expected_ns);
        let earlier_ns = i64::try_from(waited_ns).unwrap_or(i64::MAX);
        let came_ns = (now.as_ns() as i64).saturating_sub(earlier_ns);
        let promise = self.goals.arrive(class, expected_ns, came_ns);
        let request = Request {
            class: self.goals.rank(self.order, class),
            number: class,
            expected_ns,
            promise,
            came_ns,
            payer: subject.payer,
            plain_class: subject.plain_class,
        };
        let ticket = Ticket {
            job: JobId(self.arrived),
            class,
            subject: Arc::new(subject),
            prediction,
            came_ns,
            waited_ns,
        };
        self.arrived += 1;
        (ticket, request)
    }

    /// The next job to go in, if there is a place and a job; it is inside from now on.
    pub fn admit(&mut self, now: Time) -> Option<JobId> {
        let admitted = self.queue.admit(now)?;
        self.admitted += 1;
        self.waiting.gone(admitted);
        Some(admitted)
    }

    /// A job leaves, from inside or from the queue.
    pub fn leave(&mut self, ticket: &Ticket, now: Time) {
        self.goals.leave(self.class_of(ticket));
        self.waiting.gone(ticket.job);
        self.queue.leave(ticket.job, now);
    }

    /// A job was outside and inside for so long, and is done; it leaves when it says so.
    pub fn complete(&mut self, ticket: &Ticket, outside_ns: u64, inside_ns: u64, now: Time) {
        self.complete_another(inside_ns);
        self.predictor.observe(&ticket.subject, inside_ns);
        self.judge_anew(now);
        if let Some(prediction) = ticket.prediction {
            self.outcomes.add(Outcome {
                came_ns: ticket.came_ns,
                expected_ns: prediction.expected_ns,
                kind_ns: prediction.kind_ns,
                service_ns: inside_ns,
            });
            if self.outcomes.are_news() {
                self.learn(now);
            }
        }
        self.settle(ticket, inside_ns);
        let outside_ns = ticket.waited_ns + outside_ns;
        self.goals
            .done(self.class_of(ticket), outside_ns, inside_ns, now);
    }

    /// Less is expected of those who wait where jobs like them have become shorter since they came.
    fn judge_anew(&mut self, now: Time) {
        // A promise stays as it was made.
        if self.within().is_none_or(|it| it == Within::Fcfs) {
            return;
        }
        let Some(subjects) = self.waiting.look_at(now) else {
            return;
        };
        let predictor = &mut self.predictor;
        let predictions = subjects
            .iter()
            .filter_map(|(&job, subject)| Some((job, predictor.predict(subject)?.expected_ns)));
        let expected_ns: BTreeMap<JobId, u64> = predictions.collect();
        let expected_ns = |job: JobId| expected_ns.get(&job).copied();
        self.queue.expect_less(expected_ns, now);
    }

    /// What orders by the law of all jobs go by, from the last that are done.
    fn learn(&mut self, now: Time) {
        let is_tuned = self.order.within().is_some_and(Within::is_tuned);
        // All who wait are ordered anew: seldom where they are many.
        if !is_tuned || self.outcomes.seen() < self.learns_at {
            return;
        }
        let seen = self.outcomes.seen();
        self.learns_at = seen + seen.min(self.queue.waiting() as u64);
        let Some(tuning) = self.outcomes.tuning(self.places) else {
            return;
        };
        match self.within() {
            Some(Within::Boost | Within::Nudge) => self.queue.retune(tuning, now),
            _ => self.queue.set_tuning(tuning),
        }
    }

    /// Whether its order follows what is played of the last jobs.
    pub fn follows(&self) -> bool {
        self.order.within() == Some(Within::Auto)
    }

    /// The order in which jobs of one class or client go in now; `None` where that follows from
    /// targets or weights.
    pub fn within(&self) -> Option<Within> {
        self.order.resolved(self.taken).within()
    }

    /// From now on an order that follows what is played is this one; who waits goes in as if it had
    /// been so when it came.
    pub fn follow(&mut self, taken: Within, now: Time) {
        self.taken = taken;
        let order = self.order.resolved(taken);
        self.queue.set_order(order, |_, request| request, now);
    }

    /// How many jobs are done of which something had been expected.
    pub fn seen(&self) -> u64 {
        self.outcomes.seen()
    }

    /// All of the last of them that are remembered, and how many may be inside.
    pub fn recorded(&self) -> Recorded {
        Recorded {
            jobs: self.outcomes.all(),
            places: self.places,
        }
    }

    /// What is taken where the order follows what is played.
    pub fn taken(&self) -> Within {
        self.taken
    }

    /// The backend has done one more, in a place that is kept: it says nothing about the order.
    pub fn complete_another(&mut self, inside_ns: u64) {
        self.completed += 1;
        self.windows.completed(inside_ns);
    }

    /// A job inside was given up after so long: its class is charged for it.
    pub fn settle(&mut self, ticket: &Ticket, inside_ns: u64) {
        self.queue.settle(ticket.job, inside_ns);
    }

    /// Time until now went by as things were.
    pub fn pass(&mut self, now: Time) {
        let (inside, waiting) = (self.queue.inside(), self.wait_for_places());
        self.windows.pass(inside, waiting, now);
    }

    /// How many wait that would go in if the limit were larger.
    fn wait_for_places(&self) -> usize {
        self.queue.waiting() - self.queue.held()
    }

    /// What was seen since the last call.
    pub fn take_window(&mut self) -> Window {
        self.windows.take()
    }

    /// What was expected of the last jobs that are done, and what came.
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.judged()
    }

    /// How the classes are doing, by number.
    pub fn class_statuses(&self) -> Vec<ClassStatus> {
        let inside = self.queue.inside_by_class();
        let mut statuses = self.goals.class_statuses();
        for (number, status) in (0..=u8::MAX).zip(&mut statuses) {
            status.inside = inside.get(&number).copied().unwrap_or_default();
        }
        statuses
    }

    /// What the targets of classes of which something comes need of the backend.
    pub fn needs(&self, now: Time) -> Vec<Need> {
        self.goals.needs(now).collect()
    }

    /// From now on `limit` jobs may be inside; those beyond it stay until they leave.
    pub fn set_limit(&mut self, limit: usize) {
        self.rescale(self.limit, limit);
        self.set_places(limit);
        self.set_capacity(limit);
    }

    /// A limit becomes another one: times inside grow and shrink with the number of those that are
    /// inside, which is the limit where there are as many.
    pub fn rescale(&mut self, before: usize, after: usize) {
        if before == usize::MAX || after == usize::MAX {
            return;
        }
        let jobs = self.queue.inside().saturating_sub(self.kept) + self.wait_for_places();
        let inside = |limit: usize| limit.min(jobs).max(1) as f64;
        self.goals.rescale(inside(after) / inside(before));
    }

    /// The same where servers come and go and each takes as many as before, so that times inside
    /// stay what they are.
    pub fn set_capacity(&mut self, limit: usize) {
        self.limit = limit;
        self.apply_limit();
    }

    /// How many may be inside besides those that keep their places.
    pub fn capacity(&self) -> usize {
        self.limit
    }

    /// So many may be inside where all servers are well: what is learnt and played goes by that, and
    /// not by the one request of a server that is on probation.
    pub fn set_places(&mut self, places: usize) {
        self.places = places;
    }

    /// The same number.
    pub fn places(&self) -> usize {
        self.places
    }

    /// The class that a job has now, by number: the goals may have changed since it came.
    pub fn class_of(&self, ticket: &Ticket) -> u8 {
        self.queue.number_of(ticket.job).unwrap_or(ticket.class)
    }

    /// How long a job is expected to take now, or was when it went in, ns: less than when it came,
    /// where jobs like it became shorter meanwhile.
    pub fn expected_ns(&self, ticket: &Ticket) -> Option<u64> {
        self.queue.expected_ns(ticket.job)
    }

    /// So many inside have nothing to do and keep their places, or have given them up: as many more
    /// may go in.
    pub fn set_kept(&mut self, kept: usize) {
        self.kept = kept;
        self.apply_limit();
    }

    /// A job of a class has run for longer than it may: it is counted, and nothing else.
    pub fn note_overlong(&mut self, class: u8) {
        self.goals.note_overlong(class);
    }

    /// One was cancelled for that: the same.
    pub fn note_cancelled(&mut self, class: u8) {
        self.goals.note_cancelled(class);
    }

    /// How many inside take no place from others.
    pub fn kept(&self) -> usize {
        self.kept
    }

    fn apply_limit(&mut self) {
        self.queue.set_limit(self.limit.saturating_add(self.kept));
    }

    /// How it is doing.
    pub fn status(&self) -> AdmissionStatus {
        AdmissionStatus {
            limit: self.queue.limit(),
            inside: self.queue.inside(),
            waiting: self.queue.waiting(),
            held: self.queue.held(),
            admitted: self.admitted,
            completed: self.completed,
            mean_service_ns: self.predictor.overall_ns(),
        }
    }
}
