//! Who comes, for how long, and how often one asks: which model of users fits (thesis, chapter 15).

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A client that was silent for so long has left.
const SILENCE_S: f64 = 1800.0;
/// A request that follows the one before within this time was made by the page, not by the user.
const CLICK_S: f64 = 1.0;
/// Entries between two looks for clients that have left.
const SWEEP: u64 = 100_000;
/// Requests that are held back, to be taken in the order in which they came: logs are written when
/// responses end.
const HELD_MAX: usize = 1 << 16;
/// Up to so many jobs a visit a partly-open system is like an open one.
const OPEN_MAX: f64 = 5.0;
/// From so many on it is like a closed one.
const CLOSED_MIN: f64 = 10.0;

/// Collects visits.
#[derive(Default)]
pub struct Visits {
    /// The bits of when each came, s, and the client: positive numbers sort as their bits.
    held: BinaryHeap<Reverse<(u64, u64)>>,
    taken_s: f64,
    late: u64,
    present: HashMap<u64, Visit>,
    entries: u64,
    visits: u64,
    requests: u64,
    clicks: u64,
    present_s: f64,
}

struct Visit {
    first_s: f64,
    last_s: f64,
    requests: u64,
    clicks: u64,
}

/// What users are like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UserFigures {
    /// Visits: ended by half an hour without a request.
    pub visits: u64,
    /// Requests of a visit in the mean.
    pub requests_per_visit: f64,
    /// Of those, the ones a second or more after the one before: what users do, not what pages
    /// load.
    pub clicks_per_visit: f64,
    /// Requests that are in the log so long after others that came later that visits may be wrong
    /// by them.
    pub late_requests: u64,
    /// Users who are present at a time, in the mean.
    pub users_at_a_time: f64,
    /// `open`, `partly-open` or `closed`.
    pub model: &'static str,
}

impl Visits {
    /// A request of `client` at `at_s`.
    pub fn add(&mut self, client: u64, at_s: f64) {
        self.held.push(Reverse((at_s.max(0.0).to_bits(), client)));
        if self.held.len() > HELD_MAX {
            self.take_first();
        }
    }

    /// Takes the first of those that are held; false where none is.
    fn take_first(&mut self) -> bool {
        let Some(Reverse((bits, client))) = self.held.pop() else {
            return false;
        };
        let at_s = f64::from_bits(bits);
        self.late += u64::from(at_s < self.taken_s);
        self.taken_s = self.taken_s.max(at_s);
        self.take(client, at_s);
        true
    }

    fn take(&mut self, client: u64, at_s: f64) {
        self.entries += 1;
        if self.entries.is_multiple_of(SWEEP) {
            self.sweep(at_s);
        }
        let new = || Visit {
            first_s: at_s,
            last_s: at_s,
            requests: 0,
            clicks: 0,
        };
        let visit = self.present.entry(client).or_insert_with(new);
        if at_s - visit.last_s > SILENCE_S {
            let ended = std::mem::replace(visit, new());
            self.end(&ended);
        }
        if let Some(visit) = self.present.get_mut(&client) {
            let is_apart = at_s - visit.last_s >= CLICK_S || visit.first_s - at_s >= CLICK_S;
            visit.clicks += u64::from(visit.requests == 0 || is_apart);
            visit.requests += 1;
            visit.first_s = visit.first_s.min(at_s);
            visit.last_s = visit.last_s.max(at_s);
        }
    }

    fn end(&mut self, visit: &Visit) {
        self.visits += 1;
        self.requests += visit.requests;
        self.clicks += visit.clicks;
        self.present_s += visit.last_s - visit.first_s;
    }

    fn sweep(&mut self, now_s: f64) {
        let gone: Vec<u64> = self
            .present
            .iter()
            .filter(|(_, visit)| now_s - visit.last_s > SILENCE_S)
            .map(|(client, _)| *client)
            .collect();
        for client in gone {
            if let Some(visit) = self.present.remove(&client) {
                self.end(&visit);
            }
        }
    }

    /// The figures of a log of `span_s` seconds.
    pub fn figures(mut self, span_s: f64) -> UserFigures {
        while self.take_first() {}
        for (_, visit) in std::mem::take(&mut self.present) {
            self.end(&visit);
        }
        let visits = (self.visits as f64).max(1.0);
        let clicks = self.clicks as f64 / visits;
        UserFigures {
            visits: self.visits,
            requests_per_visit: self.requests as f64 / visits,
            clicks_per_visit: clicks,
            late_requests: self.late,
            users_at_a_time: self.present_s / span_s.max(1.0),
            model: match clicks {
                few if few <= OPEN_MAX => "open",
                many if many >= CLOSED_MIN => "closed",
                _ => "partly-open",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client's three visits of clicks 1 to 20 s apart, others between them.
    fn times() -> Vec<(u64, f64)> {
        let of = |n: u64| (n % 7, (n * n % 13) as f64 * 1.5 + (n / 40) as f64 * 2000.0);
        let mut times: Vec<(u64, f64)> = (0..120).map(of).collect();
        times.sort_by(|one, other| one.1.total_cmp(&other.1));
        times
    }

    fn figures(times: &[(u64, f64)]) -> UserFigures {
        let mut visits = Visits::default();
        for (client, at_s) in times {
            visits.add(*client, *at_s);
        }
        visits.figures(7000.0)
    }

    #[test]
    fn the_order_of_lines_does_not_matter() {
        let sorted = times();
        let expected = figures(&sorted);
        assert_eq!(expected.late_requests, 0);
        let mut backwards = sorted.clone();
        backwards.reverse();
        assert_eq!(figures(&backwards), expected);
        let mut swapped = sorted.clone();
        swapped.chunks_mut(2).for_each(|pair| pair.reverse());
        assert_eq!(figures(&swapped), expected);
    }

    #[test]
    fn what_is_out_of_order_by_more_than_is_held_is_counted() {
        let mut visits = Visits::default();
        for n in 0..HELD_MAX as u64 + 100 {
            visits.add(n % 50, 1e4 + n as f64);
        }
        visits.add(1, 5.0);
        let figures = visits.figures(1e5);
        assert_eq!(figures.late_requests, 1);
    }

    #[test]
    fn pages_and_pauses_make_visits() {
        let mut visits = Visits::default();
        // One client: two clicks of three requests each; half an hour later another visit of one. A
        // second client: one request.
        for at_s in [0.0, 0.1, 0.2, 60.0, 60.1, 60.2, 5000.0] {
            visits.add(1, at_s);
        }
        visits.add(2, 5001.0);
        let figures = visits.figures(5001.0);
        assert_eq!(figures.visits, 3);
        assert!((figures.requests_per_visit - 8.0 / 3.0).abs() < 1e-9);
        assert!((figures.clicks_per_visit - 4.0 / 3.0).abs() < 1e-9);
        assert!((figures.users_at_a_time - 60.2 / 5001.0).abs() < 1e-9);
        assert_eq!(figures.model, "open");
    }
}
