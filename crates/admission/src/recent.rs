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
    /// One more, for [`quantile_now`](Self::quantile_now) alone.
    pub(crate) fn note(&mut self, time: u64) {
        if self.times.len() < REMEMBERED {
            self.times.push(time);
        } else {
            self.times[self.next] = time;
            self.next = (self.next + 1) % REMEMBERED;
        }
        self.since_sorted += 1;
    }

    /// One more.
    pub(crate) fn add(&mut self, time: u64) {
        self.note(time);
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
        self.sorted.get(place(share, self.sorted.len())?).copied()
    }

    /// The same of all of them up to now; takes a time that grows with their number.
    pub(crate) fn quantile_now(&self, share: f64) -> Option<u64> {
        let mut times = self.times.clone();
        let at = place(share, times.len())?;
        Some(*times.select_nth_unstable(at).1)
    }
}

/// Where the last of a share of so many, in order, is; `None` where there are none.
fn place(share: f64, of: usize) -> Option<usize> {
    let last = of.checked_sub(1)?;
    let at = (share * of as f64).ceil() as usize;
    Some(at.saturating_sub(1).min(last))
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
    fn what_was_only_noted_is_found_on_demand() {
        let mut recent = Recent::default();
        assert_eq!(recent.quantile_now(0.5), None);
        (1..=100).rev().for_each(|time| recent.note(time));
        assert_eq!(recent.quantile_now(0.95), Some(95));
        assert_eq!(recent.quantile_now(1.0), Some(100));
        assert_eq!(recent.quantile(0.95), None);
        // From here on they are kept in order, those from before included.
        recent.add(1000);
        assert_eq!(recent.quantile(1.0), Some(1000));
        assert_eq!(recent.quantile(0.5), Some(51));
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut recent = Recent::default();
        (0..REMEMBERED).for_each(|_| recent.add(1_000_000));
        (0..REMEMBERED).for_each(|_| recent.add(3));
        assert_eq!(recent.quantile(1.0), Some(3));
    }
}
