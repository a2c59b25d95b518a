//! Values that completions and `--help` list, beside others that only the parser knows: a policy
//! with a parameter, the path of a trace.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use sooner_theory::mg1;
use std::ffi::OsStr;
use std::fmt::Display;
use std::str::FromStr;

/// A value by its own parser, and values to list.
#[derive(Clone)]
pub struct Choice<T> {
    read: fn(&str) -> Result<T, String>,
    listed: Vec<PossibleValue>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Choice<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        TypedValueParser::parse_ref(&self.read, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.listed.iter().cloned()))
    }
}

fn choice<T>(
    read: fn(&str) -> Result<T, String>,
    listed: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> Choice<T> {
    let value = |(name, help)| {
        let value = PossibleValue::new(name);
        match help {
            "" => value,
            help => value.help(help),
        }
    };
    let listed = listed.into_iter().map(value).collect();
    Choice { read, listed }
}

fn by_itself<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// A policy of the simulator.
pub fn simulated_policy() -> Choice<sooner_simulator::Policy> {
    choice(by_itself, sooner_simulator::Policy::explained())
}

/// A policy that has a formula.
pub fn solved_policy() -> Choice<mg1::Policy> {
    choice(
        by_itself,
        mg1::Policy::ALL.map(|policy| (policy.name(), "")),
    )
}

/// A figure by its name.
pub fn figure() -> Choice<String> {
    choice(
        |text| Ok(text.to_owned()),
        sooner_figures::ALL.map(|entry| (entry.name, entry.title)),
    )
}

#[cfg(all(target_os = "linux", feature = "linux"))]
pub use linux::{demo_policy, experiment, link_policy, mechanism, mix, recorded_trace, trace};

/// Those of commands that need Linux.
#[cfg(all(target_os = "linux", feature = "linux"))]
mod linux {
    use super::{Choice, by_itself, choice};
    use sooner_lab::known::KNOWN;
    use sooner_policy::PolicyName;
    use std::fmt::Display;
    use std::str::FromStr;

    /// The policies of a real link.
    fn of_a_link() -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = PolicyName::ALL.into_iter();
        let offered = all.filter(|name| *name != PolicyName::Ljf);
        offered.map(|name| (name.as_str(), name.meaning()))
    }

    /// A policy of a real link, as `T` reads it.
    pub fn link_policy<T: FromStr<Err: Display>>() -> Choice<T> {
        choice(by_itself, of_a_link())
    }

    /// A policy of a real link, the wrong one included.
    pub fn demo_policy() -> Choice<PolicyName> {
        choice(
            |text| {
                let all = PolicyName::ALL.map(PolicyName::as_str).join(", ");
                text.parse()
                    .map_err(|_| format!("`{text}` is not a policy; use {all}"))
            },
            of_a_link(),
        )
    }

    /// A trace by its name or its path.
    pub fn trace() -> Choice<String> {
        choice(
            |text| Ok(text.to_owned()),
            [
                ("epa", "EPA, 1995: one day"),
                ("nasa", "NASA Kennedy Space Center, 1995"),
                (
                    "surge:1",
                    "SURGE's files and popularities, made with this seed",
                ),
                (
                    "sizes:exp:mean=12000",
                    "2000 files of sizes that follow a law",
                ),
            ],
        )
    }

    /// A trace that is part of the program, or a path.
    pub fn recorded_trace() -> Choice<String> {
        choice(
            |text| Ok(text.to_owned()),
            [
                ("epa", "EPA, 1995: one day"),
                ("nasa", "NASA Kennedy Space Center, 1995"),
            ],
        )
    }

    /// How often visitors of the bookstore look and how often they buy.
    pub fn mix() -> Choice<sooner_oltp::tpcw::Mix> {
        choice(
            by_itself,
            [
                ("browsing", "95 % looking"),
                ("shopping", "80 % looking"),
                ("ordering", "half looking"),
            ],
        )
    }

    /// By what the processor goes first to a session.
    pub fn mechanism() -> Choice<sooner_attach::postgres::mechanism::Mechanism> {
        choice(
            by_itself,
            [
                ("round-robin", "Real-time priority with turns"),
                ("autogroup", "Weight of the session's scheduling group"),
                ("nice", "Nice value of the process"),
            ],
        )
    }

    /// An experiment by its name; a row of the published table is read as well.
    pub fn experiment() -> Choice<String> {
        let known = KNOWN.iter().map(|one| (one.name, one.question));
        choice(|text| Ok(text.to_owned()), known)
    }
}
