//! What drivers set at first although it is so already.

use super::{Parameters, find};

/// Whether a command is a SET of what is not reported and makes no difference: some drivers begin
/// with it, and would all be tied. From PostgreSQL 12 on, every `extra_float_digits` above 0 means
/// the same, and 1 is the default.
pub fn makes_no_difference(reported: &Parameters, sql: &[u8]) -> bool {
    const LONGEST_BYTES: usize = 40;
    if sql.len() > LONGEST_BYTES {
        return false;
    }
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'=' | b';');
    let mut words = sql.split(is_between).filter(|word| !word.is_empty());
    let is_set = words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case(b"SET"));
    let name = words.next().unwrap_or_default();
    let is_known = is_set && name.eq_ignore_ascii_case(b"extra_float_digits");
    let value = words.find(|word| !word.eq_ignore_ascii_case(b"TO"));
    let is_shortest = matches!(value, Some([b'1'..=b'3'])) && words.next().is_none();
    is_known && is_shortest && major_version(reported) >= Some(12)
}

fn major_version(reported: &Parameters) -> Option<u32> {
    let version = find(reported, b"server_version")?;
    let digits = version.split(|byte| !byte.is_ascii_digit()).next()?;
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drivers_set_at_first_ties_nobody() {
        let server =
            |version: &str| Parameters::from_iter([(b"server_version".to_vec(), version.into())]);
        let is_nothing = |version, sql: &str| makes_no_difference(&server(version), sql.as_bytes());
        for sql in [
            "SET extra_float_digits = 3",
            "set extra_float_digits to 2;",
            "SET extra_float_digits=1",
        ] {
            assert!(is_nothing("15.20 (Debian 15.20-0+deb12u1)", sql), "{sql}");
            assert!(!is_nothing("11.2", sql), "it made one until version 12");
        }
        for sql in [
            "SET extra_float_digits = 0",
            "SET extra_float_digits = 3; SET a.b = 1",
            "SET work_mem = 3",
            "SET extra_float_digits",
            "",
        ] {
            assert!(!is_nothing("15.20", sql), "{sql}");
        }
    }
}
