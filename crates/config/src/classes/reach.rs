//! Classes that nothing can be in: an empty list or table, or an earlier class that takes all of it. Said at
//! the start, because otherwise it would go unnoticed.

use super::fits::covers_pattern;
use crate::{Misconfigured, Network, Spanned};

/// What a value of a condition fits.
#[derive(Debug)]
pub enum Fits<'a> {
    /// What begins so, or is so.
    Pattern(&'a str),
    /// What comes from there.
    Network(&'a Network),
    /// What has this number.
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

/// What a class names under a key: any of these values must fit.
pub type Condition<'a> = (String, Vec<Fits<'a>>);

/// All that it names: all must fit.
pub type Conditions<'a> = Vec<Condition<'a>>;

/// What these texts fit.
pub fn patterns(texts: &[String]) -> Vec<Fits<'_>> {
    texts.iter().map(|text| Fits::Pattern(text)).collect()
}

/// The same of texts that have a place in the file.
pub fn placed_patterns(texts: &[Spanned<String>]) -> Vec<Fits<'_>> {
    let texts = texts.iter().map(|text| text.get_ref());
    texts.map(|text| Fits::Pattern(text)).collect()
}

/// What these networks fit.
pub fn networks(networks: &[Network]) -> Vec<Fits<'_>> {
    networks.iter().map(Fits::Network).collect()
}

/// The first class, by its name, that nothing is ever in; `what` is what classes are of: client,
/// request.
pub fn check_reach(
    classes: &[(&Spanned<String>, Conditions<'_>)],
    what: &str,
) -> Result<(), Misconfigured> {
    for (at, (name, conditions)) in classes.iter().enumerate() {
        if let Some((key, _)) = conditions.iter().find(|(_, values)| values.is_empty()) {
            let words = format!(
                "an empty list or table fits no {what}; name what fits, or leave {key} out"
            );
            return Err(Misconfigured::at(name, &format!("class.{key}"), words));
        }
        let takes_all =
            |earlier: &&(&Spanned<String>, Conditions<'_>)| covers(&earlier.1, conditions);
        if let Some((earlier, _)) = classes[..at].iter().find(takes_all) {
            let words = format!(
                "it stays empty: {:?} comes before it and takes all that fit; put it first, or leave one of them out",
                earlier.get_ref()
            );
            return Err(Misconfigured::at(name, "class.name", words));
        }
    }
    Ok(())
}

/// Whether whatever fits the one fits the other, as far as single values say it.
fn covers(all: &Conditions<'_>, one: &Conditions<'_>) -> bool {
    all.iter().all(|(key, values)| {
        let is_covered = |own: &Fits<'_>| values.iter().any(|value| value.covers(own));
        let own = one.iter().find(|(other, _)| other == key);
        own.is_some_and(|(_, own)| own.iter().all(is_covered))
    })
}
