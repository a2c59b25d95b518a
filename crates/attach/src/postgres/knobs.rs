//! What each way to let a class go first could gain it at most, from where its time goes.

use std::collections::HashMap;

use serde::Serialize;

use super::breakdown::Breakdown;
use super::part::Part;
use super::row::Row;
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
    /// Of those before each, in its queue or woken together with it, the part that lower ones are.
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
        let before = (waiter.ahead.len() + waiter.beside.len() + 1) as f64;
        let others = waiter.ahead.iter().chain(&waiter.beside);
        let lower = others.filter(|pid| is_lower(**pid)).count();
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

    /// A part of the waiters' time; none where no waiter was seen.
    fn share(&self, of: f64) -> Option<f64> {
        (self.waiters > 0.0).then(|| (of / self.waiters).min(1.0))
    }
}

/// What a knob could gain a class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// Which.
    pub knob: Knob,
    /// At most so much sooner, on average, ms; none where it is not known.
    pub at_most_ms: Option<f64>,
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
    // Where nothing waits for a lock there is nothing that would have to be seen.
    let of_locks = |of: f64| match lock_ms > 0.0 {
        true => Some(lock_ms * locks.share(of)?),
        false => Some(0.0),
    };
    let inherit_ms = of_locks(locks.owner_on_processor).map(|own| own * waits);
    let queue_ms = of_locks(locks.lower_ahead);
    // The queue for a row forms anew where its transaction has changed it, and who runs first is
    // first in it. What was not seen may be all of that.
    let rows_ms = row.ms(Part::RowLocks);
    let race_ms = locks
        .share(locks.lower_ahead)
        .map_or(rows_ms, |share| rows_ms * share);
    // Lightweight locks are not handed over either: who is woken has to take them.
    let light_ms = row.ms(Part::LightLocks);
    let others_ms = light_ms + row.ms(Part::Other);
    // A wait that it is spared spares it to be woken and to look again, which is no longer than it.
    let with_woken = |ms: f64| ms + ms.min(wait_ms + light_ms);
    let gain = |knob| Gain {
        knob,
        at_most_ms: match knob {
            Knob::Gate => Some(wait_ms + lock_ms + others_ms),
            Knob::CpuPrio => Some(wait_ms + light_ms + race_ms),
            Knob::CpuPrioInherit => {
                inherit_ms.map(|own| wait_ms + light_ms + (race_ms + own).min(lock_ms))
            }
            Knob::NpLq => queue_ms.map(with_woken),
            Knob::NpLqInherit => queue_ms
                .zip(inherit_ms)
                .map(|(queue, own)| with_woken((queue + own).min(lock_ms))),
            Knob::Pow => of_locks(locks.lower_ahead + locks.lower_owner_waits).map(with_woken),
            Knob::PLq => of_locks(locks.lower_ahead + locks.lower_owner).map(with_woken),
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

/// The simplest inside that is known to gain about as much as any there, if that is worth it.
fn best(gains: &[Gain], mean_ms: f64) -> Option<Knob> {
    let inside = gains.iter().filter(|gain| gain.knob != Knob::Gate);
    let inside: Vec<(Knob, f64)> = inside
        .filter_map(|gain| Some((gain.knob, gain.at_most_ms?)))
        .collect();
    let most = inside.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
    if most <= WORTH_SHARE * mean_ms {
        return None;
    }
    let mut good = inside.iter().filter(|(_, ms)| *ms >= AS_GOOD * most);
    good.next().map(|(knob, _)| *knob)
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

#[cfg(test)]
mod tests {
    use super::super::rates::CountOf;
    use super::super::row::{Counted, PartTime};
    use super::*;

    /// A class's row with these milliseconds.
    fn row(parts: &[(Part, f64)]) -> Row {
        let part = |(part, ms): &(Part, f64)| PartTime {
            part: *part,
            at_a_time: 0.0,
            share: 0.0,
            ms: Some(*ms),
            error_ms: None,
        };
        Row {
            name: "high".into(),
            counted: Counted::Transactions,
            per_sec: 1.0,
            at_a_time: 1.0,
            mean_ms: Some(parts.iter().map(|(_, ms)| ms).sum()),
            error_ms: None,
            before_ms: None,
            parts: parts.iter().map(part).collect(),
        }
    }

    #[test]
    fn who_runs_first_is_first_in_a_queue_for_a_row() {
        let locks = LockTally {
            waiters: 10.0,
            lower_ahead: 5.0,
            ..LockTally::default()
        };
        let most = |parts: &[(Part, f64)], locks: &LockTally| {
            let row = row(parts);
            let all = Breakdown {
                count_of: CountOf::Server,
                all: row.clone(),
                classes: Vec::new(),
                by_active: Vec::new(),
            };
            let gains = advice(&row, locks, &all, 0.0).gains;
            [Knob::CpuPrio, Knob::NpLq].map(|knob| {
                let gain = gains.iter().find(|gain| gain.knob == knob);
                gain.unwrap().at_most_ms
            })
        };
        let parts = [(Part::ProcessorWait, 3.0), (Part::RowLocks, 40.0)];
        assert_eq!(most(&parts, &locks), [Some(23.0), Some(23.0)]);
        assert_eq!(most(&parts, &LockTally::default()), [Some(43.0), None]);
        let parts = [(Part::ProcessorWait, 3.0), (Part::TableLocks, 40.0)];
        assert_eq!(most(&parts, &locks), [Some(3.0), Some(23.0)]);
        // Of what has little to do with locks a queue takes no more than as long again.
        let parts = [
            (Part::ProcessorWait, 70.0),
            (Part::LightLocks, 5.0),
            (Part::TableLocks, 2.0),
        ];
        assert_eq!(most(&parts, &locks), [Some(75.0), Some(2.0)]);
    }

    #[test]
    fn what_was_not_seen_is_not_known() {
        assert_eq!(LockTally::default().share(0.0), None);
        let one = LockTally {
            waiters: 2.0,
            ..LockTally::default()
        };
        assert_eq!(one.share(1.0), Some(0.5));
        let gain = |knob, at_most_ms| Gain { knob, at_most_ms };
        let gains = [
            gain(Knob::Gate, Some(9.0)),
            gain(Knob::CpuPrio, Some(1.0)),
            gain(Knob::NpLq, None),
        ];
        assert_eq!(best(&gains, 10.0), Some(Knob::CpuPrio));
        assert_eq!(best(&gains[2..], 10.0), None);
    }
}
