//! Response times of transactions with so many inside, in an order, where they come in one way or
//! another.

use super::oltp::{Arrivals, Load, LoadedDatabase, number};
use super::set_ups::{SetUp, set_up};
use super::{Keys, Kind, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Item, Measure, Record};
use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value};

/// As many inside as ever come.
const ALL: u32 = 100;

/// `transactions`: response times with so many transactions inside, in an order, where they come in
/// one way or another.
///
/// Where they come whatever becomes of others, their load is a part of what the database can do
/// with so many inside, which is measured anew before each run, so that what the machine does
/// meanwhile concerns all.
#[derive(Debug)]
pub struct Transactions {
    keys: TransactionKeys,
    set_up: &'static SetUp,
    cases: Vec<Arriving>,
    ways: Vec<Inside>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TransactionKeys {
    set_up: String,
    seconds: u64,
    capacity_seconds: u64,
    /// The part of what it can do, where the cases do not say.
    load: Option<f64>,
    /// Whether all cases are measured once a turn.
    #[serde(default)]
    turns_outside: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arriving {
    model: Option<String>,
    users: Option<u32>,
    visit: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inside {
    inside: u32,
    #[serde(default)]
    config: String,
}

impl Transactions {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let own: TransactionKeys = keys.own()?;
        Ok(Box::new(Self {
            set_up: set_up(&own.set_up)?,
            keys: own,
            cases: keys.cases()?,
            ways: keys.ways()?,
        }))
    }

    fn through(
        &self,
        loaded: &LoadedDatabase<'_>,
        (inside, config): (u32, &str),
        load: &Load<'_>,
    ) -> Result<Value> {
        let _gate = loaded.gate(&format!("{config}[limits]\ntransactions = {inside}\n"))?;
        loaded.users(load)
    }

    fn measure(
        &self,
        loaded: &LoadedDatabase<'_>,
        case: &Item,
        arriving: &Arriving,
        way: &Inside,
        turn: u32,
    ) -> Result<Map<String, Value>> {
        let bench = loaded.bench;
        let key = |key: &str| case.fields.get(key).and_then(Value::as_f64);
        let model = arriving.model.as_deref().unwrap_or(case.text("model"));
        let mut row = Map::new();
        let arrivals = match (model, arriving.users) {
            ("closed", Some(users)) => {
                row.insert("load_per_sec".into(), Value::Null);
                Arrivals::Closed(users)
            }
            _ => {
                let with = key("of_what_with")
                    .or(key("load_with"))
                    .unwrap_or(f64::from(ALL)) as u32;
                let capacity = Load {
                    warm_up_seconds: 1,
                    ..Load::closed(ALL, bench.seconds(self.keys.capacity_seconds, 1), turn + 1)
                };
                let most_per_sec = number(
                    &self.through(loaded, (with, ""), &capacity)?,
                    "/throughput_per_sec",
                )?;
                let load = key("load").or(self.keys.load).unwrap_or(0.9);
                row.insert("most_per_sec".into(), most_per_sec.into());
                row.insert("load_per_sec".into(), (load * most_per_sec).into());
                let rate = (load * most_per_sec).max(1.0);
                match arriving.visit {
                    None => Arrivals::Open(rate),
                    Some(visit) => Arrivals::PartlyOpen(rate / visit, visit),
                }
            }
        };
        let load = Load {
            arrivals,
            warm_up_seconds: bench.seconds(2, 1),
            ..Load::closed(0, bench.seconds(self.keys.seconds, 2), turn + 1)
        };
        row.insert(
            "report".into(),
            self.through(loaded, (way.inside, &way.config), &load)?,
        );
        Ok(row)
    }
}

impl Kind for Transactions {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let loaded = LoadedDatabase::new(bench, self.set_up)?;
        let one = |case: &Item, way: &Item, turn: u32| {
            let arriving = keys_of(measure.place_of_case(case), &self.cases)?;
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            self.measure(&loaded, case, arriving, way, turn)
        };
        if self.keys.turns_outside {
            bench.all_by_turns(measure, record, one)?
        } else {
            bench.by_turns(measure, record, one)?
        }
        loaded.check()
    }
}
