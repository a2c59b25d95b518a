//! `idle_session_timeout`: a server process ends by it what is idle, which between two transactions is
//! a connection that other clients use. So the gate ends the sessions of clients that have it, and
//! no idle connection has it.

use super::RequestedParameters;
use crate::session::{ClientState, ServerState};
use std::time::Duration;

const NAME: &[u8] = b"idle_session_timeout";

/// For how long a client lets its session be idle; `None` without end.
pub fn timeout(requested: &RequestedParameters, client: &ClientState) -> Option<Duration> {
    let own = client.unreported.get(NAME).map(Vec::as_slice);
    duration(own.or_else(|| requested.value(NAME))?)
}

/// The command after which a server connection no longer has what its client has set, and the state
/// that it has then; `None` where it has it not.
pub fn reset(server: &mut ServerState) -> Option<&'static str> {
    // Looked at first: what none has set is not copied.
    server.unreported.contains_key(NAME).then(|| {
        server.unreported.remove(NAME);
        "RESET idle_session_timeout"
    })
}

/// A value as PostgreSQL reads it: a number with a unit, or of milliseconds; `None` of none and of
/// what it refuses.
fn duration(value: &[u8]) -> Option<Duration> {
    let text = str::from_utf8(value).ok()?.trim();
    let is_unit = |letter: char| letter.is_ascii_lowercase() && letter != 'e';
    let unit_at = text.find(is_unit).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit_ms = match unit {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1e3,
        "min" => 60e3,
        "h" => 3600e3,
        "d" => 86400e3,
        _ => return None,
    };
    let ms = number.trim().parse::<f64>().ok()? * unit_ms;
    let is_some = (0.5..=f64::from(i32::MAX)).contains(&ms);
    is_some.then(|| Duration::from_millis(ms.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_postgresql_reads_them() {
        for (value, expected) in [
            ("0", None),
            ("-1", None),
            ("", None),
            ("x", None),
            ("5 fortnights", None),
            ("inf", None),
            ("1e99", None),
            ("1000", Some(1000)),
            (" 250ms ", Some(250)),
            ("1.5s", Some(1500)),
            ("2e1 s", Some(20_000)),
            ("1500us", Some(2)),
            ("400us", None),
            ("2min", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("1d", Some(86_400_000)),
            ("30d", None),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(duration(value.as_bytes()), expected, "{value:?}");
        }
    }
}
