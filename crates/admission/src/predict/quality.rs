//! How good predictions were, and what they were good for.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// A job that is done, as it was predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When it came, ns after the origin or before it.
    pub came_ns: i64,
    /// How long it was expected to take, ns.
    pub expected_ns: u64,
    /// How long one would have expected by its kind alone, ns.
    pub kind_ns: u64,
    /// How long it took, ns.
    pub service_ns: u64,
}

/// How many of the last jobs are looked at.
const OUTCOMES: usize = 512;

/// The last jobs that are done.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    last: VecDeque<Outcome>,
}

impl Outcomes {
    /// One more.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        if self.last.len() == OUTCOMES {
            self.last.pop_front();
        }
        self.last.push_back(outcome);
    }

    /// All.
    pub(crate) fn to_vec(&self) -> Vec<Outcome> {
        self.last.iter().copied().collect()
    }
}

/// The mean waits of the same jobs in an imagined queue, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shadows {
    /// First come, first served: with no knowledge at all.
    pub fcfs_ns: u64,
    /// The shortest by the prediction first.
    pub predicted_ns: u64,
    /// The shortest first, with perfect knowledge.
    pub perfect_ns: u64,
}

/// How good predictions were.
#[derive(Clone, Debug, PartialEq)]
pub struct Quality {
    /// The jobs that it is about.
    pub jobs: usize,
    /// The share of pairs of which the longer was expected to be longer; `None` where all took the
    /// same time.
    pub ranked_rightly: Option<f64>,
    /// The same by kind alone.
    pub ranked_rightly_by_kind: Option<f64>,
    /// From the tenth with the shortest expectations to that with the longest: the mean expected,
    /// and the mean that came, ns.
    pub calibration: Vec<(u64, u64)>,
    /// What waits would have been; `None` where any number may be inside.
    pub shadows: Option<Shadows>,
}

/// Tenths of the jobs.
const GROUPS: usize = 10;

/// What these outcomes say, with so many places in the imagined queue. Takes a time that grows with
/// their squares.
pub fn quality(outcomes: &[Outcome], places: usize) -> Quality {
    let ranked = |expected: fn(&Outcome) -> u64| concordance(outcomes, expected);
    Quality {
        jobs: outcomes.len(),
        ranked_rightly: ranked(|outcome| outcome.expected_ns),
        ranked_rightly_by_kind: ranked(|outcome| outcome.kind_ns),
        calibration: calibration(outcomes),
        shadows: (places < usize::MAX && !outcomes.is_empty()).then(|| Shadows {
            fcfs_ns: mean_wait_ns(outcomes, places, |_| 0),
            predicted_ns: mean_wait_ns(outcomes, places, |outcome| outcome.expected_ns),
            perfect_ns: mean_wait_ns(outcomes, places, |outcome| outcome.service_ns),
        }),
    }
}

/// Of all pairs that took different times, the share of which the longer was expected to be longer;
/// those of which the same was expected count half.
fn concordance(outcomes: &[Outcome], expected: fn(&Outcome) -> u64) -> Option<f64> {
    let (mut pairs, mut halves) = (0_u64, 0_u64);
    for (index, one) in outcomes.iter().enumerate() {
        for other in &outcomes[..index] {
            let true_order = one.service_ns.cmp(&other.service_ns);
            if true_order.is_eq() {
                continue;
            }
            pairs += 1;
            let order = expected(one).cmp(&expected(other));
            halves += if order == true_order {
                2
            } else {
                u64::from(order.is_eq())
            };
        }
    }
    (pairs > 0).then(|| halves as f64 / (2 * pairs) as f64)
}

fn calibration(outcomes: &[Outcome]) -> Vec<(u64, u64)> {
    let mut sorted = outcomes.to_vec();
    sorted.sort_unstable_by_key(|outcome| outcome.expected_ns);
    let mean = |group: &[Outcome], of: fn(&Outcome) -> u64| {
        let sum: u128 = group.iter().map(|outcome| u128::from(of(outcome))).sum();
        (sum / group.len() as u128) as u64
    };
    let groups = GROUPS.min(sorted.len());
    let bounds = |group: usize| group * sorted.len() / groups;
    (0..groups)
        .map(|group| {
            let group = &sorted[bounds(group)..bounds(group + 1)];
            (
                mean(group, |outcome| outcome.expected_ns),
                mean(group, |outcome| outcome.service_ns),
            )
        })
        .collect()
}

/// The mean wait where the lowest rank goes in first, and among equals who came first; nothing is
/// interrupted.
fn mean_wait_ns(outcomes: &[Outcome], places: usize, rank: fn(&Outcome) -> u64) -> u64 {
    let mut coming: Vec<&Outcome> = outcomes.iter().collect();
    coming.sort_by_key(|outcome| outcome.came_ns);
    let mut free: BinaryHeap<Reverse<i64>> = BinaryHeap::new();
    let mut waiting: BTreeSet<(u64, usize)> = BTreeSet::new();
    let (mut next, mut waited_ns) = (0, 0_u128);
    let places = places.clamp(1, coming.len());
    while next < coming.len() || !waiting.is_empty() {
        // The place that is free first, and when.
        let mut now_ns = match free.len() < places {
            true => i64::MIN,
            false => free.pop().map_or(i64::MIN, |Reverse(at_ns)| at_ns),
        };
        if waiting.is_empty()
            && let Some(first) = coming.get(next)
        {
            now_ns = now_ns.max(first.came_ns);
        }
        while let Some(comes) = coming.get(next).filter(|comes| comes.came_ns <= now_ns) {
            waiting.insert((rank(comes), next));
            next += 1;
        }
        let Some((_, index)) = waiting.pop_first() else {
            continue;
        };
        let job = coming[index];
        let start_ns = now_ns.max(job.came_ns);
        waited_ns += u128::from(start_ns.abs_diff(job.came_ns));
        let service_ns = i64::try_from(job.service_ns).unwrap_or(i64::MAX);
        free.push(Reverse(start_ns.saturating_add(service_ns)));
    }
    (waited_ns / coming.len() as u128) as u64
}
