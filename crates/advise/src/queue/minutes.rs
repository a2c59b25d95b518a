//! Requests inside by Little's law: the time that they spent in a minute over the minute, of a
//! whole log however long.

use std::collections::BTreeMap;

const MINUTE_NS: u64 = 60_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Borders between minutes that are kept.
const BORDERS_MAX: usize = 4_000_000;

/// Time inside by minute since 1970.
#[derive(Default)]
pub struct MinutesInside(BTreeMap<u64, Minute>);

#[derive(Clone, Copy, Default)]
struct Minute {
    /// Of requests that were not there for all of it.
    part_ns: u64,
    /// Requests that are there for all of it and were not for the one before, less those that are
    /// not any more.
    whole_more: i64,
}

/// What the minutes are like.
pub struct Figures {
    /// The most.
    pub busiest: f64,
    /// Share of the minutes with more than 1, 2, 4 and so on, as far as there are any.
    pub above: Vec<(u64, f64)>,
    /// Minutes since the first, with their mean; those in which nothing changed are left out.
    pub by_minute: Vec<(f64, f64)>,
}

impl MinutesInside {
    /// A request was inside from `enter_ns` to `leave_ns`.
    pub fn add(&mut self, enter_ns: u64, leave_ns: u64) {
        let (first, last) = (enter_ns / MINUTE_NS, leave_ns / MINUTE_NS);
        if self.0.len() >= BORDERS_MAX {
            return;
        }
        let mut part = |minute: u64, ns: u64| {
            let minute = self.0.entry(minute).or_default();
            minute.part_ns = minute.part_ns.saturating_add(ns);
        };
        if first == last {
            part(first, leave_ns - enter_ns);
            return;
        }
        part(first, (first + 1) * MINUTE_NS - enter_ns);
        part(last, leave_ns - last * MINUTE_NS);
        self.0.entry(first + 1).or_default().whole_more += 1;
        self.0.entry(last).or_default().whole_more -= 1;
    }

    /// Of the log between these times.
    pub fn figures(&self, first_ns: u64, last_ns: u64) -> Figures {
        let mut by_minute = Vec::new();
        // Means, and for how many minutes each held.
        let mut held: Vec<(f64, u64)> = Vec::new();
        let mut whole = 0_i64;
        // The first and the last minute are cut short; an instant of one says nothing.
        let shortest_ns = last_ns.saturating_sub(first_ns).clamp(1, SECOND_NS);
        let mut minutes = self.0.iter().peekable();
        let first = self.0.keys().next().copied().unwrap_or(0);
        while let Some((&minute, of)) = minutes.next() {
            whole += of.whole_more;
            let begin_ns = (minute * MINUTE_NS).max(first_ns);
            let end_ns = ((minute + 1) * MINUTE_NS).min(last_ns);
            let length_ns = end_ns.saturating_sub(begin_ns).max(shortest_ns);
            let mean = of.part_ns as f64 / length_ns as f64 + whole as f64;
            by_minute.push(((minute - first) as f64, mean));
            held.push((mean, 1));
            let next = minutes.peek().map_or(minute + 1, |(next, _)| **next);
            held.push((whole as f64, next - minute - 1));
        }
        let busiest = by_minute.iter().map(|minute| minute.1).fold(0.0, f64::max);
        let all: u64 = held.iter().map(|(_, minutes)| minutes).sum();
        let share = |level: u64| {
            let above = held.iter().filter(|(mean, _)| *mean > level as f64);
            above.map(|(_, minutes)| minutes).sum::<u64>() as f64 / all.max(1) as f64
        };
        let levels = (0..63).map(|power| 1_u64 << power);
        let above = levels.map(|level| (level, share(level)));
        Figures {
            busiest,
            above: above.take_while(|(_, share)| *share > 0.0).collect(),
            by_minute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_inside_is_spread_over_its_minutes() {
        let mut minutes = MinutesInside::default();
        let second = |at: u64| at * 1_000_000_000;
        // Half a minute; from the middle of one to the middle of the fourth; two whole ones.
        minutes.add(second(600), second(630));
        minutes.add(second(630), second(810));
        minutes.add(second(660), second(780));
        let figures = minutes.figures(second(600), second(840));
        let means: Vec<f64> = figures.by_minute.iter().map(|minute| minute.1).collect();
        assert_eq!(means, [1.0, 2.0, 2.0, 0.5]);
        assert_eq!(figures.busiest, 2.0);
        assert_eq!(figures.above, [(1, 0.5)]);
    }
}
