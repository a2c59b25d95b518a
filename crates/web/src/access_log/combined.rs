//! The combined format of Apache's httpd, byte for byte, for programs that read logs:
//! `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"`.
//!
//! Its escapes (`ap_escape_logitem`): `\"`, `\\`, the letters of C for what has one, `\xhh` for
//! what else is not printable ASCII. So a line is a line, and a quotation mark ends its field,
//! whatever a client sends.

use super::json::push_number;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `"text"`, escaped, or `"-"` for none.
pub fn push_quoted(text: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(b'"');
    push_escaped(text.unwrap_or(b"-"), out);
    out.push(b'"');
}

/// Appends `text`, escaped.
pub fn push_escaped(text: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if text
        .iter()
        .fold(true, |so_far, &byte| so_far & is_plain(byte))
    {
        return out.extend_from_slice(text);
    }
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x0b => out.extend_from_slice(b"\\v"),
            _ if is_plain(byte) => out.push(byte),
            _ => out.extend_from_slice(&[
                b'\\',
                b'x',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]),
        }
    }
}

/// Appends the name of a user, escaped, with its blanks so that it stays one word; `-` for none.
pub fn push_user(user: Option<&[u8]>, out: &mut Vec<u8>) {
    for (index, word) in user.unwrap_or(b"-").split(|&byte| byte == b' ').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"\\x20");
        }
        push_escaped(word, out);
    }
}

/// Appends ` 200 1234`, with `-` for a body of no bytes.
pub fn push_outcome(status: u16, size_bytes: u64, out: &mut Vec<u8>) {
    out.push(b' ');
    push_number(status.into(), out);
    out.push(b' ');
    match size_bytes {
        0 => out.push(b'-'),
        _ => push_number(size_bytes, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(text: &[u8]) -> String {
        let mut out = Vec::new();
        push_escaped(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_user_is_one_word() {
        for (user, expected) in [
            (None, "-"),
            (Some("anna"), "anna"),
            (Some("a b\" [c"), "a\\x20b\\\"\\x20[c"),
        ] {
            let mut out = Vec::new();
            push_user(user.map(str::as_bytes), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn escapes_are_those_of_httpd() {
        assert_eq!(escaped(b"a \"b\" \\ c"), r#"a \"b\" \\ c"#);
        assert_eq!(escaped(b"\x08\n\r\t\x0b"), r"\b\n\r\t\v");
        assert_eq!(
            escaped("\u{e9}\x7f\0\x0c".as_bytes()),
            r"\xc3\xa9\x7f\x00\x0c"
        );
    }

    proptest! {
        #[test]
        fn anything_is_printable_and_no_quotation_mark_is_bare(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let escaped = escaped(&text);
            prop_assert!(escaped.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            let mut bytes = escaped.bytes();
            while let Some(byte) = bytes.next() {
                prop_assert!(byte != b'"');
                if byte == b'\\' {
                    bytes.next();
                }
            }
        }
    }
}
