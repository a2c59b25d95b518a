//! What happened to the jobs, kept in bounded memory however many there were.

use hdrhistogram::Histogram;

/// Digits that quantiles are kept to: 0.1 %.
const DIGITS: u8 = 3;
/// Parts of equal numbers of jobs, by size.
pub const SIZE_BUCKETS: usize = 200;

/// A finished job.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// What it took, ticks of the whole speed.
    pub size: u64,
    /// What it would have taken alone, ticks: on one of several servers that share the speed.
    pub alone: u64,
    /// From its arrival to its end, ticks.
    pub response: u64,
}

/// Figures of some jobs; times in ticks.
#[derive(Clone, Debug)]
pub struct Group {
    /// How many.
    pub n: u64,
    response_sum: f64,
    response_square_sum: f64,
    slowdown_sum: f64,
    responses: Histogram<u64>,
}

impl Group {
    fn new() -> Self {
        Self {
            n: 0,
            response_sum: 0.0,
            response_square_sum: 0.0,
            slowdown_sum: 0.0,
            responses: Histogram::new_with_bounds(1, u64::MAX / 2, DIGITS)
                .expect("bounds and digits that a histogram may have"),
        }
    }

    fn add(&mut self, job: Finished) {
        let response = job.response as f64;
        self.n += 1;
        self.response_sum += response;
        self.response_square_sum += response * response;
        self.slowdown_sum += response / job.alone as f64;
        self.responses.saturating_record(job.response);
    }

    fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.response_sum += other.response_sum;
        self.response_square_sum += other.response_square_sum;
        self.slowdown_sum += other.slowdown_sum;
        self.responses
            .add(&other.responses)
            .expect("histograms of the same bounds");
    }

    /// Mean response time, ticks.
    pub fn mean_response(&self) -> Option<f64> {
        (self.n > 0).then(|| self.response_sum / self.n as f64)
    }

    /// Mean of response time over what a job takes alone.
    pub fn mean_slowdown(&self) -> Option<f64> {
        (self.n > 0).then(|| self.slowdown_sum / self.n as f64)
    }

    /// Squared coefficient of variation of the response times.
    pub fn response_c2(&self) -> Option<f64> {
        let mean = self.mean_response().filter(|mean| *mean > 0.0)?;
        Some((self.response_square_sum / self.n as f64 / (mean * mean) - 1.0).max(0.0))
    }

    /// The response time that `share` of the jobs do not exceed, ticks.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        (self.n > 0).then(|| self.responses.value_at_quantile(share) as f64)
    }

    /// The longest response time, ticks, to 0.1 %.
    pub fn max_response(&self) -> Option<f64> {
        (self.n > 0).then(|| self.responses.max() as f64)
    }
}

/// Means of the jobs between two sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SizeBucket {
    /// How many.
    pub n: u64,
    /// Sum of sizes, ticks.
    pub size_sum: f64,
    /// Sum of response times, ticks.
    pub response_sum: f64,
    /// Sum of slowdowns.
    pub slowdown_sum: f64,
}

/// Where groups by size begin and end, ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Borders {
    /// The smallest half is up to this.
    pub median: u64,
    /// The largest 1 % are above this.
    pub top: u64,
    /// Upper borders of all buckets but the last; empty where the caller requests no buckets.
    pub buckets: Vec<u64>,
}

/// Figures of groups of jobs by size.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Those not larger than the median of the sizes.
    pub smallest_half: Group,
    /// Those between.
    middle: Group,
    /// Those larger than 99 % of the sizes.
    pub largest_1_percent: Group,
    /// The largest one, the last of equals.
    pub largest: Option<Finished>,
    /// By size; empty where the caller did not request it.
    pub by_size: Vec<SizeBucket>,
    borders: Borders,
}

impl Tally {
    /// Nothing yet.
    pub fn new(borders: Borders) -> Self {
        let buckets = match borders.buckets.len() {
            0 => 0,
            borders => borders + 1,
        };
        Self {
            smallest_half: Group::new(),
            middle: Group::new(),
            largest_1_percent: Group::new(),
            largest: None,
            by_size: vec![SizeBucket::default(); buckets],
            borders,
        }
    }

    /// Where its groups begin and end.
    pub fn borders(&self) -> &Borders {
        &self.borders
    }

    /// Counts a job.
    pub fn add(&mut self, job: Finished) {
        let group = if job.size <= self.borders.median {
            &mut self.smallest_half
        } else if job.size <= self.borders.top {
            &mut self.middle
        } else {
            &mut self.largest_1_percent
        };
        group.add(job);
        if self.largest.is_none_or(|largest| job.size >= largest.size) {
            self.largest = Some(job);
        }
        let place = self
            .borders
            .buckets
            .partition_point(|border| *border < job.size);
        if let Some(bucket) = self.by_size.get_mut(place) {
            bucket.n += 1;
            bucket.size_sum += job.size as f64;
            bucket.response_sum += job.response as f64;
            bucket.slowdown_sum += job.response as f64 / job.alone as f64;
        }
    }

    /// All jobs.
    pub fn all(&self) -> Group {
        let mut all = self.middle.clone();
        all.merge(&self.smallest_half);
        all.merge(&self.largest_1_percent);
        all
    }

    /// Number of jobs and sum of their response times, ticks: what needs no [`all`](Self::all).
    pub fn sums(&self) -> (u64, f64) {
        let groups = [&self.smallest_half, &self.middle, &self.largest_1_percent];
        groups.into_iter().fold((0, 0.0), |(n, sum), group| {
            (n + group.n, sum + group.response_sum)
        })
    }

    /// Mean slowdown: what needs no [`all`](Self::all).
    pub fn mean_slowdown(&self) -> Option<f64> {
        let groups = [&self.smallest_half, &self.middle, &self.largest_1_percent];
        let (n, sum) = groups.into_iter().fold((0, 0.0), |(n, sum), group| {
            (n + group.n, sum + group.slowdown_sum)
        });
        (n > 0).then(|| sum / n as f64)
    }

    /// Adds what another run counted, which had the same borders.
    pub fn merge(&mut self, other: &Self) {
        self.middle.merge(&other.middle);
        self.smallest_half.merge(&other.smallest_half);
        self.largest_1_percent.merge(&other.largest_1_percent);
        self.largest = [self.largest, other.largest]
            .into_iter()
            .flatten()
            .max_by_key(|job| job.size);
        for (bucket, other) in self.by_size.iter_mut().zip(&other.by_size) {
            bucket.n += other.n;
            bucket.size_sum += other.size_sum;
            bucket.response_sum += other.response_sum;
            bucket.slowdown_sum += other.slowdown_sum;
        }
    }
}
