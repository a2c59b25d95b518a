//! In which order those who wait go in, and the queue that keeps them in it.

mod tuning;
mod within;

use crate::queue::TURNS_MAX;
use crate::{JobId, TURN_NS};
use sooner_policy::{
    Classes, Guard, GuardDebts, GuardLimits, HALF_LIFE_NS, Hrrn, Lateness, LeastUsed, Promise,
    Scheduler, Shares, Targets, Time,
};
pub(crate) use tuning::SharedTuning;
pub use tuning::Tuning;
use within::WithinRank;

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
    /// By class; within one who came first, where one that is expected to be short counts as if it
    /// had come earlier (gamma-Boost), by a scale that is learnt.
    Boost,
    /// By class; within one who has waited longest for what it is expected to take.
    Hrrn,
    /// By class; within one who came first, but what is expected to be short passes long ones among
    /// the last few (Nudge-M), as many as are learnt.
    Nudge,
    /// By class; within one as what is played of the last jobs says ([`crate::Follower`]); first come,
    /// first served until that is known.
    Auto,
    /// What is due by its target, then what has none, then what will be due (thesis 10.3).
    Targets(Lateness),
    /// The class that has had the least for its weight; within one first come, first served (thesis
    /// 11.2).
    Shares,
    /// By class; within one who had the least of late, of those that are charged
    /// ([`LeastUsed`]); what one client wants in this order.
    LeastUsed(Within),
}

/// Who has an account of what its jobs had, where an order keeps any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccountsOf {
    /// Each class.
    Classes,
    /// Each of those that are charged.
    Payers,
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
    /// Who came first, short ones counting as if they had come earlier.
    Boost,
    /// Who has waited longest for what it is expected to take.
    Hrrn,
    /// Who came first, short ones passing long ones among the last few.
    Nudge,
    /// What is played of the last jobs says it; who came first until that is known.
    Auto,
}

impl Within {
    /// Whether it goes by what is learnt of the law of all jobs, or may before long.
    pub(crate) fn is_tuned(self) -> bool {
        matches!(self, Self::Boost | Self::Nudge | Self::Auto)
    }

    /// What a configuration calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expected => "shortest",
            Self::Fcfs => "fifo",
            Self::Longest => "longest",
            Self::Boost => "boost",
            Self::Hrrn => "hrrn",
            Self::Nudge => "nudge",
            Self::Auto => "auto",
        }
    }
}

impl Order {
    /// In which order jobs of one class go in, or of one client; `None` where that is by targets or
    /// weights.
    pub fn within(self) -> Option<Within> {
        Some(match self {
            Self::Expected => Within::Expected,
            Self::Fcfs => Within::Fcfs,
            Self::Longest => Within::Longest,
            Self::Boost => Within::Boost,
            Self::Hrrn => Within::Hrrn,
            Self::Nudge => Within::Nudge,
            Self::Auto => Within::Auto,
            Self::LeastUsed(within) => within,
            Self::Targets(_) | Self::Shares => return None,
        })
    }

    /// The same where `taken` stands for the order that follows what is played.
    pub(crate) fn resolved(self, taken: Within) -> Self {
        match self {
            Self::Auto => taken.into(),
            Self::LeastUsed(Within::Auto) => Self::LeastUsed(taken),
            _ => self,
        }
    }

    /// Who has an account; `None` where it keeps none.
    pub(crate) fn accounts(self) -> Option<AccountsOf> {
        match self {
            Self::Shares => Some(AccountsOf::Classes),
            Self::LeastUsed(_) => Some(AccountsOf::Payers),
            _ => None,
        }
    }

    /// Whether it depends on how long jobs are expected to take.
    pub fn asks_for_times(self) -> bool {
        match self {
            Self::Targets(_) => true,
            _ => self.within().is_some_and(|within| within != Within::Fcfs),
        }
    }
}

impl From<Within> for Order {
    fn from(within: Within) -> Self {
        match within {
            Within::Expected => Self::Expected,
            Within::Fcfs => Self::Fcfs,
            Within::Longest => Self::Longest,
            Within::Boost => Self::Boost,
            Within::Hrrn => Self::Hrrn,
            Within::Nudge => Self::Nudge,
            Within::Auto => Self::Auto,
        }
    }
}

/// Those who wait.
pub(crate) enum Ranking {
    Ranked(Guard<Classes<WithinRank>>),
    Ratio(Guard<Hrrn>),
    Targets(Guard<Targets>),
    Shares(Guard<Shares>),
    LeastUsed(Box<Guard<LeastUsed<WithinRank>>>),
}

impl Ranking {
    pub(crate) fn new(order: Order, tuning: &SharedTuning) -> Self {
        // A job outside a backend cannot be given a trickle: the guard's second promise is off.
        let limits = GuardLimits {
            silence_ns_max: u64::MAX,
            turns_max: Some(TURNS_MAX),
            ..GuardLimits::with_turn(TURN_NS)
        };
        let rank = order.within().and_then(|it| WithinRank::of(it, tuning));
        match (order, rank) {
            (Order::Targets(lateness), _) => {
                Self::Targets(Guard::new(Targets::new(lateness), limits))
            }
            (Order::Shares, _) => Self::Shares(Guard::new(Shares::default(), limits)),
            (Order::LeastUsed(_), Some(rank)) => {
                let ranked = LeastUsed::new(rank, HALF_LIFE_NS);
                Self::LeastUsed(Guard::new(ranked, limits).into())
            }
            (Order::LeastUsed(_), None) => {
                let ranked = LeastUsed::by_ratio(HALF_LIFE_NS);
                Self::LeastUsed(Guard::new(ranked, limits).into())
            }
            (_, Some(rank)) => Self::Ranked(Guard::new(Classes::new(rank), limits)),
            (_, None) => Self::Ratio(Guard::new(Hrrn::interrupting(), limits)),
        }
    }

    pub(crate) fn scheduler(&mut self) -> &mut dyn Scheduler {
        match self {
            Self::Ranked(guard) => guard,
            Self::Ratio(guard) => guard,
            Self::Targets(guard) => guard,
            Self::Shares(guard) => guard,
            Self::LeastUsed(guard) => guard.as_mut(),
        }
    }

    fn debts(&self) -> GuardDebts {
        match self {
            Self::Ranked(guard) => guard.debts(),
            Self::Ratio(guard) => guard.debts(),
            Self::Targets(guard) => guard.debts(),
            Self::Shares(guard) => guard.debts(),
            Self::LeastUsed(guard) => guard.debts(),
        }
    }

    /// What is owed to the oldest in the order before this one, and what clients or classes had
    /// there, if both count that.
    pub(crate) fn take_accounts(&mut self, before: Self) {
        let debts = before.debts();
        match self {
            Self::Ranked(guard) => guard.take_debts(debts),
            Self::Ratio(guard) => guard.take_debts(debts),
            Self::Targets(guard) => guard.take_debts(debts),
            Self::Shares(guard) => guard.take_debts(debts),
            Self::LeastUsed(guard) => guard.take_debts(debts),
        }
        match (self, before) {
            (Self::LeastUsed(guard), Self::LeastUsed(before)) => {
                guard.inner_mut().take_accounts((*before).into_inner());
            }
            (Self::Shares(guard), Self::Shares(before)) => {
                guard.inner_mut().take_accounts(before.into_inner());
            }
            _ => {}
        }
    }

    /// The oldest of those that can go in.
    pub(crate) fn oldest(&self) -> Option<JobId> {
        match self {
            Self::Ranked(guard) => guard.oldest(),
            Self::Ratio(guard) => guard.oldest(),
            Self::Targets(guard) => guard.oldest(),
            Self::Shares(guard) => guard.oldest(),
            Self::LeastUsed(guard) => guard.oldest(),
        }
    }

    /// One that went in at this time, before older ones, took so much more than was expected.
    pub(crate) fn owe(&mut self, more_ns: u64, charged_at: Time) {
        match self {
            Self::Ranked(guard) => guard.owe(more_ns, charged_at),
            Self::Ratio(guard) => guard.owe(more_ns, charged_at),
            Self::Targets(guard) => guard.owe(more_ns, charged_at),
            Self::Shares(guard) => guard.owe(more_ns, charged_at),
            Self::LeastUsed(guard) => guard.owe(more_ns, charged_at),
        }
    }

    /// What tells jobs of one line of a class apart.
    pub(crate) fn rank_in_line(&mut self, job: JobId) -> u64 {
        let rank = match self {
            // The order of arrival is all there is.
            Self::Shares(_) => None,
            // The whole order's rank is the payer's.
            Self::LeastUsed(guard) => guard.inner_mut().rank_within(job),
            _ => self.scheduler().rank(job),
        };
        rank.unwrap_or_default()
    }

    /// A job that waits was promised a start; no effect in an order without targets.
    pub(crate) fn promise(&mut self, job: JobId, promise: Promise) {
        if let Self::Targets(guard) = self {
            guard.inner_mut().promise(job, promise);
        }
    }

    /// Classes have other numbers from now on; no effect in an order without weights.
    pub(crate) fn renumber(&mut self, number: impl Fn(u8) -> Option<u8>) {
        if let Self::Shares(guard) = self {
            guard.inner_mut().renumber(number);
        }
    }

    /// No effect in an order without weights.
    pub(crate) fn set_weight(&mut self, class: u8, weight: u32) {
        if let Self::Shares(guard) = self {
            guard.inner_mut().set_weight(class, weight);
        }
    }
}
