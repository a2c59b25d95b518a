//! Texts where standard_conforming_strings is off: a backslash takes the next byte there.

use super::tokens::{Backslash, Doubt, Token, Tokens};
use std::borrow::Cow;

/// A text that is read with standard_conforming_strings off as it reads with it on. Each byte stays
/// where it is: only in constants stand two quotes, which are one, where a backslash and the byte
/// that it takes stood.
pub fn with_letters(sql: &[u8]) -> Cow<'_, [u8]> {
    if !sql.contains(&b'\\') {
        return Cow::Borrowed(sql);
    }
    let mut read = sql.to_vec();
    let mut tokens = Tokens::with(sql, Backslash::Escape);
    while let Some((token, text)) = tokens.next_with_text() {
        let is_constant = token == Token::Other && matches!(text, [b'\'' | b'n' | b'N', ..]);
        if is_constant && text.contains(&b'\\') {
            let start = text.as_ptr() as usize - sql.as_ptr() as usize;
            without_backslashes(&mut read[start..start + text.len()]);
        }
    }
    Cow::Owned(read)
}

fn without_backslashes(mut constant: &mut [u8]) {
    while let Some(at) = constant.iter().position(|byte| *byte == b'\\') {
        let Some(taken) = constant.get_mut(at..at + 2) else {
            return;
        };
        taken.fill(b'\'');
        constant = &mut constant[at + 2..];
    }
}

/// Whether a text reads otherwise with the other value of standard_conforming_strings.
pub fn depends_on_backslash(sql: &[u8]) -> bool {
    [Backslash::Letter, Backslash::Escape]
        .into_iter()
        .any(|backslash| {
            let mut tokens = Tokens::with(sql, backslash);
            let mut doubts = std::iter::from_fn(|| tokens.next().map(|_| tokens.doubt()));
            doubts.any(|doubt| doubt == Some(Doubt::Setting))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{SessionChange, Tie, session_changes};
    use proptest::prelude::*;

    #[test]
    fn what_stands_behind_a_text_with_escapes_is_seen() {
        let changes = |sql: &str| {
            let read = with_letters(sql.as_bytes());
            let changes = session_changes(&read).into_iter();
            changes.map(SessionChange::into_owned).collect::<Vec<_>>()
        };
        let listens = [SessionChange::Tie(Tie::Listening)];
        for sql in [
            "INSERT INTO t VALUES ('O\\'Brien'); LISTEN news",
            "INSERT INTO t VALUES (n'O\\'Brien'); LISTEN news",
            "SELECT 'a\\\\'; LISTEN news",
            "SELECT 'it''s \\'', E'\\''; LISTEN news",
        ] {
            assert_eq!(changes(sql), listens, "{sql}");
            assert!(
                depends_on_backslash(sql.as_bytes()) || sql.contains("\\\\"),
                "{sql}"
            );
        }
        for sql in ["SELECT 'a\\'; LISTEN news --'", "SELECT 'a\\"] {
            assert!(changes(sql).is_empty(), "{sql}");
        }
        // What stands in a constant with escapes is not read.
        for sql in ["SET app.user = 'a\\142'", "SET app.user = 'a\\\\b'"] {
            let [SessionChange::Parameter { value: None, .. }] = &changes(sql)[..] else {
                panic!("{sql}: {:?}", changes(sql));
            };
        }
        for sql in [
            "SELECT 'a\\b'",
            "SELECT E'a\\''",
            "SELECT $$a\\'$$",
            "SELECT 1",
        ] {
            assert!(!depends_on_backslash(sql.as_bytes()), "{sql}");
        }
    }

    proptest! {
        /// Cut at the same places.
        #[test]
        fn nothing_moves(sql in "('|\\\\|a|n|E| |;|--|\n|\\$\\$|\"|/\\*|\\*/){0,24}") {
            let read = with_letters(sql.as_bytes());
            let lengths = |mut tokens: Tokens<'_>| -> Vec<usize> {
                let all = std::iter::from_fn(|| tokens.next_with_text());
                all.map(|(_, text)| text.len()).collect()
            };
            prop_assert_eq!(
                lengths(Tokens::new(&read)),
                lengths(Tokens::with(sql.as_bytes(), Backslash::Escape))
            );
        }
    }
}
