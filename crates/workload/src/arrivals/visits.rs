//! Visits: who asks once more after a response (partly-open model, Schroeder, Wierman and
//! Harchol-Balter 2006).
//!
//! Visits begin whatever the server does; inside a visit each request waits for the response before
//! it and a pause to think.

use crate::rng::Rng;
use std::num::NonZeroU32;

/// How the requests of a run are cut into visits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Visits {
    /// Requests a visit makes.
    pub length: VisitLength,
    /// Mean of the exponential pause between a response and the visit's next request, in seconds;
    /// 0: none.
    pub think_s: f64,
}

/// How many requests a visit makes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum VisitLength {
    /// After each response it stays with this probability, from 0 to [`STAY_MAX`]: 1 / (1 - stay)
    /// requests on average.
    Stay(f64),
    /// Exactly so many.
    Exactly(NonZeroU32),
}

/// Highest probability to stay: visits of ten thousand requests on average.
pub const STAY_MAX: f64 = 0.9999;

/// Longest mean pause, in seconds (an hour).
pub const THINK_S_MAX: f64 = 3600.0;

/// Where a phase's requests are cut into visits, by their number from the phase's start: the same
/// cuts whichever requests are chosen, drawn as far as the caller requests them.
pub(crate) struct Cuts<'a> {
    length: VisitLength,
    rng: &'a mut Rng,
    requests_per_connection: u64,
    /// Requests up to the end of each visit.
    ends: Vec<u64>,
    /// Connections up to the end of each visit, every visit having its own.
    connections: Vec<u64>,
}

impl<'a> Cuts<'a> {
    /// No visit yet; connections are closed after so many requests.
    pub fn new(length: VisitLength, rng: &'a mut Rng, requests_per_connection: NonZeroU32) -> Self {
        Self {
            length,
            rng,
            requests_per_connection: u64::from(requests_per_connection.get()),
            ends: Vec::new(),
            connections: Vec::new(),
        }
    }

    /// Connections that the first `count` requests open.
    pub fn connections(&mut self, count: u64) -> u64 {
        let visit = self.visit_of(count.saturating_sub(1));
        let (start, before) = match visit {
            0 => (0, 0),
            _ => (self.ends[visit - 1], self.connections[visit - 1]),
        };
        before + (count - start).div_ceil(self.requests_per_connection)
    }

    /// Number of the request in its visit, from 0.
    pub fn place(&mut self, request: u64) -> u64 {
        match self.visit_of(request) {
            0 => request,
            visit => request - self.ends[visit - 1],
        }
    }

    fn visit_of(&mut self, request: u64) -> usize {
        while self.ends.last().is_none_or(|&end| end <= request) {
            self.draw();
        }
        self.ends.partition_point(|&end| end <= request)
    }

    fn draw(&mut self) {
        let length = match self.length {
            VisitLength::Exactly(count) => u64::from(count.get()),
            VisitLength::Stay(stay) => {
                let mut count = 1;
                while self.rng.uniform() < stay.min(STAY_MAX) {
                    count += 1;
                }
                count
            }
        };
        let last = |list: &[u64]| list.last().copied().unwrap_or(0);
        let connections = length.div_ceil(self.requests_per_connection);
        self.connections.push(last(&self.connections) + connections);
        self.ends.push(last(&self.ends) + length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn above_0(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).expect("above 0")
    }

    #[test]
    fn exact_visits_and_their_connections() {
        let mut rng = Rng::new(1, 0);
        let length = VisitLength::Exactly(above_0(5));
        let mut cuts = Cuts::new(length, &mut rng, above_0(2));
        let places: Vec<u64> = (0..7).map(|request| cuts.place(request)).collect();
        assert_eq!(places, [0, 1, 2, 3, 4, 0, 1]);
        let connections: Vec<u64> = (0..=8).map(|count| cuts.connections(count)).collect();
        assert_eq!(connections, [0, 1, 1, 2, 2, 3, 4, 4, 5]);
    }

    #[test]
    fn the_mean_number_of_requests_is_that_of_the_geometric_law() {
        let mut rng = Rng::new(1, 0);
        let mut cuts = Cuts::new(VisitLength::Stay(0.9), &mut rng, above_0(u32::MAX));
        let visits = cuts.connections(1_000_000) as f64;
        assert!((visits / 100_000.0 - 1.0).abs() < 0.02, "{visits} visits");
        let alone = (0..1_000_000)
            .filter(|&request| cuts.place(request) == 0 && cuts.place(request + 1) == 0)
            .count();
        assert!(
            (alone as f64 / visits - 0.1).abs() < 0.01,
            "{alone} of one request"
        );
    }

    #[test]
    fn who_never_stays_asks_once() {
        let mut rng = Rng::new(1, 0);
        let mut cuts = Cuts::new(VisitLength::Stay(0.0), &mut rng, above_0(9));
        assert_eq!(cuts.connections(77), 77);
    }
}
