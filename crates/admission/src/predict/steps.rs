//! What amounts do to times beside a line: a factor for each range of amounts.

use super::factor::Over;

/// Jobs of a range that its factor remembers.
const MEMORY: f64 = 16.0;
/// Each range ends at so many powers of 2 after it begins.
const POWERS: u32 = 2;
const RANGES: usize = 1 + (u64::BITS / POWERS) as usize;

/// How many times as long jobs of each range of amounts take as is expected without it.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    /// There are none before the first job with an amount.
    over: Option<Box<[Over; RANGES]>>,
}

impl Steps {
    /// How many times as long jobs of this amount take; `None` before the first of its range.
    pub(super) fn get(&self, amount: u64) -> Option<f64> {
        let over = &self.over.as_ref()?[range(amount)];
        over.is_known().then(|| over.get())
    }

    /// A job of this amount took `over` times as long as was expected without it.
    pub(super) fn note(&mut self, amount: u64, over: f64) {
        let none = || Box::new([Over::new(MEMORY); RANGES]);
        self.over.get_or_insert_with(none)[range(amount)].add(over);
    }
}

fn range(amount: u64) -> usize {
    ((u64::BITS - amount.leading_zeros()) / POWERS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_near_each_other_are_one_range() {
        let ranges = [0, 1, 2, 7, 8, 31, 32, u64::MAX].map(range);
        assert_eq!(ranges, [0, 0, 1, 1, 2, 2, 3, RANGES - 1]);
        let mut steps = Steps::default();
        assert_eq!(steps.get(5), None);
        (0..100).for_each(|_| steps.note(5, 3.0));
        assert!(steps.get(2).is_some_and(|over| over > 2.7));
        assert_eq!(steps.get(9), None);
    }
}
