//! The exact mean beside a simulated one, where a formula has it.

use super::infinite;
use sooner_simulator::{Policy, System};
use sooner_theory::closed::{self, Station};
use sooner_theory::little::Queue;
use sooner_theory::mg1::{self, Mg1};
use sooner_theory::{kinds, mmk, mpl};
use sooner_workload::model::{Arrivals, Users};
use sooner_workload::sizes::Law;

/// Mean response time of `system` in mean sizes, perhaps infinite; none where no formula of ours
/// has it.
pub fn mean_response(system: &System) -> Option<f64> {
    let options = system.options();
    if infinite::why(system).is_some() {
        return Some(f64::INFINITY);
    }
    if options.servers > 1 {
        return several(system);
    }
    let is_plain = options.priority.is_none() && options.turns.is_none();
    if !is_plain || options.error.is_some_and(|error| error > 0.0) {
        return None;
    }
    match system.users() {
        Users::Open {
            schedule,
            arrivals: Arrivals::Poisson,
        } if schedule.phases().len() == 1 => open(system),
        Users::PartlyOpen {
            arrivals: Arrivals::Poisson,
            schedule,
            ..
        } if schedule.phases().len() == 1
            && system.policy() == Policy::FAIR
            && options.mpl.is_none() =>
        {
            // The network has a product form, whatever the law of sizes (Baskett et al. 1975).
            Some(1.0 / (1.0 - system.offered_load()?))
        }
        Users::Closed { users, .. } if system.policy() == Policy::FAIR && options.mpl.is_none() => {
            let mean = system.sizes().mean();
            let stations = [
                Station::Queue { demand: mean },
                Station::Delay {
                    time: system.mean_think()? * mean,
                },
            ];
            let solved = closed::solve(&stations, *users as usize).ok()?;
            Some(solved.mean_response / mean)
        }
        _ => None,
    }
}

/// Waiting time and numbers of jobs of a system with this mean response time, in mean sizes; none
/// where more comes than can be done.
pub fn queue(system: &System, mean_response: f64) -> Option<Queue> {
    let servers = f64::from(system.options().servers);
    let per_time = match (system.users(), system.offered_load()) {
        (Users::Closed { users, .. }, _) => {
            f64::from(*users) / (mean_response + system.mean_think()?)
        }
        (_, load) => load.filter(|load| *load < 1.0)?,
    };
    Some(Queue::new(mean_response, servers, per_time))
}

/// Several servers: exponential sizes, and an order that does not look at them.
fn several(system: &System) -> Option<f64> {
    let is_exponential = matches!(system.sizes().law(), Law::Exponential { .. });
    let is_blind = matches!(system.policy(), Policy::FAIR | Policy::FCFS);
    let is_poisson = matches!(system.users(), Users::Open { arrivals: Arrivals::Poisson, schedule } if schedule.phases().len() == 1);
    let can = is_exponential && is_blind && is_poisson && system.options().mpl.is_none();
    can.then(|| mmk::mean_response(system.options().servers, system.offered_load()?).ok())?
}

fn open(system: &System) -> Option<f64> {
    let (sizes, load) = (system.sizes(), system.offered_load()?);
    let mean = sizes.mean();
    if let Some(limit) = system.options().mpl {
        let is_first_come = matches!(system.policy(), Policy::FAIR | Policy::FCFS);
        let solved = is_first_come.then(|| mpl::solve(sizes, load, limit as usize).ok())??;
        return Some(solved.mean_response / mean);
    }
    let policy = match system.policy() {
        Policy::FAIR => mg1::Policy::Fair,
        Policy::FCFS => mg1::Policy::Fcfs,
        Policy::SRPT => mg1::Policy::Srpt,
        Policy::PSJF => mg1::Policy::Psjf,
        Policy::Sjf => mg1::Policy::Sjf,
        Policy::LAS => mg1::Policy::Las,
        Policy::Pesjf | Policy::Peljf => {
            let mut kinds = sizes.kinds();
            if system.policy() == Policy::Peljf {
                kinds.reverse();
            }
            return Some(kinds::mean_response(&kinds, load).ok()? / mean);
        }
        _ => return None,
    };
    let solved = Mg1::new(sizes, load).ok()?.solve(policy);
    Some(solved.mean_response / mean)
}
