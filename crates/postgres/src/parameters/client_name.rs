//! What a client calls itself: application_name. In a startup packet PostgreSQL takes any bytes for
//! it, and replaces those that are not printable (`pg_clean_ascii`). In SQL, by which the gate sets
//! it, bytes that the database's encoding does not have are an error: so the gate does the same.

use super::{Parameters, find};
use std::borrow::Cow;

const NAME: &[u8] = b"application_name";
/// From this version on a byte is written as its number, and before as a question mark.
const WITH_NUMBERS: u32 = 16;

/// A value of this setting as a server that reports these would take it from a startup packet.
pub fn printable<'a>(name: &[u8], value: &'a [u8], reported: &Parameters) -> Cow<'a, [u8]> {
    let is_printable = |byte: &u8| matches!(byte, b' '..=b'~');
    if !name.eq_ignore_ascii_case(NAME) || value.iter().all(is_printable) {
        return Cow::Borrowed(value);
    }
    let has_numbers = major_version(reported).is_some_and(|version| version >= WITH_NUMBERS);
    let written = |byte: &u8| match byte {
        byte if is_printable(byte) => vec![*byte],
        byte if has_numbers => format!("\\x{byte:02x}").into_bytes(),
        _ => vec![b'?'],
    };
    value.iter().flat_map(written).collect()
}

/// The first number of a version, as of `18.1 (Debian 18.1-1)` or `19devel`.
fn major_version(reported: &Parameters) -> Option<u32> {
    let version = find(reported, b"server_version")?;
    let digits = version.iter().take_while(|byte| byte.is_ascii_digit());
    let digits: Vec<u8> = digits.copied().collect();
    str::from_utf8(&digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_printable_is_written_as_the_server_writes_it() {
        for (version, expected) in [
            ("15.14 (Debian 15.14-0+deb12u1)", "caf? a\\b?"),
            ("16.0", "caf\\xe9 a\\b\\x0a"),
            ("19devel", "caf\\xe9 a\\b\\x0a"),
            ("9.6.24", "caf? a\\b?"),
        ] {
            let mut reported = Parameters::new();
            reported.insert(b"server_version".to_vec(), version.into());
            let value = printable(b"Application_Name", b"caf\xe9 a\\b\n", &reported);
            assert_eq!(String::from_utf8_lossy(&value), expected, "{version}");
            let other = printable(b"app.user", b"caf\xe9", &reported);
            assert_eq!(&*other, b"caf\xe9");
        }
    }
}
