//! The first word of each command of a text: what kind of command it is.

use super::is_one_of;
use super::tokens::{Token, Tokens};

/// Commands that write nothing, unless a function does that they call.
const ONLY_READ: [&str; 18] = [
    "select",
    "values",
    "table",
    "show",
    "fetch",
    "move",
    "explain",
    "declare",
    "close",
    "begin",
    "start",
    "savepoint",
    "release",
    "rollback",
    "abort",
    "set",
    "reset",
    "listen",
];

/// The first word of each command; empty for what is no word.
pub fn first_words(sql: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut tokens = Tokens::new(sql);
    let is_end = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
    let end = sql.iter().rposition(|byte| !is_end(byte));
    let is_one = !sql[..end.unwrap_or(0)].contains(&b';');
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        is_over = is_one;
        let first = tokens.find(|token| *token != Token::Semicolon)?;
        if !is_one {
            let _ = tokens.find(|token| *token == Token::Semicolon);
        }
        match first {
            Token::Word(word) => Some(word),
            _ => Some(&b""[..]),
        }
    })
}

/// Whether a command with this first word may begin a transaction.
pub fn begins_transaction(first: &[u8]) -> bool {
    is_one_of(first, &["begin", "start"])
}

/// Whether a command with this first word may commit the transaction that is open.
pub fn commits(first: &[u8]) -> bool {
    is_one_of(first, &["commit", "end", "prepare"])
}

/// Whether a command with this first word may end the transaction that is open, well or badly.
pub fn ends_transaction(first: &[u8]) -> bool {
    commits(first) || is_one_of(first, &["rollback", "abort"])
}

/// Whether a command with this first word writes nothing.
pub fn only_reads(first: &[u8]) -> bool {
    is_one_of(first, &ONLY_READ)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(sql: &str) -> String {
        let words = first_words(sql.as_bytes());
        let words = words.map(|word| String::from_utf8_lossy(word).into_owned());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_command_has_a_first_word() {
        assert_eq!(words("/* a; */ SELECT 1"), "SELECT");
        assert_eq!(
            words("begin; insert into t values (';');; commit"),
            "begin insert commit"
        );
        assert_eq!(words(""), "");
        assert_eq!(words("(select 1); copy t from stdin;"), " copy");
        assert!(commits(b"COMMIT") && !commits(b"ROLLBACK") && ends_transaction(b"ROLLBACK"));
        assert!(only_reads(b"Select") && !only_reads(b"insert") && !only_reads(b""));
    }
}
