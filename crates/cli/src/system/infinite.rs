//! Means that are infinite: a simulation gives a finite figure all the same, which says how long it
//! was and nothing else.
//!
//! Of a load of 1 or more the queue grows without end. Of sizes with an infinite variance the mean
//! is infinite where a large job holds up what came after it (Pollaczek and Khinchine for one
//! server; Scheller-Wolf 2003 for several, and for a limit on jobs inside, which holds them up in
//! the same way). Sharing, SRPT, PSJF, LAS and FSP do not, as long as sizes are known.

use sooner_simulator::{Policy, System};
use sooner_workload::sizes::Law;

/// Why the mean response time is infinite, in words; none where it is finite or not known to be
/// infinite.
pub fn why(system: &System) -> Option<String> {
    let load = system.offered_load()?;
    if load >= 1.0 {
        return Some(format!(
            "load {load} is more than the server can do, and the queue grows without end"
        ));
    }
    let Law::Pareto { alpha, .. } = *system.sizes().law() else {
        return None;
    };
    let places = places(system)?;
    // Large jobs in so many places leave less than comes.
    let spare = f64::from(places) - (f64::from(places) * load).floor();
    (alpha <= 1.0 + 1.0 / spare).then(|| {
        format!("sizes of such a variance (alpha {alpha}) hold up all others under this policy")
    })
}

/// How many jobs can hold up all others; none where none can.
fn places(system: &System) -> Option<u32> {
    let options = system.options();
    if options.turns.is_some() && system.policy() != Policy::FCFS {
        return None;
    }
    if let Some(limit) = options.mpl {
        return (options.servers == 1).then_some(limit);
    }
    let is_wrong = options.error.is_some_and(|error| error > 0.0);
    let holds_up = match system.policy() {
        Policy::FCFS
        | Policy::Sjf
        | Policy::Ljf
        | Policy::Boost(_)
        | Policy::Hrrn
        | Policy::Nudge(_) => true,
        // One kind of sizes: first come, first served.
        Policy::PLJF | Policy::Pesjf | Policy::Peljf => options.servers == 1,
        // What is taken for done and is not goes before all others.
        Policy::SRPT | Policy::FSP => is_wrong && options.servers == 1,
        Policy::FAIR | Policy::PSJF | Policy::LAS | Policy::Psbs | Policy::Hybrid(_) => false,
        // Not known of any other.
        Policy::Online(_) | Policy::Gittins | Policy::Serpt => false,
    };
    holds_up.then_some(options.servers)
}
