//! What classes are to get, and by when a job has to be let in for that (thesis 10.3.2, 10.4).
//!
//! A job of a class with a target has until its arrival + the target - the time that its like take
//! inside; of several targets the most stringent counts. What a class takes inside is learned from
//! its own jobs. Two things that one formula does not see are corrected by what comes out: a free
//! place is not there at the very moment when a job is due, and what bounds a percentile of a sum
//! is not the percentile. So each target has a correction that grows while the class is early and
//! shrinks while it is late, within bounds, because with more load than the targets allow no
//! correction helps.
//!
//! Where a class is to vary little (10.4.1), each kind of its jobs has the mean response time of
//! them all as its target: what takes long goes early, and what is short waits.

pub(crate) mod feasible;

use sooner_policy::{Promise, Time};

use crate::mean::Mean;
use crate::order::Order;
use crate::recent::Recent;

/// The jobs that the mean of a class remembers: the mean of heavy-tailed times needs many.
const CLASS_MEMORY: u64 = 1024;
/// A class of which nothing was done for so long needs nothing, ns.
const SILENT_NS: u64 = 600_000_000_000;
/// What is aimed at, of a target: the rest is for what varies.
const AIM: f64 = 0.97;
/// The most by which a job is started before the formula says, of its target, for a mean.
const EARLIER_MOST: f64 = 0.25;
/// The same for a percentile: where a few jobs take very long, those of a late class wait for a
/// place behind them, and the slowest twentieth of them for much longer than the mean.
const EARLIER_MOST_OF_SHARE: f64 = 1.0;
/// The most by which it is started after.
const LATER_MOST: f64 = 0.5;
/// A correction moves by one part in this many of an error, and in four more for each job that is
/// on its way: its error cannot be known yet.
const CALM: f64 = 64.0;
/// The same when a class is new; from there it grows by one with each job.
const CALM_AT_FIRST: f64 = 8.0;

/// How many times as far a correction moves for a percentile as for a mean. The fewer jobs are above
/// it, the fewer tell where it is: with the same step a 95th percentile takes several times as long
/// to be found as an 80th.
fn step_of(share: f64) -> f64 {
    (0.4 / (1.0 - share)).clamp(1.0, 8.0)
}

/// A target for the response times of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResponseTarget {
    /// Their mean, ns.
    Mean(u64),
    /// A share of them, 0 to 1, takes at most so long, ns.
    Share(f64, u64),
}

impl ResponseTarget {
    /// The time that it is about, ns.
    pub fn target_ns(self) -> u64 {
        match self {
            Self::Mean(target_ns) | Self::Share(_, target_ns) => target_ns,
        }
    }
}

/// What a class is to get.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Goal {
    /// What people call the class; what was learned of it stays when the goals change.
    pub name: String,
    /// 0 goes first; in an order by targets among those that are late.
    pub priority: u8,
    /// In an order by weights.
    pub weight: u32,
    /// Its targets; without any it is served as well as can be.
    pub response_targets: Vec<ResponseTarget>,
    /// Whether all kinds of its jobs are to take the same time.
    pub evens_out: bool,
    /// The most of its jobs that may be inside; `None`: as many as the limit lets in.
    pub inside_max: Option<usize>,
}

impl Goal {
    fn has_percentiles(&self) -> bool {
        let is_share =
            |response_target: &ResponseTarget| matches!(response_target, ResponseTarget::Share(..));
        self.response_targets.iter().any(is_share)
    }
}

/// What a target needs of the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The number of the class.
    pub class: u8,
    /// The expected time inside, as the target counts it, ns; `None` where few jobs have told.
    pub inside_ns: Option<u64>,
    /// The target, ns.
    pub target_ns: u64,
}

/// Jobs of a class that were done, and their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How many.
    pub jobs: u64,
    /// Their response times together, ns: of thousands that wait these are centuries in weeks.
    pub response_sum_ns: u128,
    /// Their times inside together, ns.
    pub inside_sum_ns: u128,
}

/// How a class is doing.
#[derive(Clone, Debug, Default)]
pub struct ClassStatus {
    /// What people call it.
    pub name: String,
    /// Its jobs that are in the gate, waiting or inside.
    pub present: usize,
    /// How many are inside.
    pub inside: usize,
    /// The most that may be; `None`: as many as the limit lets in.
    pub inside_max: Option<usize>,
    /// How many ran for longer than they may.
    pub overlong: u64,
    /// How many were cancelled for that.
    pub cancelled: u64,
    /// What was done since it is there.
    pub done: Done,
    /// The mean time inside, ns.
    pub inside_ns: Option<u64>,
    /// The mean response time, ns.
    pub response_ns: Option<u64>,
    /// The response time that 95 in a hundred of the last ones took at most, ns.
    pub p95_response_ns: Option<u64>,
    /// That 99 in a hundred took, ns.
    pub p99_response_ns: Option<u64>,
    /// Each target with what was achieved recently, ns, in the goal's order; `None` before the
    /// first job was done.
    pub achieved: Vec<(ResponseTarget, Option<u64>)>,
}

impl Done {
    fn add(&mut self, outside_ns: u64, inside_ns: u64) {
        self.jobs += 1;
        self.response_sum_ns += u128::from(outside_ns) + u128::from(inside_ns);
        self.inside_sum_ns += u128::from(inside_ns);
    }
}

/// All classes, by number.
#[derive(Debug, Default)]
pub(crate) struct Goals {
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    goal: Goal,
    /// ns, one for each target.
    corrections: Vec<f64>,
    present: usize,
    /// When a job was done last.
    done_at: Option<Time>,
    has_percentiles: bool,
    overlong: u64,
    cancelled: u64,
    done: Done,
    inside: Mean,
    response: Mean,
    recent_inside: Recent,
    recent_response: Recent,
}

impl Class {
    fn new(goal: Goal) -> Self {
        Self {
            corrections: vec![0.0; goal.response_targets.len()],
            has_percentiles: goal.has_percentiles(),
            goal,
            present: 0,
            overlong: 0,
            cancelled: 0,
            done: Done::default(),
            done_at: None,
            inside: Mean::new(CLASS_MEMORY),
            response: Mean::new(CLASS_MEMORY),
            recent_inside: Recent::default(),
            recent_response: Recent::default(),
        }
    }

    /// What it is expected to take inside, as a target counts it, ns.
    fn inside_ns(&self, response_target: ResponseTarget) -> Option<u64> {
        match response_target {
            ResponseTarget::Mean(_) => self.inside.get(),
            ResponseTarget::Share(share, _) => self.recent_inside.quantile(share),
        }
    }

    /// By how much after its arrival a job of a kind that takes `kind_ns` inside has to be started,
    /// and for which target, ns.
    fn slack(&self, kind_ns: Option<u64>) -> Option<(f64, u64)> {
        let response_targets = self.goal.response_targets.iter().zip(&self.corrections);
        let slacks = response_targets.map(|(&response_target, correction)| {
            let inside_ns = self.inside_ns(response_target).unwrap_or(0) as f64;
            let target_ns = response_target.target_ns();
            (target_ns as f64 - inside_ns + correction, target_ns)
        });
        let even = self.goal.evens_out.then(|| self.even_slack(kind_ns));
        slacks
            .chain(even.flatten())
            .min_by(|one, other| one.0.total_cmp(&other.0))
    }

    fn even_slack(&self, kind_ns: Option<u64>) -> Option<(f64, u64)> {
        let mean_ns = self.response.get()?;
        let inside_ns = kind_ns.or(self.inside.get()).unwrap_or(0);
        // Less than the mean: a job goes in a little after it is due, and the mean would
        // follow for good.
        Some((AIM * mean_ns as f64 - inside_ns as f64, mean_ns.max(1)))
    }

    fn correct(&mut self, outside_ns: u64, inside_ns: u64) {
        let response_ns = (outside_ns + inside_ns) as f64;
        let mean_inside_ns = self.inside.get().unwrap_or(inside_ns) as f64;
        // The first jobs move it most: nothing is known yet that it could lose.
        let calm = CALM.min(CALM_AT_FIRST + self.done.jobs as f64);
        let gain = 1.0 / (calm + 4.0 * self.present as f64);
        for (response_target, correction) in
            self.goal.response_targets.iter().zip(&mut self.corrections)
        {
            let target_ns = response_target.target_ns() as f64;
            let (error_ns, earlier_most) = match response_target {
                // With the mean of what comes later: how long this very job took inside says
                // nothing about the order.
                ResponseTarget::Mean(_) => {
                    let error_ns = AIM * target_ns - outside_ns as f64 - mean_inside_ns;
                    (error_ns, EARLIER_MOST)
                }
                ResponseTarget::Share(share, _) => {
                    let is_met = response_ns <= AIM * target_ns;
                    let error_ns =
                        target_ns * (f64::from(u8::from(is_met)) - *share) * step_of(*share);
                    (error_ns, EARLIER_MOST_OF_SHARE)
                }
            };
            *correction = (*correction + gain * error_ns)
                .clamp(-earlier_most * target_ns, LATER_MOST * target_ns);
        }
    }

    fn status(&self) -> ClassStatus {
        let achieved = self.goal.response_targets.iter().map(|&response_target| {
            let achieved_ns = match response_target {
                ResponseTarget::Mean(_) => self.response.get(),
                ResponseTarget::Share(share, _) => self.recent_response.quantile(share),
            };
            (response_target, achieved_ns)
        });
        ClassStatus {
            name: self.goal.name.clone(),
            present: self.present,
            inside: 0,
            inside_max: self.goal.inside_max,
            overlong: self.overlong,
            cancelled: self.cancelled,
            done: self.done,
            inside_ns: self.inside.get(),
            response_ns: self.response.get(),
            p95_response_ns: self.recent_response.quantile_now(0.95),
            p99_response_ns: self.recent_response.quantile_now(0.99),
            achieved: achieved.collect(),
        }
    }
}

impl Goals {
    /// From now on these; of classes that stay, what was learned stays. Jobs that are here are
    /// counted nowhere any more.
    pub(crate) fn replace(&mut self, goals: Vec<Goal>) {
        let mut old = std::mem::take(&mut self.classes);
        let keep = |goal: Goal| {
            let known = old.iter().position(|class| class.goal.name == goal.name);
            let Some(at) = known else {
                return Class::new(goal);
            };
            let mut class = old.swap_remove(at);
            if class.goal.response_targets != goal.response_targets {
                class.corrections = vec![0.0; goal.response_targets.len()];
            }
            class.has_percentiles = goal.has_percentiles();
            class.goal = goal;
            class
        };
        self.classes = goals.into_iter().map(keep).collect();
    }

    /// These are the classes of all jobs that are here.
    pub(crate) fn count_present(&mut self, numbers: impl Iterator<Item = u8>) {
        for class in &mut self.classes {
            class.present = 0;
        }
        for number in numbers {
            if let Some(class) = self.classes.get_mut(usize::from(number)) {
                class.present += 1;
            }
        }
    }

    /// For each number its class's number among `goals`, if it is there.
    pub(crate) fn kept(&self, goals: &[Goal]) -> Vec<Option<u8>> {
        let at = |class: &Class| goals.iter().position(|goal| goal.name == class.goal.name);
        let number = |class: &Class| u8::try_from(at(class)?).ok();
        self.classes.iter().map(number).collect()
    }

    /// For each number its class's number among `goals`, the last one's where it is not there, and
    /// whether it is to get the same there.
    pub(crate) fn renumbered(&self, goals: &[Goal]) -> Vec<(u8, bool)> {
        let last = goals.len().saturating_sub(1);
        let number = |class: &Class| {
            let own = &class.goal;
            let at = goals.iter().position(|goal| goal.name == own.name);
            let is_same = |goal: &Goal| {
                (&goal.response_targets, goal.evens_out) == (&own.response_targets, own.evens_out)
            };
            let keeps = at.is_some_and(|at| is_same(&goals[at]));
            (u8::try_from(at.unwrap_or(last)).unwrap_or(u8::MAX), keeps)
        };
        self.classes.iter().map(number).collect()
    }

    /// What the order goes by: the class itself where each has its share, else its priority; where
    /// nothing is known, the number.
    pub(crate) fn rank(&self, order: Order, number: u8) -> u8 {
        match (order, self.classes.get(usize::from(number))) {
            (Order::Shares, _) | (_, None) => number,
            (_, Some(class)) => class.goal.priority,
        }
    }

    /// A job of a class comes, of a kind that takes `kind_ns` inside; [`promise`](Self::promise)
    /// says what it is promised.
    pub(crate) fn arrive(
        &mut self,
        number: u8,
        kind_ns: Option<u64>,
        came_ns: i64,
    ) -> Option<Promise> {
        self.classes.get_mut(usize::from(number))?.present += 1;
        self.promise(number, kind_ns, came_ns)
    }

    /// By when a job of a class has to be let in that came at `came_ns`, before the origin if that
    /// is negative.
    pub(crate) fn promise(
        &self,
        number: u8,
        kind_ns: Option<u64>,
        came_ns: i64,
    ) -> Option<Promise> {
        let class = self.classes.get(usize::from(number))?;
        let (slack_ns, target_ns) = class.slack(kind_ns)?;
        let due_ns = came_ns as f64 + slack_ns;
        Some(Promise {
            // What was due before the origin is due.
            due_at: Time::from_ns(due_ns.max(0.0) as u64),
            target_ns,
            group: number,
        })
    }

    /// A job leaves, done or not.
    pub(crate) fn leave(&mut self, number: u8) {
        if let Some(class) = self.classes.get_mut(usize::from(number)) {
            class.present = class.present.saturating_sub(1);
        }
    }

    /// A job of a class has run for longer than it may.
    pub(crate) fn note_overlong(&mut self, number: u8) {
        if let Some(class) = self.classes.get_mut(usize::from(number)) {
            class.overlong += 1;
        }
    }

    /// One was cancelled for that.
    pub(crate) fn note_cancelled(&mut self, number: u8) {
        if let Some(class) = self.classes.get_mut(usize::from(number)) {
            class.cancelled += 1;
        }
    }

    /// A job was done.
    pub(crate) fn done(&mut self, number: u8, outside_ns: u64, inside_ns: u64, now: Time) {
        if let Some(class) = self.classes.get_mut(usize::from(number)) {
            class.done_at = Some(now);
            class.done.add(outside_ns, inside_ns);
            class.inside.add(inside_ns);
            class.response.add(outside_ns + inside_ns);
            // Keeping them in order is dearer than all else here.
            if class.has_percentiles {
                class.recent_inside.add(inside_ns);
                class.recent_response.add(outside_ns + inside_ns);
            } else {
                class.recent_response.note(outside_ns + inside_ns);
            }
            class.correct(outside_ns, inside_ns);
        }
    }

    /// What each target of a class of which something comes needs of the backend (thesis 10.3.5,
    /// 10.4.2).
    pub(crate) fn needs(&self, now: Time) -> impl Iterator<Item = Need> {
        let comes = move |class: &Class| {
            class
                .done_at
                .is_some_and(|done_at| now.since(done_at) <= SILENT_NS)
        };
        let numbered = (0..=u8::MAX).zip(&self.classes);
        let coming = numbered.filter(move |(_, class)| comes(class));
        coming.flat_map(|(number, class)| {
            let is_known = class.inside.is_known();
            let response_targets = class.goal.response_targets.iter();
            response_targets.map(move |&response_target| Need {
                class: number,
                inside_ns: class.inside_ns(response_target).filter(|_| is_known),
                target_ns: response_target.target_ns(),
            })
        })
    }

    /// So many times as many may be inside from now on: times inside grow in proportion (thesis
    /// 10.3.5, 10.4.2).
    pub(crate) fn rescale(&mut self, factor: f64) {
        for class in &mut self.classes {
            class.inside.scale(factor);
            class.recent_inside.scale(factor);
        }
    }

    /// How all are doing, in the order of their numbers.
    pub(crate) fn class_statuses(&self) -> Vec<ClassStatus> {
        self.classes.iter().map(Class::status).collect()
    }
}

#[cfg(test)]
mod tests;
