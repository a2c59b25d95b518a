//! What each way to let a class go first could gain it at most, from where its time goes.

use std::collections::HashMap;

use serde::Serialize;

use super::breakdown::{Breakdown, Row};
use super::part::Part;
use sooner_postgres::locks::Waiter;

/// Less than this part of the response time is nothing to gain.
const WORTH_SHARE: f64 = 0.05;
/// A simpler one is as good if it gains this part of what the best does.
const AS_GOOD: f64 = 0.85;

/// A way to let a class go first. The names of those inside are the thesis's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// Few transactions at a time, the class first: `sooner gate`.
    Gate,
    /// The class's processes get the processor first.
    CpuPrio,
    /// And so does who holds what they wait for.
    CpuPrioInherit,
    /// The class goes first in queues of locks.
    NpLq,
    /// And who holds what it waits for gets the processor first.
    NpLqInherit,
    /// Lower holders that wait themselves are rolled back.
    Pow,
    /// All lower holders are rolled back.
    PLq,
}

impl Knob {
    /// All, simplest first.
    pub const ALL: [Knob; 7] = [
        Knob::Gate,
        Knob::CpuPrio,
        Knob::CpuPrioInherit,
        Knob::NpLq,
        Knob::NpLqInherit,
        Knob::Pow,
        Knob::PLq,
    ];

    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Knob::Gate => "gate",
            Knob::CpuPrio => "CPU-Prio",
            Knob::CpuPrioInherit => "CPU-Prio-Inherit",
            Knob::NpLq => "NP-LQ",
            Knob::NpLqInherit => "NP-LQ-Inherit",
            Knob::Pow => "POW",
            Knob::PLq => "P-LQ",
        }
    }
}

/// What stood before a class's waiters for locks: sums over all that were seen.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LockTally {
    /// Waiters.
    pub waiters: f64,
    /// Of the queue before each, the part that lower ones are.
    pub lower_ahead: f64,
    /// The part that a lower owner is.
    pub lower_owner: f64,
    /// The part that a lower owner is that waits for a lock itself.
    pub lower_owner_waits: f64,
    /// Owners on a processor, or waiting for one.
    pub owner_on_processor: f64,
}

impl LockTally {
    /// Adds a waiter. `is_lower` says of a process whether the waiter goes before it.
    pub fn add(
        &mut self,
        waiter: &Waiter,
        waiting: &HashMap<i32, &Waiter>,
        is_lower: impl Fn(i32) -> bool,
        is_on_processor: impl Fn(i32) -> bool,
    ) {
        let before = (waiter.ahead.len() + 1) as f64;
        let lower = waiter.ahead.iter().filter(|pid| is_lower(**pid)).count();
        self.waiters += 1.0;
        self.lower_ahead += lower as f64 / before;
        let owners = waiter.owners.len().max(1) as f64;
        for owner in &waiter.owners {
            if is_on_processor(*owner) {
                self.owner_on_processor += 1.0 / owners;
            }
            if is_lower(*owner) {
                self.lower_owner += 1.0 / (before * owners);
                if waiting.contains_key(owner) {
                    self.lower_owner_waits += 1.0 / (before * owners);
                }
            }
        }
    }

    /// A part of the waiters' time; all of it where none was seen.
    fn share(&self, of: f64) -> f64 {
        if self.waiters > 0.0 {
            (of / self.waiters).min(1.0)
        } else {
            1.0
        }
    }
}

/// What a knob could gain a class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// Which.
    pub knob: Knob,
    /// At most so much sooner, on average, ms.
    pub at_most_ms: f64,
}

/// What is advised for a class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The class.
    pub class: String,
    /// What takes most of its time.
    pub bottleneck: &'static str,
    /// Of its mean response time, ms.
    pub bottleneck_ms: f64,
    /// What each knob could gain, as in [`Knob::ALL`].
    pub gains: Vec<Gain>,
    /// The knob to turn inside, whatever a gate does outside; none where there is nothing to gain.
    pub knob: Option<Knob>,
}

/// What a class could gain. `own_share` is the part of the processors' work of all that the class
/// and those before it do themselves: no priority takes that away.
pub fn advice(row: &Row, locks: &LockTally, all: &Breakdown, own_share: f64) -> Advice {
    let lock_ms = row.locks_ms();
    let wait_ms = row.ms(Part::ProcessorWait) * (1.0 - own_share);
    let processor_ms = all.all.ms(Part::Running) + all.all.ms(Part::ProcessorWait);
    let waits = all.all.ms(Part::ProcessorWait) / processor_ms.max(f64::MIN_POSITIVE);
    let inherit_ms = lock_ms * locks.share(locks.owner_on_processor) * waits;
    let queue_ms = lock_ms * locks.share(locks.lower_ahead);
    let others_ms = row.ms(Part::LightLocks) + row.ms(Part::Other);
    let gain = |knob| Gain {
        knob,
        at_most_ms: match knob {
            Knob::Gate => wait_ms + lock_ms + others_ms,
            Knob::CpuPrio => wait_ms,
            Knob::CpuPrioInherit => wait_ms + inherit_ms,
            Knob::NpLq => queue_ms,
            Knob::NpLqInherit => (queue_ms + inherit_ms).min(lock_ms),
            Knob::Pow => lock_ms * locks.share(locks.lower_ahead + locks.lower_owner_waits),
            Knob::PLq => lock_ms * locks.share(locks.lower_ahead + locks.lower_owner),
        },
    };
    let gains: Vec<Gain> = Knob::ALL.into_iter().map(gain).collect();
    let (bottleneck, bottleneck_ms) = bottleneck(row);
    Advice {
        class: row.name.clone(),
        bottleneck,
        bottleneck_ms,
        knob: best(&gains, row.mean_ms.unwrap_or(0.0)),
        gains,
    }
}

/// The simplest inside that gains about as much as any there, if that is worth it.
fn best(gains: &[Gain], mean_ms: f64) -> Option<Knob> {
    let inside = || gains.iter().filter(|gain| gain.knob != Knob::Gate);
    let most = inside().map(|gain| gain.at_most_ms).fold(0.0, f64::max);
    if most <= WORTH_SHARE * mean_ms {
        return None;
    }
    let mut good = inside().filter(|gain| gain.at_most_ms >= AS_GOOD * most);
    good.next().map(|gain| gain.knob)
}

/// What takes most of the time, the processor and locks as one each.
fn bottleneck(row: &Row) -> (&'static str, f64) {
    let processor = row.ms(Part::Running) + row.ms(Part::ProcessorWait);
    let groups = [
        ("processor", processor),
        ("locks", row.locks_ms()),
        ("write-ahead log", row.ms(Part::Wal)),
        ("data I/O", row.ms(Part::DataIo)),
        ("client", row.ms(Part::Client)),
        ("lightweight locks", row.ms(Part::LightLocks)),
        ("replication", row.ms(Part::Replication)),
        ("other waits", row.ms(Part::Other)),
    ];
    let most = groups
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1));
    most.unwrap_or(("nothing", 0.0))
}
