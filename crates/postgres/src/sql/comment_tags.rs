//! What a program says of itself in a comment of its statements: `/*route='%2Fpay',class='gold'*/`,
//! as sqlcommenter writes it behind a statement and others before it, or
//! `/*controller:orders,action:pay*/`.
//!
//! Only a comment at the very beginning and one at the very end count.

use percent_encoding::percent_decode;

/// A comment of more bytes says something else.
const COMMENT_BYTES_MAX: usize = 2048;
/// Pairs of a comment that are looked at.
const PAIRS_MAX: usize = 16;
/// Bytes of a key or a value.
const TEXT_BYTES_MAX: usize = 256;

/// Keys and values, those of the first comment before those of the last.
pub fn comment_tags(sql: &[u8]) -> Vec<(String, String)> {
    let first = first_comment(sql);
    let last =
        last_comment(sql).filter(|last| first.is_none_or(|first| first.as_ptr() != last.as_ptr()));
    let comments = [first, last].into_iter().flatten();
    comments.flat_map(pairs).collect()
}

fn first_comment(sql: &[u8]) -> Option<&[u8]> {
    let inside = sql.trim_ascii_start().strip_prefix(b"/*")?;
    let inside = &inside[..inside.len().min(COMMENT_BYTES_MAX)];
    let end = inside.windows(2).position(|bytes| bytes == b"*/")?;
    Some(&inside[..end])
}

/// A text that ends in `*/` ends in a comment: inside quotes a quote would be behind it.
fn last_comment(sql: &[u8]) -> Option<&[u8]> {
    let is_around = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
    let end = sql.len() - sql.iter().rev().take_while(|byte| is_around(byte)).count();
    let inside = sql[..end].strip_suffix(b"*/")?;
    let inside = &inside[inside.len().saturating_sub(COMMENT_BYTES_MAX)..];
    let begin = inside.windows(2).rposition(|bytes| bytes == b"/*")?;
    Some(&inside[begin + 2..])
}

fn pairs(comment: &[u8]) -> Vec<(String, String)> {
    let (mut rest, mut pairs) = (comment, Vec::new());
    while pairs.len() < PAIRS_MAX && !rest.is_empty() {
        let (one, behind) = one_of(rest);
        pairs.extend(pair(one));
        rest = behind;
    }
    pairs
}

/// Everything to the next comma that is not quoted, and what is behind it.
fn one_of(text: &[u8]) -> (&[u8], &[u8]) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let ends = |byte: &u8| {
        let is_end = *byte == b',' && !is_quoted;
        is_quoted ^= *byte == b'\'' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    };
    match text.iter().position(ends) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}

fn pair(text: &[u8]) -> Option<(String, String)> {
    let between = text.iter().position(|byte| matches!(byte, b'=' | b':'))?;
    let (key, value) = (
        text[..between].trim_ascii(),
        text[between + 1..].trim_ascii(),
    );
    let quoted = value
        .strip_prefix(b"'")
        .and_then(|value| value.strip_suffix(b"'"));
    let (key, value) = (decoded(key), decoded(&unescaped(quoted.unwrap_or(value))));
    let is_short = key.len() <= TEXT_BYTES_MAX && value.len() <= TEXT_BYTES_MAX;
    (!key.is_empty() && is_short).then_some((key, value))
}

/// A quote inside has a backslash before it.
fn unescaped(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.iter().peekable();
    while let Some(byte) = bytes.next() {
        let is_escape = *byte == b'\\' && bytes.peek() == Some(&&b'\'');
        if !is_escape {
            out.push(*byte);
        }
    }
    out
}

fn decoded(text: &[u8]) -> String {
    percent_decode(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(sql: &str) -> String {
        let pairs = comment_tags(sql.as_bytes()).into_iter();
        let written: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
        written.join("|")
    }

    #[test]
    fn keys_and_values_are_read_as_they_were_meant() {
        for (sql, expected) in [
            // As in sqlcommenter's specification.
            (
                "SELECT * FROM FOO /*action='%2Fparam*d',controller='index',traceparent='00-5bd66ef5-01'*/",
                "action=/param*d|controller=index|traceparent=00-5bd66ef5-01",
            ),
            ("/*class='gold'*/ SELECT 1", "class=gold"),
            (
                " /* class=gold , route='/pay' */ SELECT 1;",
                "class=gold|route=/pay",
            ),
            (
                "SELECT 1 /*controller:orders,action:pay*/ ; ",
                "controller=orders|action=pay",
            ),
            ("/*a=1*/ SELECT 1 /*b=2*/", "a=1|b=2"),
            ("/*a=1*/", "a=1"),
            ("SELECT 1 /*name='it\\'s, this'*/", "name=it's, this"),
            ("SELECT 1 /*key%20one='%C3%A4'*/", "key one=\u{e4}"),
            ("SELECT 1", ""),
            ("SELECT '/*a=1*/'", ""),
            ("SELECT /*a=1*/ 1", ""),
            ("SELECT 1 /* just words */", ""),
            ("/* not closed a=1 SELECT 1", ""),
            ("SELECT 1 */", ""),
            ("", ""),
        ] {
            assert_eq!(said(sql), expected, "{sql}");
        }
    }

    #[test]
    fn what_is_too_long_says_nothing() {
        assert_eq!(said(&format!("SELECT 1 /*a='{}'*/", "x".repeat(300))), "");
        assert_eq!(said(&format!("SELECT 1 /*a=1,{}*/", "x".repeat(3000))), "");
        assert_eq!(
            comment_tags(format!("/*{}*/", "a=1,".repeat(100)).as_bytes()).len(),
            PAIRS_MAX
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(sql in prop::collection::vec(any::<u8>(), 0..300)) {
            comment_tags(&sql);
        }

        #[test]
        fn what_was_written_is_read(key in "[a-z]{1,9}", value in "[a-zA-Z/ ,;=:*'\\u{e4}]{0,20}") {
            let encoded: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(said(&format!("SELECT 1 /*{key}='{encoded}'*/")), format!("{key}={value}"));
        }
    }
}
