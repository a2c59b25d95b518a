//! From flags and a model file to the systems to simulate: every combination of what is given
//! several times.

use super::SystemArgs;
use super::users::users;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};
use sooner_report::number::duration;
use sooner_simulator::system::{ERROR_MAX, Options, Priority, Turns};
use sooner_simulator::{Policy, System};
use sooner_workload::model::{Arrivals, First, Model, Users};
use sooner_workload::{Distribution, Rate, Row, Sizes, Trace, guess};
use std::sync::Arc;

/// Turns where only the guard was requested, in mean sizes.
const TURN: f64 = 0.01;

/// A system, and in words what sets it apart.
pub struct Case {
    pub system: System,
    pub policy: Policy,
    /// What was given several times, as name and value.
    pub varied: Vec<(&'static str, String)>,
    /// All that describes it, as name and value.
    described: Vec<(&'static str, String)>,
}

impl Case {
    /// All that describes it, as JSON.
    pub fn described(&self) -> Map<String, Value> {
        let all = self.described.iter();
        all.map(|(name, value)| ((*name).into(), json!(value)))
            .collect()
    }

    /// What does not vary between it and those beside it, in words.
    pub fn in_common(&self) -> String {
        let is_common =
            |pair: &&(&'static str, String)| !self.varied.iter().any(|other| other.0 == pair.0);
        let words = self.described.iter().filter(is_common);
        let words = words.map(|(name, value)| format!("{name} {value}"));
        words.collect::<Vec<_>>().join(", ")
    }

    /// What a mean size is in time, in words, where a link's rate is known.
    pub fn in_seconds(&self) -> String {
        let seconds = self.system.mean_service_s();
        seconds.map_or(String::new(), |seconds| {
            format!(", of {} each", duration(1000.0 * seconds))
        })
    }
}

/// Every combination, the policies of one system side by side; where more comes than can be done,
/// only if that is `bounded`.
pub fn cases(args: &SystemArgs, bounded: bool) -> Result<Vec<Case>> {
    let model = args.model.as_ref().map(|path| read(path)).transpose()?;
    let sizes = match (&args.sizes[..], &model) {
        ([], Some(model)) => vec![model.sizes.clone()],
        ([], None) => bail!("no sizes: give --sizes h2:mean=1,c2=4, or a model file"),
        (some, _) => some.to_vec(),
    };
    let policies = policies(args, model.as_ref())?;
    let limits = |flag: &[u32], file: Option<u32>| match flag {
        [] => vec![file],
        some => some.iter().copied().map(Some).collect(),
    };
    let servers = limits(&args.servers, model.as_ref().map(|model| model.servers));
    let mpls = limits(&args.mpl, model.as_ref().and_then(|model| model.mpl));
    let errors = errors(args, model.as_ref());
    ensure!(
        !args.calibrated || errors.iter().all(|error| !matches!(error, Wrong::Known)),
        "--calibrated corrects estimates, but sizes are known: give --error or --right-pairs too"
    );
    let uplink = args
        .uplink
        .or(model.as_ref().and_then(|model| model.uplink));
    let users = users(args, model.as_ref())?;
    let mut cases = Vec::new();
    for size in &sizes {
        let law = law(size, uplink)?;
        for (user, names) in &users {
            let rows = rows(size, user)?;
            for &server in &servers {
                for &mpl in &mpls {
                    for error in &errors {
                        let sigma = error.sigma(&law)?;
                        let options = Options {
                            servers: server.unwrap_or(1),
                            mpl,
                            error: sigma,
                            calibrated: args.calibrated,
                            priority: priority(args, model.as_ref()),
                            turns: turns(args, model.as_ref()),
                            work_per_second: uplink.map(Rate::bytes_per_sec),
                            overloaded: bounded,
                            rows: rows.clone(),
                        };
                        ensure!(
                            options.servers > 0 && mpl != Some(0),
                            "--servers or --mpl is 0; give 1 or more"
                        );
                        let mut described = vec![("sizes", size.to_string())];
                        described.extend(names.iter().cloned());
                        described.extend(uplink.map(|rate| ("uplink", rate.to_string())));
                        described.extend(parts(server, mpl, *error));
                        if args.calibrated {
                            described.push(("estimates", "calibrated".to_owned()));
                        }
                        for &policy in &policies {
                            let system =
                                System::new(law.clone(), user.clone(), policy, options.clone())?;
                            cases.push(Case {
                                system,
                                policy,
                                varied: Vec::new(),
                                described: described.clone(),
                            });
                        }
                    }
                }
            }
        }
    }
    mark_varied(&mut cases);
    Ok(cases)
}

/// How wrong estimates are.
#[derive(Clone, Copy)]
enum Wrong {
    /// Sizes are known.
    Known,
    /// Deviation of the logarithm.
    Sigma(f64),
    /// They rank this share of all pairs rightly.
    RightPairs(f64),
}

impl Wrong {
    /// The deviation that it comes to with sizes of this law.
    fn sigma(self, law: &Distribution) -> Result<Option<f64>> {
        match self {
            Self::Known => Ok(None),
            Self::Sigma(sigma) => Ok(Some(sigma)),
            Self::RightPairs(share) => {
                ensure!(
                    share > 0.5 && share <= 1.0,
                    "--right-pairs {share} is out of range; give above 0.5 (chance) to 1"
                );
                let sigma = guess::sigma_of(law, share);
                let sigma =
                    sigma.context("--right-pairs: all sizes are equal, so no pair has an order")?;
                ensure!(
                    sigma <= ERROR_MAX,
                    "--right-pairs {share} is out of range for sizes {}; give {} to 1: below that the standard deviation of the error is above {ERROR_MAX}",
                    law.law(),
                    least_right_pairs(law)
                );
                Ok(Some(sigma))
            }
        }
    }
}

/// The least share of pairs of these sizes that estimates of the largest error rank rightly, rounded
/// up.
fn least_right_pairs(law: &Distribution) -> f64 {
    let least = guess::right_pairs(law, ERROR_MAX).unwrap_or(1.0);
    (least * 1000.0).ceil() / 1000.0
}

/// By flags, else as the file says, else none.
fn errors(args: &SystemArgs, model: Option<&Model>) -> Vec<Wrong> {
    let by_sigma = args.error.iter().copied().map(Wrong::Sigma);
    let by_pairs = args.right_pairs.iter().copied().map(Wrong::RightPairs);
    let given: Vec<Wrong> = by_sigma.chain(by_pairs).collect();
    if given.is_empty() {
        let of_file = model.and_then(|model| model.error);
        return vec![of_file.map_or(Wrong::Known, Wrong::Sigma)];
    }
    given
}

/// By flags, else as the file says, else sharing beside SRPT.
fn policies(args: &SystemArgs, model: Option<&Model>) -> Result<Vec<Policy>> {
    let of_file = model.and_then(|model| model.policy.as_deref());
    Ok(match (&args.policy[..], of_file) {
        ([], Some(name)) => vec![name.parse()?],
        ([], None) => vec![Policy::FAIR, Policy::SRPT],
        (some, _) => some.to_vec(),
    })
}

/// The law of `sizes`, if they can be bytes of `uplink`.
fn law(sizes: &Sizes, uplink: Option<Rate>) -> Result<Distribution> {
    ensure!(
        uplink.is_none() || !sizes.is_job_log(),
        "sizes {sizes}: the run times of a job log are seconds, not bytes of an uplink; leave one of them out"
    );
    sizes.open().context("--sizes")
}

/// The parts of a system that have a default, as they were given.
fn parts(
    servers: Option<u32>,
    mpl: Option<u32>,
    error: Wrong,
) -> impl Iterator<Item = (&'static str, String)> {
    let servers = servers.map(|n| ("servers", n.to_string()));
    let mpl = mpl.map(|n| ("mpl", n.to_string()));
    let error = match error {
        Wrong::Known => None,
        Wrong::Sigma(sigma) => Some(("error", sigma.to_string())),
        Wrong::RightPairs(share) => Some(("right pairs", share.to_string())),
    };
    [servers, mpl, error].into_iter().flatten()
}

/// Notes what differs between cases.
fn mark_varied(cases: &mut [Case]) {
    let Some(first) = cases.first().map(|case| case.described.clone()) else {
        return;
    };
    let differs = |place: usize, cases: &[Case]| {
        cases
            .iter()
            .any(|case| case.described.get(place) != first.get(place))
    };
    let places: Vec<usize> = (0..first.len())
        .filter(|&place| differs(place, cases))
        .collect();
    for case in cases {
        case.varied = places
            .iter()
            .filter_map(|&place| case.described.get(place).cloned())
            .collect();
    }
}

/// A model file, `-` for standard input; what is wrong with it is told with its name and the line.
pub fn read(path: &std::path::Path) -> Result<Model> {
    let text = match path.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    };
    let text = text.with_context(|| path.display().to_string())?;
    let model = Model::read(&text, check_policy);
    model.map_err(|mistake| anyhow::anyhow!("{}:{mistake}", path.display()))
}

/// Whether the simulator has this policy.
pub fn check_policy(name: &str) -> Result<(), String> {
    let read: Result<Policy, _> = name.parse();
    read.map(|_| ()).map_err(|error| error.to_string())
}

/// The trace's requests where its own gaps are requested.
fn rows(sizes: &Sizes, users: &Users) -> Result<Option<Arc<[Row]>>> {
    let (Users::Open { arrivals, .. } | Users::PartlyOpen { arrivals, .. }) = users else {
        return Ok(None);
    };
    match (arrivals, sizes) {
        (Arrivals::Trace, Sizes::Trace(name)) => Ok(Some(Trace::open(name)?.rows().into())),
        _ => Ok(None),
    }
}

fn priority(args: &SystemArgs, model: Option<&Model>) -> Option<Priority> {
    let smallest = args.smallest_first.map(Priority::Smallest);
    let of_file = || {
        let priority = model?.priority?;
        Some(match priority.first {
            First::Smallest => Priority::Smallest(priority.share),
            First::Chance => Priority::Chance(priority.share),
        })
    };
    smallest
        .or(args.first.map(Priority::Chance))
        .or_else(of_file)
}

fn turns(args: &SystemArgs, model: Option<&Model>) -> Option<Turns> {
    let turn = args.turn.or(model.and_then(|model| model.turn));
    let is_guarded = args.guard || model.is_some_and(|model| model.guard);
    (is_guarded || turn.is_some()).then(|| Turns {
        turn: turn.unwrap_or(TURN),
        is_guarded,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_share_that_an_error_names_is_taken() {
        for text in [
            "exp:mean=7",
            "h2:mean=1,c2=16",
            "bpareto:k=1,p=1000000,alpha=1.1",
            "weibull:scale=1,shape=9",
        ] {
            let law: Distribution = text.parse().unwrap();
            let sigma = |share| Wrong::RightPairs(share).sigma(&law);
            let least = least_right_pairs(&law);
            assert!(least > 0.502 && least < 0.8, "{text}: {least}");
            assert!(sigma(least).unwrap().unwrap() <= ERROR_MAX, "{text}");
            let refused = sigma(least - 0.002).unwrap_err().to_string();
            let words = format!("for sizes {text}; give {least} to 1");
            assert!(refused.contains(&words), "{refused}");
        }
    }
}
