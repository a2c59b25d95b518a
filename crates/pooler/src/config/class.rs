//! `[[class]]`: who goes first, and how long it may take. Which class a transaction is in follows
//! from who its client is, what it calls itself, and what the transaction says of itself.

use super::lock_wait::{PreemptName, VictimName};
use serde::Deserialize;
use sooner_config::classes::{
    ClassAims, ClassBounds, Conditions, Fits, LongestAction, TargetTable, Variability, check_star,
    comes_from, fits_beginning, fits_pattern, middle_priority, networks, placed_patterns,
    target_table,
};
use sooner_config::{Misconfigured, Network, Spanned};
use sooner_postgres::hints::Hints;
use sooner_postgres::sql;
use sooner_postgres::wire::truncate_name;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};

/// One class. All of what it names must fit; what it does not name fits every client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassTable {
    /// What tables and metrics call it.
    pub name: Spanned<String>,
    /// 1 goes before 2; 1 to 200. 100: between those that matter more and those that matter less.
    #[serde(default = "middle_priority")]
    pub priority: Spanned<u8>,
    /// How long its transactions may take; without any as long as the others need.
    #[serde(default, deserialize_with = "target_table")]
    pub target: TargetTable,
    /// Whether all kinds of its transactions are to take the same time.
    #[serde(default)]
    pub variability: Option<Variability>,
    /// Its part of the server, where classes share it by weight.
    #[serde(default)]
    pub weight: Option<Spanned<NonZeroU32>>,
    /// The most of its transactions in a server at a time; without any as many as the limit lets
    /// in.
    #[serde(default, alias = "requests")]
    pub transactions: Option<Spanned<NonZeroUsize>>,
    /// For how long one keeps its place; without any for as long as it takes.
    #[serde(default)]
    pub longest: Option<Spanned<String>>,
    /// What becomes of one that runs for longer; `yield` where nothing is said: it goes on, and
    /// another one may go in.
    #[serde(default)]
    pub longest_action: Option<Spanned<LongestAction>>,
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
    pub user: Option<Vec<Spanned<String>>>,
    /// Databases, by the names that clients use.
    #[serde(default)]
    pub database: Option<Vec<Spanned<String>>>,
    /// What clients call themselves (`application_name`).
    #[serde(default)]
    pub application_name: Option<Vec<Spanned<String>>>,
    /// Networks that clients come from.
    #[serde(default)]
    pub address: Option<Vec<Network>>,
    /// The session's own word (`SET sooner.class`).
    #[serde(default)]
    pub session: Option<Vec<Spanned<String>>>,
    /// Keys in a comment of the transaction, and what they may be.
    #[serde(default)]
    pub comment: Option<BTreeMap<Spanned<String>, Vec<Spanned<String>>>>,
    /// Shapes of the transaction's first statement.
    #[serde(default)]
    pub statement: Option<Vec<Spanned<String>>>,
    /// Its fingerprints.
    #[serde(default)]
    pub fingerprint: Option<Vec<Spanned<String>>>,
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

impl ClassTable {
    pub(super) fn check(&self) -> Result<(), Misconfigured> {
        self.aims().check()?;
        self.check_lock_wait()?;
        self.check_names()?;
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
        Ok(())
    }

    /// That what it names may be so called.
    fn check_names(&self) -> Result<(), Misconfigured> {
        let names = [
            ("class.user", &self.user),
            ("class.database", &self.database),
        ];
        let named = each(names);
        for (key, own) in named.clone() {
            let text = own.get_ref();
            let beginning = text.strip_suffix('*').unwrap_or(text);
            if text.is_empty() {
                return Err(Misconfigured::at(
                    own,
                    key,
                    "\"\" is no name; write one, or leave it out",
                ));
            }
            let kept = truncate_name(beginning);
            if kept.len() < beginning.len() {
                let words =
                    format!("{text:?} matches nothing: names end after 63 bytes; write \"{kept}\"");
                return Err(Misconfigured::at(own, key, words));
            }
        }
        let others = [
            ("class.application_name", &self.application_name),
            ("class.session", &self.session),
        ];
        for (key, own) in named.chain(each(others)) {
            check_star(own.get_ref()).map_err(|words| Misconfigured::at(own, key, words))?;
        }
        for (key, values) in self.comment.iter().flatten() {
            if key.get_ref().is_empty() {
                return Err(Misconfigured::at(
                    key,
                    "class.comment",
                    "\"\" is no key; write one",
                ));
            }
            for own in values {
                let key = format!("class.comment.{}", key.get_ref());
                check_star(own.get_ref()).map_err(|words| Misconfigured::at(own, &key, words))?;
            }
        }
        Ok(())
    }

    /// What it says of who goes first.
    pub fn aims(&self) -> ClassAims<'_> {
        ClassAims {
            name: &self.name,
            priority: &self.priority,
            target: &self.target,
            variability: self.variability,
            weight: self.weight.as_ref(),
            bounds: self.bounds(),
        }
    }

    /// What bounds it.
    pub fn bounds(&self) -> ClassBounds<'_> {
        ClassBounds {
            inside_max: self.transactions.as_ref(),
            longest: self.longest.as_ref(),
            longest_action: self.longest_action.as_ref(),
        }
    }

    /// What it names of its clients.
    pub(super) fn conditions(&self) -> Conditions<'_> {
        let lists = [
            ("user", self.user.as_deref().map(placed_patterns)),
            ("database", self.database.as_deref().map(placed_patterns)),
            (
                "application_name",
                self.application_name.as_deref().map(placed_patterns),
            ),
            ("address", self.address.as_deref().map(networks)),
            ("session", self.session.as_deref().map(placed_patterns)),
            ("statement", self.statement.as_deref().map(placed_patterns)),
            ("fingerprint", self.fingerprint.as_deref().map(fingerprints)),
        ];
        let named = lists
            .into_iter()
            .filter_map(|(key, values)| Some((key.to_owned(), values?)));
        let comments = self.comment.iter().flatten();
        let comments = comments.map(|(key, values)| {
            let key = key.get_ref();
            (format!("comment.{key}"), placed_patterns(values))
        });
        let is_empty = self.comment.as_ref().is_some_and(BTreeMap::is_empty);
        let empty = is_empty.then(|| ("comment".to_owned(), Vec::new()));
        named.chain(comments).chain(empty).collect()
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
        let mut tags = tags.map(|(key, values)| (hints.tag(key.get_ref()), values));
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

/// All values of these keys, each with its key.
fn each<'a>(
    fields: [(&'static str, &'a Option<Vec<Spanned<String>>>); 2],
) -> impl Iterator<Item = (&'static str, &'a Spanned<String>)> + Clone {
    fields
        .into_iter()
        .flat_map(|(key, all)| all.iter().flatten().map(move |own| (key, own)))
}

/// The number that a fingerprint is.
fn number_of(fingerprint: &str) -> Option<u64> {
    u64::from_str_radix(fingerprint, 16).ok()
}

fn fingerprints(texts: &[Spanned<String>]) -> Vec<Fits<'_>> {
    let number = |text: &Spanned<String>| Fits::Number(number_of(text.get_ref()));
    texts.iter().map(number).collect()
}
