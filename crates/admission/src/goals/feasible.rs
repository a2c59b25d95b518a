//! Whether targets can be met, from what was seen of their classes under any order.
//!
//! When one class goes first, another goes later: the sum of the classes' mean response times, each
//! by its share of the jobs, stays what it is as long as the order does not look at how long single
//! jobs take (Kleinrock's conservation law; with a fixed number of users it is Little's). So
//! targets that allow less than that in the mean cannot all be met, whatever is done (thesis
//! 10.3.4). And none can be met that is below the time inside.
//!
//! Classes without a target take what is left over, but not anything: one turn in twenty goes to
//! the job that has waited longest, and a few users do not wait long enough to make room for all others.

use super::ResponseTarget;

/// A class without a target can be made to wait for so many times the mean response time of all.
const LEFT_OVER_MOST: f64 = 20.0;

/// What was seen of a class, and what it is to get. Times in ns.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Its jobs.
    pub jobs: u64,
    /// Their mean response time.
    pub response_ns: f64,
    /// Their mean time inside.
    pub inside_ns: f64,
    /// Its targets.
    pub response_targets: Vec<ResponseTarget>,
    /// Shares and what they were, of the mean: a percentile of 0.95 that is 3 times the mean is
    /// (0.95, 3).
    pub spread: Vec<(f64, f64)>,
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The mean response time of all, which no order changes, ns.
    pub needed_ns: f64,
    /// What the targets allow in the mean, ns; `None` where some class has none, which then takes
    /// what is left over.
    pub allowed_ns: Option<f64>,
    /// What is lacking where even that is not enough, in the mean, ns.
    pub lacking_ns: f64,
    /// Each class's target as a mean, ns; the most stringent of several.
    pub targets_ns: Vec<Option<f64>>,
    /// Classes with targets below their time inside.
    pub impossible: Vec<usize>,
    /// What classes without targets would take in the mean, ns; `None` where there are none. Below
    /// their time inside there is no sense in it.
    pub left_over_ns: Option<f64>,
    /// What each class's target would have to be, as a mean, if it alone were relaxed, ns; only
    /// where they cannot all be met.
    pub relaxed_ns: Vec<Option<f64>>,
}

impl Verdict {
    /// Whether all can be met.
    pub fn is_feasible(&self) -> bool {
        self.impossible.is_empty() && self.lacking_ns <= 0.0
    }

    /// By what all targets would have to be multiplied; 1 or less where they are met.
    pub fn factor(&self) -> Option<f64> {
        Some(self.needed_ns / self.allowed_ns?)
    }
}

/// Holds what classes are to get against what there is; `None` where nothing was seen.
pub fn verdict(classes: &[Observed]) -> Option<Verdict> {
    let jobs: u64 = classes.iter().map(|class| class.jobs).sum();
    if jobs == 0 {
        return None;
    }
    let share = |class: &Observed| class.jobs as f64 / jobs as f64;
    let needed_ns: f64 = classes
        .iter()
        .map(|class| share(class) * class.response_ns)
        .sum();
    let targets_ns: Vec<Option<f64>> = classes.iter().map(Observed::target_ns).collect();
    let pairs = || classes.iter().zip(&targets_ns);
    let allowed =
        |(class, target): (&Observed, &Option<f64>)| target.map(|target| share(class) * target);
    let asked_ns: f64 = pairs().filter_map(allowed).sum();
    let free: f64 = pairs()
        .filter(|(_, target)| target.is_none())
        .map(|(class, _)| share(class))
        .sum();
    let is_impossible = |(_, (class, target)): &(usize, (&Observed, &Option<f64>))| {
        target.is_some_and(|target| target < class.inside_ns)
    };
    let left_ns = needed_ns - asked_ns;
    let lacking_ns = left_ns - free * LEFT_OVER_MOST * needed_ns;
    let relaxed = |(class, target): (&Observed, &Option<f64>)| {
        (lacking_ns > 0.0 && class.jobs > 0)
            .then(|| Some((*target)? + lacking_ns / share(class)))
            .flatten()
    };
    Some(Verdict {
        needed_ns,
        allowed_ns: (free == 0.0).then_some(asked_ns),
        lacking_ns,
        impossible: pairs()
            .enumerate()
            .filter(is_impossible)
            .map(|(at, _)| at)
            .collect(),
        left_over_ns: (free > 0.0).then(|| left_ns / free),
        relaxed_ns: pairs().map(relaxed).collect(),
        targets_ns: targets_ns.clone(),
    })
}

impl Observed {
    /// The most stringent of its targets as a mean: a percentile by the spread that was seen, else
    /// as if times were exponential.
    fn target_ns(&self) -> Option<f64> {
        let means = self
            .response_targets
            .iter()
            .map(|response_target| match *response_target {
                ResponseTarget::Mean(target_ns) => target_ns as f64,
                ResponseTarget::Share(share, target_ns) => {
                    let seen = self
                        .spread
                        .iter()
                        .find(|(own, _)| (own - share).abs() < 1e-6);
                    let times = seen.map_or(-(1.0 - share).ln(), |(_, times)| *times);
                    target_ns as f64 / times
                }
            });
        means.min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(jobs: u64, response_ns: f64, response_targets: &[ResponseTarget]) -> Observed {
        Observed {
            jobs,
            response_ns,
            inside_ns: 10.0,
            response_targets: response_targets.to_vec(),
            spread: vec![(0.95, 2.0)],
        }
    }

    #[test]
    fn targets_that_allow_less_than_the_mean_cannot_be_met() {
        let classes = |high, low| {
            let high = seen(100, 50.0, &[ResponseTarget::Mean(high)]);
            verdict(&[high, seen(900, 100.0, &[ResponseTarget::Mean(low)])]).unwrap()
        };
        let enough = classes(50, 100);
        assert_eq!((enough.needed_ns, enough.allowed_ns), (95.0, Some(95.0)));
        assert!(enough.is_feasible() && classes(500, 50).is_feasible());
        let too_little = classes(50, 90);
        assert!(!too_little.is_feasible());
        // 9 are lacking: 90 more for a tenth of the jobs, or 10 more for the others.
        let round = |relaxed: &Option<f64>| relaxed.map(f64::round);
        let relaxed: Vec<_> = too_little.relaxed_ns.iter().map(round).collect();
        assert_eq!(relaxed, [Some(140.0), Some(100.0)]);
        assert_eq!((too_little.factor().unwrap() * 860.0).round(), 950.0);
    }

    #[test]
    fn whoever_has_no_target_takes_what_is_left_over() {
        let all = verdict(&[
            seen(500, 80.0, &[ResponseTarget::Mean(20)]),
            seen(500, 80.0, &[]),
        ])
        .unwrap();
        assert!(all.is_feasible());
        assert_eq!((all.allowed_ns, all.left_over_ns), (None, Some(140.0)));
        assert_eq!(verdict(&[seen(0, 0.0, &[])]), None);
    }

    #[test]
    fn a_few_without_a_target_do_not_make_room_for_all_others() {
        let monitor = |jobs| seen(jobs, 50.0, &[]);
        let gold = || seen(999, 50.0, &[ResponseTarget::Mean(20)]);
        // 30 000 would be left over for the one in a thousand, 600 times the mean.
        let all = verdict(&[gold(), monitor(1)]).unwrap();
        assert!(!all.is_feasible());
        let relaxed = all.relaxed_ns[0].unwrap();
        assert!((45.0..51.0).contains(&relaxed), "{relaxed}");
        assert_eq!(all.relaxed_ns[1], None);
        assert!(verdict(&[gold(), monitor(999)]).unwrap().is_feasible());
    }

    #[test]
    fn a_percentile_is_compared_as_the_mean_that_goes_with_it() {
        let both = [
            ResponseTarget::Mean(70),
            ResponseTarget::Share(0.95, 120),
            ResponseTarget::Share(0.99, 1000),
        ];
        let all = verdict(&[seen(10, 50.0, &both)]).unwrap();
        assert_eq!(all.targets_ns, [Some(60.0)]);
        let exponential = verdict(&[seen(10, 50.0, &[ResponseTarget::Share(0.99, 1000)])]).unwrap();
        assert!((exponential.targets_ns[0].unwrap() - 1000.0 / 100_f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn nobody_is_done_sooner_than_inside() {
        let all = verdict(&[
            seen(10, 50.0, &[ResponseTarget::Mean(9)]),
            seen(10, 50.0, &[]),
        ])
        .unwrap();
        assert_eq!(
            (all.impossible.as_slice(), all.is_feasible()),
            (&[0][..], false)
        );
    }
}
