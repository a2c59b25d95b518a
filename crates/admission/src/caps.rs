//! Classes of which only so many jobs may be inside.
//!
//! While a class has as many inside as may be, none of its jobs is in the order: the operator holds
//! them, not the policy, so the guard against starvation neither counts nor serves them. Where
//! there is room again those are that could be next: the first of each line of the class (those
//! with and those without a promise, those of each payer), and its oldest, which is the guard's.
//! All others of the class come after the one or the other, so what goes in is the same as if all
//! were in the order, and a decision looks at lines and not at jobs: O(payers) where those share
//! who wait. Which those are is looked at when a job may go in and not at each event, so a class
//! that is full keeps its heads where they are until then.

use sooner_policy::{ClientId, JobId};
use std::collections::{BTreeMap, BTreeSet};

/// Those that wait with a promise and those without go in lines of their own, and so do those of
/// each payer, and of each size where a ratio to it decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineName {
    pub(crate) is_without_promise: bool,
    pub(crate) payer: Option<(ClientId, Option<ClientId>)>,
    /// Where a ratio to the size decides, which of two sizes is first changes with time; of one size
    /// it is always the oldest.
    pub(crate) size_step: u64,
}

/// Where a job is within its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Which line of the class: which of their heads is next depends on the time, and on what else
    /// happened.
    pub(crate) line: LineName,
    /// The lowest goes first.
    pub(crate) rank: u64,
    /// In the order of arrival.
    pub(crate) sequence: u64,
    pub(crate) job: JobId,
}

/// All classes that have a cap, by number.
#[derive(Debug, Default)]
pub(crate) struct Caps {
    classes: BTreeMap<u8, Capped>,
    places: BTreeMap<JobId, (u8, Place)>,
}

#[derive(Debug)]
struct Capped {
    inside_max: usize,
    inside: usize,
    by_rank: BTreeSet<Place>,
    by_age: BTreeSet<(u64, JobId)>,
    /// Those that are in the order.
    in_order: BTreeSet<JobId>,
    /// Whether others may have to be in it by now.
    is_stale: bool,
}

/// What changes in the order of those who wait.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) put_in: Vec<JobId>,
    pub(crate) taken_out: Vec<JobId>,
}

impl Capped {
    fn has_room(&self) -> bool {
        self.inside < self.inside_max
    }

    fn is_first_of_line(&self, place: Place) -> bool {
        let begin = Place {
            rank: 0,
            sequence: 0,
            job: JobId(0),
            ..place
        };
        self.by_rank.range(begin..place).next().is_none()
    }

    /// Those that could be next.
    fn heads(&self) -> BTreeSet<JobId> {
        let mut heads = BTreeSet::new();
        if !self.has_room() {
            return heads;
        }
        let mut next = self.by_rank.first();
        while let Some(&place) = next {
            heads.insert(place.job);
            let behind = Place {
                rank: u64::MAX,
                sequence: u64::MAX,
                job: JobId(u64::MAX),
                ..place
            };
            next = self.by_rank.range(behind..).next();
        }
        heads.extend(self.by_age.first().map(|&(_, job)| job));
        heads
    }
}

impl Caps {
    /// No job is known any more; from now on these are the most that may be inside, by class.
    pub(crate) fn reset(&mut self, maxima: impl IntoIterator<Item = (u8, usize)>) {
        self.places.clear();
        let capped = |(number, inside_max)| {
            let empty = Capped {
                inside_max,
                inside: 0,
                by_rank: BTreeSet::new(),
                by_age: BTreeSet::new(),
                in_order: BTreeSet::new(),
                is_stale: false,
            };
            (number, empty)
        };
        self.classes = maxima.into_iter().map(capped).collect();
    }

    /// The most that may be inside, by class.
    pub(crate) fn maxima(&self) -> Vec<(u8, usize)> {
        let all = self.classes.iter();
        all.map(|(&number, class)| (number, class.inside_max))
            .collect()
    }

    /// Whether a class has a cap.
    pub(crate) fn is_capped(&self, number: u8) -> bool {
        self.classes.contains_key(&number)
    }

    /// Whether one more of a class may be inside.
    pub(crate) fn has_room(&self, number: u8) -> bool {
        self.classes.get(&number).is_none_or(Capped::has_room)
    }

    /// How many of a class wait, if it has a cap.
    pub(crate) fn waiting(&self, number: u8) -> usize {
        let class = self.classes.get(&number);
        class.map_or(0, |class| class.by_age.len())
    }

    /// How many wait of classes with a cap.
    pub(crate) fn all_waiting(&self) -> usize {
        let classes = self.classes.values();
        classes.map(|class| class.by_age.len()).sum()
    }

    /// How many wait of classes that have as many inside as may be.
    pub(crate) fn held(&self) -> usize {
        let full = self.classes.values().filter(|class| !class.has_room());
        full.map(|class| class.by_age.len()).sum()
    }

    /// A job of a class is inside that was so when its cap came, or that goes in.
    pub(crate) fn entered(&mut self, number: u8) {
        if let Some(class) = self.classes.get_mut(&number) {
            class.inside += 1;
            class.is_stale = true;
        }
    }

    /// One has left.
    pub(crate) fn left(&mut self, number: u8) {
        if let Some(class) = self.classes.get_mut(&number) {
            assert!(class.inside > 0, "a job leaves that is inside");
            class.inside -= 1;
            class.is_stale = true;
        }
    }

    /// A job of a class waits; gives whether it is in the order for now, because it could be next.
    pub(crate) fn came(&mut self, number: u8, place: Place) -> bool {
        let Some(class) = self.classes.get_mut(&number) else {
            return true;
        };
        let is_new = class.by_rank.insert(place);
        assert!(is_new, "a job waits once");
        class.by_age.insert((place.sequence, place.job));
        self.places.insert(place.job, (number, place));
        let is_oldest = class.by_age.first() == Some(&(place.sequence, place.job));
        let may_be_next = class.has_room() && (is_oldest || class.is_first_of_line(place));
        if may_be_next {
            class.in_order.insert(place.job);
            class.is_stale = true;
        }
        may_be_next
    }

    /// A job waits no more.
    pub(crate) fn gone(&mut self, job: JobId) {
        let Some((number, place)) = self.places.remove(&job) else {
            return;
        };
        let Some(class) = self.classes.get_mut(&number) else {
            return;
        };
        let was_there = class.by_rank.remove(&place);
        assert!(was_there, "a job is found where it was put");
        class.by_age.remove(&(place.sequence, job));
        if class.in_order.remove(&job) {
            class.is_stale = true;
        }
    }

    /// A job that waits has this rank now.
    pub(crate) fn moved(&mut self, job: JobId, rank: u64) {
        let Some((number, place)) = self.places.get_mut(&job) else {
            return;
        };
        if place.rank == rank {
            return;
        }
        let Some(class) = self.classes.get_mut(number) else {
            return;
        };
        let was_there = class.by_rank.remove(place);
        assert!(was_there, "a job is found where it was put");
        place.rank = rank;
        class.by_rank.insert(*place);
        class.is_stale = true;
    }

    /// What changes in the order because of what happened to classes since the last call.
    pub(crate) fn changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        let stale = self.classes.values_mut().filter(|class| class.is_stale);
        for class in stale {
            let heads = class.heads();
            let before = std::mem::replace(&mut class.in_order, heads);
            changes.put_in.extend(class.in_order.difference(&before));
            changes.taken_out.extend(before.difference(&class.in_order));
            class.is_stale = false;
        }
        changes
    }

    /// Those that are not in the order.
    pub(crate) fn out_of_order(&self) -> Vec<JobId> {
        let all = self.classes.values();
        let out = all.flat_map(|class| {
            let jobs = class.by_age.iter().map(|&(_, job)| job);
            jobs.filter(|job| !class.in_order.contains(job))
        });
        out.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(job: u64, rank: u64) -> Place {
        Place {
            line: LineName::default(),
            rank,
            sequence: job,
            job: JobId(job),
        }
    }

    /// Those in the order after the change.
    fn heads(caps: &mut Caps) -> Vec<u64> {
        caps.changes();
        caps.classes[&3].in_order.iter().map(|job| job.0).collect()
    }

    #[test]
    fn the_first_and_the_oldest_are_in_the_order_while_there_is_room() {
        let mut caps = Caps::default();
        caps.reset([(3, 1)]);
        for (job, rank) in [(0, 50), (1, 20), (2, 30)] {
            caps.came(3, place(job, rank));
        }
        assert_eq!(heads(&mut caps), [0, 1]);
        caps.moved(JobId(2), 10);
        assert_eq!(heads(&mut caps), [0, 2]);
        caps.came(
            3,
            Place {
                line: LineName {
                    is_without_promise: true,
                    payer: None,
                    size_step: 0,
                },
                ..place(4, 0)
            },
        );
        assert_eq!(heads(&mut caps), [0, 2, 4]);
        caps.gone(JobId(2));
        caps.entered(3);
        assert_eq!(heads(&mut caps), [0; 0]);
        assert_eq!((caps.held(), caps.has_room(3)), (3, false));
        caps.left(3);
        assert_eq!(heads(&mut caps), [0, 1, 4]);
        assert_eq!((caps.held(), caps.has_room(7)), (0, true));
    }
}
