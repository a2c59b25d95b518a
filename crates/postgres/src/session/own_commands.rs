//! What stands before commands of the gate's own in a client's session: what is set there for the
//! client's statements is not meant for them, and holds again when they are done.

use crate::parameters::{self, Parameters};

/// By what clients have set, what reads anything might wait for other transactions (SERIALIZABLE,
/// READ ONLY, DEFERRABLE).
pub const WITHOUT_WAIT: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;";

const STATEMENT_TIMEOUT: &str = "statement_timeout";
/// Of PostgreSQL from [`TRANSACTION_TIMEOUT_SINCE`] on.
const TRANSACTION_TIMEOUT: &str = "transaction_timeout";
const TRANSACTION_TIMEOUT_SINCE: u32 = 17;

/// Nothing that takes long is ended for that up to the end of the transaction, on a server that
/// reports these settings.
pub fn without_timeouts(reported: &Parameters) -> String {
    let mut sql = format!("SET LOCAL {STATEMENT_TIMEOUT} = 0;");
    if major_version(reported) >= TRANSACTION_TIMEOUT_SINCE {
        sql += &format!("SET LOCAL {TRANSACTION_TIMEOUT} = 0;");
    }
    sql
}

/// Whether that hides the session's value of a setting.
pub(super) fn is_timeout(name: &[u8]) -> bool {
    [STATEMENT_TIMEOUT, TRANSACTION_TIMEOUT]
        .iter()
        .any(|timeout| name.eq_ignore_ascii_case(timeout.as_bytes()))
}

fn major_version(reported: &Parameters) -> u32 {
    let version = parameters::find(reported, b"server_version").map(Vec::as_slice);
    let digits = version.unwrap_or_default().iter();
    let digits = digits.take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u32, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u32::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_what_it_knows() {
        let told = |version: &str| {
            let mut reported = Parameters::new();
            reported.insert(b"server_version".to_vec(), version.into());
            without_timeouts(&reported)
        };
        let statement = "SET LOCAL statement_timeout = 0;";
        let both = format!("{statement}SET LOCAL transaction_timeout = 0;");
        for version in ["15.13 (Debian 15.13-0+deb12u1)", "9.6.24", "16.9", ""] {
            assert_eq!(told(version), statement, "{version}");
        }
        for version in ["17.5", "18beta1", "19devel"] {
            assert_eq!(told(version), both, "{version}");
        }
        assert_eq!(without_timeouts(&Parameters::new()), statement);
        assert!(is_timeout(b"statement_timeout") && !is_timeout(b"lock_timeout"));
    }
}
