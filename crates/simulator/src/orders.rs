//! The orders of policies that have parameters: those given, or those that follow from the law of
//! sizes and the load.

use crate::TICKS_PER_MEAN;
use crate::policy::{BoostScale, Policy};
use sooner_policy::order::{Boost, ByAge, Index, Ljf, Nudge, OrderUser, Pljf, Psbs, Psjf, Sjf};
use sooner_theory::tail;
use sooner_workload::Distribution;

/// The load that boosts are chosen for where none is given, as in a closed system.
const UNKNOWN_LOAD: f64 = 0.9;
/// And the most: beyond there is no steady state to choose for.
const LOAD_MAX: f64 = 0.99;
/// The late share in turns of so many mean sizes.
const LATE_TURN: f64 = 0.01;

/// More places than jobs ever come; what is reckoned from it still fits.
const PLACES_MAX: u64 = u64::MAX / 4;

/// What parameters that are not given follow from.
pub(crate) struct Measured<'a> {
    /// Law of the sizes, in any unit.
    pub(crate) sizes: &'a Distribution,
    /// None where it is not known.
    pub(crate) load: Option<f64>,
    /// Ticks of the mean size.
    pub(crate) ticks_per_mean: f64,
}

impl<'a> Measured<'a> {
    pub(crate) fn new(sizes: &'a Distribution, load: Option<f64>) -> Self {
        Self {
            sizes,
            load,
            ticks_per_mean: TICKS_PER_MEAN,
        }
    }

    fn load(&self) -> f64 {
        self.load.unwrap_or(UNKNOWN_LOAD).clamp(0.01, LOAD_MAX)
    }

    /// The scale of boosts, in mean sizes.
    fn scale(&self) -> f64 {
        let scale = tail::boost_scale(self.sizes, self.load());
        scale.map_or(0.0, |scale| scale / self.sizes.mean())
    }

    /// How many jobs come in the time by which a small job is boosted more than a large one, each
    /// of the mean size of its kind.
    fn places(&self) -> u64 {
        let mean = self.sizes.mean();
        let small = self.sizes.partial_moment(0, mean);
        let small_mean = self.sizes.partial_moment(1, mean) / small / mean;
        let large_mean = (1.0 - small * small_mean) / (1.0 - small);
        let scale = self.scale();
        if !(small < 1.0 && scale > 0.0 && small_mean > 0.0) {
            return 0;
        }
        // Of a scale without end both boosts are, and small jobs pass all.
        if scale.is_infinite() {
            return PLACES_MAX;
        }
        let boost = |size: f64| -(-(-size / scale).exp_m1()).ln();
        let later = scale * (boost(small_mean) - boost(large_mean));
        ((later * self.load()).round() as u64).min(PLACES_MAX)
    }

    fn ticks(&self, means: f64) -> u64 {
        // Beyond what a float or a clock holds it is cut off.
        (means * self.ticks_per_mean).round() as u64
    }
}

/// Gives the order of `policy` to `user`; none where it is no order: sharing with shares, a ratio
/// that changes with time.
pub(crate) fn with_order<U: OrderUser>(
    policy: Policy,
    quantum: u64,
    measured: &Measured<'_>,
    user: U,
) -> Option<U::Output> {
    Some(match policy {
        Policy::Online(name) => name.with_order(quantum, user),
        Policy::Pesjf => user.with(Psjf),
        Policy::Peljf => user.with(Pljf),
        Policy::Sjf => user.with(Sjf),
        Policy::Ljf => user.with(Ljf),
        Policy::Psbs => user.with(Psbs::new(measured.ticks(LATE_TURN).max(1))),
        Policy::Boost(scale) => {
            let scale = match scale {
                BoostScale::Means(scale) => scale,
                BoostScale::OfLaw(times) => times * measured.scale(),
            };
            user.with(Boost::new(measured.ticks(scale)))
        }
        Policy::Nudge(places) => {
            let places = places.unwrap_or_else(|| measured.places());
            user.with(Nudge::new(measured.ticks(1.0), places))
        }
        Policy::Gittins => user.with(ByAge::new(Index::Gittins)),
        Policy::Serpt => user.with(ByAge::new(Index::Remaining)),
        Policy::Hrrn | Policy::Hybrid(_) => return None,
    })
}

/// Whether a job that has begun goes on to its end.
pub(crate) fn is_whole(policy: Policy) -> bool {
    matches!(
        policy,
        Policy::Sjf | Policy::Ljf | Policy::Boost(_) | Policy::Nudge(_) | Policy::Hrrn
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(law: &str) -> u64 {
        let sizes: Distribution = law.parse().expect(law);
        Measured::new(&sizes, Some(0.7)).places()
    }

    /// The scale is the mean wait of first come, first served, which has no end where sizes have no
    /// variance.
    #[test]
    fn of_sizes_without_a_variance_small_jobs_pass_all() {
        assert_eq!(places("pareto:k=1,alpha=1.5"), PLACES_MAX);
        assert_eq!(places("pareto:k=1,alpha=2"), PLACES_MAX);
        let with_a_variance = places("pareto:k=1,alpha=2.1");
        assert!((1..1000).contains(&with_a_variance), "{with_a_variance}");
        // All of one size: none is large.
        assert_eq!(places("det:mean=1"), 0);
    }
}
