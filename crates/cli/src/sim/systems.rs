//! From flags and a model file to the systems to simulate: every combination of what is given several times.

use super::args::SystemArgs;
use anyhow::{Context, Result, bail, ensure};
use sooner_simulator::system::{Options, Priority, Turns};
use sooner_simulator::{Policy, System};
use sooner_workload::model::{Arrivals, First, Model, Users};
use sooner_workload::sizes::Law;
use sooner_workload::{Distribution, Rate, Row, Schedule, Sizes, Trace};
use std::sync::Arc;

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

/// Every combination, the policies of one system side by side; where more comes than can be done, only if that is `bounded`.
pub fn cases(args: &SystemArgs, bounded: bool) -> Result<Vec<Case>> {
    let model = args.model.as_ref().map(|path| read(path)).transpose()?;
    let sizes = match (&args.sizes[..], &model) {
        ([], Some(model)) => vec![model.sizes.clone()],
        ([], None) => bail!("no sizes: give --sizes, like --sizes h2:mean=1,c2=4, or a model file"),
        (some, _) => some.to_vec(),
    };
    let policies = policies(args, model.as_ref())?;
    let limits = |flag: &[u32], file: Option<u32>| match flag {
        [] => vec![file],
        some => some.iter().copied().map(Some).collect(),
    };
    let servers = limits(&args.servers, model.as_ref().map(|model| model.servers));
    let mpls = limits(&args.mpl, model.as_ref().and_then(|model| model.mpl));
    let errors = match &args.error[..] {
        [] => vec![model.as_ref().and_then(|model| model.error)],
        some => some.iter().copied().map(Some).collect(),
    };
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
                    for &error in &errors {
                        let options = Options {
                            servers: server.unwrap_or(1),
                            mpl,
                            error,
                            priority: priority(args, model.as_ref()),
                            turns: turns(args, model.as_ref()),
                            work_per_second: uplink.map(Rate::bytes_per_sec),
                            overloaded: bounded,
                            rows: rows.clone(),
                        };
                        ensure!(
                            options.servers > 0 && mpl != Some(0),
                            "--servers and --mpl: at least 1"
                        );
                        let mut described = vec![("sizes", size.to_string())];
                        described.extend(names.iter().cloned());
                        described.extend(uplink.map(|rate| ("uplink", rate.to_string())));
                        described.extend(parts(server, mpl, error));
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

/// By flags, else as the file says, else sharing beside SRPT.
fn policies(args: &SystemArgs, model: Option<&Model>) -> Result<Vec<Policy>> {
    let of_file = model.and_then(|model| model.policy.as_deref());
    Ok(match (&args.policy[..], of_file) {
        ([], Some(name)) => vec![name.parse()?],
        ([], None) => vec![Policy::Fair, Policy::Srpt],
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
    error: Option<f64>,
) -> impl Iterator<Item = (&'static str, String)> {
    let servers = servers.map(|n| ("servers", n.to_string()));
    let mpl = mpl.map(|n| ("mpl", n.to_string()));
    let error = error.map(|sigma| ("error", sigma.to_string()));
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

/// A model file; what is wrong with it is told with its name and the line.
pub fn read(path: &std::path::Path) -> Result<Model> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let model = Model::read(&text, &Policy::NAMES);
    model.map_err(|mistake| anyhow::anyhow!("{}:{mistake}", path.display()))
}

/// The trace's requests where its own gaps are asked for.
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

type Named = (Users, Vec<(&'static str, String)>);

/// Who sends jobs: by flags, else as the file says with what flags change.
fn users(args: &SystemArgs, model: Option<&Model>) -> Result<Vec<Named>> {
    let of_file = model.map(|model| &model.users);
    if !args.users.is_empty() {
        return closed(args, of_file);
    }
    let mut schedules = schedules(args)?;
    if let (true, Some(Users::Open { schedule, .. } | Users::PartlyOpen { schedule, .. })) =
        (schedules.is_empty() && !args.stay.is_empty(), of_file)
    {
        schedules.push(schedule.clone());
    }
    match (&schedules[..], model) {
        (some, Some(model)) if args.stay.is_empty() => changed(args, &model.users, some),
        ([], _) if !args.stay.is_empty() => bail!("--stay: give the load too, like --load 0.8"),
        ([], _) => bail!("no load: give --load, like --load 0.8, or --users for a closed system"),
        (some, _) => coming(args, some, of_file),
    }
}

/// The users of a file, at the loads, with the gaps and the think times of flags.
fn changed(args: &SystemArgs, of_file: &Users, loads: &[Schedule]) -> Result<Vec<Named>> {
    let mut all: Vec<Users> = match loads {
        [] => vec![of_file.clone()],
        some => {
            let at = some.iter().map(|load| at_load(of_file, load));
            at.collect::<Result<_>>()?
        }
    };
    if let Some(gaps) = &args.gaps {
        for users in &mut all {
            match users {
                Users::Open { arrivals, .. } | Users::PartlyOpen { arrivals, .. } => {
                    *arrivals = gaps.clone();
                }
                Users::Closed { .. } => {
                    bail!("--gaps: nobody arrives in the file's closed system; leave it out")
                }
            }
        }
    }
    if !args.think.is_empty() {
        let mut thinking = Vec::new();
        for users in &all {
            for think in &args.think {
                thinking.push(who_think(users, think)?);
            }
        }
        all = thinking;
    }
    let named = |users: Users| {
        let names = named(&users);
        (users, names)
    };
    Ok(all.into_iter().map(named).collect())
}

/// The same users with other think times.
fn who_think(users: &Users, other: &Distribution) -> Result<Users> {
    let mut users = users.clone();
    match &mut users {
        Users::Closed { think, .. } | Users::PartlyOpen { think, .. } => *think = other.clone(),
        Users::Open { .. } => bail!(
            "--think: users of the file's open system send one job each; give --stay or --users"
        ),
    }
    Ok(users)
}

/// What describes users, by the names of the flags.
fn named(users: &Users) -> Vec<(&'static str, String)> {
    match users {
        Users::Open { schedule, .. } => vec![loaded(schedule)],
        Users::Closed { users, think } => vec![("users", users.to_string()), pausing(think)],
        Users::PartlyOpen {
            schedule,
            stay,
            think,
            ..
        } => vec![loaded(schedule), ("stay", stay.to_string()), pausing(think)],
    }
}

fn loaded(schedule: &Schedule) -> (&'static str, String) {
    ("load", schedule.to_string())
}

fn pausing(think: &Distribution) -> (&'static str, String) {
    ("think", think.law().to_string())
}

/// The think times asked for, or of the file; none at all is one that is 0.
fn thinks(args: &SystemArgs, of_file: Option<&Users>) -> Result<Vec<Distribution>> {
    match (&args.think[..], of_file) {
        ([], Some(Users::Closed { think, .. } | Users::PartlyOpen { think, .. })) => {
            Ok(vec![think.clone()])
        }
        ([], _) => Ok(vec![Distribution::new(Law::Deterministic { mean: 0.0 })?]),
        (some, _) => Ok(some.to_vec()),
    }
}

/// Closed systems.
fn closed(args: &SystemArgs, of_file: Option<&Users>) -> Result<Vec<Named>> {
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
    let thinks = thinks(args, of_file)?;
    let each = |&users: &u32| {
        let of = move |think: &Distribution| {
            let users = Users::Closed {
                users,
                think: think.clone(),
            };
            let names = named(&users);
            (users, names)
        };
        thinks.iter().map(of).collect::<Vec<Named>>()
    };
    Ok(args.users.iter().flat_map(each).collect())
}

/// Open and partly-open systems.
fn coming(
    args: &SystemArgs,
    schedules: &[Schedule],
    of_file: Option<&Users>,
) -> Result<Vec<Named>> {
    let arrivals = match (&args.gaps, of_file) {
        (Some(gaps), _) => gaps.clone(),
        (None, Some(Users::Open { arrivals, .. } | Users::PartlyOpen { arrivals, .. })) => {
            arrivals.clone()
        }
        (None, _) => Arrivals::Poisson,
    };
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
    let thinks = thinks(args, of_file)?;
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
                let names = named(&users);
                all.push((users, names));
            }
        }
    }
    Ok(all)
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

fn schedules(args: &SystemArgs) -> Result<Vec<Schedule>> {
    if let Some(schedule) = &args.schedule {
        return Ok(vec![schedule.clone()]);
    }
    let loads = args.load.iter();
    loads
        .map(|&load| Schedule::constant(load).context("--load"))
        .collect()
}
