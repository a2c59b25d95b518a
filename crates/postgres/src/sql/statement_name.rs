//! Names of prepared statements in commands: EXECUTE, DEALLOCATE and PREPARE.

use super::tokens::{Token, Tokens};
use super::{is, is_one_of};
use std::borrow::Cow;
use std::ops::Range;

/// What a command does with a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// EXECUTE, also under EXPLAIN and CREATE TABLE AS.
    Execute,
    /// DEALLOCATE of one.
    Deallocate,
    /// PREPARE.
    Prepare,
}

impl Uses {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Execute, Self::Deallocate, Self::Prepare];
}

/// The name of a prepared statement in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementName {
    /// What the command does with it.
    pub uses: Uses,
    /// As PostgreSQL understands it: in lower case where it is not quoted.
    pub name: Vec<u8>,
    /// Where it stands, quotes included, in bytes.
    pub at: Range<usize>,
}

impl StatementName {
    /// Takes its letters from `sql`, which is written as the client has sent it, where it was found
    /// in the same text as it is `read`.
    pub fn restore(&mut self, sql: &[u8], read: &[u8]) {
        let (written, read) = (&sql[self.at.clone()], &read[self.at.clone()]);
        if let [b'"', inside @ ..] = written {
            self.name = unquoted(inside.strip_suffix(b"\"").unwrap_or(inside));
            return;
        }
        // Parts of letters are in no case.
        let letters = self.name.iter_mut().zip(written).zip(read);
        for ((own, written), _) in letters.filter(|((_, written), read)| written != read) {
            *own = *written;
        }
    }
}

/// Whether a text has a word that a name of a prepared statement follows: enough to pass nearly all
/// others by.
pub fn may_name_statements(sql: &[u8]) -> bool {
    const KEYWORDS: [&[u8]; 3] = [b"execute", b"deallocate", b"prepare"];
    let begins_with = |rest: &[u8], keyword: &[u8]| {
        let head = rest.get(..keyword.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(keyword))
    };
    sql.iter().enumerate().any(|(at, byte)| {
        let is_first = matches!(byte, b'e' | b'E' | b'd' | b'D' | b'p' | b'P');
        is_first
            && KEYWORDS
                .iter()
                .any(|keyword| begins_with(&sql[at..], keyword))
    })
}

/// The names of prepared statements that the commands of a text have, in their order.
pub fn statement_names(sql: &[u8]) -> Vec<StatementName> {
    let (mut found, mut words) = (Vec::new(), Words::default());
    let mut tokens = Tokens::new(sql);
    while let Some((token, text)) = tokens.next_with_text() {
        if token == Token::Semicolon {
            words = Words::default();
            continue;
        }
        if let Some(uses) = words.expects(token)
            && let Some(name) = of_token(token)
        {
            let name = name.into_owned();
            let start = text.as_ptr() as usize - sql.as_ptr() as usize;
            let at = start..start + text.len();
            found.push(StatementName { uses, name, at });
        }
        words.next(token, text);
    }
    found
}

/// The name that a token is, as PostgreSQL understands it.
pub(super) fn of_token(token: Token<'_>) -> Option<Cow<'_, [u8]>> {
    match token {
        Token::Word(word) => Some(Cow::from(word.to_ascii_lowercase())),
        Token::Quoted(name) => Some(Cow::from(unquoted(name))),
        Token::Semicolon | Token::Other => None,
    }
}

/// Two quotes in a quoted name are one.
fn unquoted(name: &[u8]) -> Vec<u8> {
    let mut before = 0;
    let mut unquoted = name.to_vec();
    unquoted.retain(|byte| {
        let is_second = *byte == b'"' && before == b'"';
        before = if is_second { 0 } else { *byte };
        !is_second
    });
    unquoted
}

/// The words of a command so far.
#[derive(Default)]
struct Words<'a> {
    /// Those that matter: in EXPLAIN without its options.
    words: Vec<&'a [u8]>,
    /// Of parentheses.
    depth: usize,
    is_done: bool,
}

impl<'a> Words<'a> {
    /// What the name that comes next would be used for.
    fn expects(&self, next: Token<'a>) -> Option<Uses> {
        let is_next = |keyword| matches!(next, Token::Word(word) if is(word, keyword));
        let is_all = || is_next("all");
        let lower = self.words.iter().map(|word| word.to_ascii_lowercase());
        let lower: Vec<Vec<u8>> = lower.collect();
        let words: Vec<&[u8]> = lower.iter().map(Vec::as_slice).collect();
        match words[..] {
            _ if self.is_done || self.depth > 0 => None,
            [b"execute"] | [b"explain", b"execute"] => Some(Uses::Execute),
            [b"create", .., b"as", b"execute"] | [b"explain", b"create", .., b"as", b"execute"] => {
                Some(Uses::Execute)
            }
            [b"deallocate"] if is_next("prepare") => None,
            [b"deallocate"] | [b"deallocate", b"prepare"] => {
                (!is_all()).then_some(Uses::Deallocate)
            }
            [b"prepare"] => (!is_next("transaction")).then_some(Uses::Prepare),
            _ => None,
        }
    }

    fn next(&mut self, token: Token<'a>, text: &[u8]) {
        /// `CREATE UNLOGGED TABLE IF NOT EXISTS catalog.schema.name AS EXECUTE` has fewer.
        const WORDS_MAX: usize = 24;
        self.is_done |= self.expects(token).is_some() || self.words.len() > WORDS_MAX;
        let is_explained = self.words.first().is_some_and(|first| is(first, "explain"));
        match (token, text) {
            (_, b"(") => self.depth += 1,
            (_, b")") => self.depth = self.depth.saturating_sub(1),
            _ if self.depth > 0 => {}
            (Token::Word(word), _) if is_explained && is_one_of(word, &["analyze", "verbose"]) => {}
            (Token::Word(word), _) => self.words.push(word),
            _ => self.words.push(b""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sql: &str) -> String {
        let found = statement_names(sql.as_bytes());
        assert!(found.is_empty() || may_name_statements(sql.as_bytes()));
        let words = found.into_iter().map(|name| {
            let uses = match name.uses {
                Uses::Execute => 'E',
                Uses::Deallocate => 'D',
                Uses::Prepare => 'P',
            };
            let written = &sql[name.at];
            format!("{uses}:{}({written})", String::from_utf8_lossy(&name.name))
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_are_found_where_commands_have_them() {
        assert_eq!(names("EXECUTE a(1, 'execute b')"), "E:a(a)");
        assert_eq!(
            names("deallocate Pdo_1; DEALLOCATE PREPARE \"B\""),
            "D:pdo_1(Pdo_1) D:B(\"B\")"
        );
        assert_eq!(names("/* x */ PREPARE q (int) AS select $1"), "P:q(q)");
        assert_eq!(names("explain (analyze) execute a"), "E:a(a)");
        assert_eq!(names("EXPLAIN ANALYZE EXECUTE a"), "E:a(a)");
        assert_eq!(names("create temp table t as execute a(1)"), "E:a(a)");
        let explained = "explain analyze create temp table t as execute a(1)";
        assert_eq!(names(explained), "E:a(a)");
        assert_eq!(names("execute \"x\"\"y\""), "E:x\"y(\"x\"\"y\")");
    }

    #[test]
    fn what_only_looks_like_one_is_none() {
        assert!(!may_name_statements(
            b"SELECT depp FROM prep WHERE exec = 1"
        ));
        for sql in [
            "DEALLOCATE ALL",
            "deallocate prepare all",
            "PREPARE TRANSACTION 'x'",
            "grant execute on function f to bob",
            "select 'execute a'",
            "create trigger t after insert on x for each row execute function f()",
            "select execute from t",
            "explain select execute from t",
            "insert into t values (1) returning execute",
        ] {
            assert_eq!(names(sql), "", "{sql}");
        }
    }
}
