//! What a pgbouncer.ini says in all, once its lines are read: the settings in force and the entries
//! of the other sections.

use crate::ini::{At, ImportError, Line};
use crate::known_keys::{self, KEYS_THAT_STAY};
use crate::values;
use std::collections::BTreeMap;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What was written.
    pub value: String,
    /// Where.
    pub at: At,
}

/// An entry of `[databases]`, `[users]` or `[peers]`.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What stands before the `=`.
    pub name: String,
    /// The parameters.
    pub pairs: Vec<(String, String)>,
    /// All that stands behind the `=`.
    pub value: String,
    /// Where.
    pub at: At,
}

impl Entry {
    /// A parameter's value.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut pairs = self.pairs.iter();
        pairs
            .find(|(own, _)| own == key)
            .map(|(_, value)| value.as_str())
    }
}

/// Everything.
#[derive(Clone, Default)]
pub struct Source {
    /// `[pgbouncer]`, by key.
    pub settings: BTreeMap<String, Setting>,
    /// What a second `[pgbouncer]` made PgBouncer forget.
    pub forgotten: Vec<(String, Setting)>,
    /// `[databases]`, in their order, `*` last.
    pub databases: Vec<Entry>,
    /// Entries that PgBouncer cannot read and starts with, and why.
    pub unread: Vec<(String, String)>,
    /// `[users]`.
    pub users: Vec<Entry>,
    /// `[peers]`.
    pub peers: Vec<Entry>,
}

/// The entry of all databases without one of their own.
const ANY_DATABASE: &str = "*";

fn read_pairs(section: &str, value: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = values::pairs(value)?;
    known_keys::check_pairs(section, &pairs)?;
    Ok(pairs)
}

impl Source {
    /// Sorts the lines into their sections; of a key that comes twice the last one counts.
    pub fn of(file: &str, lines: Vec<(At, Line)>) -> Result<Self, ImportError> {
        let mut source = Self::default();
        let mut section = None;
        let mut has_main = false;
        for (at, line) in lines {
            match line {
                Line::Section(name) => {
                    let known = known_keys::section(&name).map_err(|what| at.wrong(what))?;
                    if known == "pgbouncer" {
                        has_main = true;
                        source.forget();
                    }
                    section = Some(known);
                }
                Line::Setting(key, value) => match section {
                    Some(section) => source.put(section, key, value, at)?,
                    None => {
                        return Err(at.wrong(format!(
                            "{key} stands in no section; write [pgbouncer] above it"
                        )));
                    }
                },
            }
        }
        if !has_main {
            let at = At {
                file: file.into(),
                line: 1,
            };
            return Err(at.wrong("there is no section [pgbouncer]; write one"));
        }
        source
            .databases
            .sort_by_key(|entry| entry.name == ANY_DATABASE);
        Ok(source)
    }

    /// A section that begins again begins with the defaults, for keys that have one.
    fn forget(&mut self) {
        let stays = |key: &str| KEYS_THAT_STAY.contains(&key);
        let (kept, gone) = std::mem::take(&mut self.settings)
            .into_iter()
            .partition(|(key, _)| stays(key));
        self.settings = kept;
        let gone: BTreeMap<String, Setting> = gone;
        self.forgotten.extend(gone);
    }

    fn put(
        &mut self,
        section: &str,
        key: String,
        value: String,
        at: At,
    ) -> Result<(), ImportError> {
        if section == "pgbouncer" {
            known_keys::check(&key).map_err(|what| at.wrong(what))?;
            self.settings.insert(key, Setting { value, at });
            return Ok(());
        }
        let pairs = match read_pairs(section, &value) {
            Ok(pairs) => pairs,
            // PgBouncer reads it only when a client comes.
            Err(what) if section == "databases" && key == ANY_DATABASE => {
                self.databases.retain(|entry| entry.name != key);
                self.unread.push((format!("{key} = {value}"), what));
                return Ok(());
            }
            Err(what) => return Err(at.wrong(what)),
        };
        let entries = match section {
            "databases" => &mut self.databases,
            "users" => &mut self.users,
            _ => &mut self.peers,
        };
        entries.retain(|entry| entry.name != key);
        entries.push(Entry {
            name: key,
            pairs,
            value,
            at,
        });
        Ok(())
    }

    /// What is said of a key, if anything is: an empty text is nothing, an empty number or word is
    /// a mistake.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        let setting = self.settings.get(key);
        setting.filter(|setting| !setting.value.is_empty())
    }

    /// A value in lower case, as words are compared.
    pub fn word(&self, key: &str) -> Option<String> {
        Some(self.settings.get(key)?.value.to_ascii_lowercase())
    }
}
