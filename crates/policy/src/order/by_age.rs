//! Orders by what a job has had, where nothing is known of it but the law of all sizes: Gittins'
//! index and the least expected remaining time (SERPT), from a law that is learned.
//!
//! Sizes are counted in steps of an eighth of an octave as jobs leave, and forgotten by halves. A
//! job that has had `a` counts as one of the larger sizes. Gittins' rank is the least, over all
//! later ages b, of the service it would take up to b over the chance that it ends by then (Gittins
//! 1979; Scully, Harchol-Balter and Scheller-Wolf 2018); SERPT's is the mean that it still takes.
//! Without knowledge of sizes Gittins' has the least mean that there is on one server. The rank
//! changes where the age passes a step that was seen, and at no other age.
//!
//! A job that is given up counts as if it had ended. Until the first law is learned this is first
//! come, first served.

use super::{BandMeasure, Order};
use crate::Job;
use crate::steps::{COUNT, step, upper_end};
use alloc::vec::Vec;

/// Jobs between two new tables.
const RELEARN_JOBS: u32 = 512;
/// Jobs after which what was counted weighs half.
const HALVE_JOBS: u32 = 16_384;
/// What a job counts: more than one, so that a rare size is not forgotten at the first halving.
const JOB_WEIGHT: u32 = 16;

/// What the rank of an age is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Gittins' index.
    Gittins,
    /// The mean of what remains.
    Remaining,
}

/// Serves the job of the lowest rank at its age; sizes that are known are not looked at.
#[derive(Clone, Debug)]
pub struct ByAge {
    index: Index,
    counts: [u32; COUNT],
    seen: u32,
    /// The first age of each rank, ascending; empty before anything was learned.
    table: Vec<(u64, u64)>,
}

impl ByAge {
    /// Nothing is learned yet.
    pub fn new(index: Index) -> Self {
        Self {
            index,
            counts: [0; COUNT],
            seen: 0,
            table: Vec::new(),
        }
    }

    /// A job took `size`.
    fn record(&mut self, size: u64) {
        self.counts[step(size)] += JOB_WEIGHT;
        self.seen += 1;
        if self.seen.is_multiple_of(RELEARN_JOBS) {
            self.table = table(self.index, &self.counts);
        }
        if self.seen >= HALVE_JOBS {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.seen = 0;
        }
    }

    fn at(&self, age: u64) -> u64 {
        let passed = self.table.partition_point(|&(from, _)| from <= age);
        let row = passed.checked_sub(1).and_then(|row| self.table.get(row));
        row.map_or(0, |&(_, rank)| rank)
    }
}

/// The ranks by age, from the counted sizes.
fn table(index: Index, counts: &[u32; COUNT]) -> Vec<(u64, u64)> {
    let seen = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let atoms: Vec<(u64, u64)> = seen
        .map(|(step, &count)| (upper_end(step), u64::from(count)))
        .collect();
    let ages = core::iter::once(0).chain(atoms.iter().map(|&(size, _)| size));
    let mut table: Vec<(u64, u64)> = Vec::new();
    for (age, left) in ages.zip(0..=atoms.len()) {
        let rank = rank(index, age, &atoms[left..]);
        if table.last().is_none_or(|&(_, before)| before != rank) {
            table.push((age, rank));
        }
    }
    table
}

/// The rank at `age` of a job that is of one of the `larger` sizes; the highest of all of one that
/// is larger than any that was seen.
fn rank(index: Index, age: u64, larger: &[(u64, u64)]) -> u64 {
    let jobs: u128 = larger.iter().map(|&(_, count)| u128::from(count)).sum();
    let (mut ended, mut service_of_ended) = (0_u128, 0_u128);
    let mut best = u128::from(u64::MAX);
    for &(size, count) in larger {
        let (more, count) = (u128::from(size - age), u128::from(count));
        ended += count;
        service_of_ended += count * more;
        let all = service_of_ended + more * (jobs - ended);
        match index {
            Index::Gittins => best = best.min(all / ended),
            Index::Remaining => best = all / jobs,
        }
    }
    u64::try_from(best).unwrap_or(u64::MAX)
}

impl Order for ByAge {
    const BANDS: BandMeasure = BandMeasure::Attained;

    /// A table that is learned meanwhile moves no job that waits.
    fn rank(&self, job: &Job) -> u64 {
        job.tag
    }

    fn arrived(&mut self, job: &mut Job) {
        job.tag = self.at(job.attained);
    }

    fn progressed(&mut self, job: &mut Job, amount: u64) {
        job.tag = self.at(job.attained.saturating_add(amount));
    }

    fn departed(&mut self, job: &Job) {
        self.record(job.attained);
    }

    fn moved_out(&mut self, _job: &Job) {}

    fn max_amount(&self, job: &Job) -> u64 {
        let passed = self
            .table
            .partition_point(|&(from, _)| from <= job.attained);
        let next = self.table.get(passed);
        next.map_or(u64::MAX, |&(from, _)| from - job.attained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many jobs of each size; the sizes are upper ends of steps.
    fn learned(index: Index, sizes: &[(u64, u32)]) -> Vec<(u64, u64)> {
        let mut counts = [0; COUNT];
        for &(size, count) in sizes {
            assert_eq!(upper_end(step(size)), size);
            counts[step(size)] = count;
        }
        table(index, &counts)
    }

    #[test]
    fn gittins_stops_where_most_jobs_end() {
        // Nine of ten end at 15: 15 x 10 / 9. Who outlives it lacks 1023 - 15.
        let sizes = [(15, 9), (1_023, 1)];
        assert_eq!(
            learned(Index::Gittins, &sizes),
            [(0, 16), (15, 1_008), (1_023, u64::MAX)]
        );
        // (15 x 9 + 1023) / 10.
        assert_eq!(
            learned(Index::Remaining, &sizes),
            [(0, 115), (15, 1_008), (1_023, u64::MAX)]
        );
    }

    #[test]
    fn where_all_are_equal_who_has_had_more_goes_on() {
        let table = learned(Index::Gittins, &[(1_023, 5)]);
        assert_eq!(table, [(0, 1_023), (1_023, u64::MAX)]);
    }

    #[test]
    fn a_job_that_moves_to_another_queue_has_not_ended() {
        let mut order = ByAge::new(Index::Gittins);
        let job = Job {
            id: crate::JobId(1),
            size: None,
            attained: 100,
            path: crate::Path::default(),
            arrived_at: crate::Time::ZERO,
            sequence: 0,
            tag: 0,
        };
        order.moved_out(&job);
        assert_eq!(order.seen, 0);
        order.departed(&job);
        assert_eq!((order.seen, order.counts[step(100)]), (1, JOB_WEIGHT));
    }
}
