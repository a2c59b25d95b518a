//! From text to a model: first what TOML and serde see, then what the keys mean together.

use super::{Arrivals, Mistake, Model, Users};
use crate::schedule::Schedule;
use crate::sizes::{Distribution, Sizes};
use serde::Deserialize;
use std::fmt::Display;
use std::str::FromStr;
use toml::Spanned;

/// Most servers, and most jobs of an MPL.
const COUNT_MAX: u32 = 1_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sizes: Spanned<String>,
    schedule: Option<Spanned<Load>>,
    policy: Option<Spanned<String>>,
    servers: Option<Spanned<u32>>,
    mpl: Option<Spanned<u32>>,
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

/// What is read, for the places of mistakes.
struct Source<'a>(&'a str);

pub(super) fn read(text: &str, policies: &[&str]) -> Result<Model, Mistake> {
    let file: File = toml::from_str(text).map_err(|error| Mistake::of_toml(text, &error))?;
    let source = Source(text);
    let sizes: Sizes = source.parse(&file.sizes, "sizes")?;
    Ok(Model {
        users: source.users(&file, &sizes)?,
        policy: source.policy(file.policy.as_ref(), policies)?,
        servers: source.count(file.servers.as_ref(), "servers")?.unwrap_or(1),
        mpl: source.count(file.mpl.as_ref(), "mpl")?,
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
            Some(value) => Err(self.mistake(value, key, format!("{reason}; take it away"))),
        }
    }

    fn policy(&self, name: Option<&Spanned<String>>, policies: &[&str]) -> Result<String, Mistake> {
        let list = || policies.join(", ");
        match (name, policies.first()) {
            (None, None) => Err(self.missing("policy", "is missing")),
            (None, Some(default)) => Ok((*default).into()),
            (Some(name), _) if policies.contains(&name.get_ref().as_str()) => {
                Ok(name.get_ref().clone())
            }
            (Some(name), _) => Err(self.mistake(
                name,
                "policy",
                format!("unknown policy `{}`; use {}", name.get_ref(), list()),
            )),
        }
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
            "nobody arrives in a closed system",
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
        match (0.0..1.0).contains(&probability) {
            true => Ok(probability),
            false => {
                let message = format!("{probability} is out of range; give 0 to below 1");
                Err(self.mistake(stay, "users.stay", message))
            }
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
                match law.mean() > 0.0 && law.mean().is_finite() {
                    true => Ok(Arrivals::Renewal(law)),
                    false => {
                        let message = "has no mean above 0 that could be scaled to the load; give a law that has one";
                        Err(self.mistake(gaps, "arrivals.gaps", message))
                    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICIES: [&str; 2] = ["fair", "srpt"];

    fn model(text: &str) -> Model {
        Model::read(text, &POLICIES).expect(text)
    }

    fn mistake(text: &str) -> String {
        Model::read(text, &POLICIES).expect_err(text).to_string()
    }

    #[test]
    fn the_shortest_model_is_open_and_poisson() {
        let shortest = model("sizes = \"exp:mean=1\"\nschedule = 0.8\n");
        let schedule = "0.8".parse().expect("a load");
        assert_eq!(
            shortest.users,
            Users::Open {
                schedule,
                arrivals: Arrivals::Poisson
            }
        );
        assert_eq!(
            (shortest.policy.as_str(), shortest.servers, shortest.mpl),
            ("fair", 1, None)
        );
    }

    #[test]
    fn every_kind_of_users_is_read() {
        let closed = model(
            "sizes = \"surge\"\npolicy = \"srpt\"\nservers = 2\nmpl = 8\n[users]\nkind = \"closed\"\nusers = 100\nthink = \"exp:mean=5\"\n",
        );
        assert_eq!(
            (closed.policy.as_str(), closed.servers, closed.mpl),
            ("srpt", 2, Some(8))
        );
        assert_eq!(
            closed.users,
            Users::Closed {
                users: 100,
                think: "exp:mean=5".parse().expect("a law")
            }
        );
        let partly = model(
            "sizes = \"trace:epa\"\nschedule = \"0.2,1.2,10,10\"\n[arrivals]\nkind = \"trace\"\n[users]\nkind = \"partly-open\"\nstay = 0.9\n",
        );
        let Users::PartlyOpen {
            schedule,
            arrivals,
            stay,
            think,
        } = partly.users
        else {
            panic!("partly-open")
        };
        assert_eq!(
            (schedule.to_string().as_str(), arrivals, stay, think.mean()),
            ("0.2,1.2,10,10", Arrivals::Trace, 0.9, 0.0)
        );
        let renewal = model(
            "sizes = \"det:mean=1\"\nschedule = 1\narrivals = { kind = \"renewal\", gaps = \"h2:mean=1,c2=4\" }\nusers = { kind = \"open\" }\n",
        );
        assert!(matches!(
            renewal.users,
            Users::Open {
                arrivals: Arrivals::Renewal(_),
                ..
            }
        ));
    }

    /// A model up to its tables.
    const OPEN: &str = "sizes = \"exp:mean=1\"\nschedule = 0.8\n";

    #[track_caller]
    fn assert_mistake(text: &str, words: &str) {
        let message = mistake(text);
        assert!(message.starts_with(words), "{text}\n{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }

    #[test]
    fn a_mistake_has_its_line_its_key_and_a_remedy() {
        for (text, words) in [
            ("schedule = 0.8\n", "sizes: is missing"),
            (
                "sizes = \"exp:mean=1\"\n",
                "schedule: is missing; give the load",
            ),
            (
                "sizes = \"exp:mean=0\"\nschedule = 0.8",
                "line 1: sizes: distribution `exp:mean=0`: mean is 0",
            ),
            (
                "sizes = \"exp:mean=1\"\nschedule = -1",
                "line 2: schedule: schedule `-1`",
            ),
            (
                &format!("{OPEN}polcy = \"srpt\""),
                "line 3: polcy: unknown field `polcy`, expected one of",
            ),
            (
                &format!("{OPEN}policy = \"best\""),
                "line 3: policy: unknown policy `best`; use fair, srpt",
            ),
            (
                &format!("{OPEN}servers = 0"),
                "line 3: servers: 0 is out of range; give 1 to",
            ),
            (&format!("{OPEN}mpl = -1"), "line 3: mpl: "),
            (
                &format!("{OPEN}[arrivals]\nkind = \"trace\""),
                "line 4: arrivals.kind: the gaps of a trace",
            ),
            (
                &format!("{OPEN}[arrivals]\nkind = \"renewal\""),
                "arrivals.gaps: is missing",
            ),
            (
                &format!("{OPEN}[arrivals]\nkind = \"renewal\"\ngaps = \"pareto:k=1,alpha=1\""),
                "line 5: arrivals.gaps: has no mean",
            ),
            (
                &format!("{OPEN}[arrivals]\nkind = \"poisson\"\ngaps = \"exp:mean=1\""),
                "line 5: arrivals.gaps: the gaps of a Poisson",
            ),
            (&format!("{OPEN}="), "line 3: "),
        ] {
            assert_mistake(text, words);
        }
    }

    #[test]
    fn a_mistake_in_the_users_does_too() {
        for (text, words) in [
            (
                "sizes = \"surge\"\n[users]\nkind = \"closed\"",
                "users.users: is missing",
            ),
            (
                &format!("{OPEN}[users]\nkind = \"shut\""),
                "line 4: users.kind: unknown kind `shut`; use open",
            ),
            (
                &format!("{OPEN}[users]\nkind = \"open\"\nthink = \"exp:mean=1\""),
                "line 5: users.think: users of an open",
            ),
            (
                &format!("{OPEN}[users]\nkind = \"closed\"\nusers = 3"),
                "line 2: schedule: the load of a closed",
            ),
            (
                "sizes = \"surge\"\n[users]\nkind = \"closed\"\nusers = 0",
                "line 4: users.users: 0 is out of range",
            ),
            (
                &format!("{OPEN}[users]\nkind = \"partly-open\""),
                "users.stay: is missing",
            ),
            (
                &format!("{OPEN}[users]\nkind = \"partly-open\"\nstay = 1"),
                "line 5: ",
            ),
            (
                &format!("{OPEN}[users]\nkind = \"partly-open\"\nstay = 1.0"),
                "line 5: users.stay: 1 is out of range",
            ),
            (
                &format!("{OPEN}[users]\nusers = 3"),
                "line 3: users.kind: is missing",
            ),
        ] {
            assert_mistake(text, words);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_model_or_a_mistake(text in "(sizes|schedule|policy|users|arrivals|[\\[\\]a-z0-9.=\"\n {}#]){0,60}") {
            let _ = Model::read(&text, &POLICIES);
        }

        #[test]
        fn any_letters_are_a_model_or_a_mistake(text in ".{0,60}") {
            if let Err(mistake) = Model::read(&text, &POLICIES) {
                prop_assert_eq!(mistake.to_string().lines().count(), 1);
            }
        }
    }
}
