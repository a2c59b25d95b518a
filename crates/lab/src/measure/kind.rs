//! The ways to measure.

mod attached;
mod backends;
mod beside_reports;
mod breakdown;
mod database;
mod deceived;
mod explained;
mod gate_memory;
mod inside;
mod inside_page;
mod link;
mod local;
mod lock_queues;
mod oltp;
mod packet_cost;
mod page;
mod postgres_client;
mod programs;
mod proxied_cost;
mod proxies;
mod set_ups;
mod sharing;
mod simulated;
mod simulators;
mod slices;
mod slow_disk;
mod statements;
mod targets;
mod transactions;
mod turn_cost;
mod ways_inside;
mod weights;
mod workers;

use super::bench::Bench;
use super::file;
use super::rows::slim;
use super::{Item, Measure, Record, Shown};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::Debug;

/// A way to measure.
pub trait Kind: Debug + Send + Sync {
    /// Measures all, keeping each result as it comes.
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()>;

    /// What tables and claims in experiment.toml cannot say.
    fn shown(&self, _rows: &[Value]) -> Option<Shown> {
        None
    }
}

/// Of a kind that has none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoKeys {}

/// A mistake in a kind's keys: the key, and what is wrong.
type Mistake = (String, String);
type Make = fn(&mut Keys) -> Result<Box<dyn Kind>, Mistake>;

const KINDS: [(&str, Make); 35] = [
    ("request-cost", local::RequestCost::of),
    ("idle-memory", local::IdleMemory::of),
    ("generator-cost", local::GeneratorCost::of),
    ("generators", link::Generators::of),
    ("script", link::Script::of),
    ("beside-others", link::BesideOthers::of),
    ("link-cost", link::LinkCost::of),
    ("replay", link::Replay::of),
    ("backends", backends::Backends::of),
    ("proxies", proxies::Proxies::of),
    ("beside-reports", beside_reports::BesideReports::of),
    ("proxied-cost", proxied_cost::ProxiedCost::of),
    ("sharing", sharing::Sharing::of),
    ("sharing-link", sharing::SharingLink::of),
    ("sharing-postgres", sharing::SharingPostgres::of),
    ("demo", programs::Demo::of),
    ("turn-cost", turn_cost::TurnCost::of),
    ("packet-cost", packet_cost::PacketCost::of),
    ("large-log", programs::LargeLog::of),
    ("kept", programs::Kept::of),
    ("command", programs::Subcommand::of),
    ("simulated", simulated::Simulated::of),
    ("deceived", deceived::Deceived::of),
    ("simulators", simulators::Simulators::of),
    ("statements", statements::Statements::of),
    ("users", statements::Users::of),
    ("transactions", transactions::Transactions::of),
    ("attached", attached::Attached::of),
    ("lock-queues", lock_queues::LockQueues::of),
    ("breakdown", breakdown::Breakdown::of),
    ("inside", inside::Inside::of),
    ("targets", targets::Targets::of),
    ("gate-memory", gate_memory::GateMemory::of),
    ("weights", weights::Weights::of),
    ("workers", workers::Workers::of),
];

/// What a kind is made of: the keys of its measurement, of the ways and of the cases, without those
/// that name them in rows.
pub struct Keys {
    own: toml::Table,
    ways: Vec<toml::Table>,
    cases: Vec<toml::Table>,
}

impl Keys {
    /// Those of the measurement, as a type that refuses others.
    fn own<T: DeserializeOwned>(&mut self) -> Result<T, Mistake> {
        file::keys(std::mem::take(&mut self.own))
    }

    /// Those of each way.
    fn ways<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, Mistake> {
        std::mem::take(&mut self.ways)
            .into_iter()
            .map(file::keys)
            .collect()
    }

    /// Those of each case.
    fn cases<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, Mistake> {
        std::mem::take(&mut self.cases)
            .into_iter()
            .map(file::keys)
            .collect()
    }

    /// Keys that the kind has not taken are mistakes.
    fn left(&self) -> Option<Mistake> {
        let all = self.ways.iter().chain(&self.cases).chain([&self.own]);
        let key = all.flat_map(toml::Table::keys).next()?;
        Some((key.clone(), format!("unknown key `{key}`")))
    }
}

/// The kind of this name with its keys; a mistake comes with the key that it is in.
pub fn of(
    name: &str,
    own: toml::Table,
    ways: Vec<toml::Table>,
    cases: Vec<toml::Table>,
) -> Result<Box<dyn Kind>, Mistake> {
    let Some((_, make)) = KINDS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        let problem = format!("there is no kind {name}; there are {}", names.join(", "));
        return Err(("kind".into(), problem));
    };
    let mut keys = Keys { own, ways, cases };
    let kind = make(&mut keys)?;
    match keys.left() {
        Some(mistake) => Err(mistake),
        None => Ok(kind),
    }
}

/// A row's figures.
fn figures<const COUNT: usize>(all: [(&str, f64); COUNT]) -> Map<String, Value> {
    all.into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}

/// The keys of the way or case at this place.
fn keys_of<T>(place: Option<usize>, all: &[T]) -> Result<&T> {
    place
        .and_then(|place| all.get(place))
        .context("a way or case without keys")
}

impl Measure {
    fn place_of_case(&self, case: &Item) -> Option<usize> {
        self.cases.iter().position(|one| one.id == case.id)
    }

    fn place_of_way(&self, way: &Item) -> Option<usize> {
        self.ways.iter().position(|one| one.id == way.id)
    }
}
