//! Responses that were seen to begin and not to end. Of some no end comes: it was lost, or is not seen
//! (QUIC).

use std::collections::{BTreeSet, HashMap};

use sooner_link::shadow::JOBS_MAX;

/// A response that is older has no end, ns.
const AGE_MAX_NS: u64 = 3_600_000_000_000;

/// At most [`JOBS_MAX`], where the oldest is given up before one begins.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    all: HashMap<u64, Began>,
    /// When each began, ns, and its number.
    by_age: BTreeSet<(u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Began {
    at_ns: u64,
    /// The length that was known then.
    size_bytes: Option<u64>,
}

impl UnderWay {
    /// The response of this number begins.
    pub fn begin(&mut self, response: u64, at_ns: u64, size_bytes: Option<u64>) {
        // One of the same number has ended unseen.
        self.end(response);
        self.all.insert(response, Began { at_ns, size_bytes });
        self.by_age.insert((at_ns, response));
    }

    /// It ends; gives the length with which it began, if it was under way.
    pub fn end(&mut self, response: u64) -> Option<Option<u64>> {
        let Began { at_ns, size_bytes } = self.all.remove(&response)?;
        self.by_age.remove(&(at_ns, response));
        Some(size_bytes)
    }

    /// Gives the oldest up, where it is too old or there is no room for another one.
    pub fn give_up(&mut self, now_ns: u64) -> Option<u64> {
        let &(at_ns, response) = self.by_age.first()?;
        let is_full = self.all.len() >= JOBS_MAX;
        if !is_full && now_ns.saturating_sub(at_ns) <= AGE_MAX_NS {
            return None;
        }
        self.end(response);
        Some(response)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_given_up_for_its_age_or_for_want_of_room() {
        let mut under_way = UnderWay::default();
        under_way.begin(7, 1000, Some(900));
        under_way.begin(8, 2000, None);
        under_way.begin(7, 3000, Some(500));
        assert_eq!(under_way.len(), 2);
        assert_eq!(under_way.give_up(2000 + AGE_MAX_NS), None);
        assert_eq!(under_way.give_up(2001 + AGE_MAX_NS), Some(8));
        assert_eq!(under_way.end(8), None);
        (0..JOBS_MAX as u64).for_each(|other| under_way.begin(100 + other, 4000, None));
        assert_eq!(under_way.give_up(4000), Some(7));
        assert_eq!(under_way.give_up(4000), Some(100));
        assert_eq!(under_way.give_up(4000), None);
        assert_eq!(under_way.end(101), Some(None));
        assert_eq!(under_way.all.len(), under_way.by_age.len());
    }
}
