//! A client's settings on server connections that change: what it requested when it came, and what
//! was reported to it since.
//!
//! A server reports some settings when they change; these follow a client everywhere. Others are
//! known only from its first packet; a connection remembers which of those it was given, so that
//! the next client can be rid of them. What a client sets later and the server does not report, the
//! gate asks the server about ([`crate::session`]), and it follows as well.

mod at_start;
mod client_name;
pub mod encoding;
pub mod idle_session;
mod map;
mod momentary;
mod of_process;
mod options;
mod parse_context;

use crate::session::{ClientState, ServerState};
use crate::sql;
use crate::wire::Startup;

pub use map::Parameters;
pub use momentary::is_momentary;
pub use parse_context::{ContextSwitch, ParseContext, depends_on_context};

/// Reported, and not to be set.
const FIXED: [&str; 6] = [
    "server_version",
    "server_encoding",
    "is_superuser",
    "session_authorization",
    "integer_datetimes",
    "in_hot_standby",
];
/// Of these, those that nothing changes.
const INTERNAL: [&str; 5] = [
    "server_version",
    "server_encoding",
    "is_superuser",
    "integer_datetimes",
    "in_hot_standby",
];
/// Reported, and of those that decide what a statement means when it is prepared.
const PARSE_CONTEXT: [&str; 5] = [
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "standard_conforming_strings",
    "client_encoding",
];
/// In a first packet, and no settings.
const NOT_SETTINGS: [&[u8]; 4] = [b"user", b"database", b"replication", b"options"];
/// A first packet with a value of `replication` that PostgreSQL does not know (22023).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value for parameter \"replication\": \"{0}\"")]
pub struct UnknownReplication(String);

impl UnknownReplication {
    /// What the value may be, in PostgreSQL's words.
    pub const HINT: &str = "Valid values are: \"false\", 0, \"true\", 1, \"database\".";
}

/// Whether a first packet asks for replication: by a word for on or off, or of one database.
pub fn wants_replication(startup: &Startup) -> Result<bool, UnknownReplication> {
    let of_name = |(name, _): &&(Vec<u8>, Vec<u8>)| name == b"replication";
    let mut wants = false;
    // Each is read, and the last counts.
    for (_, value) in startup.parameters.iter().filter(of_name) {
        let unknown = || UnknownReplication(String::from_utf8_lossy(value).into_owned());
        wants = value == b"database" || switch(value).ok_or_else(unknown)?;
    }
    Ok(wants)
}

/// What a client's first packet asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedParameters {
    parameters: Parameters,
    /// Its word for its transactions ([`sql::SESSION_CLASS`]), which no server has to know.
    pub session_class: Option<String>,
}

impl RequestedParameters {
    /// Reads it; a mistake in words.
    pub fn read(startup: &Startup) -> Result<RequestedParameters, String> {
        if wants_replication(startup).map_err(|unknown| unknown.to_string())? {
            return Err(
                "replication does not go through the gate: connect to the database itself".into(),
            );
        }
        // Of two values the last counts, and a name is the same in any case.
        let mut requested = Parameters::new();
        for (name, value) in options::settings(startup.parameter("options").unwrap_or_default())? {
            requested.insert(name.to_ascii_lowercase(), value);
        }
        for (name, value) in &startup.parameters {
            if !NOT_SETTINGS.contains(&&name[..]) && !name.starts_with(b"_pq_.") {
                requested.insert(name.to_ascii_lowercase(), value.clone());
            }
        }
        let is_off = |(name, value): (&Vec<u8>, &Vec<u8>)| is_strings(name) && !is_on(value);
        if requested.iter().any(is_off) {
            return Err(
                "standard_conforming_strings cannot be off in the startup packet; SET it later"
                    .into(),
            );
        }
        let mut refusals = requested
            .iter()
            .filter_map(|(name, value)| of_process::refusal(name, value));
        if let Some(refusal) = refusals.next() {
            return Err(refusal);
        }
        requested.retain(|name, value| !momentary::is_idle_at_start(name, value));
        let is_word = |name: &[u8]| name.eq_ignore_ascii_case(sql::SESSION_CLASS.as_bytes());
        let word = requested.extract_if(.., |name, _| is_word(name)).last();
        let session_class = word.map(|(_, word)| String::from_utf8_lossy(&word).into_owned());
        Ok(RequestedParameters {
            parameters: requested,
            session_class,
        })
    }

    /// What of it `user` may not ask for: an SQLSTATE and PostgreSQL's words.
    pub fn forbidden(&self, user: &str) -> Option<(&'static str, String)> {
        self.parameters.iter().find_map(|(name, value)| {
            let is = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
            if let Some(name) = INTERNAL.iter().find(|known| is(known)) {
                return Some(("55P02", format!("parameter \"{name}\" cannot be changed")));
            }
            let is_other = is(&"session_authorization") && value != user.as_bytes();
            is_other.then(|| {
                let other = String::from_utf8_lossy(value);
                let words = format!("permission denied to set session authorization \"{other}\"");
                ("42501", words)
            })
        })
    }

    /// What a client that asks for it has besides, on a server that greets new sessions with these
    /// settings.
    pub fn missing_from(&self, initial: &Parameters) -> Parameters {
        let is_own = |name: &[u8]| find(&self.parameters, name).is_none();
        let besides = initial.iter().filter(|(name, _)| is_own(name));
        besides
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// What of it a server with these settings does not report.
    pub fn unreported(&self, reported: &Parameters) -> Parameters {
        let is_extra = |name: &[u8]| find(reported, name).is_none();
        let requested = self.parameters.iter().filter(|(name, _)| is_extra(name));
        requested
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
            .collect()
    }

    /// The value that it asks for of this setting.
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        find(&self.parameters, name).map(Vec::as_slice)
    }

    /// Whether new tables may be temporary ones by its search_path.
    pub fn has_temporary_path(&self) -> bool {
        self.value(b"search_path").is_some_and(is_temporary_path)
    }

    /// Whether it asks for a value of this setting.
    pub fn names(&self, name: &[u8]) -> bool {
        find(&self.parameters, name).is_some()
    }
}

/// What no setting can be: a text without a zero.
const NO_VALUE: &[u8] = b"\0";

/// Its client has said a word that is meant for the gate: the next client is not to find it there.
pub fn hide_session_class(server: &mut ServerState) {
    let name = sql::SESSION_CLASS.as_bytes().to_vec();
    server.unreported.insert(name, NO_VALUE.to_vec());
}

/// Whether a setting follows its client because the server reports it, and every user can set it.
pub fn is_tracked(reported: &Parameters, name: &[u8]) -> bool {
    !is_fixed(name) && find(reported, name).is_some()
}

/// Whether a value of a setting that is on or off is on.
pub fn is_on(value: &[u8]) -> bool {
    switch(value) == Some(true)
}

/// What a word for on or off says, in any case and by a beginning that no other has (`parse_bool` in
/// PostgreSQL's `bool.c`).
fn switch(value: &[u8]) -> Option<bool> {
    let begins = |word: &&[u8]| {
        let beginning = word.get(..value.len());
        beginning.is_some_and(|beginning| value.eq_ignore_ascii_case(beginning))
    };
    let words: [(&[u8], bool); 8] = [
        (b"true", true),
        (b"yes", true),
        (b"on", true),
        (b"1", true),
        (b"false", false),
        (b"no", false),
        (b"off", false),
        (b"0", false),
    ];
    let mut meant = words.iter().filter(|(word, _)| begins(word));
    match (meant.next(), meant.next()) {
        (Some((_, is_on)), None) => Some(*is_on),
        _ => None,
    }
}

/// What a backslash is in a text without a prefix.
pub const STRINGS: &[u8] = b"standard_conforming_strings";

/// Whether a setting is that one.
pub fn is_strings(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(STRINGS)
}

/// Whether a backslash takes the next byte where these settings were reported.
pub fn has_escapes(reported: &Parameters) -> bool {
    find(reported, STRINGS).is_some_and(|value| !is_on(value))
}

/// Whether a setting is one that the server reports and that decides what a constant means.
pub fn is_of_parse_context(name: &[u8]) -> bool {
    let mut names = PARSE_CONTEXT.iter();
    names.any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Settings that say who the session is. They are taken back before anything else is set, and set
/// last: the role that has them may not set the rest.
pub const ROLES: [&[u8]; 2] = [b"session_authorization", b"role"];

/// The settings that decide what a statement means when it is prepared: what its constants are, and
/// by those that are not reported, such as search_path, which tables it names. Names with a dot are
/// the application's own.
pub fn parse_context(server: &ServerState) -> Vec<u8> {
    let value = |name: &str| find(&server.reported, name.as_bytes()).cloned();
    let values = PARSE_CONTEXT.map(|name| value(name).unwrap_or_default());
    let mut all = values.join(&b'\n');
    let is_own = |name: &[u8]| name.contains(&b'.');
    for (name, value) in server.unreported.iter().filter(|(name, _)| !is_own(name)) {
        // What each is made of holds no zero.
        all.extend([b"\0", &name[..], b"\0", value].concat());
    }
    all
}

/// Whether a search_path may have new tables made temporary ones.
pub fn is_temporary_path(value: &[u8]) -> bool {
    const SCHEMA: &[u8] = b"pg_temp";
    let mut places = value.windows(SCHEMA.len());
    places.any(|bytes| bytes.eq_ignore_ascii_case(SCHEMA))
}

fn is_fixed(name: &[u8]) -> bool {
    FIXED
        .iter()
        .any(|fixed| name.eq_ignore_ascii_case(fixed.as_bytes()))
}

/// Names of settings are the same in any case.
pub fn find<'a>(settings: &'a Parameters, name: &[u8]) -> Option<&'a Vec<u8>> {
    let is_it = |known: &[u8]| known.eq_ignore_ascii_case(name);
    settings
        .iter()
        .find(|(known, _)| is_it(known))
        .map(|(_, value)| value)
}

/// Whether a client may ask for a part of a setting, as "ISO" of "ISO, MDY": the rest must be what
/// new sessions have, not what another client left.
fn is_part(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"DateStyle")
}

/// Commands that give a server connection a client's settings, and what holds when they are done.
#[derive(Debug)]
pub struct CommandsToApply {
    /// As text, for one simple query.
    pub sql: String,
    /// What the server connection has besides the settings that it reports.
    pub unreported: Parameters,
    /// The reported ones that they set.
    pub set: Vec<Vec<u8>>,
}

/// What gives a server connection a client's settings; `None` where it has them.
pub fn commands_to_apply(
    requested: &RequestedParameters,
    client: &ClientState,
    server: &ServerState,
) -> Option<CommandsToApply> {
    if has_all(requested, client, server) {
        return None;
    }
    let seen = &client.reported;
    let (mut sets, mut sql) = (Vec::new(), String::new());
    for (name, has) in server.reported.iter().filter(|(name, _)| !is_fixed(name)) {
        let reported = find(seen, name);
        let wants = reported.or_else(|| find(&requested.parameters, name));
        let is_part = is_part(name) && reported.is_none() && wants.is_some();
        if is_part {
            sql += &format!("RESET {};", quoted(name, '"'));
        }
        let first = requested.value(name);
        let is_to_set = |wants: &&Vec<u8>| {
            let may_look_reset = |first| may_look_reset(first, server, name, wants);
            is_part || *wants != has || first.is_some_and(may_look_reset)
        };
        sets.extend(wants.filter(is_to_set).map(|wants| (name, wants)));
    }
    let set = sets.iter().map(|(name, _)| (*name).clone()).collect();
    let unreported = unreported(requested, client, server);
    let is_role = |name: &[u8]| ROLES.contains(&name);
    let has = |name: &[u8]| server.unreported.get(name);
    let differs = |(name, value): &(&Vec<u8>, &Vec<u8>)| has(name) != Some(*value);
    sets.extend(
        unreported
            .iter()
            .filter(differs)
            .filter(|(name, _)| !is_role(name)),
    );
    let is_gone = |name: &&Vec<u8>| !unreported.contains_key(*name) && !is_role(name);
    let gone: Vec<&Vec<u8>> = server.unreported.keys().filter(is_gone).collect();
    let is_other_role = ROLES.iter().any(|role| unreported.get(*role) != has(role));
    let is_other = is_other_role || !sql.is_empty() || !sets.is_empty() || !gone.is_empty();
    let mut resets = String::new();
    if is_other {
        let roles = ROLES.iter().filter(|role| has(role).is_some());
        resets.extend(roles.map(|role| reset(role)));
        let roles = ROLES
            .iter()
            .filter_map(|role| unreported.get_key_value(*role));
        sets.extend(roles);
    }
    resets.extend(gone.into_iter().map(|name| reset(name)));
    sql = resets + &sql;
    let encoding = encoding::of_reports(seen);
    let calls = sets.into_iter().map(|(name, value)| {
        let is_reported = || find(seen, name) == Some(value);
        match encoding.filter(|_| !value.is_ascii() && is_reported()) {
            Some(encoding) => call(name, &converted(value, encoding)),
            None => {
                let value = client_name::printable(name, value, &server.reported);
                call(name, &literal(&value))
            }
        }
    });
    let calls: Vec<String> = calls.collect();
    if !calls.is_empty() {
        sql += &format!("SELECT {}", calls.join(","));
    }
    (!sql.is_empty()).then_some(CommandsToApply {
        sql,
        unreported,
        set,
    })
}

/// Whether the server would say of a value that the client has set that the session has reset it.
///
/// A client with another value in its first packet may set what new sessions have. A server
/// connection that has this because no session set it must be told to, or it cannot tell later
/// whether the client has reset it, which gives the client the value of its first packet.
fn may_look_reset(first: &[u8], server: &ServerState, name: &[u8], wants: &[u8]) -> bool {
    first != wants && !server.set_for_clients.contains(name)
}

/// Whether the server connection has all of them as it is, which is the usual case and looked at
/// first.
fn has_all(requested: &RequestedParameters, client: &ClientState, server: &ServerState) -> bool {
    let is_it = |name: &[u8], known: &[u8]| known.eq_ignore_ascii_case(name);
    let (mut are_reported, mut must_set) = (true, false);
    for (name, first) in &requested.parameters {
        match server.reported.iter().find(|(known, _)| is_it(name, known)) {
            Some((name, has)) => must_set |= may_look_reset(first, server, name, has),
            None => are_reported = false,
        }
    }
    client.reported == server.reported
        && !must_set
        && if are_reported {
            client.unreported == server.unreported
        } else {
            unreported(requested, client, server) == server.unreported
        }
}

/// What is not reported, of the client's first packet and set since.
fn unreported(
    requested: &RequestedParameters,
    client: &ClientState,
    server: &ServerState,
) -> Parameters {
    let mut unreported = requested.unreported(&server.reported);
    unreported.extend(
        client
            .unreported
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    unreported
}

fn reset(name: &[u8]) -> String {
    format!("RESET {};", quoted(name, '"'))
}

/// By its whole name: a client's search_path may have another one first.
fn call(name: &[u8], value: &str) -> String {
    let name = literal(name);
    format!("pg_catalog.set_config({name},{value},false)")
}

fn converted(value: &[u8], encoding: &[u8]) -> String {
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    let encoding = literal(encoding);
    format!("pg_catalog.convert_from(pg_catalog.decode('{hex}','hex'),{encoding})")
}

/// Escaped so that it means the same whatever standard_conforming_strings says, and whatever
/// encoding the last client has left: beyond ASCII its bytes are the database's own, as in a first
/// packet.
pub fn literal(text: &[u8]) -> String {
    let mut literal = String::from("E'");
    for byte in text {
        match byte {
            b'\'' => literal.push_str("''"),
            b'\\' => literal.push_str("\\\\"),
            0x80.. => literal.push_str(&format!("\\{byte:03o}")),
            _ => literal.push(char::from(*byte)),
        }
    }
    literal.push('\'');
    literal
}

fn quoted(text: &[u8], quote: char) -> String {
    let text = String::from_utf8_lossy(text);
    let doubled = text.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}

#[cfg(test)]
mod tests;
