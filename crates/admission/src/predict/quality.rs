//! How good predictions were, and what they were good for.

use super::outcomes::Outcome;
use crate::order::Within;
use crate::playback::PlayedOrders;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

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
    /// The order in which jobs of one class or client go in now; `None` where that follows from targets
    /// or weights.
    pub order: Option<Within>,
    /// What each order would have given the last jobs; `None` before that was played.
    pub played: Option<PlayedOrders>,
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
        order: None,
        played: None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// When each came, what was expected, and what it took.
    fn outcomes(jobs: &[(i64, u64, u64)]) -> Vec<Outcome> {
        let outcome = |&(came_ns, expected_ns, service_ns)| Outcome {
            came_ns,
            expected_ns,
            kind_ns: 1,
            service_ns,
        };
        jobs.iter().map(outcome).collect()
    }

    #[test]
    fn a_pair_is_ranked_rightly_or_half_or_not() {
        let of = |jobs: &[(i64, u64, u64)]| quality(&outcomes(jobs), 1).ranked_rightly;
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(0, 1, 5), (0, 2, 5)]), None);
        assert_eq!(of(&[(0, 1, 5), (0, 2, 6)]), Some(1.0));
        assert_eq!(of(&[(0, 2, 5), (0, 2, 6)]), Some(0.5));
        // Three pairs: right, wrong, the same expected.
        assert_eq!(of(&[(0, 1, 5), (0, 2, 6), (0, 1, 7)]), Some(0.5));
        let by_kind = quality(&outcomes(&[(0, 1, 5), (0, 2, 6)]), 1).ranked_rightly_by_kind;
        assert_eq!(by_kind, Some(0.5));
    }

    #[test]
    fn each_tenth_has_its_means() {
        let jobs: Vec<_> = (0..20).map(|job| (0, job, 100 + job)).collect();
        let calibration = quality(&outcomes(&jobs), 1).calibration;
        assert_eq!(calibration.len(), 10);
        assert_eq!((calibration[0], calibration[9]), ((0, 100), (18, 118)));
        let few = quality(&outcomes(&[(0, 9, 4), (0, 1, 3)]), 1).calibration;
        assert_eq!(few, [(1, 3), (9, 4)]);
    }

    #[test]
    fn the_same_jobs_wait_as_they_would_have() {
        // A long one comes alone; behind it three, the shortest last and expected to be longest.
        let jobs = outcomes(&[(0, 10, 10), (1, 5, 9), (2, 6, 4), (3, 7, 1)]);
        let shadows = |places| quality(&jobs, places).shadows;
        // 0 + 9 + 17 + 20, the same, and the shortest first: 0 + 7 (of 1) + 9 (of 4) + 14 (of 9).
        let alone = Shadows {
            fcfs_ns: 46 / 4,
            predicted_ns: 46 / 4,
            perfect_ns: 30 / 4,
        };
        assert_eq!(shadows(1), Some(alone));
        // Of two places the second has the one of 9 at once; the others wait until 10.
        let fcfs_ns = |places| shadows(places).map(|shadows| shadows.fcfs_ns);
        assert_eq!((fcfs_ns(2), fcfs_ns(4)), (Some((8 + 7) / 4), Some(0)));
        assert_eq!((shadows(usize::MAX), shadows(0)), (None, Some(alone)));
    }

    proptest! {
        #[test]
        fn knowledge_makes_the_difference_and_nothing_else(
            jobs in prop::collection::vec((-50_i64..50, 0_u64..20), 1..60),
            places in 1_usize..5,
        ) {
            let knowing: Vec<_> = jobs.iter().map(|&(came, takes)| (came, takes, takes)).collect();
            let shadows = quality(&outcomes(&knowing), places).shadows.unwrap();
            prop_assert_eq!(shadows.predicted_ns, shadows.perfect_ns);
            let same: Vec<_> = jobs.iter().map(|&(came, takes)| (came, 7, takes)).collect();
            let shadows = quality(&outcomes(&same), places).shadows.unwrap();
            prop_assert_eq!(shadows.predicted_ns, shadows.fcfs_ns);
            // As each finds the place that is free first (Kiefer and Wolfowitz).
            let mut coming = jobs.clone();
            coming.sort_by_key(|(came, _)| *came);
            let mut free = vec![i64::MIN; places];
            let mut waited = 0;
            for (came, takes) in coming {
                let first = (0..places).min_by_key(|place| free[*place]).unwrap();
                let start = free[first].max(came);
                waited += start - came;
                free[first] = start + takes as i64;
            }
            prop_assert_eq!(shadows.fcfs_ns, waited as u64 / jobs.len() as u64);
        }
    }
}
