//! In which order those who wait go in, and the queue that keeps them in it.

use crate::queue::TURNS_MAX;
use crate::{JobId, TURN_NS};
use sooner_policy::order::{Fcfs, Pljf, Srpt};
use sooner_policy::{
    Guard, GuardLimits, HALF_LIFE_NS, Lateness, LeastUsed, Order as PolicyOrder, PolicyName,
    Promise, Scheduler, Shares, Targets,
};

/// In which order jobs go in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By class; within one the shortest expected time first.
    #[default]
    Expected,
    /// By class; within one first come, first served.
    Fcfs,
    /// By class; within one the longest expected time first: what one should not do, for
    /// comparison.
    Longest,
    /// What is due by its target, then what has none, then what will be due (thesis 10.3).
    Targets(Lateness),
    /// The class that has had the least for its weight; within one first come, first served (thesis
    /// 11.2).
    Shares,
    /// By class; within one who had the least of late, of those that are charged
    /// ([`LeastUsed`]); what one client wants in this order.
    LeastUsed(Within),
}

/// In which order jobs of one client go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// The shortest expected time first.
    Expected,
    /// First come, first served.
    Fcfs,
    /// The longest expected time first.
    Longest,
}

/// Those who wait.
pub(crate) enum Ranking {
    Ranked(Box<dyn Scheduler + Send>),
    Targets(Guard<Targets>),
    Shares(Guard<Shares>),
}

fn least_used<O: PolicyOrder + Clone + Send + 'static>(
    within: O,
    limits: GuardLimits,
) -> Box<dyn Scheduler + Send> {
    Box::new(Guard::new(LeastUsed::new(within, HALF_LIFE_NS), limits))
}

impl Ranking {
    pub(crate) fn new(order: Order) -> Self {
        // A job outside a backend cannot be given a trickle: the guard's second promise is off.
        let limits = GuardLimits {
            silence_ns_max: u64::MAX,
            turns_max: Some(TURNS_MAX),
            ..GuardLimits::with_turn(TURN_NS)
        };
        let ranked = |policy: PolicyName| Self::Ranked(policy.scheduler(TURN_NS, Some(limits)));
        match order {
            Order::Expected => ranked(PolicyName::Srpt),
            Order::Fcfs => ranked(PolicyName::Fcfs),
            Order::Longest => ranked(PolicyName::Ljf),
            Order::Targets(lateness) => Self::Targets(Guard::new(Targets::new(lateness), limits)),
            Order::Shares => Self::Shares(Guard::new(Shares::default(), limits)),
            Order::LeastUsed(Within::Expected) => Self::Ranked(least_used(Srpt, limits)),
            Order::LeastUsed(Within::Fcfs) => Self::Ranked(least_used(Fcfs, limits)),
            Order::LeastUsed(Within::Longest) => Self::Ranked(least_used(Pljf, limits)),
        }
    }

    pub(crate) fn scheduler(&mut self) -> &mut dyn Scheduler {
        match self {
            Self::Ranked(scheduler) => scheduler.as_mut(),
            Self::Targets(guard) => guard,
            Self::Shares(guard) => guard,
        }
    }

    /// A job that waits was promised a start; no effect in an order without targets.
    pub(crate) fn promise(&mut self, job: JobId, promise: Promise) {
        if let Self::Targets(guard) = self {
            guard.inner_mut().promise(job, promise);
        }
    }

    /// No effect in an order without weights.
    pub(crate) fn set_weight(&mut self, class: u8, weight: u32) {
        if let Self::Shares(guard) = self {
            guard.inner_mut().set_weight(class, weight);
        }
    }
}
