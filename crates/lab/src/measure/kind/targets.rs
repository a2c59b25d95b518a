//! `targets`: response-time targets before PostgreSQL, as in tables 10.3 and 10.4 of the thesis,
//! with its classes, its shares and its targets as parts of the mean response time R, and a target
//! for the class that had none: so that all together allow 1.1 R, which leaves a tenth.
//!
//! R is measured with the same users, first come first served, before each run of a row and behind
//! it: where the machine became faster or slower meanwhile by more than targets are held against,
//! the run is made again. That looks at R alone, not at what the run gave.

mod shown;

use super::oltp::{Load, LoadedDatabase, number};
use super::set_ups::{SetUp, set_up};
use super::{Keys, Kind};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record, Shown};
use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};

/// What targets allow in the mean, of R.
const ALLOWED: f64 = 1.1;
const USERS: u32 = 100;
/// Users while there is more load than targets allow.
const MORE_USERS: [u32; 3] = [100, 200, 300];
/// R behind a row may differ from R before it by this; else the row is measured again, so many
/// times at most.
const STEADY: f64 = 0.06;
const TRIES_MAX: u32 = 5;
/// Short runs, so that R has little time to change.
const RUN_SECONDS: u64 = 12;
/// In which the gate learns how long transactions take.
const WARM_UP_SECONDS: u64 = 5;

/// `targets`.
#[derive(Debug)]
pub struct Targets {
    keys: TargetKeys,
    set_up: &'static SetUp,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetKeys {
    set_up: String,
    /// Transactions inside: what the gate chose in `gate-priorities`.
    inside: u32,
    row: Vec<Row>,
    /// The classes while there is more load than their targets allow.
    more_load: Vec<Class>,
    /// Turns of all rows; repetitions of the others.
    rows_turns: u32,
    repetitions: u32,
    /// Achieved, of a target in the mean; squared coefficient of variation, reduced.
    mean_max: f64,
    c2_max: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    classes: Vec<Class>,
}

/// A class: its part of the transactions, and its target; the last is the rest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Class {
    share: f64,
    /// Of R.
    mean: Option<f64>,
    /// The time of a percentile, of the same percentile first come first served; neither: what is
    /// left over.
    p80: Option<f64>,
    p95: Option<f64>,
}

/// A class's target.
#[derive(Clone, Copy)]
enum Target {
    Mean(f64),
    Percentile(u32, f64),
    Rest,
}

impl Class {
    fn target(&self) -> Target {
        match (self.mean, self.p80, self.p95) {
            (Some(of), ..) => Target::Mean(of),
            (None, Some(of), _) => Target::Percentile(80, of),
            (None, None, Some(of)) => Target::Percentile(95, of),
            (None, None, None) => Target::Rest,
        }
    }

    /// The field of a report that its target is of.
    fn field(&self) -> String {
        match self.target() {
            Target::Percentile(percent, _) => format!("p{percent}_response_ms"),
            _ => "mean_response_ms".to_owned(),
        }
    }
}

impl Targets {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let own: TargetKeys = keys.own()?;
        Ok(Box::new(Self {
            set_up: set_up(&own.set_up)?,
            keys: own,
        }))
    }
}

impl Kind for Targets {
    fn run(&self, bench: &Bench<'_>, _: &Measure, record: &mut Record) -> Result<()> {
        let loaded = LoadedDatabase::new(bench, self.set_up)?;
        let run = Run {
            loaded: &loaded,
            keys: &self.keys,
        };
        run.rows(record)?;
        run.variability(record)?;
        run.more_load(record)?;
        loaded.check()
    }

    fn shown(&self, rows: &[Value]) -> Option<Shown> {
        Some(shown::all(&self.keys, rows))
    }
}

struct Run<'a> {
    loaded: &'a LoadedDatabase<'a>,
    keys: &'a TargetKeys,
}

impl Run<'_> {
    fn load<'b>(&self, users: u32, classes: &'b [&'b str], seed: u32) -> Load<'b> {
        let bench = self.loaded.bench;
        Load {
            classes,
            warm_up_seconds: bench.seconds(WARM_UP_SECONDS, 1),
            ..Load::closed(users, bench.seconds(RUN_SECONDS, 2), seed)
        }
    }

    fn add(&self, record: &mut Record, row: Value) -> Result<()> {
        record.add(row.as_object().cloned().unwrap_or_default())
    }

    /// A run of these classes through a gate with this configuration besides its limit.
    fn measure(&self, users: u32, config: &str, classes: &[Class], seed: u32) -> Result<Value> {
        let inside = self.keys.inside;
        // What stands before the first table stays there.
        let at = config.find("[[").unwrap_or(config.len());
        let (top, tables) = config.split_at(at);
        let limits = format!("{top}\n[limits]\ntransactions = {inside}\n{tables}");
        let _gate = self.loaded.gate(&limits)?;
        let named = classes
            .iter()
            .zip(1..)
            .take(classes.len().saturating_sub(1));
        let classes: Vec<String> = named
            .map(|(class, number)| format!("c{number}={}", class.share))
            .collect();
        let classes: Vec<&str> = classes.iter().map(String::as_str).collect();
        self.loaded.users(&self.load(users, &classes, seed))
    }

    fn rows(&self, record: &mut Record) -> Result<()> {
        let is_quick = self.loaded.bench.is_quick;
        let rows = if is_quick {
            &self.keys.row[..1]
        } else {
            &self.keys.row[..]
        };
        for row in rows {
            let mut plain = self.measure(USERS, "", &row.classes, 1)?;
            for turn in 1..=if is_quick { 1 } else { self.keys.rows_turns } {
                plain = self.steadily(row, turn, plain, record)?;
            }
        }
        Ok(())
    }

    /// A row between two measurements of R, again where these differ; gives the last R.
    fn steadily(
        &self,
        row: &Row,
        turn: u32,
        mut plain: Value,
        record: &mut Record,
    ) -> Result<Value> {
        let classes = &row.classes;
        for _ in 0..TRIES_MAX {
            let targets_ms = targets_ms(classes, &plain)?;
            let config = config("by-priority", classes, &targets_ms);
            let report = self.measure(USERS, &config, classes, turn)?;
            let after = self.measure(USERS, "", classes, turn)?;
            let mean = |report| number(report, "/all/mean_response_ms");
            let (before_ms, with_ms, after_ms) = (mean(&plain)?, mean(&report)?, mean(&after)?);
            let drift = (after_ms / before_ms - 1.0).abs();
            let slower = 2.0 * with_ms / (before_ms + after_ms);
            self.add(record, json!({"row": row.name, "turn": turn, "r_changed_by": drift, "all_of_r": slower, "targets_ms": targets_ms, "plain": plain, "report": report}))?;
            plain = after;
            if drift <= STEADY || self.loaded.bench.is_quick {
                break;
            }
            self.loaded
                .bench
                .tell(&format!("{}: R changed by {drift:.3}; once more", row.name));
        }
        Ok(plain)
    }

    /// All kinds of transactions near the overall mean.
    fn variability(&self, record: &mut Record) -> Result<()> {
        let classes = [Class {
            share: 1.0,
            mean: None,
            p80: None,
            p95: None,
        }];
        let reduced =
            "[[class]]\nname = \"all\"\napplication_name = [\"rest\"]\nvariability = \"reduce\"\n";
        let repetitions = if self.loaded.bench.is_quick {
            1
        } else {
            self.keys.repetitions
        };
        for repetition in 1..=repetitions {
            let straight = self.loaded.users(&Load {
                port: None,
                ..self.load(USERS, &[], repetition)
            })?;
            self.add(record, json!({"row": "variability, without a gate", "repetition": repetition, "report": straight}))?;
            for config in ["", reduced] {
                let report = self.measure(USERS, config, &classes, repetition)?;
                self.add(record, json!({"row": "variability", "inside": self.keys.inside, "is_reduced": !config.is_empty(), "repetition": repetition, "report": report}))?;
            }
        }
        Ok(())
    }

    /// Figure 10.2: the same targets, and more users than they allow.
    fn more_load(&self, record: &mut Record) -> Result<()> {
        let classes = &self.keys.more_load;
        let plain = self.measure(USERS, "", classes, 1)?;
        let targets_ms = targets_ms(classes, &plain)?;
        for late in ["by-priority", "in-proportion"] {
            for users in MORE_USERS {
                if self.loaded.bench.is_quick && users != USERS {
                    continue;
                }
                let report =
                    self.measure(users, &config(late, classes, &targets_ms), classes, 1)?;
                self.add(record, json!({"row": "more load", "late": late, "users": users, "targets_ms": targets_ms, "report": report}))?;
            }
        }
        Ok(())
    }
}

/// Targets in ms, from a run without any; what is left over for the rest, as a mean.
fn targets_ms(classes: &[Class], plain: &Value) -> Result<Vec<f64>> {
    let mean_ms = number(plain, "/all/mean_response_ms")?;
    let mut targets_ms = Vec::new();
    let (mut allowed_ms, mut left) = (ALLOWED * mean_ms, 1.0);
    for class in classes {
        let (target_ms, as_mean_ms) = match class.target() {
            Target::Mean(of) => (of * mean_ms, of * mean_ms),
            Target::Percentile(percent, of) => {
                let percentile_ms = number(plain, &format!("/all/p{percent}_response_ms"))?;
                (of * percentile_ms, of * mean_ms)
            }
            Target::Rest => (allowed_ms / left, 0.0),
        };
        allowed_ms -= class.share * as_mean_ms;
        left -= class.share;
        targets_ms.push(target_ms);
    }
    Ok(targets_ms)
}

/// The classes of a gate's configuration.
fn config(late: &str, classes: &[Class], targets_ms: &[f64]) -> String {
    let mut config = format!("late = \"{late}\"\n");
    for (at, (class, target_ms)) in classes.iter().zip(targets_ms).enumerate() {
        let number = at + 1;
        let name = if number == classes.len() {
            "rest".to_owned()
        } else {
            format!("c{number}")
        };
        let key = match class.target() {
            Target::Percentile(percent, _) => format!("p{percent}"),
            _ => "mean".to_owned(),
        };
        config += &format!(
            "[[class]]\nname = \"{name}\"\npriority = {number}\napplication_name = [\"{name}\"]\ntarget.{key} = \"{target_ms:.3}ms\"\n"
        );
    }
    config
}
