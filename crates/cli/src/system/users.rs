//! Who sends jobs: by flags, else as a model file says, with what flags change.

use super::SystemArgs;
use anyhow::{Context, Result, bail, ensure};
use sooner_workload::model::{Arrivals, Model, Users};
use sooner_workload::sizes::Law;
use sooner_workload::{Distribution, Schedule};

/// Users, and what describes them by the names of the flags.
pub type Named = (Users, Vec<(&'static str, String)>);

/// Who sends jobs: by flags, else as the file says with what flags change.
pub fn users(args: &SystemArgs, model: Option<&Model>) -> Result<Vec<Named>> {
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
        ([], _) if !args.stay.is_empty() => bail!("--stay: give the load too, such as --load 0.8"),
        ([], _) => {
            bail!("no load: give --load, such as --load 0.8, or --users for a closed system")
        }
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
                    bail!("--gaps: the file's closed system has no arrivals; leave it out")
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

/// The requested think times, or those of the file; none at all is one that is 0.
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
        "--users: a closed system has no arrivals; leave --gaps out"
    );
    ensure!(
        args.users
            .iter()
            .all(|users| (1..=1_000_000).contains(users)),
        "--users is out of range; give 1 to 1000000"
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
                "--stay {stay} is out of range; give 0 to below 1, such as 0.8"
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
