//! The work itself: what has been read on one side, the gate.toml as it grows on the other. Each
//! topic has a file; here is their order, and what they share.

use crate::document::{Document, Group};
use crate::ini::{At, Files, ImportError};
use crate::known_keys::{LEFT_OUT, OF_PROCESS, is_default};
use crate::source::{Entry, Source};
use crate::values::{self, Seconds};

/// From the one to the other.
pub struct Translation<'a> {
    pub source: Source,
    pub files: &'a Files<'a>,
    pub document: Document,
    /// Databases that could be written.
    pub written: Vec<String>,
    /// Whom of the admins and watchers the gate could never let in, each with the reason, names in
    /// quotes first.
    pub shut_out: Vec<String>,
}

impl<'a> Translation<'a> {
    /// Nothing translated yet.
    pub fn new(source: Source, files: &'a Files<'a>) -> Self {
        Self {
            source,
            files,
            document: Document::default(),
            written: Vec::new(),
            shut_out: Vec::new(),
        }
    }

    /// Everything; `file` is what was read.
    pub fn translate(&mut self, file: &str) -> Result<(), ImportError> {
        let words = format!("Made from {file} by `sooner gate import`. Every key: man gate.toml.");
        self.document.comment(Group::Head, &words);
        self.document.gap(Group::Head);
        self.listen()?;
        self.auth()?;
        self.people();
        self.mode()?;
        self.limits()?;
        self.tls()?;
        self.databases()?;
        self.auth_query();
        self.users()?;
        self.rest();
        Ok(())
    }

    /// What has no counterpart.
    fn rest(&mut self) {
        let source = &self.source;
        for left in &LEFT_OUT {
            for (key, defaults) in left.keys() {
                let is_own = |value: &str| defaults.iter().any(|own| is_default(value, own));
                let said = source.get(key).filter(|own| !is_own(&own.value));
                if let Some(setting) = said {
                    let setting = format!("{key} = {}", setting.value);
                    self.document.leave_out(left.group, &setting, left.why);
                }
            }
        }
        for (key, setting) in &source.forgotten {
            let why = format!(
                "PgBouncer forgets it ({}:{}) where [pgbouncer] begins again",
                setting.at.file, setting.at.line
            );
            let setting = format!("{key} = {}", setting.value);
            self.document.leave_out(Group::Head, &setting, &why);
        }
        for peer in &source.peers {
            let setting = format!("[peers] {} = {}", peer.name, peer.value);
            let why = "a gate has no peers";
            self.document.leave_out(Group::Head, &setting, why);
        }
        let keys = OF_PROCESS.split_whitespace();
        let of_process: Vec<&str> = keys.filter(|key| source.get(key).is_some()).collect();
        if !of_process.is_empty() {
            let words = format!(
                "Not needed here: {}. The gate runs in the foreground, as the user that starts it, and logs to standard error.",
                of_process.join(", ")
            );
            self.document.comment(Group::Head, &words);
        }
    }

    /// A setting that is not carried over, where it stands.
    pub fn leave_out(&mut self, group: Group, key: &str, why: &str) {
        let value = self.source.get(key).map(|setting| setting.value.clone());
        let setting = format!("{key} = {}", value.unwrap_or_default());
        self.document.leave_out(group, &setting, why);
    }

    /// A setting's time.
    pub fn seconds(&self, key: &str) -> Result<Option<Seconds>, ImportError> {
        let Some(setting) = self.source.settings.get(key) else {
            return Ok(None);
        };
        let seconds = values::seconds(&setting.value);
        let seconds = seconds.map_err(|what| setting.at.wrong(format!("{key}: {what}")));
        seconds.map(Some)
    }

    /// A setting's number.
    pub fn number(&self, key: &str) -> Result<Option<i64>, ImportError> {
        match self.source.settings.get(key) {
            Some(setting) => read_number(key, &setting.value, &setting.at).map(Some),
            None => Ok(None),
        }
    }

    /// A bound: none where it is 0 or not there.
    pub fn bound(&self, key: &str) -> Result<Option<u64>, ImportError> {
        Ok(self.number(key)?.and_then(positive))
    }

    /// A bound of one entry over the one of all; a negative number means the latter.
    pub fn bound_of(&self, entry: &Entry, key: &str) -> Result<Option<u64>, ImportError> {
        let own = match entry.get(key) {
            Some(text) => Some(read_number(key, text, &entry.at)?),
            None => None,
        };
        match own.filter(|number| *number >= 0) {
            Some(number) => Ok(positive(number)),
            None => self.bound(key),
        }
    }

    /// Whether users may come that no file names, because the database is asked.
    pub fn asks_for_users(&self) -> bool {
        self.everywhere("auth_user").is_some()
    }

    /// Users of `auth_file` with a secret; `None` where it cannot be read, which others report.
    pub fn users_with_secrets(&self) -> Option<Vec<String>> {
        let Some(setting) = self.source.get("auth_file") else {
            return Some(Vec::new());
        };
        let text = self.files.text(&setting.value).ok()?;
        let users = sooner_postgres::auth::userlist::read(&text).ok()?;
        Some(users.into_keys().collect())
    }

    /// All users whom PgBouncer knows by name.
    pub fn known_users(&self) -> Result<Vec<String>, ImportError> {
        let mut known = match self.source.get("auth_file") {
            Some(setting) => {
                let text = self.files.text(&setting.value).map_err(|error| {
                    setting.at.wrong(format!(
                        "cannot read {}: {error}; it lists the users that may log in, so run this as a user that can read it",
                        setting.value
                    ))
                })?;
                values::of_userlist(&setting.value, &text)?
            }
            None => Vec::new(),
        };
        for entry in &self.source.users {
            if !known.contains(&entry.name) {
                known.push(entry.name.clone());
            }
        }
        Ok(known)
    }
}

/// A number that stands somewhere.
pub fn read_number(key: &str, text: &str, at: &At) -> Result<i64, ImportError> {
    values::whole(text).map_err(|what| at.wrong(format!("{key}: {what}")))
}

fn positive(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|number| *number > 0)
}

/// The mode of this name; `statement` is the nearest there is, and the answer says so.
pub fn mode(text: &str, at: &At) -> Result<(&'static str, bool), ImportError> {
    match text.to_ascii_lowercase().as_str() {
        "session" => Ok(("session", true)),
        "transaction" => Ok(("transaction", true)),
        "statement" => Ok(("transaction", false)),
        _ => Err(at.wrong(format!(
            "pool_mode: {text:?} is not a mode; there are session, transaction and statement"
        ))),
    }
}

/// Why `statement` is not carried over.
pub const NO_STATEMENT_MODE: &str =
    "the nearest is transaction, in which transactions of several statements are allowed";
