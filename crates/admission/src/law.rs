//! The law of how long jobs take, and what orders that bear doubt go by follows from it.
//!
//! The scale of boosts is 2/γ, γ being the rate at which the tail of first come, first served falls
//! on one server that does the work of all places: λ (E e^(γS) - 1) = γ (Cramér and Lundberg; Yu and
//! Scully 2024). A job that keeps one of k places for s keeps that server for s/k. As many jobs may
//! be passed by a small one (Nudge-M) as come in the time by which boosts set the mean small job and
//! the mean large one apart.

use crate::order::Tuning;

/// The scale of boosts times γ. It is 1 where sizes are known. Expectations that are means of what
/// was seen do not run away from each other as wrong guesses do: with twice that, p99.9 stays within
/// 1.05 of first come, first served for all laws, loads and doubts of experiments/doubt.
const LEARNT: f64 = 2.0;
/// Steps to a doubling.
const SUB_BITS: u32 = 3;
const STEPS: usize = 64 << SUB_BITS;
/// Halvings of the interval in which the solution is.
const HALVINGS: u32 = 30;
/// So many jobs tell how many come in a second.
const RATE_JOBS: usize = 32;
/// The load where that is not known.
const UNKNOWN_LOAD: f64 = 0.9;
/// Orders matter while jobs wait, and the load then is above that of all hours.
const LOAD_MIN: f64 = 0.5;
/// Beyond there is no steady state to choose for.
const LOAD_MAX: f64 = 0.99;

/// Jobs that are done, in steps of an eighth of an octave, each with its mean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Law {
    /// The mean of all, ns.
    mean_ns: f64,
    /// Means of the steps over that of all, and their shares.
    steps: Vec<(f64, f64)>,
    /// How many come in a ns, if that is known.
    rate: Option<f64>,
}

fn step(ns: u64) -> usize {
    let ns = ns.max(1 << SUB_BITS);
    let octave = 63 - ns.leading_zeros();
    let sub = (ns >> (octave - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    ((octave as usize) << SUB_BITS) + sub
}

/// How many come in a ns, by the half of the arrivals in the middle: one that has waited for long
/// came long before the others that are done.
fn rate(mut came_ns: Vec<i64>) -> Option<f64> {
    if came_ns.len() < RATE_JOBS {
        return None;
    }
    came_ns.sort_unstable();
    let (first, last) = (came_ns.len() / 4, 3 * came_ns.len() / 4);
    let span_ns = came_ns[first].abs_diff(came_ns[last]) as f64;
    (span_ns > 0.0).then(|| (last - first) as f64 / span_ns)
}

impl Law {
    /// Of jobs that came at these times and took so long, both in ns; `None` without any.
    pub(crate) fn of(jobs: impl Iterator<Item = (i64, u64)>) -> Option<Self> {
        let mut counted = vec![(0_u32, 0.0); STEPS];
        let (mut count, mut sum) = (0_usize, 0.0);
        let mut came = Vec::new();
        for (came_ns, took_ns) in jobs {
            let took_ns = took_ns.max(1);
            let (jobs, total) = &mut counted[step(took_ns)];
            *jobs += 1;
            *total += took_ns as f64;
            count += 1;
            sum += took_ns as f64;
            came.push(came_ns);
        }
        if count == 0 {
            return None;
        }
        let mean_ns = sum / count as f64;
        let counted = counted.into_iter().filter(|&(jobs, _)| jobs > 0);
        let step = |(jobs, total): (u32, f64)| {
            let jobs = f64::from(jobs);
            (total / jobs / mean_ns, jobs / count as f64)
        };
        Some(Self {
            mean_ns,
            steps: counted.map(step).collect(),
            rate: rate(came),
        })
    }

    /// The mean of jobs that are together shorter than the mean of all, that of the others, both
    /// over it, and the share of the former.
    fn halves(&self) -> Option<(f64, f64, f64)> {
        let small = self.steps.iter().filter(|(mean, _)| *mean <= 1.0);
        let (share, sum) = small.fold((0.0, 0.0), |(share, sum), (mean, part)| {
            (share + part, sum + mean * part)
        });
        (share > 0.0 && share < 1.0).then(|| (sum / share, (1.0 - sum) / (1.0 - share), share))
    }

    /// 1/γ at a load, over the mean.
    fn scale(&self, load: f64) -> f64 {
        let is_above = |gamma: f64| {
            let of_step = |(mean, share): &(f64, f64)| share * (gamma * mean).exp_m1();
            load * self.steps.iter().map(of_step).sum::<f64>() >= gamma
        };
        let mut high = 1.0;
        while !is_above(high) {
            high *= 2.0;
        }
        let mut low = 0.0;
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if is_above(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        1.0 / high
    }

    /// What follows from it for a backend that does so many at a time.
    pub(crate) fn tuning(&self, places: usize) -> Tuning {
        // Without a limit none waits.
        let places = if places == usize::MAX {
            1
        } else {
            places.max(1)
        };
        let part_ns = self.mean_ns / places as f64;
        let load = self.rate.map_or(UNKNOWN_LOAD, |rate| rate * part_ns);
        let load = load.clamp(LOAD_MIN, LOAD_MAX);
        let scale = self.scale(load);
        let nudge_places = self.halves().map_or(0.0, |(small, large, _)| {
            let boost = |size: f64| -(-(-size / scale).exp_m1()).ln();
            scale * (boost(small) - boost(large)) * load
        });
        Tuning {
            boost_scale_ns: (LEARNT * scale * part_ns) as u64,
            places: places as u64,
            small_max_ns: self.mean_ns as u64,
            nudge_places: nudge_places.round() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_theory::tail;
    use sooner_workload::Distribution;

    const MS: u64 = 1_000_000;

    /// What follows from jobs of these times, in ms, again and again, at a load of so many places.
    fn tuning(times_ms: &[u64], jobs: usize, load: f64, places: usize) -> Tuning {
        let mean = times_ms.iter().sum::<u64>() as f64 / times_ms.len() as f64;
        let gap_ns = mean * MS as f64 / load / places as f64;
        let times = times_ms.iter().cycle().take(jobs).enumerate();
        let times = times.map(|(job, &ms)| ((job as f64 * gap_ns) as i64, ms * MS));
        Law::of(times).unwrap().tuning(places)
    }

    #[test]
    fn the_scale_is_that_of_the_theory() {
        for (times_ms, load) in [
            (&[10][..], 0.8),
            (&[1, 3, 5, 100], 0.9),
            (&[1, 1, 1, 1000], 0.6),
        ] {
            let values = times_ms.iter().map(|&ms| ms as f64).collect();
            let law = Distribution::of_values(values).unwrap();
            let exact_ms = tail::boost_scale(&law, load).unwrap();
            for places in [1, 7] {
                let tuning = tuning(times_ms, 4000, load, places);
                let found_ms = tuning.boost_scale_ns as f64 / MS as f64;
                let off = found_ms * places as f64 / (LEARNT * exact_ms) - 1.0;
                assert!(off.abs() < 0.01, "{tuning:?} {exact_ms}");
            }
        }
    }

    #[test]
    fn one_that_came_long_ago_does_not_make_the_load_low() {
        let even = |from: i64| (from..4000).map(|at| (10 * at * MS as i64, 9 * MS));
        let all = Law::of(even(0)).unwrap().tuning(1);
        let straggler = std::iter::once((-600_000 * MS as i64, 9 * MS));
        let with_one = Law::of(straggler.chain(even(1))).unwrap().tuning(1);
        assert!(all.boost_scale_ns.abs_diff(with_one.boost_scale_ns) < all.boost_scale_ns / 100);
    }

    #[test]
    fn a_few_jobs_tell_no_load_and_all_alike_are_passed_by_none() {
        let known = tuning(&[10], 4000, 0.9, 1);
        let few = tuning(&[10], 3, 0.6, 1);
        assert!(few.boost_scale_ns.abs_diff(known.boost_scale_ns) < MS / 5);
        assert_eq!((known.small_max_ns, known.nudge_places), (10 * MS, 0));
        // Beyond its bounds a load is at them.
        assert_eq!(tuning(&[10], 400, 3.0, 1), tuning(&[10], 400, 1.5, 1));
        assert_eq!(tuning(&[10], 400, 0.1, 1), tuning(&[10], 400, 0.4, 1));
        assert_eq!(Law::of(std::iter::empty()), None);
    }

    #[test]
    fn a_small_job_passes_as_many_as_come_in_the_time_between() {
        // γ solves 0.9 / 5.5 (e^(γ) + e^(10 γ) - 2) / 2 = γ.
        let both = tuning(&[1, 10], 4000, 0.9, 1);
        let scale_ms = both.boost_scale_ns as f64 / MS as f64 / LEARNT;
        let boost = |ms: f64| -(-(-ms / scale_ms).exp_m1()).ln() * scale_ms;
        let come = (boost(1.0) - boost(10.0)) / 5.5 * 0.9;
        assert_eq!(both.nudge_places, come.round() as u64);
        assert!(both.nudge_places > 5);
    }
}
