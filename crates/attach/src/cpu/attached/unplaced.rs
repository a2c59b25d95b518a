//! Workers for which there is no place: the programs watch a bounded number of threads.

use sooner_kernel::workers::WORKERS_MAX;

/// How many they are, as of the last look at all processes and what began since.
#[derive(Debug, Default)]
pub(super) struct Unplaced {
    now: usize,
    is_told: bool,
}

impl Unplaced {
    /// All processes are looked at, and those without a place counted anew.
    pub(super) fn count_anew(&mut self) {
        self.now = 0;
    }

    /// One more has none.
    pub(super) fn add(&mut self) {
        self.now += 1;
    }

    /// When all processes are to be looked at, where a place was freed and that was due at `find_ns`:
    /// with the next check, if one waits for it.
    pub(super) fn after_freed(&self, find_ns: u64, check_ns: u64) -> u64 {
        match self.now {
            0 => find_ns,
            _ => find_ns.min(check_ns),
        }
    }

    /// That some have none, beside so many that have one; told once.
    pub(super) fn told_once(&mut self, watched: usize) -> Option<String> {
        if self.now == 0 || std::mem::replace(&mut self.is_told, true) {
            return None;
        }
        let (without, all) = (self.now, self.now + watched);
        Some(format!(
            "{without} of {all} workers are not ordered: at most {WORKERS_MAX} threads are watched; others are ordered when one of these ends"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_told_once_and_looked_for_only_when_a_place_is_free() {
        let mut unplaced = Unplaced::default();
        assert_eq!(unplaced.told_once(4096), None);
        assert_eq!(unplaced.after_freed(60, 1), 60);
        (0..904).for_each(|_| unplaced.add());
        let told = unplaced.told_once(4096).unwrap();
        let words = "904 of 5000 workers are not ordered: at most 4096 threads are watched;";
        assert!(told.starts_with(words), "{told}");
        assert_eq!(unplaced.told_once(4096), None);
        assert_eq!(unplaced.after_freed(60, 1), 1);
        assert_eq!(unplaced.after_freed(1, 60), 1);
        unplaced.count_anew();
        assert_eq!(unplaced.after_freed(60, 1), 60);
    }
}
