//! What every connection is doing, and which has been at it longest: who is overdue, and who is closed first when
//! room is needed.
//!
//! Pure. Two lists of connections, those that are idle and those in the middle of a request head, both in order of the
//! time they came in; every call is O(1), because every request makes four of them.

use sooner_policy::Time;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It has been answered and asks for nothing.
    Idle,
    /// It is sending a request head, or is new and should.
    Head,
    /// Its request is at hand: whatever takes time now is not the client's to hurry.
    Busy,
}

/// Names a connection; names are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId(usize);

/// How long connections may be in a phase, ns.
#[derive(Debug, Clone, Copy)]
pub struct PhaseLimits {
    /// Without a request.
    pub idle_ns: u64,
    /// With a part of one.
    pub head_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    phase: Phase,
    since: Time,
    before: Option<usize>,
    after: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
struct List {
    first: Option<usize>,
    last: Option<usize>,
}

/// All connections.
#[derive(Debug, Default)]
pub struct Phases {
    slots: Vec<Slot>,
    free: Vec<usize>,
    idle: List,
    head: List,
}

impl Phases {
    /// A connection comes in, and should send a request head.
    pub fn enter(&mut self, now: Time) -> ConnectionId {
        let slot = Slot {
            phase: Phase::Busy,
            since: now,
            before: None,
            after: None,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        self.put(ConnectionId(index), Phase::Head, now);
        ConnectionId(index)
    }

    /// The connection now does `phase`, since `now`; also when it did so before.
    pub fn put(&mut self, id: ConnectionId, phase: Phase, now: Time) {
        self.unlink(id.0);
        self.slots[id.0].phase = phase;
        self.slots[id.0].since = now;
        self.link_last(id.0);
    }

    /// What the connection does.
    pub fn phase(&self, id: ConnectionId) -> Phase {
        self.slots[id.0].phase
    }

    /// The connection is gone.
    pub fn leave(&mut self, id: ConnectionId) {
        self.unlink(id.0);
        self.slots[id.0].phase = Phase::Busy;
        self.free.push(id.0);
    }

    /// The connection that has been in `phase` longest, and since when; never one that is busy.
    pub fn longest(&self, phase: Phase) -> Option<(ConnectionId, Time)> {
        let first = self.list(phase)?.first?;
        Some((ConnectionId(first), self.slots[first].since))
    }

    /// A connection that has been idle, or at its head, for longer than `limits` allow.
    pub fn overdue(&self, limits: PhaseLimits, now: Time) -> Option<ConnectionId> {
        let over = |phase, limit_ns| {
            self.longest(phase)
                .filter(|(_, since)| now.since(*since) > limit_ns)
                .map(|(id, _)| id)
        };
        over(Phase::Idle, limits.idle_ns).or_else(|| over(Phase::Head, limits.head_ns))
    }

    fn list(&self, phase: Phase) -> Option<&List> {
        match phase {
            Phase::Idle => Some(&self.idle),
            Phase::Head => Some(&self.head),
            Phase::Busy => None,
        }
    }

    fn list_mut(&mut self, phase: Phase) -> Option<&mut List> {
        match phase {
            Phase::Idle => Some(&mut self.idle),
            Phase::Head => Some(&mut self.head),
            Phase::Busy => None,
        }
    }

    fn link_last(&mut self, index: usize) {
        let phase = self.slots[index].phase;
        let Some(list) = self.list_mut(phase) else {
            return;
        };
        let before = list.last.replace(index);
        match before {
            Some(before) => self.slots[before].after = Some(index),
            None => list.first = Some(index),
        }
        self.slots[index].before = before;
        self.slots[index].after = None;
    }

    fn unlink(&mut self, index: usize) {
        let Slot {
            phase,
            before,
            after,
            ..
        } = self.slots[index];
        if phase == Phase::Busy {
            return;
        }
        if let Some(before) = before {
            self.slots[before].after = after;
        }
        if let Some(after) = after {
            self.slots[after].before = before;
        }
        if let Some(list) = self.list_mut(phase) {
            if list.first == Some(index) {
                list.first = after;
            }
            if list.last == Some(index) {
                list.last = before;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: PhaseLimits = PhaseLimits {
        idle_ns: 75,
        head_ns: 30,
    };

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn the_longest_idle_is_found_first() {
        let mut phases = Phases::default();
        let [a, b, c] = [0, 1, 2].map(|ns| phases.enter(at(ns)));
        assert_eq!(phases.longest(Phase::Idle), None);
        for (id, ns) in [(c, 3), (a, 4), (b, 5)] {
            phases.put(id, Phase::Idle, at(ns));
        }
        assert_eq!(phases.longest(Phase::Idle), Some((c, at(3))));
        phases.put(c, Phase::Busy, at(6));
        phases.put(a, Phase::Idle, at(7));
        assert_eq!(phases.longest(Phase::Idle), Some((b, at(5))));
        phases.leave(b);
        assert_eq!(phases.longest(Phase::Idle), Some((a, at(7))));
        assert_eq!(phases.longest(Phase::Busy), None);
    }

    #[test]
    fn each_phase_has_its_limit() {
        let mut phases = Phases::default();
        let slow = phases.enter(at(0));
        let idle = phases.enter(at(0));
        phases.put(idle, Phase::Idle, at(0));
        assert_eq!(phases.overdue(LIMITS, at(30)), None);
        assert_eq!(phases.overdue(LIMITS, at(31)), Some(slow));
        phases.put(slow, Phase::Busy, at(31));
        assert_eq!(phases.overdue(LIMITS, at(75)), None);
        assert_eq!(phases.overdue(LIMITS, at(76)), Some(idle));
        phases.put(idle, Phase::Busy, at(76));
        assert_eq!(phases.overdue(LIMITS, at(1_000_000)), None);
    }

    proptest! {
        /// The lists agree with a list that is searched from end to end.
        #[test]
        fn the_same_as_searching(steps in prop::collection::vec((0..6_u8, 0..8_usize), 0..200)) {
            let mut phases = Phases::default();
            let mut known: Vec<(ConnectionId, Phase, u64)> = Vec::new();
            for (now, (action, which)) in (0_u64..).zip(steps) {
                if action == 0 || known.is_empty() {
                    known.push((phases.enter(at(now)), Phase::Head, now));
                } else {
                    let which = which % known.len();
                    let (id, _, _) = known.remove(which);
                    let phase = match action {
                        1 => None,
                        2 => Some(Phase::Busy),
                        3 => Some(Phase::Head),
                        _ => Some(Phase::Idle),
                    };
                    match phase {
                        Some(phase) => {
                            phases.put(id, phase, at(now));
                            known.push((id, phase, now));
                        }
                        None => phases.leave(id),
                    }
                }
                for phase in [Phase::Idle, Phase::Head] {
                    let longest = known
                        .iter()
                        .filter(|(_, its, _)| *its == phase)
                        .min_by_key(|(_, _, since)| *since)
                        .map(|(id, _, since)| (*id, at(*since)));
                    prop_assert_eq!(phases.longest(phase), longest);
                }
                prop_assert!(known.iter().all(|(id, phase, _)| phases.phase(*id) == *phase));
            }
        }
    }
}
