//! `[[user]]`: bounds of single users.

use crate::document::Group;
use crate::ini::ImportError;
use crate::source::Entry;
use crate::translation::{NO_STATEMENT_MODE, Translation, mode};

const GROUP: Group = Group::User;
const BOUNDS: [(&str, &str); 2] = [
    ("max_user_connections", "transactions"),
    ("max_user_client_connections", "clients"),
];
const CARRIED: [&str; 3] = [BOUNDS[0].0, BOUNDS[1].0, "pool_mode"];

impl Translation<'_> {
    /// All users of whom something is said; with a bound for every user, all who are known.
    pub fn users(&mut self) -> Result<(), ImportError> {
        let mut entries = self.source.users.clone();
        if let Some(at) = self.bound_of_everybody()? {
            for name in self.known_users()? {
                if entries.iter().all(|entry| entry.name != name) {
                    entries.push(Entry {
                        name,
                        pairs: Vec::new(),
                        value: String::new(),
                        at: at.clone(),
                    });
                }
            }
        }
        for entry in &entries {
            self.document.gap(GROUP);
            self.user(entry)?;
        }
        Ok(())
    }

    /// Where it is said, if it is; users that only the database knows are not bounded.
    fn bound_of_everybody(&mut self) -> Result<Option<crate::ini::At>, ImportError> {
        let mut found = None;
        for (key, _) in BOUNDS {
            if self.bound(key)?.is_none() {
                continue;
            }
            found = Some(self.source.settings[key].at.clone());
            if self.has_users_of_no_file() {
                let why = "for users that stand in no file; write [[user]] for each";
                self.leave_out(GROUP, key, why);
            }
        }
        Ok(found)
    }

    /// Whether users may come whom no file names.
    fn has_users_of_no_file(&self) -> bool {
        let method = self.source.word("auth_type");
        let is_by_others = matches!(method.as_deref(), Some("any" | "pam" | "ldap"));
        is_by_others || self.asks_for_users() || self.source.get("auth_file").is_none()
    }

    fn user(&mut self, entry: &Entry) -> Result<(), ImportError> {
        let mut bounds = Vec::new();
        for (from, to) in BOUNDS {
            if let Some(bound) = self.bound_of(entry, from)? {
                bounds.push((to, bound));
            }
        }
        let own_mode = match entry.get("pool_mode") {
            Some(text) => Some(mode(text, &entry.at)?),
            None => None,
        };
        if !bounds.is_empty() || own_mode.is_some() {
            self.document.table(GROUP, "[[user]]");
            self.document.text(GROUP, "name", &entry.name);
        }
        for (key, bound) in bounds {
            self.document.value(GROUP, key, bound);
        }
        if let Some((mode, is_same)) = own_mode {
            if !is_same {
                let setting = format!("{}: pool_mode=statement", entry.name);
                self.document.leave_out(GROUP, &setting, NO_STATEMENT_MODE);
            }
            self.document.text(GROUP, "mode", mode);
        }
        for (key, value) in &entry.pairs {
            if !CARRIED.contains(&key.as_str()) {
                let setting = format!("{}: {key}={value}", entry.name);
                let why = "of a user the gate bounds transactions and clients";
                self.document.leave_out(GROUP, &setting, why);
            }
        }
        Ok(())
    }
}
