//! From text to a model: first what TOML and serde see, then what the keys mean together.

use super::{Arrivals, First, Mistake, Model, Priority, Users};
use crate::schedule::Schedule;
use crate::sizes::{Distribution, Sizes};
use serde::Deserialize;
use sooner_quantity::Rate;
use std::fmt::Display;
use std::str::FromStr;
use toml::Spanned;

#[cfg(test)]
mod tests;

/// Most servers, and most jobs of an MPL.
const COUNT_MAX: u32 = 1_000_000;
/// Largest σ of the logarithm of an estimate over its size.
const ERROR_MAX: f64 = 5.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sizes: Spanned<String>,
    schedule: Option<Spanned<Load>>,
    policy: Option<Spanned<String>>,
    servers: Option<Spanned<u32>>,
    mpl: Option<Spanned<u32>>,
    uplink: Option<Spanned<String>>,
    error: Option<Spanned<f64>>,
    turn: Option<Spanned<f64>>,
    guard: Option<bool>,
    priority: Option<PriorityTable>,
    arrivals: Option<Spanned<ArrivalsTable>>,
    users: Option<Spanned<UsersTable>>,
}

/// A load may be written without quotes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Load {
    Number(f64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrivalsTable {
    kind: Spanned<String>,
    gaps: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersTable {
    kind: Spanned<String>,
    users: Option<Spanned<u32>>,
    think: Option<Spanned<String>>,
    stay: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorityTable {
    share: Spanned<f64>,
    first: Option<Spanned<String>>,
}

/// Refuses a policy in words.
type CheckPolicy<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// What is read, for the places of mistakes.
struct Source<'a>(&'a str);

pub(super) fn read(text: &str, check_policy: CheckPolicy<'_>) -> Result<Model, Mistake> {
    let file: File = toml::from_str(text).map_err(|error| Mistake::of_toml(text, &error))?;
    let source = Source(text);
    let sizes: Sizes = source.parse(&file.sizes, "sizes")?;
    Ok(Model {
        users: source.users(&file, &sizes)?,
        policy: source.policy(file.policy.as_ref(), check_policy)?,
        servers: source.count(file.servers.as_ref(), "servers")?.unwrap_or(1),
        mpl: source.count(file.mpl.as_ref(), "mpl")?,
        uplink: match &file.uplink {
            Some(rate) => Some(source.parse::<Rate>(rate, "uplink")?),
            None => None,
        },
        error: source.number(file.error.as_ref(), "error", (0.0, ERROR_MAX))?,
        turn: source.number(file.turn.as_ref(), "turn", (1e-6, 1e6))?,
        guard: file.guard.unwrap_or(false),
        priority: source.priority(file.priority.as_ref())?,
        sizes,
    })
}

impl Source<'_> {
    fn mistake<T>(&self, value: &Spanned<T>, key: &str, message: impl Display) -> Mistake {
        Mistake::at(self.0, Some(value.span()), key, message)
    }

    fn missing(&self, key: &str, message: impl Display) -> Mistake {
        Mistake::at(self.0, None, key, message)
    }

    fn parse<T: FromStr<Err: Display>>(
        &self,
        value: &Spanned<String>,
        key: &str,
    ) -> Result<T, Mistake> {
        value
            .get_ref()
            .parse()
            .map_err(|error| self.mistake(value, key, error))
    }

    /// Refuses a key that says nothing here.
    fn unused<T>(
        &self,
        value: Option<&Spanned<T>>,
        key: &str,
        reason: &str,
    ) -> Result<(), Mistake> {
        match value {
            None => Ok(()),
            Some(value) => Err(self.mistake(value, key, format!("{reason}; remove it"))),
        }
    }

    fn policy(
        &self,
        name: Option<&Spanned<String>>,
        check_policy: CheckPolicy<'_>,
    ) -> Result<Option<String>, Mistake> {
        let Some(name) = name else { return Ok(None) };
        check_policy(name.get_ref()).map_err(|words| self.mistake(name, "policy", words))?;
        Ok(Some(name.get_ref().clone()))
    }

    fn count(&self, value: Option<&Spanned<u32>>, key: &str) -> Result<Option<u32>, Mistake> {
        match value {
            Some(value) if !(1..=COUNT_MAX).contains(value.get_ref()) => {
                let message = format!("{} is out of range; give 1 to {COUNT_MAX}", value.get_ref());
                Err(self.mistake(value, key, message))
            }
            value => Ok(value.map(|value| *value.get_ref())),
        }
    }

    fn number(
        &self,
        value: Option<&Spanned<f64>>,
        key: &str,
        (least, most): (f64, f64),
    ) -> Result<Option<f64>, Mistake> {
        match value {
            Some(value) if !(least..=most).contains(value.get_ref()) => {
                let message = format!(
                    "{} is out of range; give {least} to {most}",
                    value.get_ref()
                );
                Err(self.mistake(value, key, message))
            }
            value => Ok(value.map(|value| *value.get_ref())),
        }
    }

    fn priority(&self, table: Option<&PriorityTable>) -> Result<Option<Priority>, Mistake> {
        let Some(PriorityTable { share, first }) = table else {
            return Ok(None);
        };
        if !(f64::MIN_POSITIVE..1.0).contains(share.get_ref()) {
            let message = format!(
                "{} is out of range; give a number above 0 and below 1",
                share.get_ref()
            );
            return Err(self.mistake(share, "priority.share", message));
        }
        let first = match first {
            None => First::Smallest,
            Some(first) => match first.get_ref().as_str() {
                "smallest" => First::Smallest,
                "chance" => First::Chance,
                other => {
                    let message = format!("unknown value `{other}`; use smallest, chance");
                    return Err(self.mistake(first, "priority.first", message));
                }
            },
        };
        Ok(Some(Priority {
            share: *share.get_ref(),
            first,
        }))
    }

    fn schedule(&self, load: Option<&Spanned<Load>>) -> Result<Schedule, Mistake> {
        let load = load.ok_or_else(|| {
            self.missing(
                "schedule",
                "is missing; give the load, as in schedule = 0.8",
            )
        })?;
        let text = match load.get_ref() {
            Load::Number(number) => number.to_string(),
            Load::Text(text) => text.clone(),
        };
        text.parse()
            .map_err(|error| self.mistake(load, "schedule", error))
    }

    fn users(&self, file: &File, sizes: &Sizes) -> Result<Users, Mistake> {
        let Some(table) = &file.users else {
            return self.open(file, sizes);
        };
        let kind = &table.get_ref().kind;
        match kind.get_ref().as_str() {
            "open" => self.open_users(file, table.get_ref(), sizes),
            "closed" => self.closed_users(file, table.get_ref()),
            "partly-open" => self.partly_open_users(file, table.get_ref(), sizes),
            other => Err(self.mistake(
                kind,
                "users.kind",
                format!("unknown kind `{other}`; use open, closed, partly-open"),
            )),
        }
    }

    fn open_users(&self, file: &File, table: &UsersTable, sizes: &Sizes) -> Result<Users, Mistake> {
        self.unused(
            table.users.as_ref(),
            "users.users",
            "an open system has no number of users",
        )?;
        self.unused(
            table.think.as_ref(),
            "users.think",
            "users of an open system send one job each",
        )?;
        self.unused(
            table.stay.as_ref(),
            "users.stay",
            "users of an open system do not stay; kind = \"partly-open\" has those who do",
        )?;
        self.open(file, sizes)
    }

    fn closed_users(&self, file: &File, table: &UsersTable) -> Result<Users, Mistake> {
        self.unused(
            table.stay.as_ref(),
            "users.stay",
            "users of a closed system always stay",
        )?;
        self.unused(
            file.schedule.as_ref(),
            "schedule",
            "the load of a closed system follows from its users",
        )?;
        self.unused(
            file.arrivals.as_ref(),
            "arrivals",
            "a closed system has no arrivals",
        )?;
        let users = self.count(table.users.as_ref(), "users.users")?;
        let missing = || self.missing("users.users", "is missing; give the number of users");
        Ok(Users::Closed {
            users: users.ok_or_else(missing)?,
            think: self.think(table.think.as_ref())?,
        })
    }

    fn partly_open_users(
        &self,
        file: &File,
        table: &UsersTable,
        sizes: &Sizes,
    ) -> Result<Users, Mistake> {
        self.unused(
            table.users.as_ref(),
            "users.users",
            "users of a partly-open system come by themselves",
        )?;
        Ok(Users::PartlyOpen {
            schedule: self.schedule(file.schedule.as_ref())?,
            arrivals: self.arrivals(file.arrivals.as_ref(), sizes)?,
            stay: self.stay(table.stay.as_ref())?,
            think: self.think(table.think.as_ref())?,
        })
    }

    fn open(&self, file: &File, sizes: &Sizes) -> Result<Users, Mistake> {
        Ok(Users::Open {
            schedule: self.schedule(file.schedule.as_ref())?,
            arrivals: self.arrivals(file.arrivals.as_ref(), sizes)?,
        })
    }

    /// No think time at all is the default.
    fn think(&self, think: Option<&Spanned<String>>) -> Result<Distribution, Mistake> {
        match think {
            Some(think) => self.parse(think, "users.think"),
            None => "det:mean=0"
                .parse()
                .map_err(|error| self.missing("users.think", error)),
        }
    }

    fn stay(&self, stay: Option<&Spanned<f64>>) -> Result<f64, Mistake> {
        let stay = stay.ok_or_else(|| {
            self.missing(
                "users.stay",
                "is missing; give the probability of another job, as in stay = 0.8",
            )
        })?;
        let probability = *stay.get_ref();
        if (0.0..1.0).contains(&probability) {
            Ok(probability)
        } else {
            let message = format!("{probability} is out of range; give 0 to below 1");
            Err(self.mistake(stay, "users.stay", message))
        }
    }

    fn arrivals(
        &self,
        table: Option<&Spanned<ArrivalsTable>>,
        sizes: &Sizes,
    ) -> Result<Arrivals, Mistake> {
        let Some(table) = table else {
            return Ok(Arrivals::Poisson);
        };
        let ArrivalsTable { kind, gaps } = table.get_ref();
        let unused = |reason| self.unused(gaps.as_ref(), "arrivals.gaps", reason);
        match (kind.get_ref().as_str(), sizes) {
            ("poisson", _) => {
                unused("the gaps of a Poisson process are exponential").map(|()| Arrivals::Poisson)
            }
            ("trace", Sizes::Trace(_)) => {
                unused("the gaps are the trace's").map(|()| Arrivals::Trace)
            }
            ("trace", Sizes::Law(_)) => {
                let message =
                    "the gaps of a trace need its sizes too; write sizes = \"trace:NAME\"";
                Err(self.mistake(kind, "arrivals.kind", message))
            }
            ("renewal", _) => {
                let gaps = gaps.as_ref().ok_or_else(|| {
                    self.missing(
                        "arrivals.gaps",
                        "is missing; give the law of the gaps, as in gaps = \"h2:mean=1,c2=4\"",
                    )
                })?;
                let law: Distribution = self.parse(gaps, "arrivals.gaps")?;
                if law.mean() > 0.0 && law.mean().is_finite() {
                    Ok(Arrivals::Renewal(law))
                } else {
                    let message = "has no mean above 0 that could be scaled to the load; give a law that has one";
                    Err(self.mistake(gaps, "arrivals.gaps", message))
                }
            }
            (other, _) => Err(self.mistake(
                kind,
                "arrivals.kind",
                format!("unknown kind `{other}`; use poisson, trace, renewal"),
            )),
        }
    }
}
