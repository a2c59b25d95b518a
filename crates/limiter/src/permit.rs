//! Leave to be inside.

use crate::{Acquire, Limiter};
use sooner_admission::{Ending, Ticket, Time};
use std::sync::Arc;

/// Leave to be inside; dropping it leaves the backend and lets the next job in.
#[must_use = "dropping the permit leaves the backend"]
pub struct Permit {
    limiter: Limiter,
    ticket: Arc<Ticket>,
    came_at: Time,
    admitted_at: Time,
    /// How it ends, once that was said.
    ending: Option<Ending>,
}

/// The class of a job that has a permit, for who has not got it.
pub struct JobClass {
    limiter: Limiter,
    ticket: Arc<Ticket>,
}

impl JobClass {
    /// Its number now: the goals may have changed since the job came.
    pub fn number(&self) -> u8 {
        self.limiter.lock().admission.class_of(&self.ticket)
    }
}

impl Permit {
    /// Of a job that came and was let in at these times.
    pub(crate) fn new(limiter: Limiter, ticket: Ticket, came_at: Time, admitted_at: Time) -> Self {
        Self {
            limiter,
            ticket: Arc::new(ticket),
            came_at,
            admitted_at,
            ending: None,
        }
    }

    /// It ends so, if nothing was said of that before; gives whether that is so.
    fn end(&mut self, ending: Ending) -> bool {
        let is_first = self.ending.is_none();
        self.ending.get_or_insert(ending);
        is_first
    }

    /// The number of the job's class now: the goals may have changed since it came.
    pub fn class(&self) -> u8 {
        self.job_class().number()
    }

    /// The job's class, to look at later.
    pub fn job_class(&self) -> JobClass {
        JobClass {
            limiter: self.limiter.clone(),
            ticket: self.ticket.clone(),
        }
    }

    /// How long the job waited outside, ns.
    pub fn wait_ns(&self) -> u64 {
        self.admitted_at.since(self.came_at)
    }

    /// The same, with what it had waited before it came, or came again.
    pub fn waited_ns(&self) -> u64 {
        self.ticket.waited_ns() + self.wait_ns()
    }

    /// It begins only now, or anew: what it needed since it was let in is no time that the backend
    /// worked on it, and counts as waiting.
    pub fn begin(&mut self) {
        self.admitted_at = self.limiter.now();
    }

    /// Leaves the backend as done: the time inside tells what to expect of jobs like this one. Jobs
    /// that were given up or failed are dropped instead: they say nothing, but their class is
    /// charged for what they took.
    pub fn complete(mut self) {
        self.done();
    }

    /// The same for a job that keeps its place until the permit is dropped: what comes until then
    /// says nothing about jobs like this one.
    pub fn done(&mut self) {
        if self.end(Ending::Done) {
            let (mut shared, now) = self.limiter.lock_at();
            let inside_ns = now.since(self.admitted_at);
            let admission = &mut shared.admission;
            admission.complete(&self.ticket, self.wait_ns(), inside_ns, now);
        }
    }

    /// The same, of a job that was inside for `inside_ns` at last: where the permit's own is done
    /// already, it is another one in the place that is kept, which did not wait. The backend has
    /// done it, so it counts in what the backend does, but it says nothing about the order.
    pub fn done_again(&mut self, inside_ns: u64) {
        if self.ending.is_some() {
            self.limiter.lock().admission.complete_another(inside_ns);
        } else {
            self.done();
        }
    }

    /// Makes room for others, to come back ([`Limiter::acquire_again`]): its class stays charged.
    pub fn yield_place(mut self) {
        self.ending = Some(Ending::Yielded);
    }

    /// There is no place after all: comes back before all who wait, in the class that it has now.
    /// All the time until now counts as waiting.
    pub fn come_again(mut self) -> Acquire {
        self.begin();
        let (class, waited_ns) = (self.class(), self.waited_ns());
        let subject = self.ticket.subject().clone();
        let before = self.ticket.job();
        let again = self
            .limiter
            .acquire_instead(before, class, subject, waited_ns);
        self.yield_place();
        again
    }

    /// What the job did until now is void, whatever comes: it says nothing about jobs like this
    /// one, but its class is charged for it.
    pub fn fail(&mut self) {
        if self.end(Ending::Failed) {
            let (mut shared, now) = self.limiter.lock_at();
            let inside_ns = now.since(self.admitted_at);
            shared.admission.settle(&self.ticket, inside_ns);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // A job that nothing called done was given up.
        let ending = self.ending.unwrap_or(Ending::GivenUp);
        self.fail();
        self.limiter
            .change(|shared, now| shared.leave(&self.ticket, ending, now));
    }
}
