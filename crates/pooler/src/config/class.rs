//! `[[class]]`: who goes first, and how long it may take. Which class a transaction is in follows
//! from who its client is, what it calls itself, and what the transaction says of itself.

use super::lock_wait::{PreemptName, VictimName};
use super::matching::{comes_from, fits_beginning, fits_pattern};
use super::target::{TargetTable, response_targets};
use serde::Deserialize;
use sooner_admission::Goal;
use sooner_config::{Misconfigured, Network, Spanned};
use sooner_postgres::hints::Hints;
use sooner_postgres::sql;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;

/// One class. All of what it names must fit; what it does not name fits every client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassTable {
    /// What tables and metrics call it.
    pub name: Spanned<String>,
    /// 1 goes before 2; 1 to 200. 100: between those that matter more and those that matter less.
    #[serde(default = "middle")]
    pub priority: Spanned<u8>,
    /// How long its transactions may take; without any as long as the others need.
    #[serde(default)]
    pub target: TargetTable,
    /// Whether all kinds of its transactions are to take the same time.
    #[serde(default)]
    pub variability: Option<Variability>,
    /// Its part of the server, where classes share it by weight.
    #[serde(default)]
    pub weight: Option<Spanned<NonZeroU32>>,
    /// How long it may wait for a lock before those that matter less make room.
    #[serde(default)]
    pub wait_target: Option<Spanned<String>>,
    /// From whom locks are taken then.
    #[serde(default)]
    pub preempt: Option<Spanned<PreemptName>>,
    /// Which of those that are in the way.
    #[serde(default)]
    pub victim: Option<Spanned<VictimName>>,
    /// Users; here and below `*` at the end stands for anything.
    #[serde(default)]
    pub user: Option<Vec<String>>,
    /// Databases, by the names that clients use.
    #[serde(default)]
    pub database: Option<Vec<Spanned<String>>>,
    /// What clients call themselves (`application_name`).
    #[serde(default)]
    pub application_name: Option<Vec<String>>,
    /// Networks that clients come from.
    #[serde(default)]
    pub address: Option<Vec<Network>>,
    /// The session's own word (`SET sooner.class`).
    #[serde(default)]
    pub session: Option<Vec<String>>,
    /// Keys in a comment of the transaction, and what they may be.
    #[serde(default)]
    pub comment: Option<BTreeMap<String, Vec<String>>>,
    /// Shapes of the transaction's first statement.
    #[serde(default)]
    pub statement: Option<Vec<Spanned<String>>>,
    /// Its fingerprints.
    #[serde(default)]
    pub fingerprint: Option<Vec<Spanned<String>>>,
}

/// What becomes of how much response times differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variability {
    /// They are brought near the mean: what takes long goes early, what is short waits.
    Reduce,
}

fn middle() -> Spanned<u8> {
    Spanned::new(0..0, 100)
}

/// What is known of a client that wants a turn.
#[derive(Clone, Copy, Debug)]
pub struct ClassSubject<'a> {
    /// Its user.
    pub user: &'a str,
    /// Its database, as it calls it.
    pub database: &'a str,
    /// What it calls itself at the moment.
    pub application_name: &'a str,
    /// Where it comes from; `None` through a socket file.
    pub address: Option<IpAddr>,
    /// Its own word for its transactions; empty where it has none.
    pub session: &'a str,
    /// What the transaction says of itself.
    pub hints: &'a Hints,
}

pub(super) const PRIORITIES: std::ops::RangeInclusive<u8> = 1..=200;

impl ClassTable {
    pub(super) fn check(&self) -> Result<(), Misconfigured> {
        if !PRIORITIES.contains(self.priority.get_ref()) {
            let words = "there are priorities 1 to 200, and 1 goes first";
            return Err(Misconfigured::at(&self.priority, "class.priority", words));
        }
        response_targets(&self.target)?;
        self.check_lock_wait()?;
        for pattern in self.statement.iter().flatten() {
            sql::check_pattern(pattern.get_ref())
                .map_err(|error| Misconfigured::at(pattern, "class.statement", error))?;
        }
        for fingerprint in self.fingerprint.iter().flatten() {
            if fingerprint.get_ref().len() != 16 || number_of(fingerprint.get_ref()).is_none() {
                let words =
                    "a fingerprint has 16 digits, 0 to 9 and a to f, as SHOW STATEMENTS has them";
                return Err(Misconfigured::at(fingerprint, "class.fingerprint", words));
            }
        }
        let words =
            "a class has a weight or a target, not both: a share of the server promises no time";
        match &self.weight {
            Some(weight) if self.has_target() => {
                Err(Misconfigured::at(weight, "class.weight", words))
            }
            _ => Ok(()),
        }
    }

    /// Whether the operator demands something of its response times.
    pub fn has_target(&self) -> bool {
        !self.target.is_empty() || self.variability.is_some()
    }

    /// What its transactions are to get.
    pub fn goal(&self) -> Goal {
        Goal {
            name: self.name.get_ref().clone(),
            priority: self.priority.get_ref() - 1,
            weight: self
                .weight
                .as_ref()
                .map_or(1, |weight| weight.get_ref().get()),
            // They were read before.
            response_targets: response_targets(&self.target).unwrap_or_default(),
            evens_out: self.variability.is_some(),
        }
    }

    /// Whether a client is in it.
    pub fn is_for(&self, of: ClassSubject<'_>) -> bool {
        fits_pattern(&self.user, of.user)
            && fits_pattern(&self.database, of.database)
            && fits_pattern(&self.application_name, of.application_name)
            && comes_from(&self.address, of.address)
            && fits_pattern(&self.session, of.session)
            && self.fits_hints(of.hints)
    }

    fn fits_hints(&self, hints: &Hints) -> bool {
        let tags = self.comment.iter().flatten();
        let shape = || hints.shape.as_ref();
        let is_fingerprint = |own: &Spanned<String>| {
            shape().is_some_and(|shape| number_of(own.get_ref()) == Some(shape.fingerprint))
        };
        let mut tags = tags.map(|(key, values)| (hints.tag(key), values));
        tags.all(|(value, values)| value.is_some_and(|value| fits_beginning(values, value)))
            && self.statement.as_ref().is_none_or(|shapes| {
                shape().is_some_and(|shape| fits_beginning(shapes, &shape.text))
            })
            && self
                .fingerprint
                .as_ref()
                .is_none_or(|all| all.iter().any(is_fingerprint))
    }

    /// Whether it depends on what transactions say.
    pub fn needs_hints(&self) -> bool {
        self.comment.is_some() || self.statement.is_some() || self.fingerprint.is_some()
    }
}

/// The number that a fingerprint is.
pub(super) fn number_of(fingerprint: &str) -> Option<u64> {
    u64::from_str_radix(fingerprint, 16).ok()
}
