//! Classes that nothing can be in: an empty list, a database that there is not, or an earlier class
//! that takes all of it. Said at the start, because otherwise it would go unnoticed.

use super::class::number_of;
use super::matching::covers_pattern;
use super::{ClassTable, Config, OWN_DATABASES};
use sooner_config::{Misconfigured, Network, Spanned};
use std::collections::BTreeMap;

impl Config {
    pub(super) fn check_reach(&self) -> Result<(), Misconfigured> {
        for (at, class) in self.class.iter().enumerate() {
            let conditions = conditions(class);
            if let Some((key, _)) = conditions.iter().find(|(_, values)| values.is_empty()) {
                let words =
                    format!("an empty list fits no client; name what fits, or leave {key} out");
                return Err(Misconfigured::at(
                    &class.name,
                    &format!("class.{key}"),
                    words,
                ));
            }
            self.check_databases(class)?;
            let takes_all = |earlier: &&ClassTable| covers(&self::conditions(earlier), &conditions);
            if let Some(earlier) = self.class[..at].iter().find(takes_all) {
                let words = format!(
                    "nothing is ever in it: {:?} comes before it and takes all that fits; put it before that, or leave one of them out",
                    earlier.name.get_ref()
                );
                return Err(Misconfigured::at(&class.name, "class.name", words));
            }
        }
        Ok(())
    }

    fn check_databases(&self, class: &ClassTable) -> Result<(), Misconfigured> {
        let wrong =
            |name: &Spanned<String>, words| Err(Misconfigured::at(name, "class.database", words));
        for name in class.database.iter().flatten() {
            let text = name.get_ref().as_str();
            if OWN_DATABASES.contains(&text) {
                let words =
                    format!("{text:?} is the gate itself, where nobody waits; leave it out");
                return wrong(name, words);
            }
            let is_there = match text.strip_suffix('*') {
                // A file that only says who goes first.
                _ if self.database.is_empty() => true,
                Some(beginning) => self.has_database_like(beginning),
                None => self.database(text).is_some(),
            };
            if !is_there {
                return wrong(name, self.no_database(text));
            }
        }
        Ok(())
    }
}

impl Config {
    /// That there is none of this name, and which there are.
    pub(super) fn no_database(&self, name: &str) -> String {
        let names = self.database.iter().map(|table| table.name.get_ref());
        let known: Vec<&String> = names.collect();
        format!("no [[database]] is called {name:?}; there are {known:?}")
    }

    /// Whether a database may have a name that begins so.
    fn has_database_like(&self, beginning: &str) -> bool {
        let mut names = self.database.iter().map(|table| table.name.get_ref());
        names.any(|name| name == "*" || name.starts_with(beginning))
    }
}

/// What a value of a condition fits.
enum Fits<'a> {
    /// What begins so, or is so.
    Pattern(&'a str),
    /// What comes from there.
    Network(&'a Network),
    /// The shape of this fingerprint.
    Number(Option<u64>),
}

impl Fits<'_> {
    /// Whether it fits whatever the other fits.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Pattern(own), Self::Pattern(other)) => covers_pattern(own, other),
            (Self::Network(own), Self::Network(other)) => own.contains_all(other),
            (Self::Number(own), Self::Number(other)) => own == other,
            _ => false,
        }
    }
}

/// What must fit, by key: any of these values.
type Conditions<'a> = BTreeMap<String, Vec<Fits<'a>>>;

fn conditions<'a>(class: &'a ClassTable) -> Conditions<'a> {
    let pattern = |text: &'a String| Fits::Pattern(text);
    let spanned = |text: &'a Spanned<String>| Fits::Pattern(text.get_ref());
    let number = |text: &'a Spanned<String>| Fits::Number(number_of(text.get_ref()));
    let lists = [
        ("user", all(&class.user, pattern)),
        ("database", all(&class.database, spanned)),
        ("application_name", all(&class.application_name, pattern)),
        ("address", all(&class.address, Fits::Network)),
        ("session", all(&class.session, pattern)),
        ("statement", all(&class.statement, spanned)),
        ("fingerprint", all(&class.fingerprint, number)),
    ];
    let named = lists
        .into_iter()
        .filter_map(|(key, values)| Some((key.to_owned(), values?)));
    let comments = class.comment.iter().flatten();
    let comments = comments.map(|(key, values)| {
        (
            format!("comment.{key}"),
            values.iter().map(pattern).collect(),
        )
    });
    named.chain(comments).collect()
}

/// All values of a list that is there.
fn all<'a, T>(
    list: &'a Option<Vec<T>>,
    value: impl Fn(&'a T) -> Fits<'a>,
) -> Option<Vec<Fits<'a>>> {
    Some(list.as_ref()?.iter().map(value).collect())
}

/// Whether whatever fits the one fits the other, as far as single values say it.
fn covers(all: &Conditions<'_>, one: &Conditions<'_>) -> bool {
    all.iter().all(|(key, values)| {
        let is_covered = |own: &Fits<'_>| values.iter().any(|value| value.covers(own));
        one.get(key).is_some_and(|own| own.iter().all(is_covered))
    })
}
