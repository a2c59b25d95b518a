//! From flags and a model file to the systems to simulate: every combination of what is given several times.

use super::args::SimArgs;
use anyhow::{Context, Result, bail, ensure};
use sooner_simulator::system::{Options, Priority, Turns};
use sooner_simulator::{Policy, System};
use sooner_workload::model::{Arrivals, Model, Users};
use sooner_workload::sizes::Law;
use sooner_workload::{Distribution, Schedule};

/// Turns where only the guard was asked for, in mean sizes.
const TURN: f64 = 0.01;

/// A system, and in words what sets it apart.
pub struct Case {
    pub system: System,
    pub policy: Policy,
    /// What was given several times, as name and value.
    pub varied: Vec<(&'static str, String)>,
    /// All that describes it, as name and value.
    pub described: Vec<(&'static str, String)>,
}

/// Every combination, the policies of one system side by side.
pub fn cases(args: &SimArgs) -> Result<Vec<Case>> {
    let model = args.model.as_ref().map(|path| read(path)).transpose()?;
    let sizes = match (&args.sizes[..], &model) {
        ([], Some(model)) => vec![model.sizes.clone()],
        ([], None) => bail!("no sizes: give --sizes, like --sizes h2:mean=1,c2=4, or a model file"),
        (some, _) => some.to_vec(),
    };
    let policies = match (&args.policy[..], &model) {
        ([], Some(model)) => vec![model.policy.parse()?],
        ([], None) => vec![Policy::Fair, Policy::Srpt],
        (some, _) => some.to_vec(),
    };
    let limits = |flag: &[u32], file: Option<u32>| match flag {
        [] => vec![file],
        some => some.iter().copied().map(Some).collect(),
    };
    let servers = limits(&args.servers, model.as_ref().map(|model| model.servers));
    let mpls = limits(&args.mpl, model.as_ref().and_then(|model| model.mpl));
    let errors = match &args.error[..] {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    let users = users(args, model.as_ref())?;
    let mut cases = Vec::new();
    for size in &sizes {
        let law = size.open().context("--sizes")?;
        for (user, names) in &users {
            for &server in &servers {
                for &mpl in &mpls {
                    for &error in &errors {
                        let options = Options {
                            servers: server.unwrap_or(1),
                            mpl,
                            error,
                            priority: priority(args),
                            turns: turns(args),
                        };
                        ensure!(
                            options.servers > 0 && mpl != Some(0),
                            "--servers and --mpl: at least 1"
                        );
                        let mut described = vec![("sizes", size.to_string())];
                        described.extend(names.iter().cloned());
                        described.extend(server.map(|n| ("servers", n.to_string())));
                        described.extend(mpl.map(|n| ("mpl", n.to_string())));
                        described.extend(error.map(|sigma| ("error", sigma.to_string())));
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

fn read(path: &std::path::Path) -> Result<Model> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let model = Model::read(&text, &Policy::NAMES);
    model.map_err(|mistake| anyhow::anyhow!("{}:{mistake}", path.display()))
}

fn priority(args: &SimArgs) -> Option<Priority> {
    let smallest = args.smallest_first.map(Priority::Smallest);
    smallest.or(args.first.map(Priority::Chance))
}

fn turns(args: &SimArgs) -> Option<Turns> {
    (args.guard || args.turn.is_some()).then(|| Turns {
        turn: args.turn.unwrap_or(TURN),
        is_guarded: args.guard,
    })
}

type Named = (Users, Vec<(&'static str, String)>);

/// Who sends jobs: by flags, else as the file says.
fn users(args: &SimArgs, model: Option<&Model>) -> Result<Vec<Named>> {
    if !args.users.is_empty() {
        return closed(args);
    }
    let schedules = schedules(args)?;
    match (&schedules[..], model) {
        ([], _) if !args.stay.is_empty() => bail!("--stay: give the load too, like --load 0.8"),
        ([], Some(model)) => Ok(vec![(model.users.clone(), Vec::new())]),
        ([], None) => {
            bail!("no load: give --load, like --load 0.8, or --users for a closed system")
        }
        (some, Some(model)) if args.stay.is_empty() && args.gaps.is_none() => {
            let named = |schedule: &Schedule| {
                Ok((at_load(&model.users, schedule)?, vec![loaded(schedule)]))
            };
            some.iter().map(named).collect()
        }
        (some, _) => coming(args, some),
    }
}

fn loaded(schedule: &Schedule) -> (&'static str, String) {
    ("load", schedule.to_string())
}

fn pausing(think: &Distribution) -> (&'static str, String) {
    ("think", think.law().to_string())
}

/// The think times asked for; none at all is one that is 0.
fn thinks(args: &SimArgs) -> Result<Vec<Distribution>> {
    match &args.think[..] {
        [] => Ok(vec![Distribution::new(Law::Deterministic { mean: 0.0 })?]),
        some => Ok(some.to_vec()),
    }
}

/// Closed systems.
fn closed(args: &SimArgs) -> Result<Vec<Named>> {
    ensure!(
        args.load.is_empty() && args.schedule.is_none(),
        "--users: the load of a closed system follows from its users; leave --load out"
    );
    ensure!(
        args.gaps.is_none(),
        "--users: nobody arrives in a closed system; leave --gaps out"
    );
    ensure!(
        args.users
            .iter()
            .all(|users| (1..=1_000_000).contains(users)),
        "--users: from 1 to 1000000"
    );
    let thinks = thinks(args)?;
    let each = |&users: &u32| {
        let of = move |think: &Distribution| {
            let think_of = think.clone();
            (
                Users::Closed {
                    users,
                    think: think_of,
                },
                vec![("users", users.to_string()), pausing(think)],
            )
        };
        thinks.iter().map(of).collect::<Vec<Named>>()
    };
    Ok(args.users.iter().flat_map(each).collect())
}

/// Open and partly-open systems.
fn coming(args: &SimArgs, schedules: &[Schedule]) -> Result<Vec<Named>> {
    let arrivals = arrivals(args)?;
    if args.stay.is_empty() {
        ensure!(
            args.think.is_empty(),
            "--think: users of an open system send one job each; give --stay or --users"
        );
        let open = |schedule: &Schedule| {
            let (schedule, arrivals) = (schedule.clone(), arrivals.clone());
            let name = loaded(&schedule);
            (Users::Open { schedule, arrivals }, vec![name])
        };
        return Ok(schedules.iter().map(open).collect());
    }
    let thinks = thinks(args)?;
    let mut all = Vec::new();
    for schedule in schedules {
        for &stay in &args.stay {
            ensure!(
                (0.0..1.0).contains(&stay),
                "--stay {stay}: from 0 to below 1, like 0.8"
            );
            for think in &thinks {
                let users = Users::PartlyOpen {
                    schedule: schedule.clone(),
                    arrivals: arrivals.clone(),
                    stay,
                    think: think.clone(),
                };
                all.push((
                    users,
                    vec![loaded(schedule), ("stay", stay.to_string()), pausing(think)],
                ));
            }
        }
    }
    Ok(all)
}

fn arrivals(args: &SimArgs) -> Result<Arrivals> {
    match &args.gaps {
        Some(law) => {
            ensure!(
                law.mean() > 0.0 && law.mean().is_finite(),
                "--gaps: a law with a mean above 0"
            );
            Ok(Arrivals::Renewal(law.clone()))
        }
        None => Ok(Arrivals::Poisson),
    }
}

/// The users of a file at another load.
fn at_load(users: &Users, schedule: &Schedule) -> Result<Users> {
    let mut users = users.clone();
    match &mut users {
        Users::Open { schedule: load, .. } | Users::PartlyOpen { schedule: load, .. } => {
            *load = schedule.clone();
            Ok(users)
        }
        Users::Closed { .. } => bail!(
            "--load: the load of the file's closed system follows from its users; leave it out"
        ),
    }
}

fn schedules(args: &SimArgs) -> Result<Vec<Schedule>> {
    if let Some(schedule) = &args.schedule {
        return Ok(vec![schedule.clone()]);
    }
    let loads = args.load.iter();
    loads
        .map(|&load| Schedule::constant(load).context("--load"))
        .collect()
}
