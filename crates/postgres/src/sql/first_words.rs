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

/// Whether the first command of a text commits the transaction that is open, or prepares it for
/// that: COMMIT PREPARED is about another one, and PREPARE mostly names a statement.
pub fn commits_open(sql: &[u8]) -> bool {
    let mut tokens = Tokens::new(sql);
    let Some(Token::Word(first)) = tokens.find(|token| *token != Token::Semicolon) else {
        return false;
    };
    let second = tokens.next();
    let is_second =
        |word| matches!(second, Some(Token::Word(second)) if is_one_of(second, &[word]));
    if is_one_of(first, &["prepare"]) {
        // A statement may have this name: PREPARE transaction AS, PREPARE transaction (int) AS.
        let is_text =
            |(token, text): (Token<'_>, &[u8])| token == Token::Other && !text.starts_with(b"(");
        return is_second("transaction") && tokens.next_with_text().is_some_and(is_text);
    }
    is_one_of(first, &["commit", "end"]) && !is_second("prepared")
}

/// Whether a command with this first word may end the transaction that is open, well or badly.
pub fn ends_transaction(first: &[u8]) -> bool {
    commits(first) || is_one_of(first, &["rollback", "abort"])
}

/// Whether a command with this first word writes nothing.
pub fn only_reads(first: &[u8]) -> bool {
    is_one_of(first, &ONLY_READ)
}

/// Commands that do all they do in the transaction that they are in: nothing of them is left where
/// that is rolled back. A procedure and a block may commit in their middle.
const UNDONE: [&str; 8] = [
    "select", "values", "table", "with", "insert", "update", "delete", "merge",
];

/// Whether a text is one command that leaves nothing behind where it fails, so that it may be run
/// once more as if it had not been; what its functions do outside the database cannot be seen.
pub fn stands_alone(sql: &[u8]) -> bool {
    let mut words = first_words(sql);
    let is_one =
        words.next().is_some_and(|word| is_one_of(word, &UNDONE)) && words.next().is_none();
    is_one && super::session_changes(sql).is_empty()
}

/// Whether a text is one command that gives up the whole transaction that is open: ROLLBACK, and
/// not to a savepoint.
pub fn gives_up(sql: &[u8]) -> bool {
    let is_rollback = |word: &[u8]| is_one_of(word, &["rollback", "abort"]);
    let mut words = first_words(sql);
    let is_one = words.next().is_some_and(is_rollback) && words.next().is_none();
    // ROLLBACK PREPARED is no end of a transaction either.
    let is_other = |token: Token<'_>| matches!(token, Token::Word(word) if is_one_of(word, &["to", "prepared"]));
    is_one && !Tokens::new(sql).any(is_other)
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
        for sql in [
            "update t set a = 1",
            "/* x */ Select 1;",
            "with a as (select 1) insert into t select * from a",
        ] {
            assert!(stands_alone(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "",
            "call p()",
            "do $$ begin commit; end $$",
            "select 1; select 2",
            "select pg_advisory_lock(1)",
            "vacuum",
            "begin",
            "copy t from stdin",
        ] {
            assert!(!stands_alone(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "commit",
            ";; END work",
            "/* x */ Commit and chain; select 1",
            "prepare transaction 'a'",
            "PREPARE TRANSACTION E'a'",
            "prepare transaction $$a$$",
        ] {
            assert!(commits_open(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "",
            "commit prepared 'a'",
            "prepare q as select 1",
            "prepare transaction",
            "prepare transaction as select 1",
            "prepare transaction (int) as select $1",
            "prepare \"transaction\" as select 1",
            "rollback",
            "select 1; commit",
        ] {
            assert!(!commits_open(sql.as_bytes()), "{sql}");
        }
        for sql in ["rollback", "ABORT;", "rollback work and chain"] {
            assert!(gives_up(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "rollback to a",
            "rollback work to savepoint a",
            "rollback prepared 'a'",
            "commit",
            "rollback; select 1",
            "",
        ] {
            assert!(!gives_up(sql.as_bytes()), "{sql}");
        }
        assert!(only_reads(b"Select") && !only_reads(b"insert") && !only_reads(b""));
    }
}
