//! Settings as databases report them to new sessions, by owner: what clients are told before they
//! have a server connection. A server may change some of them while the gate is up: a standby is
//! promoted, a configuration is reloaded.

use crate::pool::Owner;
use sooner_postgres::parameters::Parameters;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Whether the server is a standby; no client can set it.
const STANDBY: &[u8] = b"in_hot_standby";
/// By which clients choose among servers besides, and which they can set.
const READ_ONLY: &[u8] = b"default_transaction_read_only";
/// What is known is not asked again within this time.
const LOOK_PAUSE: Duration = Duration::from_secs(2);

/// Those of one pool.
#[derive(Default)]
pub struct InitialParameters(BTreeMap<Owner, Known>);

struct Known {
    parameters: Parameters,
    since: Instant,
    /// Whether a connection has reported something else since then, which its client may have set.
    is_doubtful: bool,
}

impl InitialParameters {
    /// What a new session of this owner is told.
    pub fn get(&self, owner: &Owner) -> Option<&Parameters> {
        self.0.get(owner).map(|known| &known.parameters)
    }

    /// A new session has been told this now.
    pub fn note(&mut self, owner: &Owner, parameters: &Parameters, now: Instant) {
        self.note_standby(parameters);
        let known = Known {
            parameters: parameters.clone(),
            since: now,
            is_doubtful: false,
        };
        self.0.insert(owner.clone(), known);
    }

    /// A connection that comes back has been told this by now.
    pub fn compare(&mut self, owner: &Owner, reported: &Parameters) {
        let Some(known) = self.0.get_mut(owner) else {
            return;
        };
        if known.parameters.get(READ_ONLY) != reported.get(READ_ONLY) {
            known.is_doubtful = true;
        }
        if known.parameters.get(STANDBY) != reported.get(STANDBY) {
            self.note_standby(reported);
        }
    }

    /// It is the same for all owners.
    fn note_standby(&mut self, reported: &Parameters) {
        let Some(value) = reported.get(STANDBY) else {
            return;
        };
        for known in self.0.values_mut() {
            if known.parameters.get(STANDBY) != Some(value) {
                let change = [(STANDBY.to_vec(), value.clone())];
                known.parameters.extend(change);
            }
        }
    }

    /// Whether the server has to be asked again before a client of this owner is told anything; if
    /// so, this client asks. A standby may have been promoted, and clients that want a primary
    /// leave before they would find out.
    pub fn must_look(&mut self, owner: &Owner, now: Instant) -> bool {
        let Some(known) = self.0.get_mut(owner) else {
            return false;
        };
        let standby = known.parameters.get(STANDBY).map(Vec::as_slice);
        let may_differ = known.is_doubtful || standby == Some(b"on");
        let looks = may_differ && now.saturating_duration_since(known.since) >= LOOK_PAUSE;
        if looks {
            known.since = now;
        }
        looks
    }

    /// The question: what new sessions would be told of what this owner's are told.
    pub fn question(&self, owner: &Owner) -> Option<String> {
        let known = self.0.get(owner)?;
        let is_plain = |name: &&Vec<u8>| {
            let mut letters = name.iter();
            letters.all(|letter| letter.is_ascii_alphanumeric() || *letter == b'_')
        };
        let names = known.parameters.keys();
        let names = names.filter(is_plain);
        let quoted = names.map(|name| format!("'{}'", String::from_utf8_lossy(name)));
        let names: Vec<String> = quoted.collect();
        Some(format!(
            "SELECT name, reset_val FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) ANY (ARRAY[{}]::pg_catalog.text[])",
            names.join(", ")
        ))
    }

    /// The answer.
    pub fn learn(&mut self, owner: &Owner, rows: &[Vec<Option<String>>]) {
        let Some(known) = self.0.get_mut(owner) else {
            return;
        };
        let pairs = rows.iter().filter_map(|row| match row.as_slice() {
            [Some(name), Some(value)] => Some((name.as_bytes(), value.as_bytes())),
            _ => None,
        });
        for (name, value) in pairs {
            let is_other = |own: &Vec<u8>| own.as_slice() != value;
            if known.parameters.get(name).is_some_and(is_other) {
                known.parameters.extend([(name.to_vec(), value.to_vec())]);
            }
        }
        known.is_doubtful = false;
        let told = known.parameters.clone();
        self.note_standby(&told);
    }

    /// These owners' sessions may be told something else from now on.
    pub fn forget(&mut self, is_theirs: impl Fn(&Owner) -> bool) {
        self.0.retain(|owner, _| !is_theirs(owner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_is_looked_at_again_after_a_pause_and_a_primary_is_not() {
        let owner = Owner {
            user: "bob".into(),
            database: "app".into(),
            there: None,
        };
        let told = |standby: &str| {
            let mut told = Parameters::new();
            told.extend([(STANDBY.to_vec(), standby.as_bytes().to_vec())]);
            told
        };
        let (mut initial, begin) = (InitialParameters::default(), Instant::now());
        initial.note(&owner, &told("on"), begin);
        let mut looks = |after: Duration| initial.must_look(&owner, begin + after);
        assert!(!looks(LOOK_PAUSE / 2) && looks(LOOK_PAUSE));
        // Another client asks already.
        assert!(!looks(LOOK_PAUSE * 3 / 2) && looks(2 * LOOK_PAUSE));
        initial.note(&owner, &told("off"), begin);
        assert!(!initial.must_look(&owner, begin + 9 * LOOK_PAUSE));
    }
}
