//! What a command leaves behind in its session, read off its text.
//!
//! In transaction mode a client gets another server connection for each transaction. What outlives a transaction there has to be repeated
//! elsewhere or ties the client to the connection, so it has to be seen. Only words are looked at, outside comments, texts and quoted names: not a
//! parser, and none is needed, because each of these commands begins with a word of its own or calls a function by name. What a function
//! or a DO block does inside the server cannot be seen.

mod first_words;
mod pattern;
mod remark;
mod session_class;
mod shape;
mod tokens;

use tokens::{Token, Tokens};

pub use first_words::{begins_transaction, commits, ends_transaction, first_words, only_reads};
pub use pattern::{NeverFits, check_pattern};
pub use remark::remarks;
pub use session_class::{SESSION_CLASS, session_class};
pub use shape::{Shape, shape, shape_of_beginning};

/// Something that outlives a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leaves<'a> {
    /// A setting of the session of this name, also by RESET or `set_config`; without a name where it is not in its place.
    Setting(&'a [u8]),
    /// The session hears notifications.
    Listening,
    /// It hears fewer.
    NotListening,
    /// A temporary table, view or sequence.
    Temporary,
    /// A lock that is held until the session ends or gives it back.
    AdvisoryLock,
    /// A cursor that outlives its transaction.
    HeldCursor,
    /// A statement prepared by SQL.
    PreparedBySql,
    /// A library was loaded.
    Library,
    /// Every setting of the session is what it was at first (RESET ALL).
    NoSettings,
    /// Settings that end with the transaction (SET LOCAL).
    Local,
    /// Prepared statements are gone.
    NoStatements,
    /// Everything is gone (DISCARD ALL).
    Nothing,
}

/// What the commands of a text leave behind, in their order.
pub fn leaves(sql: &[u8]) -> Vec<Leaves<'_>> {
    let mut found = Vec::new();
    let mut command = Command::default();
    for token in Tokens::new(sql) {
        match token {
            Token::Semicolon => command = Command::default(),
            _ => found.extend(command.next(token)),
        }
    }
    found
}

/// A command whose words come one by one.
#[derive(Default)]
struct Command<'a> {
    /// Its first words, in the order in which they came; empty ones for what is no word.
    first: Vec<&'a [u8]>,
    last: &'a [u8],
    /// Whether its first words were enough to know.
    is_known: bool,
}

/// Words looked at to know a command: CREATE OR REPLACE LOCAL TEMPORARY is the longest.
const FIRST_WORDS: usize = 5;

const SESSION_LOCKS: [&str; 4] = [
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
];

fn is(word: &[u8], keyword: &str) -> bool {
    word.eq_ignore_ascii_case(keyword.as_bytes())
}

fn is_one_of(word: &[u8], keywords: &[&str]) -> bool {
    keywords.iter().any(|keyword| is(word, keyword))
}

impl Leaves<'_> {
    /// In words, for the operator.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Setting(_) => "a setting that the server does not report",
            Self::Listening | Self::NotListening => "LISTEN",
            Self::Temporary => "a temporary table",
            Self::AdvisoryLock => "an advisory lock of the session",
            Self::HeldCursor => "a cursor WITH HOLD",
            Self::PreparedBySql => "PREPARE",
            Self::Library => "LOAD",
            Self::NoSettings | Self::Local | Self::NoStatements | Self::Nothing => "nothing",
        }
    }
}

fn is_temporary(word: &[u8]) -> bool {
    is_one_of(word, &["temp", "temporary"])
}

impl<'a> Command<'a> {
    fn next(&mut self, token: Token<'a>) -> Option<Leaves<'a>> {
        let (word, name) = match token {
            Token::Word(word) => (word, word),
            Token::Quoted(name) => (&b""[..], name),
            Token::Other | Token::Semicolon => (&b""[..], &b""[..]),
        };
        if self.first.len() < FIRST_WORDS {
            self.first.push(word);
        }
        let by_words = match self.is_known {
            true => None,
            false => self.by_first_words(),
        };
        self.is_known |= by_words.is_some();
        let inside = self.inside(word, name);
        self.last = word;
        by_words.or(inside)
    }

    fn by_first_words(&self) -> Option<Leaves<'a>> {
        let word = |index: usize| self.first.get(index).copied().unwrap_or_default();
        let at = self.first.len();
        match word(0) {
            first if is(first, "set") && at > 1 => match word(1) {
                what if is(what, "local") => (at == 2).then_some(Leaves::Local),
                what if is_one_of(what, &["transaction", "constraints"]) => None,
                what if is(what, "names") => Some(Leaves::Setting(b"client_encoding")),
                what if is(what, "time") => Some(Leaves::Setting(b"TimeZone")),
                what if is(what, "session") && at == 2 => None,
                what if is(what, "session") && is(word(2), "time") => {
                    Some(Leaves::Setting(b"TimeZone"))
                }
                what if is(what, "session") => Some(Leaves::Setting(word(2))),
                name => Some(Leaves::Setting(name)),
            },
            first if is(first, "reset") && at == 2 => Some(match word(1) {
                what if is(what, "all") => Leaves::NoSettings,
                name => Leaves::Setting(name),
            }),
            first if is(first, "listen") => Some(Leaves::Listening),
            first if is(first, "unlisten") => Some(Leaves::NotListening),
            first if is(first, "load") => Some(Leaves::Library),
            first if is(first, "prepare") && at == 2 => {
                (!is(word(1), "transaction")).then_some(Leaves::PreparedBySql)
            }
            first if is(first, "deallocate") && at > 1 => {
                is(word(at - 1), "all").then_some(Leaves::NoStatements)
            }
            first if is(first, "discard") && at == 2 => match word(1) {
                what if is(what, "all") => Some(Leaves::Nothing),
                _ => None,
            },
            first if is(first, "create") && at > 1 => {
                let before = &self.first[1..at - 1];
                let is_modifier =
                    |word: &&[u8]| is_one_of(word, &["or", "replace", "local", "global"]);
                let is_temporary = is_temporary(word(at - 1));
                (is_temporary && before.iter().all(is_modifier)).then_some(Leaves::Temporary)
            }
            _ => None,
        }
    }

    /// What is said in the middle of a command.
    fn inside(&self, word: &[u8], name: &[u8]) -> Option<Leaves<'a>> {
        if is_one_of(name, &SESSION_LOCKS) {
            return Some(Leaves::AdvisoryLock);
        }
        if is(name, "set_config") {
            return Some(Leaves::Setting(b""));
        }
        if is(name, "pg_temp") || (is_temporary(word) && is(self.last, "create")) {
            return Some(Leaves::Temporary);
        }
        let begins_with = |keywords: &[&str]| {
            let first = self.first.first();
            first.is_some_and(|first| is_one_of(first, keywords))
        };
        match word {
            hold if is(hold, "hold") && begins_with(&["declare"]) && is(self.last, "with") => {
                Some(Leaves::HeldCursor)
            }
            temporary if is_temporary(temporary) && is(self.last, "into") => {
                begins_with(&["select", "with"]).then_some(Leaves::Temporary)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The initial of each thing left, in order.
    fn left(sql: &str) -> String {
        let letter = |leaves: &Leaves<'_>| match leaves {
            Leaves::Setting(_) => 'S',
            Leaves::Listening => 'L',
            Leaves::NotListening => 'U',
            Leaves::Temporary => 'T',
            Leaves::AdvisoryLock => 'A',
            Leaves::HeldCursor => 'H',
            Leaves::PreparedBySql => 'P',
            Leaves::Library => 'B',
            Leaves::NoSettings => 'R',
            Leaves::Local => 'l',
            Leaves::NoStatements => 'N',
            Leaves::Nothing => '0',
        };
        leaves(sql.as_bytes()).iter().map(letter).collect()
    }

    #[test]
    fn what_outlives_a_transaction_is_seen() {
        for (sql, expected) in [
            ("SET search_path = shop", "S"),
            ("set session time zone 'UTC'", "S"),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "S"),
            ("SET ROLE auditor", "S"),
            ("RESET ALL", "R"),
            ("RESET work_mem", "S"),
            ("SET LOCAL work_mem = '1MB'", "l"),
            ("select set_config('a.b', 'c', false)", "S"),
            ("LISTEN news", "L"),
            ("UNLISTEN *", "U"),
            ("CREATE TEMP TABLE t (i int)", "T"),
            ("create or replace temporary view v as select 1", "T"),
            ("CREATE LOCAL TEMPORARY TABLE t (i int)", "T"),
            ("CREATE TABLE pg_temp.t (i int)", "T"),
            ("SELECT 1 AS i INTO TEMP t", "T"),
            ("SELECT pg_advisory_lock(1)", "A"),
            ("SELECT \"pg_try_advisory_lock\"(1)", "A"),
            ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", "H"),
            ("PREPARE p AS SELECT 1", "P"),
            ("LOAD 'auto_explain'", "B"),
            ("LOAD'auto_explain'", "B"),
            ("SELECT 1 -- x\r; LISTEN news", "L"),
            ("DEALLOCATE ALL", "N"),
            ("DEALLOCATE PREPARE ALL", "N"),
            ("DISCARD ALL", "0"),
            ("BEGIN; SET a.b = 1; LISTEN x; COMMIT", "SL"),
        ] {
            assert_eq!(left(sql), expected, "{sql}");
        }
    }

    #[test]
    fn what_ends_with_a_transaction_is_not() {
        for sql in [
            "",
            ";;",
            "SELECT 1",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET CONSTRAINTS ALL DEFERRED",
            "UPDATE t SET a = 1",
            "INSERT INTO t VALUES ('SET x = 1; LISTEN y')",
            "SELECT $$ LISTEN y; SELECT pg_advisory_lock(1) $$",
            "SELECT $a$ $$; LISTEN y $a$",
            "SELECT E'\\'; LISTEN y'",
            "SELECT 1 -- ; LISTEN y\n",
            "/* /* nested */ LISTEN y; */ SELECT 1",
            "SELECT \"; listen y\"",
            "SELECT pg_advisory_xact_lock(1)",
            "DECLARE c CURSOR WITHOUT HOLD FOR SELECT 1",
            "PREPARE TRANSACTION 'x'",
            "CREATE TABLE temp (i int)",
            "CREATE TABLE t (temp int)",
            "DEALLOCATE p",
            "DISCARD PLANS",
            "INSERT INTO temp SELECT 1",
        ] {
            assert_eq!(left(sql), "", "{sql}");
        }
    }

    #[test]
    fn a_setting_has_a_name() {
        for (sql, name) in [
            ("SET TimeZone TO 'UTC'", "TimeZone"),
            ("SET SESSION work_mem = 1", "work_mem"),
            ("SET TIME ZONE 'UTC'", "TimeZone"),
            ("SET SESSION TIME ZONE 'UTC'", "TimeZone"),
            ("SET NAMES 'utf8'", "client_encoding"),
            ("SET SESSION AUTHORIZATION ann", "AUTHORIZATION"),
            ("RESET TimeZone", "TimeZone"),
            ("SELECT set_config('a', 'b', false)", ""),
        ] {
            assert_eq!(
                leaves(sql.as_bytes()),
                [Leaves::Setting(name.as_bytes())],
                "{sql}"
            );
        }
    }

    #[test]
    fn comments_may_stand_anywhere() {
        assert_eq!(left("/* app */ SET -- what\n search_path = x"), "S");
        assert_eq!(left("--x\nLISTEN/**/y"), "L");
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(sql in prop::collection::vec(any::<u8>(), 0..200)) {
            leaves(&sql);
        }

        #[test]
        fn text_that_is_quoted_says_nothing(inside in "[a-z_; ]{0,40}") {
            prop_assert_eq!(left(&format!("SELECT '{inside}', $q$ {inside} $q$ /* {inside} */")), "");
        }
    }
}
