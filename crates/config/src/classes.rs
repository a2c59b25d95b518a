//! `[[class]]`, of transactions as of requests: what a class says of who goes first, and whether
//! anything is ever in it. What it names of those that are in it stands with those.

mod aims;
mod bounds;
mod explanations;
mod fits;
mod order;
mod reach;
mod target;

pub use aims::{ClassAims, Variability, middle_priority, priorities};
pub use bounds::{ClassBounds, Longest, LongestAction};
pub use explanations::explain;
pub use fits::{check_star, comes_from, fits_beginning, fits_pattern};
pub use order::{LateName, OrderName, check_late, check_order, check_share_by, goals, order};
pub use reach::{Condition, Conditions, Fits, check_reach, networks, patterns, placed_patterns};
pub use target::{TargetTable, name_of, response_targets, target_table, time_ns};

use crate::{Misconfigured, Spanned};
use std::collections::BTreeSet;

/// Each has a number of eight bits, and so have those in none.
const CLASSES_MAX: usize = 200;

/// That there are not too many, and that each has a name of its own.
pub fn check_names<'a>(
    names: impl Iterator<Item = &'a Spanned<String>> + Clone,
) -> Result<(), Misconfigured> {
    let is_blank = |name: &&Spanned<String>| name.get_ref().trim().is_empty();
    if let Some(name) = names.clone().find(is_blank) {
        let words = "it is blank; jobs in no class have the blank name: write one, as \"reports\"";
        return Err(Misconfigured::at(name, "class.name", words));
    }
    let mut seen = BTreeSet::new();
    if let Some(name) = names.clone().find(|name| !seen.insert(name.get_ref())) {
        let words = format!("{:?} is given twice; keep one of them", name.get_ref());
        return Err(Misconfigured::at(name, "class.name", words));
    }
    match names.clone().nth(CLASSES_MAX) {
        Some(name) => {
            let words = format!("there are at most {CLASSES_MAX} classes");
            Err(Misconfigured::at(name, "class.name", words))
        }
        None => Ok(()),
    }
}
