//! What a command leaves behind in its session, read off its text.
//!
//! In transaction mode a client gets another server connection for each transaction. What outlives
//! a transaction there has to be repeated elsewhere or ties the client to the connection, so it has
//! to be seen. Only words are looked at, outside comments, texts and quoted names: not a parser,
//! and none is needed, because each of these commands begins with a word of its own or calls a
//! function by name. What a function or a DO block does inside the server cannot be seen.

mod comment_tags;
mod encoding;
mod first_words;
mod letters;
mod owned;
mod pattern;
mod session_class;
mod setting;
mod shape;
mod statement_name;
mod tokens;

use std::borrow::Cow;
use tokens::{Token, Tokens};

pub use comment_tags::comment_tags;
pub use encoding::{Encoding, depends_on_encoding, without_ascii_inside};
pub use first_words::{
    begins_transaction, commits, commits_open, ends_transaction, first_words, gives_up, only_reads,
    stands_alone,
};
pub use letters::{depends_on_backslash, with_letters};
pub use pattern::{NeverFits, check_pattern};
pub use session_class::{SESSION_CLASS, session_class};
pub use shape::{Shape, shape, shape_of_beginning};
pub use statement_name::{StatementName, Uses, may_name_statements, statement_names};

/// What is there until it is taken back or the session ends, and the server can say whether it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tie {
    /// The session hears notifications.
    Listening,
    /// A temporary table, view, sequence or function.
    Temporary,
    /// A lock that is held until the session ends or gives it back.
    AdvisoryLock,
    /// A cursor that outlives its transaction.
    HeldCursor,
    /// A statement prepared by SQL.
    PreparedBySql,
    /// One prepared by the protocol that the gate does not keep. No text says so.
    PreparedUnkept,
}

/// Something that outlives a transaction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionChange<'a> {
    /// A setting of the session, also by `set_config`.
    Parameter {
        /// In lower case.
        name: Cow<'a, [u8]>,
        /// What it is set to, as the server keeps it, where that can be read.
        value: Option<Cow<'a, [u8]>>,
        /// Whether it may end with the transaction: that is computed, or bound.
        may_be_local: bool,
    },
    /// A setting of this name is what it was at first.
    Reset(Cow<'a, [u8]>),
    /// A setting named by a parameter.
    BoundName {
        /// Of the parameter, from 1.
        number: usize,
        /// As with a setting that is named.
        may_be_local: bool,
    },
    /// A setting with a name that cannot be read.
    ComputedName,
    /// Something that ties the session to its client.
    Tie(Tie),
    /// Perhaps no longer.
    Untie(Tie),
    /// A library was loaded.
    Library,
    /// Every setting of the session is what it was at first (RESET ALL).
    ResetAll,
    /// A setting that ends with the transaction (SET LOCAL): its name in lower case, where that can
    /// be read.
    SetLocal(Option<Cow<'a, [u8]>>),
    /// Prepared statements are gone.
    DeallocateAll,
    /// Everything is gone (DISCARD ALL).
    DiscardAll,
    /// A prepared statement of this name is executed by SQL, and leaves behind what it leaves.
    Executes(Cow<'a, [u8]>),
    /// What the statement of this name, which PREPARE makes, leaves behind when it is executed.
    Prepared(Cow<'a, [u8]>, Box<SessionChange<'a>>),
}

/// What the commands of a text leave behind, in their order.
pub fn session_changes(sql: &[u8]) -> Vec<SessionChange<'_>> {
    let mut found = Vec::new();
    let mut command = Command::default();
    let mut tokens = Tokens::new(sql);
    while let Some(token) = tokens.next() {
        match token {
            Token::Semicolon => command = Command::default(),
            _ => command.next(token, &tokens, &mut found),
        }
    }
    found
}

/// A command of which the words come one by one.
#[derive(Default)]
struct Command<'a> {
    /// Its first words, in the order in which they came; empty ones for what is no word.
    first: [&'a [u8]; FIRST_WORDS],
    /// How many of these have come.
    first_count: usize,
    /// Empty for what is no word, as is the one before it.
    last: &'a [u8],
    before_last: &'a [u8],
    /// Whether its first words were enough to know.
    is_known: bool,
    /// The name of the statement that it prepares.
    prepared: Option<Cow<'a, [u8]>>,
}

/// Words looked at to know a command: CREATE OR REPLACE LOCAL TEMPORARY is the longest.
const FIRST_WORDS: usize = 5;

const SESSION_LOCKS: [&str; 4] = [
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
];

const SESSION_UNLOCKS: [&str; 3] = [
    "pg_advisory_unlock",
    "pg_advisory_unlock_shared",
    "pg_advisory_unlock_all",
];

fn is(word: &[u8], keyword: &str) -> bool {
    word.eq_ignore_ascii_case(keyword.as_bytes())
}

fn is_one_of(word: &[u8], keywords: &[&str]) -> bool {
    keywords.iter().any(|keyword| is(word, keyword))
}

impl Tie {
    /// All of them.
    pub const ALL: [Tie; 6] = [
        Self::Listening,
        Self::Temporary,
        Self::AdvisoryLock,
        Self::HeldCursor,
        Self::PreparedBySql,
        Self::PreparedUnkept,
    ];

    /// In words, for the operator.
    pub fn words(self) -> &'static str {
        match self {
            Self::Listening => "LISTEN",
            Self::Temporary => "a temporary table",
            Self::AdvisoryLock => "an advisory lock of the session",
            Self::HeldCursor => "a cursor WITH HOLD",
            Self::PreparedBySql => "PREPARE",
            Self::PreparedUnkept => "a long statement, or many",
        }
    }
}

fn is_temporary(word: &[u8]) -> bool {
    is_one_of(word, &["temp", "temporary"])
}

/// Whether a schema is that of temporary tables, of this process or of one of this number.
fn is_temporary_schema(name: &[u8]) -> bool {
    const SCHEMA: &[u8] = b"pg_temp";
    let Some((schema, behind)) = name.split_at_checked(SCHEMA.len()) else {
        return false;
    };
    schema.eq_ignore_ascii_case(SCHEMA) && matches!(behind, [] | [b'_', ..])
}

impl<'a> Command<'a> {
    /// Takes a token; `behind` are those that follow.
    fn next(&mut self, token: Token<'a>, behind: &Tokens<'a>, found: &mut Vec<SessionChange<'a>>) {
        let (word, name) = match token {
            Token::Word(word) => (word, word),
            Token::Quoted(name) => (&b""[..], name),
            Token::Other | Token::Semicolon => (&b""[..], &b""[..]),
        };
        if self.first_count < FIRST_WORDS {
            self.first[self.first_count] = word;
            self.first_count += 1;
        }
        let before = found.len();
        if !self.is_known {
            match self.first[..self.first_count] {
                [first] if is(first, "set") => {
                    self.is_known = true;
                    found.extend(setting::of_set(behind));
                }
                [first] if is(first, "reset") => found.extend(setting::of_reset(behind)),
                _ => found.extend(self.by_first_words()),
            }
        }
        self.is_known |= found.len() > before;
        if found.get(before) == Some(&SessionChange::Tie(Tie::PreparedBySql)) {
            self.prepared = statement_name::of_token(token);
        }
        if found.len() == before {
            let inside = self.inside(word, name, behind);
            let prepared = self.prepared.as_ref();
            found.extend(inside.map(|inside| match prepared {
                Some(name) => SessionChange::Prepared(name.clone(), Box::new(inside)),
                None => inside,
            }));
        }
        (self.before_last, self.last) = (self.last, word);
    }

    fn by_first_words(&self) -> Option<SessionChange<'a>> {
        let word = |index: usize| self.first.get(index).copied().unwrap_or_default();
        let at = self.first_count;
        match word(0) {
            first if is(first, "listen") => Some(SessionChange::Tie(Tie::Listening)),
            first if is(first, "unlisten") => Some(SessionChange::Untie(Tie::Listening)),
            first if is(first, "close") => Some(SessionChange::Untie(Tie::HeldCursor)),
            first if is(first, "drop") => Some(SessionChange::Untie(Tie::Temporary)),
            first if is(first, "load") => Some(SessionChange::Library),
            first if is(first, "prepare") && at == 2 => {
                (!is(word(1), "transaction")).then_some(SessionChange::Tie(Tie::PreparedBySql))
            }
            first if is(first, "deallocate") && at > 1 => match word(at - 1) {
                prepare if at == 2 && is(prepare, "prepare") => None,
                all if is(all, "all") => Some(SessionChange::DeallocateAll),
                _ => Some(SessionChange::Untie(Tie::PreparedBySql)),
            },
            first if is(first, "discard") && at == 2 => match word(1) {
                what if is(what, "all") => Some(SessionChange::DiscardAll),
                what if is_temporary(what) => Some(SessionChange::Untie(Tie::Temporary)),
                _ => None,
            },
            first if is(first, "create") && at > 1 => {
                let before = &self.first[1..at - 1];
                let is_modifier =
                    |word: &&[u8]| is_one_of(word, &["or", "replace", "local", "global"]);
                let is_temporary = is_temporary(word(at - 1));
                let ties = SessionChange::Tie(Tie::Temporary);
                (is_temporary && before.iter().all(is_modifier)).then_some(ties)
            }
            _ => None,
        }
    }

    /// What is said in the middle of a command.
    fn inside(&self, word: &[u8], name: &[u8], behind: &Tokens<'a>) -> Option<SessionChange<'a>> {
        if is_one_of(name, &SESSION_LOCKS) {
            return Some(SessionChange::Tie(Tie::AdvisoryLock));
        }
        if is_one_of(name, &SESSION_UNLOCKS) {
            return Some(SessionChange::Untie(Tie::AdvisoryLock));
        }
        if is(name, "set_config") {
            return setting::of_call(behind);
        }
        if self.is_unreadable(word, name, behind) {
            return Some(SessionChange::ComputedName);
        }
        let begins_with = |keywords: &[&str]| is_one_of(self.first[0], keywords);
        // Also in the middle: of EXPLAIN, of parentheses.
        let makes_temporary = is_temporary(word)
            && match self.before_temporary() {
                create if is(create, "create") => true,
                // A table may be called that.
                into => is(into, "into") && !begins_with(&["insert", "merge"]),
            };
        if makes_temporary || is_temporary_schema(name) {
            return Some(SessionChange::Tie(Tie::Temporary));
        }
        match word {
            hold if is(hold, "hold") && begins_with(&["declare"]) && is(self.last, "with") => {
                Some(SessionChange::Tie(Tie::HeldCursor))
            }
            execute if is(execute, "execute") => {
                let may_execute = begins_with(&["execute", "explain", "create"]);
                let name = behind.clone().next().filter(|_| may_execute)?;
                statement_name::of_token(name).map(SessionChange::Executes)
            }
            _ => None,
        }
    }

    /// The word before one that may make something temporary.
    fn before_temporary(&self) -> &'a [u8] {
        if is_one_of(self.last, &["local", "global"]) {
            self.before_last
        } else {
            self.last
        }
    }

    /// Whether a name is written with escapes (`U&"d\0061ta"`): any function may be meant.
    fn is_unreadable(&self, word: &[u8], name: &[u8], behind: &Tokens<'a>) -> bool {
        let is_prefixed = word.is_empty()
            && self.last.is_empty()
            && is(self.before_last, "u")
            && !name.is_empty();
        let next = || behind.clone().next();
        let says_escape = || matches!(next(), Some(Token::Word(word)) if is(word, "uescape"));
        is_prefixed && (name.contains(&b'\\') || says_escape())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The initial of each thing left, in order.
    fn left(sql: &str) -> String {
        let letter = |session_changes: &SessionChange<'_>| match session_changes {
            SessionChange::Parameter { .. }
            | SessionChange::Reset(_)
            | SessionChange::BoundName { .. }
            | SessionChange::ComputedName => 'S',
            SessionChange::Tie(tie) | SessionChange::Untie(tie) => match (session_changes, tie) {
                (SessionChange::Untie(Tie::Listening), _) => 'U',
                (SessionChange::Untie(Tie::Temporary), _) => 't',
                (SessionChange::Untie(Tie::AdvisoryLock), _) => 'a',
                (SessionChange::Untie(Tie::HeldCursor), _) => 'h',
                (SessionChange::Untie(Tie::PreparedBySql), _) => 'p',
                (_, Tie::Listening) => 'L',
                (_, Tie::Temporary) => 'T',
                (_, Tie::AdvisoryLock) => 'A',
                (_, Tie::HeldCursor) => 'H',
                (_, Tie::PreparedBySql) => 'P',
                (_, Tie::PreparedUnkept) => unreachable!("no text says so"),
            },
            SessionChange::Library => 'B',
            SessionChange::ResetAll => 'R',
            SessionChange::SetLocal(_) => 'l',
            SessionChange::DeallocateAll => 'N',
            SessionChange::DiscardAll => '0',
            SessionChange::Executes(_) => 'E',
            SessionChange::Prepared(..) => 'e',
        };
        session_changes(sql.as_bytes()).iter().map(letter).collect()
    }

    #[test]
    fn what_outlives_a_transaction_is_seen() {
        for (sql, expected) in [
            ("SET search_path = shop", "S"),
            ("set session time zone 'UTC'", "S"),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
                "SSS",
            ),
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
            ("DEALLOCATE p", "p"),
            ("DEALLOCATE PREPARE p", "p"),
            ("DISCARD ALL", "0"),
            ("DISCARD TEMP", "t"),
            ("DROP TABLE t", "t"),
            ("CLOSE ALL", "h"),
            ("SELECT pg_advisory_unlock_all()", "a"),
            ("select pg_catalog.pg_advisory_unlock(1)", "a"),
            ("BEGIN; SET a.b = 1; LISTEN x; COMMIT", "SL"),
            ("EXECUTE p(1); explain (analyze) execute p", "EE"),
            ("CREATE TEMP TABLE t AS EXECUTE p", "TE"),
            (
                "PREPARE p AS SELECT set_config('a.b', '1', false); SET a.b = 1",
                "PeS",
            ),
        ] {
            assert_eq!(left(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_table_is_temporary_wherever_that_is_said() {
        for sql in [
            "CREATE TABLE pg_temp_3.t (i int)",
            "SELECT 1 AS i INTO TEMP t",
            "SELECT 1 AS i INTO LOCAL TEMP t",
            "select 1 as i into local temporary table t",
            "SELECT 1 AS i INTO GLOBAL TEMP t",
            "SELECT 1 AS i INTO GLOBAL TEMPORARY t",
            "WITH a AS (SELECT 1) SELECT * INTO LOCAL TEMP t FROM a",
            "(SELECT 1 AS i INTO TEMP t)",
            "((SELECT 1 AS i INTO LOCAL TEMP t))",
            "EXPLAIN ANALYZE SELECT 1 AS i INTO TEMP t",
            "EXPLAIN (ANALYZE) (SELECT 1 AS i INTO LOCAL TEMPORARY t)",
            "EXPLAIN ANALYZE CREATE TEMP TABLE t AS SELECT 1",
            "EXPLAIN ANALYZE CREATE LOCAL TEMP TABLE t AS SELECT 1",
        ] {
            assert_eq!(left(sql), "T", "{sql}");
        }
    }

    #[test]
    fn a_name_with_escapes_may_be_any() {
        for sql in [
            "SELECT U&\"set\\005fconfig\"('a.b', 'c', false)",
            "SELECT U&\"set!005fconfig\" UESCAPE '!' ('a.b', 'c', false)",
            "CREATE TABLE U&\"pg\\005ftemp\".t (i int)",
            "SELECT u&\"set_config\"('a.b', 'c', false)",
        ] {
            assert_eq!(left(sql), "S", "{sql}");
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
            "DISCARD PLANS",
            "INSERT INTO temp SELECT 1",
            "SELECT \"pg_temporary\", u & \"a\", u&\"a\"",
            "SELECT local, temp FROM t",
        ] {
            assert_eq!(left(sql), "", "{sql}");
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
            session_changes(&sql);
        }

        #[test]
        fn text_that_is_quoted_says_nothing(inside in "[a-z_; ]{0,40}") {
            prop_assert_eq!(left(&format!("SELECT '{inside}', $q$ {inside} $q$ /* {inside} */")), "");
        }
    }
}
