//! Databases that classes name, held against those that there are.

use super::{ClassTable, Config, OWN_DATABASES};
use sooner_config::{Misconfigured, Spanned};

impl Config {
    /// A database of a class that there is not, or that is the gate itself.
    pub(super) fn check_databases(&self, class: &ClassTable) -> Result<(), Misconfigured> {
        let wrong =
            |name: &Spanned<String>, words| Err(Misconfigured::at(name, "class.database", words));
        for name in class.database.iter().flatten() {
            let text = name.get_ref().as_str();
            if OWN_DATABASES.contains(&text) {
                let words =
                    format!("{text:?} is the gate itself, which has no queue; leave it out");
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

    /// That there is none of this name, and which there are.
    pub(super) fn no_database(&self, name: &str) -> String {
        let names = self.database.iter().map(|table| table.name.get_ref());
        let known: Vec<&String> = names.collect();
        format!("there is no [[database]] {name:?}; there are {known:?}")
    }

    /// Whether a database may have a name that begins so.
    fn has_database_like(&self, beginning: &str) -> bool {
        let mut names = self.database.iter().map(|table| table.name.get_ref());
        names.any(|name| name == "*" || name.starts_with(beginning))
    }
}
