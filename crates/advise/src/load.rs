//! The load of the uplink over time, by minutes.

use std::collections::BTreeMap;

/// Minutes that are counted: twenty years.
const MINUTES_MAX: usize = 20 * 366 * 24 * 60;
const MINUTE_NS: u64 = 60_000_000_000;
const MINUTES_OF_AN_HOUR: u64 = 60;

/// Work by minute since 1970.
#[derive(Default)]
pub struct Minutes(BTreeMap<u64, u64>);

impl Minutes {
    /// Counts work that came at `at_ns`.
    pub fn add(&mut self, at_ns: u64, work_bytes: u64) {
        if self.0.len() < MINUTES_MAX {
            let minute = self.0.entry(at_ns / MINUTE_NS).or_default();
            *minute = minute.saturating_add(work_bytes);
        }
    }

    /// Minutes since 1970 with their work, bytes.
    pub fn each(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(minute, bytes)| (*minute, *bytes))
    }
}

/// Loads: work that came over what the uplink carries.
pub struct Loads {
    /// Of the sixty minutes in a row with the most work; of a log that is shorter, of all of it.
    pub busiest_hour: f64,
    /// When they begin, seconds since 1970.
    pub busiest_hour_begins_s: u64,
    /// Of the busiest minute; of a log that is shorter, of all of it.
    pub busiest_minute: f64,
    /// Share of the minutes with more than half.
    pub above_half: f64,
    /// Minutes since the first, with their load.
    pub by_minute: Vec<(f64, f64)>,
}

impl Loads {
    /// Of a log that begins at `first_ns` and lasts `span_s`.
    pub fn of(minutes: &Minutes, bytes_per_sec: f64, first_ns: u64, span_s: f64) -> Self {
        let load = |bytes: u64, seconds: f64| bytes as f64 / (bytes_per_sec * seconds.min(span_s));
        let first = minutes.0.keys().next().copied().unwrap_or(0);
        let last = minutes.0.keys().next_back().copied().unwrap_or(0);
        let by_minute: Vec<(f64, f64)> = minutes
            .0
            .iter()
            .map(|(minute, bytes)| ((minute - first) as f64, load(*bytes, 60.0)))
            .collect();
        let above = by_minute.iter().filter(|minute| minute.1 > 0.5).count();
        let (work_bytes, begin) = busiest_hour(&minutes.0);
        Self {
            busiest_hour: load(work_bytes, 3600.0),
            busiest_hour_begins_s: (begin * 60).max(first_ns / 1_000_000_000),
            busiest_minute: if span_s < 60.0 {
                load(work_bytes, 60.0)
            } else {
                by_minute.iter().map(|minute| minute.1).fold(0.0, f64::max)
            },
            above_half: above as f64 / (last - first + 1) as f64,
            by_minute,
        }
    }
}

/// Work of the busiest sixty minutes in a row, and the first of them.
fn busiest_hour(minutes: &BTreeMap<u64, u64>) -> (u64, u64) {
    let (mut sum, mut busiest, mut begin) = (0_u64, 0, 0);
    let mut oldest = minutes.iter().peekable();
    for (minute, bytes) in minutes {
        sum = sum.saturating_add(*bytes);
        while let Some((old, bytes)) = oldest.peek()
            && **old + MINUTES_OF_AN_HOUR <= *minute
        {
            sum -= **bytes;
            oldest.next();
        }
        if sum > busiest {
            busiest = sum;
            begin = oldest.peek().map_or(*minute, |(old, _)| **old);
        }
    }
    (busiest, begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(work: &[(u64, u64)], span_s: f64) -> Loads {
        let mut minutes = Minutes::default();
        for (second, bytes) in work {
            minutes.add(second * 1_000_000_000, *bytes);
        }
        Loads::of(&minutes, 1.0, work[0].0 * 1_000_000_000, span_s)
    }

    #[test]
    fn a_short_log_is_divided_by_what_it_lasts() {
        let loads = of(&[(10, 3), (34, 9)], 24.0);
        assert_eq!(loads.busiest_hour, 0.5);
        assert_eq!(loads.busiest_minute, 0.5);
        assert_eq!(loads.busiest_hour_begins_s, 10);
    }

    #[test]
    fn the_busiest_hour_is_any_sixty_minutes() {
        let loads = of(&[(0, 90), (1800, 180), (5340, 1620), (9000, 90)], 9000.0);
        assert_eq!(loads.busiest_hour, 0.5);
        assert_eq!(loads.busiest_hour_begins_s, 1800);
    }

    #[test]
    fn no_more_than_all_minutes_are_above_half() {
        assert_eq!(of(&[(59, 60), (61, 60)], 2.0).above_half, 1.0);
        assert_eq!(
            of(&[(0, 60), (60, 0), (120, 0), (180, 0)], 181.0).above_half,
            0.25
        );
    }
}
