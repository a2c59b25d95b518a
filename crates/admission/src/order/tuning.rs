//! What orders by boosts and nudges go by: learnt from the law of the jobs that are done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers that such an order needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// How long a small job may pass large ones, ns ([`sooner_policy::order::Boost`]); 0: not at
    /// all.
    pub boost_scale_ns: u64,
    /// How many jobs the backend does at a time.
    pub places: u64,
    /// Jobs up to so long are small, ns.
    pub small_max_ns: u64,
    /// How many large ones a small one passes at most.
    pub nudge_places: u64,
}

/// The same numbers in all parts of one queue: in each class, for each client. It decides about
/// jobs that come; those that wait keep their rank until they are ordered anew.
#[derive(Clone, Default)]
pub(crate) struct SharedTuning(Arc<Numbers>);

#[derive(Default)]
struct Numbers {
    boost_scale_ns: AtomicU64,
    places: AtomicU64,
    small_max_ns: AtomicU64,
    nudge_places: AtomicU64,
}

impl SharedTuning {
    pub(crate) fn get(&self) -> Tuning {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Tuning {
            boost_scale_ns: get(&self.0.boost_scale_ns),
            places: get(&self.0.places),
            small_max_ns: get(&self.0.small_max_ns),
            nudge_places: get(&self.0.nudge_places),
        }
    }

    pub(crate) fn set(&self, tuning: Tuning) {
        let set = |number: &AtomicU64, to| number.store(to, Ordering::Relaxed);
        set(&self.0.boost_scale_ns, tuning.boost_scale_ns);
        set(&self.0.places, tuning.places);
        set(&self.0.small_max_ns, tuning.small_max_ns);
        set(&self.0.nudge_places, tuning.nudge_places);
    }
}
