//! `SET` in the console: what clients say at their beginning is taken, and all else has its place
//! elsewhere.

use crate::config::Config;
use crate::pgbouncer;

/// Settings of sessions that drivers and tools set before their first command. They mean nothing
/// here.
const OF_SESSIONS: [&str; 19] = [
    "application_name",
    "bytea_output",
    "characteristics",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "extra_float_digits",
    "idle_in_transaction_session_timeout",
    "intervalstyle",
    "lock_timeout",
    "names",
    "search_path",
    "standard_conforming_strings",
    "statement_timeout",
    "time",
    "timezone",
    "transaction_timeout",
];

/// Whether a setting is taken; where to set it otherwise.
pub fn check(config: &Config, name: &str) -> Result<(), String> {
    if OF_SESSIONS.contains(&name) {
        return Ok(());
    }
    let mut keys = config.as_rows().into_iter().map(|(key, ..)| key);
    if keys.any(|key| key == name || key.rsplit('.').next() == Some(name)) {
        return Err(format!(
            "{name} is not set here; write it in gate.toml, then say RELOAD"
        ));
    }
    if pgbouncer::KEYS.contains(&name) {
        return Err(format!(
            "{name} is a setting of PgBouncer; `man gate.toml` has the keys of the gate, and `sooner gate import` says what becomes of PgBouncer's; write that into gate.toml, then say RELOAD"
        ));
    }
    Err(format!(
        "there is no setting {name:?}; SHOW CONFIG has those of gate.toml"
    ))
}
