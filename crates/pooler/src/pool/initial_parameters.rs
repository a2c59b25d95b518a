//! Settings as databases report them to new sessions, by owner: what clients are told before they
//! have a server connection. A server may change some of them while the gate is up: a standby is
//! promoted, a configuration is reloaded.

mod answers;

use crate::pool::Owner;
use answers::Answers;
use sooner_postgres::parameters::{Parameters, RequestedParameters};
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
pub struct InitialParameters {
    known: BTreeMap<Owner, Known>,
    answers: Answers,
    last_version: u64,
}

struct Known {
    parameters: Parameters,
    /// Another one when they change, and when they are learnt after they were forgotten: answers
    /// of before count no more.
    version: u64,
    since: Instant,
    /// Whether a connection has reported something else since then, which its client may have set.
    is_doubtful: bool,
}

impl InitialParameters {
    /// What a new session of this owner is told.
    pub fn get(&self, owner: &Owner) -> Option<&Parameters> {
        self.known.get(owner).map(|known| &known.parameters)
    }

    /// The same, and the version of it.
    pub fn with_version(&self, owner: &Owner) -> Option<(Parameters, u64)> {
        let known = self.known.get(owner)?;
        Some((known.parameters.clone(), known.version))
    }

    /// What a client of this owner that asks for this is told, where that is known without asking
    /// the server.
    pub fn answer(&mut self, owner: &Owner, requested: &RequestedParameters) -> Option<Parameters> {
        let known = self.known.get(owner)?;
        let told = requested.reported_at_start(&known.parameters);
        told.or_else(|| self.answers.get(owner, requested, known.version))
    }

    /// The server has accepted what a client of this owner asks for, and reports this to it, which
    /// is made of what new sessions were told in this version.
    pub fn note_answer(
        &mut self,
        owner: &Owner,
        requested: &RequestedParameters,
        reported: &Parameters,
        version: u64,
    ) {
        self.note_standby(reported);
        let known = self.known.get(owner);
        let is_current = known.is_some_and(|known| known.version == version);
        // Who may take a role, and what it may do, changes without a word to any session.
        if is_current && !requested.names(b"role") {
            self.answers.keep(owner, requested, version, reported);
        }
    }

    /// A new session has been told this now; the version of it.
    pub fn note(&mut self, owner: &Owner, parameters: &Parameters, now: Instant) -> u64 {
        self.note_standby(parameters);
        let same = self.known.get(owner);
        let same = same.filter(|known| known.parameters == *parameters);
        let version = match same {
            Some(known) => known.version,
            None => next(&mut self.last_version),
        };
        let known = Known {
            parameters: parameters.clone(),
            version,
            since: now,
            is_doubtful: false,
        };
        self.known.insert(owner.clone(), known);
        version
    }

    /// A connection that comes back has been told this by now.
    pub fn compare(&mut self, owner: &Owner, reported: &Parameters) {
        let Some(known) = self.known.get_mut(owner) else {
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
        for known in self.known.values_mut() {
            if known.parameters.get(STANDBY) != Some(value) {
                let change = [(STANDBY.to_vec(), value.clone())];
                known.parameters.extend(change);
                known.version = next(&mut self.last_version);
            }
        }
    }

    /// Whether the server has to be asked again before a client of this owner is told anything; if
    /// so, this client asks. A standby may have been promoted, and clients that want a primary
    /// leave before they would find out.
    pub fn must_look(&mut self, owner: &Owner, now: Instant) -> bool {
        let Some(known) = self.known.get_mut(owner) else {
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
        let known = self.known.get(owner)?;
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
        let Some(known) = self.known.get_mut(owner) else {
            return;
        };
        let before = known.parameters.clone();
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
        if known.parameters != before {
            known.version = next(&mut self.last_version);
        }
        let told = known.parameters.clone();
        self.note_standby(&told);
    }

    /// These owners' sessions may be told something else from now on.
    pub fn forget(&mut self, is_theirs: impl Fn(&Owner) -> bool) {
        self.known.retain(|owner, _| !is_theirs(owner));
    }
}

/// A version that no other has.
fn next(last_version: &mut u64) -> u64 {
    *last_version += 1;
    *last_version
}

#[cfg(test)]
mod tests {
    use super::answers::ANSWERS_MAX;
    use super::*;
    use sooner_postgres::wire::{Startup, Version};

    fn owner(user: &str) -> Owner {
        Owner {
            user: user.into(),
            database: "app".into(),
            there: None,
        }
    }

    fn settings(pairs: &[(&str, &str)]) -> Parameters {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (bytes(name), bytes(value)))
            .collect()
    }

    fn requests(name: &str, value: &str) -> RequestedParameters {
        let parameters = vec![(name.into(), value.into())];
        let startup = Startup {
            version: Version::V3_0,
            parameters,
        };
        RequestedParameters::read(&startup).unwrap()
    }

    /// An answer that is made of what new sessions are told now.
    fn keep(
        initial: &mut InitialParameters,
        owner: &Owner,
        requested: &RequestedParameters,
        answer: &Parameters,
    ) {
        let known = initial.with_version(owner);
        let version = known.map_or(0, |(_, version)| version);
        initial.note_answer(owner, requested, answer, version);
    }

    #[test]
    fn a_standby_is_looked_at_again_after_a_pause_and_a_primary_is_not() {
        let owner = owner("bob");
        let told = |standby: &str| settings(&[("in_hot_standby", standby)]);
        let (mut initial, begin) = (InitialParameters::default(), Instant::now());
        initial.note(&owner, &told("on"), begin);
        let mut looks = |after: Duration| initial.must_look(&owner, begin + after);
        assert!(!looks(LOOK_PAUSE / 2) && looks(LOOK_PAUSE));
        // Another client asks already.
        assert!(!looks(LOOK_PAUSE * 3 / 2) && looks(2 * LOOK_PAUSE));
        initial.note(&owner, &told("off"), begin);
        assert!(!initial.must_look(&owner, begin + 9 * LOOK_PAUSE));
    }

    type Change = fn(&mut InitialParameters, &Owner);

    #[test]
    fn an_answer_counts_until_what_new_sessions_are_told_is_another() {
        let (bob, ann) = (owner("bob"), owner("ann"));
        let (asks, now) = (requests("DateStyle", "ISO"), Instant::now());
        let usual = settings(&[("DateStyle", "SQL, MDY"), ("in_hot_standby", "off")]);
        let answer = settings(&[("DateStyle", "ISO, MDY"), ("in_hot_standby", "off")]);
        let is_known = |initial: &mut InitialParameters| initial.answer(&bob, &asks).is_some();
        let changes: [(&str, Change); 6] = [
            ("nothing", |_, _| {}),
            ("a session that is told the same", |initial, bob| {
                let same = initial.get(bob).unwrap().clone();
                initial.note(bob, &same, Instant::now());
            }),
            ("it is forgotten, and learnt again", |initial, bob| {
                let same = initial.get(bob).unwrap().clone();
                initial.forget(|owner| owner == bob);
                initial.note(bob, &same, Instant::now());
            }),
            ("another default", |initial, bob| {
                let other = settings(&[("DateStyle", "SQL, DMY"), ("in_hot_standby", "off")]);
                initial.note(bob, &other, Instant::now());
            }),
            ("the server is asked for its defaults", |initial, bob| {
                let other = ["DateStyle", "SQL, DMY"].map(|text| Some(text.to_owned()));
                initial.learn(bob, &[other.to_vec()]);
            }),
            ("the server is a standby now", |initial, _| {
                let other = settings(&[("in_hot_standby", "on")]);
                initial.compare(&owner("ann"), &other);
            }),
        ];
        for (number, (what, change)) in changes.iter().enumerate() {
            let mut initial = InitialParameters::default();
            keep(&mut initial, &bob, &asks, &answer);
            assert!(!is_known(&mut initial), "no session was told anything");
            initial.note(&ann, &usual, now);
            initial.note(&bob, &usual, now);
            assert!(!is_known(&mut initial), "{what}");
            keep(&mut initial, &bob, &asks, &answer);
            assert_eq!(initial.answer(&bob, &asks).as_ref(), Some(&answer));
            assert_eq!(initial.answer(&ann, &asks), None, "another user");
            assert_eq!(initial.answer(&bob, &requests("DateStyle", "German")), None);
            change(&mut initial, &bob);
            assert_eq!(is_known(&mut initial), number < 2, "{what}");
        }
    }

    #[test]
    fn an_answer_of_before_is_not_kept_and_none_with_a_role_is() {
        let (bob, mut initial) = (owner("bob"), InitialParameters::default());
        let (asks, answer) = (
            requests("DateStyle", "ISO"),
            settings(&[("DateStyle", "ISO, MDY")]),
        );
        let told = |order: &str| settings(&[("DateStyle", order)]);
        let before = initial.note(&bob, &told("SQL, MDY"), Instant::now());
        let after = initial.note(&bob, &told("SQL, DMY"), Instant::now());
        initial.note_answer(&bob, &asks, &answer, before);
        assert_eq!(initial.answer(&bob, &asks), None);
        initial.note_answer(&bob, &asks, &answer, after);
        assert_eq!(initial.answer(&bob, &asks).as_ref(), Some(&answer));
        let role = requests("Role", "ann");
        initial.note_answer(&bob, &role, &answer, after);
        assert_eq!(initial.answer(&bob, &role), None);
    }

    /// Clients choose the texts.
    #[test]
    fn answers_are_few_and_short() {
        let (bob, mut initial) = (owner("bob"), InitialParameters::default());
        let usual = settings(&[("DateStyle", "ISO, MDY")]);
        initial.note(&bob, &usual, Instant::now());
        let often = requests("extra_float_digits", "2");
        keep(&mut initial, &bob, &often, &usual);
        let strangers =
            (0..2 * ANSWERS_MAX).map(|number| requests("app.user", &number.to_string()));
        let strangers: Vec<_> = strangers.collect();
        for asks in &strangers {
            keep(&mut initial, &bob, asks, &usual);
            assert!(initial.answer(&bob, &often).is_some());
        }
        let known = strangers.iter();
        let known = known.filter(|asks| initial.answer(&bob, asks).is_some());
        assert!(known.count() < ANSWERS_MAX);
        for (bytes, is_kept) in [(3000, true), (5000, false)] {
            let long = requests("search_path", &"x".repeat(bytes));
            keep(&mut initial, &bob, &long, &usual);
            assert_eq!(initial.answer(&bob, &long).is_some(), is_kept, "{bytes}");
        }
    }
}
