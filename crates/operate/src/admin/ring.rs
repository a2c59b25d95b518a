//! The last minutes, a value a second.

use std::collections::VecDeque;

/// Seconds that are kept.
pub const SECONDS_MAX: usize = 300;

/// What happened in each of the last seconds; the oldest goes when there are too many.
#[derive(Clone, Debug)]
pub struct Ring<T>(VecDeque<T>);

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Ring<T> {
    /// Another second has passed.
    pub fn push(&mut self, second: T) {
        if self.0.len() == SECONDS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(second);
    }

    /// The seconds, oldest first.
    pub fn seconds(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// At most so many of the last ones, the last one first.
    pub fn last(&self, seconds: usize) -> impl Iterator<Item = &T> {
        self.0.iter().rev().take(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_seconds_go() {
        let mut ring = Ring::default();
        for second in 0..SECONDS_MAX + 7 {
            ring.push(second);
        }
        assert_eq!(ring.seconds().count(), SECONDS_MAX);
        assert_eq!(ring.seconds().next(), Some(&7));
        let last: Vec<_> = ring.last(2).copied().collect();
        assert_eq!(last, [SECONDS_MAX + 6, SECONDS_MAX + 5]);
    }
}
