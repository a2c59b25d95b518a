//! What a client's commands have changed of its session, asked of the server when its turn is over:
//! settings that follow the client from then on, and what ties it to its server connection.
//!
//! Pure: a question as text, and what its answer means.

use super::own_commands::{self, WITHOUT_WAIT};
use super::{ClientState, ENTRY_BYTES, KEPT_BYTES_MAX, PossibleChanges, ServerState, Ties};
use crate::parameters::{self, Parameters, RequestedParameters, literal};
use crate::sql::Tie;

/// A longer value ties its client.
const VALUE_BYTES_MAX: usize = 8 << 10;
/// Rows as text; `None` is NULL.
type Rows = [Vec<Option<String>>];

/// What the server is asked.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionQuery {
    names: Vec<Vec<u8>>,
    ties: Ties,
    /// Whether it is asked how each setting came to be what it is, which takes the server some
    /// milliseconds and not a tenth of one.
    is_thorough: bool,
}

impl SessionQuery {
    /// What has to be asked of the server when a turn is over, if anything. A client that keeps
    /// its server connection whatever the answer says is `kept`: of its settings only those
    /// matter that it may have lost.
    pub fn of(
        client: &ClientState,
        requested: &RequestedParameters,
        server: &ServerState,
        is_kept: bool,
    ) -> Option<SessionQuery> {
        let changes = &client.changes;
        let is_asked = |name: &&Vec<u8>| {
            let is_first = requested.names(name);
            let is_reported = parameters::is_tracked(&server.reported, name);
            let matters = if is_kept {
                changes.has_reset && is_first
            } else {
                is_first || !is_reported
            };
            matters || (!is_kept && is_role(name))
        };
        let names: Vec<Vec<u8>> = changes
            .parameters
            .keys()
            .filter(is_asked)
            .cloned()
            .collect();
        let ties = if is_kept {
            Ties::default()
        } else {
            changes.ties
        };
        let may_set_all = server.role.is_superuser || !is_superuser(server);
        let is_plain = |name: &[u8]| is_of_application(name) || is_role(name);
        let is_open = changes.has_reset || changes.has_failed;
        let needs_source = |name: &Vec<u8>| is_open && !is_plain(name);
        // Who it is may have changed in between.
        let may_set_less = !server.role.is_superuser && names.iter().any(|name| is_role(name));
        let is_thorough = !may_set_all || may_set_less || names.iter().any(needs_source);
        let question = SessionQuery {
            names,
            ties,
            is_thorough,
        };
        (!question.is_empty()).then_some(question)
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.ties.is_empty()
    }

    /// The same, if there is more to be known.
    pub fn thorough(mut self) -> Option<SessionQuery> {
        let is_more = !self.is_thorough && !self.names.is_empty();
        self.is_thorough = true;
        is_more.then_some(self)
    }

    /// As commands for a server; every name is whole, because the client's search_path may have
    /// others first. What is to end the client's statements when they take long ends none of these,
    /// but for the one that asks for it.
    pub fn sql(&self, server: &ServerState) -> String {
        let is_timeout = |name: &&Vec<u8>| own_commands::is_timeout(name);
        let (timeouts, others): (Vec<_>, Vec<_>) = self.names.iter().partition(is_timeout);
        let without_timeouts = own_commands::without_timeouts(&server.reported);
        // Isolation is told before anything is read.
        let mut sql = match timeouts.is_empty() {
            true => without_timeouts + WITHOUT_WAIT,
            false => WITHOUT_WAIT.to_owned() + &self.settings(&timeouts) + &without_timeouts,
        };
        if !others.is_empty() {
            sql += &self.settings(&others);
        }
        if !self.ties.is_empty() {
            let columns: Vec<&str> = self.ties.iter().map(sql_of).collect();
            sql += &format!("SELECT {}", columns.join(","));
        }
        sql
    }

    fn settings(&self, names: &[&Vec<u8>]) -> String {
        let rows = names.iter().map(|name| {
            let is_plain = !self.is_thorough || is_of_application(name) || is_role(name);
            format!("({},{is_plain})", literal(name))
        });
        let rows: Vec<String> = rows.collect();
        settings_sql(&rows.join(","), self.is_thorough)
    }

    /// Takes the answer.
    pub fn learn(
        &self,
        answer: &Rows,
        requested: &RequestedParameters,
        client: &mut ClientState,
        server: &mut ServerState,
    ) {
        let (rows, ties) = answer.split_at(self.names.len().min(answer.len()));
        for row in rows {
            if let Some(found) = Found::read(row) {
                self.learn_one(found, requested, client, server);
            }
        }
        for (tie, is_there) in self.ties.iter().zip(ties.iter().flatten()) {
            if is_there.as_deref() == Some("f") {
                client.ties.remove(tie);
            }
        }
        let prepares_here = [Tie::PreparedBySql, Tie::PreparedUnkept];
        if !prepares_here.iter().any(|tie| client.ties.contains(*tie)) {
            client.prepared_here.clear();
        }
        client.changes.remove(&self.names);
        let kept = client.unreported.iter();
        let kept_bytes = kept.map(|(name, value)| ENTRY_BYTES + name.len() + value.len());
        if kept_bytes.sum::<usize>() > KEPT_BYTES_MAX {
            client
                .pinned_by
                .get_or_insert("many settings, or long ones");
        }
    }

    fn learn_one(
        &self,
        found: Found,
        requested: &RequestedParameters,
        client: &mut ClientState,
        server: &mut ServerState,
    ) {
        let Found { name, value, .. } = &found;
        let is_first = requested.names(name);
        let has_reset = client
            .changes
            .parameters
            .get(name)
            .is_some_and(|reset| *reset);
        let is_hidden = |value: &[u8]| client.changes.is_hidden_reset(name, value);
        let is_default = match value {
            None => true,
            Some(value) if name == b"role" => has_reset && value == b"none",
            Some(value) if is_role(name) => has_reset && *value == server.role.user,
            Some(value) if found.is_known => {
                found.is_default || (found.is_usual && (!is_first || is_hidden(value)))
            }
            // After RESET one of an application's own is there and empty.
            Some(value) => has_reset && is_first && value.is_empty(),
        };
        if name == b"search_path" {
            let own = value.as_deref().filter(|_| !is_default);
            let value = own.or_else(|| requested.value(name));
            client.note_path(value.is_some_and(parameters::is_temporary_path));
        }
        if parameters::is_tracked(&server.reported, name) {
            if is_default && is_first {
                let is_it = |known: &[u8]| known.eq_ignore_ascii_case(name);
                client.reported.retain(|known, _| !is_it(known));
            }
            return;
        }
        match value.clone().filter(|_| !is_default) {
            Some(value) => {
                let may_set = server.role.is_superuser || !found.is_superusers;
                if found.is_long || !may_set {
                    client.pinned_by.get_or_insert(if may_set {
                        "a long setting"
                    } else {
                        "a setting that its user may not set"
                    });
                }
                server.unreported.insert(name.clone(), value.clone());
                client.unreported.insert(name.clone(), value);
            }
            None => {
                server.unreported.remove(name);
                client.unreported.remove(name);
            }
        }
    }
}

fn is_superuser(server: &ServerState) -> bool {
    parameters::find(&server.reported, b"is_superuser").is_some_and(|value| value == b"on")
}

/// Names with a dot are applications' own, or extensions'.
fn is_of_application(name: &[u8]) -> bool {
    name.contains(&b'.')
}

fn is_role(name: &[u8]) -> bool {
    parameters::ROLES.contains(&name)
}

/// One row for each name: the name, the value (NULL where there is none) and whether it is too
/// long, how it came to be, whether it is what it was at first, who may set it.
///
/// In hexadecimal digits of the database's own encoding, whatever the client's is.
fn settings_sql(rows: &str, is_thorough: bool) -> String {
    let hex = |text: &str| {
        format!(
            "pg_catalog.encode(pg_catalog.convert_to({text},pg_catalog.getdatabaseencoding()),'hex')"
        )
    };
    let (value, more, from) = if is_thorough {
        (
            "CASE WHEN s.name IS NOT NULL THEN s.setting WHEN a.p THEN pg_catalog.current_setting(a.n,true) END",
            "s.source,s.setting OPERATOR(pg_catalog.=) s.reset_val,s.context",
            " LEFT JOIN pg_catalog.pg_settings AS s ON pg_catalog.lower(s.name) OPERATOR(pg_catalog.=) a.n",
        )
    } else {
        ("pg_catalog.current_setting(a.n,true)", "NULL,NULL,NULL", "")
    };
    let inner = format!("SELECT a.n,{value} AS v,{more} FROM (VALUES {rows}) AS a(n,p){from}");
    let is_long = format!("pg_catalog.octet_length(b.v) OPERATOR(pg_catalog.>) {VALUE_BYTES_MAX}");
    let short = format!("CASE WHEN {is_long} THEN '' ELSE b.v END");
    format!(
        "SELECT {},{},{is_long},b.s,b.d,b.c FROM ({inner}) AS b(n,v,s,d,c);",
        hex("b.n"),
        hex(&short)
    )
}

/// Whether there is something of the kind.
fn sql_of(tie: Tie) -> &'static str {
    match tie {
        Tie::Listening => "EXISTS(SELECT pg_catalog.pg_listening_channels())",
        // What DISCARD TEMP would drop.
        Tie::Temporary => {
            "EXISTS(SELECT FROM pg_catalog.pg_depend WHERE refclassid OPERATOR(pg_catalog.=) 2615::pg_catalog.oid AND refobjid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema())"
        }
        Tie::AdvisoryLock => {
            "EXISTS(SELECT FROM pg_catalog.pg_locks WHERE locktype OPERATOR(pg_catalog.=) 'advisory' AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid())"
        }
        Tie::HeldCursor => "EXISTS(SELECT FROM pg_catalog.pg_cursors WHERE is_holdable)",
        Tie::PreparedBySql => {
            "EXISTS(SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql OR name OPERATOR(pg_catalog.!~) '^sooner_[0-9~]')"
        }
        Tie::PreparedUnkept => {
            "EXISTS(SELECT FROM pg_catalog.pg_prepared_statements WHERE NOT from_sql AND name OPERATOR(pg_catalog.!~) '^sooner_[0-9~]')"
        }
    }
}

/// A row about a setting.
struct Found {
    name: Vec<u8>,
    value: Option<Vec<u8>>,
    is_long: bool,
    /// Whether the server itself knows this setting, and was asked how it came to be.
    is_known: bool,
    /// Whether the session has not set it.
    is_default: bool,
    /// Whether it is what it would be if the session had not.
    is_usual: bool,
    is_superusers: bool,
}

impl Found {
    fn read(row: &[Option<String>]) -> Option<Found> {
        let [Some(name), value, is_long, source, is_usual, context] = row else {
            return None;
        };
        let is = |field: &Option<String>, word: &str| field.as_deref() == Some(word);
        let value = match value {
            Some(digits) => Some(from_hex(digits)?),
            None => None,
        };
        Some(Found {
            name: from_hex(name)?,
            value,
            is_long: is(is_long, "t"),
            is_known: source.is_some(),
            is_default: source.as_deref().is_some_and(|source| source != "session"),
            is_usual: is(is_usual, "t"),
            is_superusers: context.as_deref().is_some_and(|context| context != "user"),
        })
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}

/// The client has thrown away everything that it has set: its first packet counts again.
pub fn discard(client: &mut ClientState, requested: &RequestedParameters) {
    client.has_temporary_path = requested.has_temporary_path();
    client.reported.clear();
    client.unreported.clear();
    client.session_class = None;
    client.changes = PossibleChanges::default();
}

/// The server has not said what a turn changed: forgets what the client has reset of its first
/// packet, so that it is given back. Whether something is to be.
///
/// Nothing is where the role may have changed: that would be undone.
pub fn forget_resets(
    client: &mut ClientState,
    requested: &RequestedParameters,
    server: &mut ServerState,
) -> bool {
    let changes = &client.changes;
    if changes.parameters.keys().any(|name| is_role(name)) {
        return false;
    }
    let lost = changes.resets().filter(|name| requested.names(name));
    let lost: Vec<Vec<u8>> = lost.cloned().collect();
    for name in &lost {
        let is_it = |known: &[u8]| known.eq_ignore_ascii_case(name);
        client.reported.retain(|known, _| !is_it(known));
        client.unreported.remove(name);
        server.unreported.remove(name);
        if name == b"search_path" {
            client.note_path(requested.has_temporary_path());
        }
    }
    client.changes.remove(&lost);
    client.changes.has_reset
}

/// What the settings that are reported to a client become where nothing has been reported yet, or
/// is believed no longer: what new sessions have.
pub fn begin(client: &mut ClientState, requested: &RequestedParameters, initial: &Parameters) {
    if client.reported.is_empty() {
        client.reported = requested.missing_from(initial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Startup, Version};

    /// What it has set since is its own, and so is a role that it may have taken.
    #[test]
    fn resets_that_are_not_answered_give_the_first_packet_back() {
        let requested = RequestedParameters::read(&Startup {
            version: Version::V3_0,
            parameters: ["search_path", "geqo", "a.b"]
                .map(|name| (name.into(), b"first".to_vec()))
                .into(),
        });
        let requested = requested.unwrap();
        let lost = |role: Option<&[u8]>| {
            let mut client = ClientState::of(&requested);
            let mut server = ServerState::new(1, Parameters::new());
            server.unreported = requested.unreported(&server.reported);
            let changes = &mut client.changes;
            changes.has_reset = true;
            for name in [&b"search_path"[..], b"geqo", b"a.b", b"work_mem"] {
                changes.add(name, true);
                changes.note_reset(name);
            }
            changes.note_set(b"geqo");
            changes.note_either(b"a.b", Some(b"other"));
            if let Some(role) = role {
                changes.add(role, false);
            }
            let is_lost = forget_resets(&mut client, &requested, &mut server);
            let is_gone = |name: &[u8]| !server.unreported.contains_key(name);
            let names = [&b"search_path"[..], b"geqo", b"a.b"];
            assert!(client.changes.parameters.contains_key(&b"work_mem"[..]));
            (is_lost, names.map(is_gone))
        };
        assert_eq!(lost(None), (true, [true, false, false]));
        assert_eq!(lost(Some(b"role")), (false, [false; 3]));
    }

    /// While it holds that nothing ends what takes long, the session's own values are hidden.
    #[test]
    fn the_session_is_asked_for_its_timeouts_before_they_are_lifted() {
        let server = ServerState::new(1, Parameters::new());
        let place = |names: &[&str]| {
            let query = SessionQuery {
                names: names.iter().map(|name| name.as_bytes().to_vec()).collect(),
                ties: Ties::default(),
                is_thorough: false,
            };
            let sql = query.sql(&server);
            let lifted = sql.find("SET LOCAL statement_timeout = 0;").unwrap();
            let isolated = sql.find(WITHOUT_WAIT).unwrap();
            let asked = names.iter().map(|name| sql.find(&literal(name.as_bytes())));
            let asked: Vec<bool> = asked.map(|at| at.unwrap() < lifted).collect();
            assert!(sql.find("SELECT").unwrap() > isolated, "{sql}");
            asked
        };
        assert_eq!(place(&["statement_timeout", "work_mem"]), [true, false]);
        assert_eq!(place(&["work_mem"]), [false]);
        assert_eq!(place(&["statement_timeout"]), [true]);
    }
}
