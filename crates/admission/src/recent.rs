//! The last times of something, for percentiles that follow the present.

/// How many are remembered: a 95th percentile of 512 lies between the 93rd and the 97th.
const REMEMBERED: usize = 512;
/// After so many new ones they are sorted again.
const STALE_AFTER: usize = 32;

/// The last times, ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    times: Vec<u64>,
    next: usize,
    sorted: Vec<u64>,
    since_sorted: usize,
}

impl Recent {
    /// One more.
    pub(crate) fn add(&mut self, time: u64) {
        if self.times.len() < REMEMBERED {
            self.times.push(time);
        } else {
            self.times[self.next] = time;
            self.next = (self.next + 1) % REMEMBERED;
        }
        self.since_sorted += 1;
        if self.since_sorted >= STALE_AFTER || self.sorted.len() < STALE_AFTER {
            self.sorted.clone_from(&self.times);
            self.sorted.sort_unstable();
            self.since_sorted = 0;
        }
    }

    /// From now on everything takes `factor` times as long, as far as is known.
    pub(crate) fn scale(&mut self, factor: f64) {
        let all = self.times.iter_mut().chain(&mut self.sorted);
        all.for_each(|time| *time = (*time as f64 * factor) as u64);
    }

    /// The time that a share of them, 0 to 1, took at most; `None` before the first.
    pub(crate) fn quantile(&self, share: f64) -> Option<u64> {
        let last = self.sorted.len().checked_sub(1)?;
        let at = (share * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(at.saturating_sub(1).min(last)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_took_at_most_so_long() {
        let mut recent = Recent::default();
        assert_eq!(recent.quantile(0.5), None);
        recent.add(7);
        assert_eq!(recent.quantile(0.99), Some(7));
        let mut recent = Recent::default();
        (1..=REMEMBERED as u64).for_each(|time| recent.add(time));
        assert_eq!(recent.quantile(0.5), Some(256));
        assert_eq!(recent.quantile(1.0), Some(512));
        assert_eq!(recent.quantile(0.0), Some(1));
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut recent = Recent::default();
        (0..REMEMBERED).for_each(|_| recent.add(1_000_000));
        (0..REMEMBERED).for_each(|_| recent.add(3));
        assert_eq!(recent.quantile(1.0), Some(3));
    }
}
