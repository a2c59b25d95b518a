//! Which file users request next: popularity by Zipf, temporal locality by the published stack
//! distances.
//!
//! Requests are made in rounds. In a round every file gets its share of requests, the least popular
//! one of them, as a burst: it begins at a random time of the round, lognormal gaps follow, and
//! past the round's end it goes on at its beginning. All bursts in order of time are the round.
//!
//! The stack distance of a request (how many files users requested since the last request for the
//! same file, that one included) grows with the gap, so the gaps' parameters are chosen such that
//! the distances are those published; found by simulation, see the tests. The first request for a
//! file in a round comes back to the round before, over hundreds of files; those 2000 of 16 357
//! requests are left out when the distances are compared with the published law.

use super::SurgeModel;
use crate::rng::Rng;
use crate::sizes::special::normal_quantile;

/// Names the random stream of counts and bursts.
const PURPOSE_REFERENCES: u64 = 0x5352_0002;
/// What is added to μ of the distances to get that of the gaps.
const GAP_MU_OFFSET: f64 = 0.30;
/// By what σ of the distances is multiplied to get that of the gaps.
const GAP_SIGMA_FACTOR: f64 = 1.19;

/// The files that all users together request, by popularity rank from 0, without end.
pub struct References {
    requests_per_round: Vec<f64>,
    gap_mu: f64,
    gap_sigma: f64,
    rng: Rng,
    /// What is left of the round, its next request last.
    round: Vec<u32>,
}

impl References {
    /// The stream of `model`; its parameters were checked when its files were made.
    pub fn new(model: &SurgeModel, seed: u64) -> Self {
        Self {
            requests_per_round: model.requests_per_round(),
            gap_mu: model.locality_mu + GAP_MU_OFFSET,
            gap_sigma: model.locality_sigma * GAP_SIGMA_FACTOR,
            rng: Rng::new(seed, PURPOSE_REFERENCES),
            round: Vec::new(),
        }
    }

    /// The next whole round; what was left of the last one stays.
    pub fn next_round(&mut self) -> Vec<u32> {
        let length: f64 = self.requests_per_round.iter().sum();
        let mut requests: Vec<(f64, u32)> = Vec::with_capacity(length as usize + 1);
        // Systematic sampling: every count is the expected one rounded up or down, by one random
        // number for all.
        let mut sum = self.rng.uniform();
        for rank in 0..self.requests_per_round.len() {
            let before = sum.floor();
            sum += self.requests_per_round[rank];
            self.add_burst(
                rank as u32,
                (sum.floor() - before) as u32,
                length,
                &mut requests,
            );
        }
        requests.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        requests.into_iter().map(|(_, rank)| rank).collect()
    }

    fn add_burst(&mut self, rank: u32, count: u32, length: f64, requests: &mut Vec<(f64, u32)>) {
        let mut at = self.rng.uniform() * length;
        for _ in 0..count {
            requests.push((at % length, rank));
            let u = self.rng.uniform().max(f64::EPSILON);
            at += (self.gap_mu + self.gap_sigma * normal_quantile(u)).exp();
        }
    }

    /// The next request's popularity rank, from 0.
    pub fn next_rank(&mut self) -> u32 {
        if self.round.is_empty() {
            self.round = self.next_round();
            self.round.reverse();
        }
        // No round is empty: the most popular file has at least one request in each.
        self.round.pop().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(seed: u64) -> References {
        References::new(&SurgeModel::default(), seed)
    }

    #[test]
    fn a_round_asks_for_the_least_popular_file_once() {
        let mut references = references(1);
        for _ in 0..3 {
            let round = references.next_round();
            assert!((16_356..=16_357).contains(&round.len()), "{}", round.len());
            let count = |rank| round.iter().filter(|&&of| of == rank).count();
            assert_eq!((count(0), count(1), count(1999)), (2000, 1000, 1));
            assert!((0..2000).all(|rank| count(rank) > 0));
        }
    }

    #[test]
    fn the_stream_is_its_rounds_one_after_the_other() {
        let mut rounds = references(3);
        let expected = [rounds.next_round(), rounds.next_round()].concat();
        let mut stream = references(3);
        assert!(expected.into_iter().all(|rank| rank == stream.next_rank()));
    }

    #[test]
    fn requests_come_in_bursts() {
        let round = references(1).next_round();
        // Half of all requests come back over at most about five files, exp(1.5).
        let soon = (10..round.len())
            .filter(|&at| round[at - 10..at].contains(&round[at]))
            .count();
        assert!(soon * 2 > round.len(), "{soon}");
    }
}
