//! The exact mean beside a simulated one, where a formula has it.

use sooner_simulator::{Policy, System};
use sooner_theory::closed::{self, Station};
use sooner_theory::mg1::{self, Mg1};
use sooner_theory::mpl;
use sooner_workload::model::{Arrivals, Users};

/// Mean response time of `system` in mean sizes; none where no formula of ours has it.
pub fn mean_response(system: &System) -> Option<f64> {
    let options = system.options();
    let is_plain = options.priority.is_none() && options.turns.is_none() && options.servers == 1;
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
            && system.policy() == Policy::Fair
            && options.mpl.is_none() =>
        {
            // The network has a product form, whatever the law of sizes (Baskett et al. 1975).
            Some(1.0 / (1.0 - system.offered_load()?))
        }
        Users::Closed { users, think }
            if system.policy() == Policy::Fair && options.mpl.is_none() =>
        {
            let mean = system.sizes().mean();
            let stations = [
                Station::Queue { demand: mean },
                Station::Delay { time: think.mean() },
            ];
            let solved = closed::solve(&stations, *users as usize).ok()?;
            Some(solved.mean_response / mean)
        }
        _ => None,
    }
}

fn open(system: &System) -> Option<f64> {
    let (sizes, load) = (system.sizes(), system.offered_load()?);
    let mean = sizes.mean();
    if let Some(limit) = system.options().mpl {
        let is_first_come = matches!(system.policy(), Policy::Fair | Policy::Fcfs);
        let solved = is_first_come.then(|| mpl::solve(sizes, load, limit as usize).ok())??;
        return Some(solved.mean_response / mean);
    }
    let policy = match system.policy() {
        Policy::Fair => mg1::Policy::Fair,
        Policy::Fcfs => mg1::Policy::Fcfs,
        Policy::Srpt => mg1::Policy::Srpt,
        Policy::Psjf => mg1::Policy::Psjf,
        Policy::Sjf => mg1::Policy::Sjf,
        Policy::Las => mg1::Policy::Las,
        _ => return None,
    };
    let solved = Mg1::new(sizes, load).ok()?.solve(policy);
    Some(solved.mean_response / mean)
}
