//! Mean slowdowns that are infinite: there are jobs so small that their inverse has no mean, and
//! they wait as long as others. A simulation gives a finite figure all the same, as of means.

use sooner_simulator::{Policy, System};
use sooner_theory::mg1::{self, Mg1};
use sooner_workload::model::Users;

/// Any will do: the law decides.
const LOAD: f64 = 0.5;

/// Why the mean slowdown is infinite although the mean response time is not, in words; none where
/// it is finite or not known to be infinite.
pub fn why(system: &System) -> Option<String> {
    (can_wait(system)? && !has_mean_inverse(system)).then(|| {
        "jobs of such sizes may be as small as can be, and wait for others under this policy".into()
    })
}

/// Whether 1 over the size has a mean: first come, first served has a slowdown then.
fn has_mean_inverse(system: &System) -> bool {
    let sizes = system.sizes();
    let is_known = sizes.second_moment().is_finite();
    let solved = Mg1::new(sizes, LOAD).map(|queue| queue.solve(mg1::Policy::Fcfs));
    !is_known || solved.is_ok_and(|solved| solved.mean_slowdown.is_finite())
}

/// Whether a job may wait for one that began before it, however small it is; none where that is not
/// known.
fn can_wait(system: &System) -> Option<bool> {
    let options = system.options();
    let places = options.mpl.unwrap_or(options.servers);
    if matches!(system.users(), Users::Closed { users, .. } if *users <= places) {
        return Some(false);
    }
    if options.turns.is_some() && system.policy() != Policy::FCFS {
        return None;
    }
    if options.mpl.is_some() {
        return Some(true);
    }
    let is_wrong = options.error.is_some_and(|error| error > 0.0);
    match system.policy() {
        Policy::FCFS
        | Policy::Sjf
        | Policy::Ljf
        | Policy::Boost(_)
        | Policy::Hrrn
        | Policy::Nudge(_)
        | Policy::PLJF
        | Policy::Pesjf
        | Policy::Peljf => Some(true),
        // What is taken for done and is not goes before all others.
        Policy::SRPT | Policy::FSP => Some(is_wrong),
        Policy::FAIR | Policy::PSJF | Policy::LAS | Policy::Psbs | Policy::Hybrid(_) => Some(false),
        // Not known of any other.
        Policy::Online(_) | Policy::Gittins | Policy::Serpt => None,
    }
}
