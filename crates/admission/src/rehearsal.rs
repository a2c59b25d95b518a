//! How long jobs would have waited that nothing holds.
//!
//! Beside a backend that lets everything in stands one in the imagination that holds what it is to
//! hold: the same jobs come at the same times, and each stays for as long as it did in truth from
//! when it is let in. That is known only when it has left; but then it is early enough, since it is
//! never let in before it came, and so never leaves before it left in truth.
//!
//! While more were inside in truth than may be, each took longer than it would have: it is taken
//! that the backend does as much in a second with those that may be inside as with those that are,
//! so such a time counts for a part, the quotient of the two. Of what cannot be known nothing is
//! imagined: a client that waits sends its next job later, and a backend that needs more inside
//! than may be does less.

use crate::admission::{Admission, AdmissionSettings, Renewed};
use crate::goals::Goal;
use crate::order::{Order, Within};
use crate::subject::Subject;
use crate::ticket::Ticket;
use sooner_policy::{JobId, Time};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Jobs that are followed at a time; those beyond are counted as missed.
const JOBS_MAX: usize = 100_000;

/// How long jobs of a class would have waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WouldWait {
    /// Its jobs that would have gone in so far.
    pub jobs: u64,
    /// Those of them that would have waited.
    pub waited: u64,
    /// How long these would have, ns.
    pub wait_sum_ns: u128,
    /// The longest of them, ns.
    pub wait_max_ns: u64,
    /// Those that would wait now.
    pub waiting: u64,
    /// Those that would have been refused, because too many wait.
    pub refused: u64,
    /// Those that were not followed, because too many were.
    pub missed: u64,
}

impl WouldWait {
    /// With those of another backend.
    pub fn with(self, other: Self) -> Self {
        Self {
            jobs: self.jobs + other.jobs,
            waited: self.waited + other.waited,
            wait_sum_ns: self.wait_sum_ns + other.wait_sum_ns,
            wait_max_ns: self.wait_max_ns.max(other.wait_max_ns),
            waiting: self.waiting + other.waiting,
            refused: self.refused + other.refused,
            missed: self.missed + other.missed,
        }
    }

    /// The mean of all, ns; `None` before the first.
    pub fn mean_ns(&self) -> Option<u64> {
        let mean = self.wait_sum_ns.checked_div(u128::from(self.jobs))?;
        Some(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// One goes in that has waited for so long.
    fn count(&mut self, wait_ns: u64) {
        self.jobs += 1;
        self.waiting = self.waiting.saturating_sub(1);
        self.waited += u64::from(wait_ns > 0);
        self.wait_sum_ns += u128::from(wait_ns);
        self.wait_max_ns = self.wait_max_ns.max(wait_ns);
    }

    /// One that went in so comes again, and counts then.
    fn discount(&mut self, wait_ns: u64) {
        self.jobs = self.jobs.saturating_sub(1);
        self.waited = self.waited.saturating_sub(u64::from(wait_ns > 0));
        self.wait_sum_ns = self.wait_sum_ns.saturating_sub(u128::from(wait_ns));
    }
}

/// How a job left in truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was done.
    Done,
    /// It came to an end that tells nothing of others, as an error does.
    Failed,
    /// It was given up: it would have been outside as well, if it had not gone in here.
    GivenUp,
    /// It has made room for others, and comes back as another job.
    Yielded,
}

/// A backend in the imagination, beside one that holds nothing.
pub struct Rehearsal {
    admission: Admission,
    jobs: HashMap<JobId, Rehearsed>,
    /// Those of the true backend, by their numbers here.
    names: HashMap<JobId, JobId>,
    /// Those inside that have left in truth, by when they leave here.
    ends: BTreeSet<(Time, JobId)>,
    by_class: BTreeMap<u8, WouldWait>,
    /// Jobs that are inside in truth.
    inside: usize,
    limit: usize,
    goals: (Order, Vec<Goal>),
    /// Time as it counts, ns.
    counted_ns: u64,
    seen_at: Time,
}

struct Rehearsed {
    ticket: Ticket,
    class: u8,
    came_at: Time,
    /// Time as it counts when it came, ns.
    came_ns: u64,
    admitted_at: Option<Time>,
    /// How long it waited until then, where that counts, ns.
    wait_ns: Option<u64>,
    /// How long it stays, ns, once that is known.
    stays_ns: Option<u64>,
    /// Whether that tells what to expect of jobs like it.
    is_done: bool,
}

impl Rehearsal {
    /// No job has come yet but `inside`, which are inside in truth and not followed.
    pub fn new(settings: AdmissionSettings, inside: usize) -> Self {
        Self {
            limit: settings.limit,
            goals: (settings.order, Vec::new()),
            admission: Admission::new(settings),
            jobs: HashMap::new(),
            names: HashMap::new(),
            ends: BTreeSet::new(),
            by_class: BTreeMap::new(),
            inside,
            counted_ns: 0,
            seen_at: Time::ZERO,
        }
    }

    /// A job comes that has waited for `waited_ns` elsewhere, and goes in in truth.
    pub fn arrive(&mut self, job: JobId, class: u8, subject: Subject, waited_ns: u64, now: Time) {
        self.advance(now);
        self.inside += 1;
        let would = self.by_class.entry(class).or_default();
        if self.jobs.len() >= JOBS_MAX {
            would.missed += 1;
            return;
        }
        let Ok(ticket) = self.admission.arrive(class, subject, waited_ns, now) else {
            would.refused += 1;
            return;
        };
        would.waiting += 1;
        self.names.insert(ticket.job(), job);
        let rehearsed = Rehearsed {
            ticket,
            class,
            came_at: now,
            came_ns: self.counted_ns,
            admitted_at: None,
            wait_ns: None,
            stays_ns: None,
            is_done: false,
        };
        let before = self.jobs.insert(job, rehearsed);
        assert!(before.is_none(), "a job comes once");
        self.admit(now);
    }

    /// A job that is inside in truth comes again as another one, and leaves as the one that it was:
    /// here it goes on.
    pub fn go_on_as(&mut self, job: JobId, again: JobId, now: Time) {
        self.advance(now);
        self.inside += 1;
        if let Some(rehearsed) = self.jobs.remove(&job) {
            self.names.insert(rehearsed.ticket.job(), again);
            let before = self.jobs.insert(again, rehearsed);
            assert!(before.is_none(), "a job comes once");
        }
    }

    /// A job that came leaves in truth.
    pub fn leave(&mut self, job: JobId, ending: Ending, now: Time) {
        self.advance(now);
        self.inside = self.inside.saturating_sub(1);
        let Some(rehearsed) = self.jobs.get_mut(&job) else {
            return;
        };
        let is_outside = rehearsed.admitted_at.is_none();
        if ending == Ending::Yielded || (ending == Ending::GivenUp && is_outside) {
            self.forget(job, now);
            return;
        }
        let stays_ns = self.counted_ns - rehearsed.came_ns;
        rehearsed.stays_ns = Some(stays_ns);
        rehearsed.is_done = ending == Ending::Done;
        if let Some(admitted_at) = rehearsed.admitted_at {
            self.ends
                .insert((admitted_at.after(stays_ns).max(now), job));
        }
        self.advance(now);
    }

    /// A job is here no more, wherever it was.
    fn forget(&mut self, job: JobId, now: Time) {
        if let Some(gone) = self.jobs.remove(&job) {
            self.names.remove(&gone.ticket.job());
            let would = self.by_class.entry(gone.class).or_default();
            match gone.admitted_at {
                None => would.waiting = would.waiting.saturating_sub(1),
                Some(at) => self.admission.settle(&gone.ticket, now.since(at)),
            }
            if let Some(wait_ns) = gone.wait_ns {
                would.discount(wait_ns);
            }
            self.admission.leave(&gone.ticket, now);
        }
        self.admit(now);
    }

    /// Time goes by.
    pub fn advance(&mut self, now: Time) {
        let passed_ns = u128::from(now.since(self.seen_at));
        self.seen_at = self.seen_at.max(now);
        let share = self.limit.min(self.inside) as u128;
        let counted_ns = passed_ns * share / self.inside.max(1) as u128;
        self.counted_ns += counted_ns as u64;
        while let Some(&(at, job)) = self.ends.first()
            && at <= now
        {
            self.ends.pop_first();
            if let Some(rehearsed) = self.jobs.remove(&job) {
                self.names.remove(&rehearsed.ticket.job());
                let outside_ns = rehearsed
                    .admitted_at
                    .map_or(0, |it| it.since(rehearsed.came_at));
                let inside_ns = rehearsed.stays_ns.unwrap_or_default();
                let admission = &mut self.admission;
                if rehearsed.is_done {
                    admission.complete(&rehearsed.ticket, outside_ns, inside_ns, at);
                } else {
                    admission.settle(&rehearsed.ticket, inside_ns);
                }
                admission.leave(&rehearsed.ticket, at);
            }
            self.admit(at);
        }
    }

    fn admit(&mut self, now: Time) {
        while let Some(admitted) = self.admission.admit(now) {
            let Some(&job) = self.names.get(&admitted) else {
                continue;
            };
            let Some(rehearsed) = self.jobs.get_mut(&job) else {
                continue;
            };
            rehearsed.admitted_at = Some(now);
            if let Some(stays_ns) = rehearsed.stays_ns {
                self.ends.insert((now.after(stays_ns), job));
            }
            let wait_ns = now.since(rehearsed.came_at);
            rehearsed.wait_ns = Some(wait_ns);
            self.by_class
                .entry(rehearsed.class)
                .or_default()
                .count(wait_ns);
        }
    }

    /// From now on so many may be inside.
    pub fn set_limit(&mut self, limit: usize, now: Time) {
        self.advance(now);
        self.limit = limit;
        self.admission.set_places(limit);
        self.admission.set_capacity(limit);
        self.admit(now);
    }

    /// [`Admission::set_places`], where these are others than may be inside now.
    pub fn set_places(&mut self, places: usize) {
        self.admission.set_places(places);
    }

    /// The same number.
    pub fn places(&self) -> usize {
        self.admission.places()
    }

    /// From now on classes have these goals, and jobs of the true backend are what `known` has for
    /// them; the figures of all begin anew where goals are others.
    pub fn set_goals(
        &mut self,
        order: Order,
        goals: Vec<Goal>,
        known: &HashMap<JobId, Renewed>,
        now: Time,
    ) {
        self.advance(now);
        let goals = (order, goals);
        let is_same = self.goals == goals;
        if is_same && known.is_empty() {
            return;
        }
        self.goals = goals.clone();
        let here = |(job, known): (&JobId, &Renewed)| {
            let rehearsed = self.jobs.get(job)?;
            Some((rehearsed.ticket.job(), *known))
        };
        let known = known.iter().filter_map(here).collect();
        self.admission.set_goals(order, goals.1, &known, now);
        for rehearsed in self.jobs.values_mut() {
            rehearsed.class = self.admission.class_of(&rehearsed.ticket);
            rehearsed.wait_ns = rehearsed.wait_ns.filter(|_| is_same);
        }
        if is_same {
            self.by_class.values_mut().for_each(|it| it.waiting = 0);
        } else {
            self.by_class.clear();
        }
        for rehearsed in self.jobs.values() {
            if rehearsed.admitted_at.is_none() {
                self.by_class.entry(rehearsed.class).or_default().waiting += 1;
            }
        }
        self.admit(now);
    }

    /// [`Admission::follow`].
    pub fn follow(&mut self, taken: Within, now: Time) {
        self.advance(now);
        self.admission.follow(taken, now);
        self.admit(now);
    }

    /// How many may be inside.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How long jobs would have waited, by the number of their class.
    pub fn by_class(&self) -> &BTreeMap<u8, WouldWait> {
        &self.by_class
    }
}
