//! The files: their sizes, and which of them is how popular.
//!
//! The sizes are the law's quantiles at even steps over the published range, ends included: the
//! file set follows the law as closely as so many files can. The requests must follow it too, and a
//! popular file is a step in their distribution. So each popular file (more requests than the
//! average) gets as many unpopular neighbours in size as it takes to bring the group's mean back to
//! the average, half of them smaller than itself and half larger. Between groups the requests then
//! agree with the law exactly, and inside one they are off by at most half its popular file's
//! share: 6.1 % for the first of 2000 files, which no assignment can beat. The groups lie in random
//! order, except that none is wider than half of what lies above it, so that the share of large
//! requests is right, and that the largest file is the least popular one.

use super::{SurgeError, SurgeModel};
use crate::rng::Rng;
use crate::trace::Object;
use std::collections::VecDeque;

/// Names the random stream of the groups' order.
const PURPOSE_GROUPS: u64 = 0x5352_0001;

/// The files of a site, the most popular first.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSet {
    /// Size in bytes of the file of each popularity rank.
    pub sizes_bytes: Vec<u64>,
    /// Share of the requests of each.
    pub shares: Vec<f64>,
}

impl FileSet {
    /// The files of `model`; the seed chooses which sizes are popular.
    pub fn new(model: &SurgeModel, seed: u64) -> Result<Self, SurgeError> {
        model.checked()?;
        let requests = model.requests_per_round();
        let whole: f64 = requests.iter().sum();
        let shares: Vec<f64> = requests.iter().map(|count| count / whole).collect();
        let mut sizes_bytes = vec![0; shares.len()];
        let ranks = ranks_by_size(&shares, &mut Rng::new(seed, PURPOSE_GROUPS));
        for (rank, size_bytes) in ranks.into_iter().zip(sizes_descending(model)) {
            sizes_bytes[rank] = size_bytes;
        }
        Ok(Self {
            sizes_bytes,
            shares,
        })
    }

    /// The files as objects, numbered by popularity rank from 0.
    pub fn objects(&self) -> Vec<Object> {
        let object = |(id, &size_bytes): (u32, &u64)| Object {
            id,
            size_bytes,
            ext: "html".into(),
        };
        (0..).zip(&self.sizes_bytes).map(object).collect()
    }

    /// Mean size of a request in bytes.
    pub fn mean_request_bytes(&self) -> f64 {
        self.sizes_bytes
            .iter()
            .zip(&self.shares)
            .map(|(bytes, share)| *bytes as f64 * share)
            .sum()
    }

    /// Sizes with their shares of the requests, in ascending order.
    pub fn by_size(&self) -> Vec<(u64, f64)> {
        let mut files: Vec<(u64, f64)> = self
            .sizes_bytes
            .iter()
            .copied()
            .zip(self.shares.iter().copied())
            .collect();
        files.sort_unstable_by_key(|(bytes, _)| *bytes);
        files
    }
}

/// The law's quantiles between the ends of the range, from the largest down.
fn sizes_descending(model: &SurgeModel) -> impl Iterator<Item = u64> {
    let cdf = |bytes: u64| model.sizes.cdf(bytes as f64);
    let (low, high) = (cdf(model.smallest_bytes), cdf(model.largest_bytes));
    let last = model.files - 1;
    (0..=last).rev().map(move |step| match step {
        0 => model.smallest_bytes,
        step if step == last => model.largest_bytes,
        step => {
            let u = low + (high - low) * f64::from(step) / f64::from(last);
            let bytes = model.sizes.quantile(u).round() as u64;
            bytes.clamp(model.smallest_bytes, model.largest_bytes)
        }
    })
}

/// Popularity ranks (from 0) in the order of descending size.
fn ranks_by_size(shares: &[f64], rng: &mut Rng) -> Vec<usize> {
    let least_popular = shares.len() - 1;
    let mut groups = groups(&shares[..least_popular]);
    shuffle(&mut groups, rng);
    let mut order = vec![least_popular];
    while !groups.is_empty() {
        let fits = groups
            .iter()
            .position(|group| 2 * group.len() <= order.len());
        let narrowest = || (0..groups.len()).min_by_key(|&index| groups[index].len());
        let Some(chosen) = fits.or_else(narrowest) else {
            break;
        };
        order.extend(groups.remove(chosen));
    }
    order
}

/// Each popular rank amid the unpopular ones that bring the mean share of its group nearest to the
/// average.
fn groups(shares: &[f64]) -> Vec<Vec<usize>> {
    let average = shares.iter().sum::<f64>() / shares.len() as f64;
    let mut left: VecDeque<usize> = (0..shares.len()).collect();
    let mut groups = Vec::new();
    while let Some(popular) = left.pop_front() {
        let mut excess = shares[popular] - average;
        let mut neighbours = Vec::new();
        while let Some(&unpopular) = left.back() {
            let lack = average - shares[unpopular];
            if lack <= 0.0 || (excess - lack).abs() > excess {
                break;
            }
            excess -= lack;
            neighbours.push(unpopular);
            left.pop_back();
        }
        neighbours.insert(neighbours.len() / 2, popular);
        groups.push(neighbours);
    }
    groups
}

/// Fisher and Yates' shuffle.
fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(seed: u64) -> FileSet {
        FileSet::new(&SurgeModel::default(), seed).expect("the published model")
    }

    /// Largest distance between the requests' distribution and the law within the range of the
    /// files.
    fn request_distance(files: &FileSet) -> f64 {
        let model = SurgeModel::default();
        let cdf = |bytes: u64| model.sizes.cdf(bytes as f64);
        let (low, high) = (cdf(186), cdf(121_000_000));
        let (mut sum, mut worst) = (0.0f64, 0.0f64);
        for (bytes, share) in files.by_size() {
            let expected = (cdf(bytes) - low) / (high - low);
            worst = worst
                .max((sum - expected).abs())
                .max((sum + share - expected).abs());
            sum += share;
        }
        worst
    }

    #[test]
    fn the_set_has_the_published_number_and_range() {
        let sizes = files(1).by_size();
        assert_eq!(sizes.len(), 2000);
        assert_eq!((sizes[0].0, sizes[1999].0), (186, 121_000_000));
        // The largest file is the least popular.
        assert_eq!(files(1).sizes_bytes[1999], 121_000_000);
    }

    #[test]
    fn requests_follow_the_law_as_closely_as_the_most_popular_file_allows() {
        for seed in 1..20 {
            let files = files(seed);
            let best = files.shares[0] / 2.0;
            let distance = request_distance(&files);
            assert!(
                (best..best + 0.005).contains(&distance),
                "{seed}: {distance} {best}"
            );
            // The share of large requests, which carry the load, is right far into the tail.
            for bytes in [9020.0, 20_000.0, 100_000.0] {
                let above: f64 = files
                    .by_size()
                    .iter()
                    .filter(|(size, _)| *size as f64 > bytes)
                    .map(|(_, share)| share)
                    .sum();
                let expected = 1.0 - SurgeModel::default().sizes.cdf(bytes);
                assert!(
                    (above / expected - 1.0).abs() < 0.25,
                    "{seed}: {above} {expected}"
                );
            }
            // Published: 11108 with sizes up to 1e10; here one file in 2000 carries half of it.
            assert!(
                (11_000.0..15_000.0).contains(&files.mean_request_bytes()),
                "{}",
                files.mean_request_bytes()
            );
        }
    }

    #[test]
    fn every_rank_has_one_file_and_the_seed_chooses_which() {
        let shares = vec![0.5, 0.2, 0.1, 0.1, 0.05, 0.05];
        let mut ranks = ranks_by_size(&shares, &mut Rng::new(1, 0));
        ranks.sort_unstable();
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5]);
        assert_eq!(files(1), files(1));
        assert_ne!(files(1).sizes_bytes, files(2).sizes_bytes);
    }

    #[test]
    fn equal_popularity_makes_groups_of_one() {
        let model = SurgeModel {
            zipf_exponent: 0.0,
            files: 10,
            ..SurgeModel::default()
        };
        let files = FileSet::new(&model, 1).expect("a set");
        assert!(files.shares.iter().all(|share| (share - 0.1).abs() < 1e-12));
    }
}
