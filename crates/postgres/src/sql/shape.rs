//! What a statement does, whatever constants stand in it: for classes by statement, and to learn
//! from its like how long it will take.

use super::tokens::{Backslash, Doubt, Token, Tokens};

/// What is looked at of a text, bytes: what differs behind that is the same.
const LOOKED_AT_BYTES: usize = 4096;
/// What is kept of a shape to be read, bytes.
pub const KEPT_BYTES: usize = 512;
/// Where a constant or a parameter stood.
const CONSTANT: &[u8] = b"?";
/// Commands that only make room for others.
const AROUND: [&str; 12] = [
    "begin",
    "start",
    "set",
    "reset",
    "show",
    "savepoint",
    "release",
    "commit",
    "end",
    "rollback",
    "abort",
    "discard",
];

type IsConstant = fn(&[u8]) -> bool;

/// A statement without its constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// In lower case, with one space where there is any, comments and constants left out, lists of
    /// constants as one; its beginning.
    pub text: String,
    /// FNV-1a, 64 bits, of all of that.
    pub fingerprint: u64,
}

/// The shape of the first command of a text that is more than the frame of a transaction. Nothing
/// of a constant is in it, whatever standard_conforming_strings is: where the text does not tell,
/// the shape ends.
pub fn shape(sql: &[u8]) -> Option<Shape> {
    shape_of(sql, true)
}

/// The same of the beginning of a text.
pub fn shape_of_beginning(sql: &[u8]) -> Option<Shape> {
    shape_of(sql, false)
}

fn shape_of(sql: &[u8], is_all: bool) -> Option<Shape> {
    let looked_at = &sql[..sql.len().min(LOOKED_AT_BYTES)];
    let is_all = is_all && looked_at.len() == sql.len();
    let text = whole(looked_at, is_all, is_constant)?;
    Some(Shape {
        fingerprint: fingerprint(&text),
        text: readable(&text),
    })
}

/// The shape, to its end, of a text in which `?` stands for a constant.
pub fn shape_of_shape(text: &str) -> Option<Vec<u8>> {
    whole(text.as_bytes(), true, |written| {
        written == CONSTANT || is_constant(written)
    })
}

/// How a text is read.
struct Reading {
    backslash: Backslash,
    /// Whether nothing behind the first doubt is known.
    ends_in_doubt: bool,
}

impl Reading {
    /// What standard_conforming_strings is, is not known here: it is the value with which all
    /// quotes are closed.
    fn of(sql: &[u8], is_all: bool) -> Self {
        let reading = |backslash, ends_in_doubt| Self {
            backslash,
            ends_in_doubt,
        };
        if !sql.contains(&b'\\') {
            return reading(Backslash::Letter, false);
        }
        let [on, off] = [Backslash::Letter, Backslash::Escape].map(|backslash| {
            let mut tokens = Tokens::with(sql, backslash);
            let doubts = std::iter::from_fn(|| tokens.next().map(|_| tokens.doubt()));
            let doubt = doubts
                .flatten()
                .max_by_key(|doubt| *doubt == Doubt::Encoding);
            (doubt, is_all && !tokens.is_open())
        });
        match (on, off) {
            ((Some(Doubt::Encoding), _), _) => reading(Backslash::Letter, true),
            ((None, _), _) | ((_, true), (_, false)) => reading(Backslash::Letter, false),
            ((_, false), (Some(Doubt::Setting) | None, true)) => reading(Backslash::Escape, false),
            _ => reading(Backslash::Letter, true),
        }
    }
}

/// The shape to its end, with what is a constant besides words and quoted names.
fn whole(sql: &[u8], is_all: bool, is_constant: IsConstant) -> Option<Vec<u8>> {
    let reading = Reading::of(sql, is_all);
    let mut tokens = Tokens::with(sql, reading.backslash);
    loop {
        let (text, is_last) = command(&mut tokens, &reading, is_constant);
        let first = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let is_around = AROUND.iter().any(|word| word.as_bytes() == first);
        match (text.is_empty() || is_around, is_last) {
            (false, _) => return Some(text),
            (true, true) => return None,
            (true, false) => {}
        }
    }
}

/// Fowler, Noll and Vo's hash: the same everywhere and in every version, so that it can stand in a
/// configuration.
fn fingerprint(text: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn readable(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(KEPT_BYTES)]).into_owned()
}

/// The next command, and whether it is the last.
fn command(tokens: &mut Tokens<'_>, reading: &Reading, is_constant: IsConstant) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    loop {
        match tokens.next_with_text() {
            None => return (out, true),
            Some((Token::Semicolon, _)) => return (out, false),
            Some((token, text)) => {
                let is_constant = token == Token::Other && is_constant(text);
                push(&mut out, token, text, is_constant);
                if reading.ends_in_doubt && tokens.doubt().is_some() {
                    return (out, true);
                }
            }
        }
    }
}

fn is_constant(text: &[u8]) -> bool {
    match text {
        [b'0'..=b'9' | b'\'' | b'$', ..] | [b'.', _, ..] => true,
        // E'...' and its like: a word is another token.
        [prefix, ..] => prefix.is_ascii_alphabetic(),
        [] => false,
    }
}

fn push(out: &mut Vec<u8>, token: Token<'_>, text: &[u8], is_constant: bool) {
    let is_glued = is_glued(out, token, text, is_constant);
    if !is_glued {
        out.push(b' ');
    }
    match (is_constant, token) {
        (true, _) => out.extend_from_slice(CONSTANT),
        (false, Token::Word(word)) => out.extend(word.iter().map(u8::to_ascii_lowercase)),
        (false, _) => out.extend_from_slice(text),
    }
    // Lists are as long as they happen to be.
    for (list, one) in [(&b"?, ?"[..], &b"?"[..]), (b"(?),(?)", b"(?)")] {
        if out.ends_with(list) {
            out.truncate(out.len() - list.len() + one.len());
        }
    }
}

/// Whether nothing stands between what is there and what comes.
fn is_glued(out: &[u8], token: Token<'_>, text: &[u8], is_constant: bool) -> bool {
    let is_operator = |byte: u8| b"+-*/<>=~!@#%^&|`?:".contains(&byte);
    let comes_operator = token == Token::Other && !is_constant && is_operator(text[0]);
    match (out.last(), text) {
        (None | Some(b'(' | b'.' | b'['), _) => true,
        (_, [b'(' | b')' | b',' | b'.' | b'[' | b']']) => true,
        // Together they would begin a comment.
        (Some(b'-'), [b'-', ..]) | (Some(b'/'), [b'*', ..]) => false,
        (Some(last), _) => comes_operator && is_operator(*last) && !out.ends_with(CONSTANT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(sql: &str) -> String {
        shape(sql.as_bytes()).map_or_else(String::new, |shape| shape.text)
    }

    #[test]
    fn constants_comments_and_spaces_make_no_difference() {
        for (sql, expected) in [
            (
                "SELECT * FROM t WHERE id = 12",
                "select * from t where id = ?",
            ),
            (
                "select *\n from T where ID=$1 -- x",
                "select * from t where id = ?",
            ),
            ("SELECT a.b, -1.5e-3 FROM a", "select a.b, - ? from a"),
            ("SELECT E'it\\'s', U&'x', B'01', $$a;b$$, .5", "select ?"),
            (
                "SELECT date'2024-01-01' WHERE a LIKE'ann%' AND b>interval'5 min'",
                "select date ? where a like ? and b > interval ?",
            ),
            ("SELECT'x'", "select ?"),
            ("SELECT 1 -- x\rFROM t", "select ? from t"),
            ("SELECT x IN (1, 2,3), 'a'", "select x in(?), ?"),
            (
                "INSERT INTO t VALUES (1,'a'),(2,'b')",
                "insert into t values(?)",
            ),
            (
                "INSERT INTO t VALUES (1,now()),(2,now())",
                "insert into t values(?, now()),(?, now())",
            ),
            (
                "SELECT \"Name\"::int FROM \"T\"",
                "select \"Name\" :: int from \"T\"",
            ),
            ("SELECT a - -b / * c", "select a - - b / * c"),
            ("SELECT a<=b || c", "select a <= b || c"),
            ("/* one /* two */ */ SELECT/**/1", "select ?"),
            (
                "BEGIN; SET LOCAL a = 1; UPDATE t SET a = 2; SELECT 3",
                "update t set a = ?",
            ),
            ("begin isolation level serializable", ""),
            ("COMMIT", ""),
            ("; ;", ""),
            ("SELECT 'not closed", "select ?"),
            ("SELECT a -> 'x' #>> '{y}' ? 'z'", "select a -> ? #>> ? ? ?"),
        ] {
            assert_eq!(text(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_fingerprint_is_the_same_for_ever() {
        let one = shape(b"SELECT * FROM t WHERE id = 12").unwrap();
        assert_eq!(format!("{:016x}", one.fingerprint), "90356c2a5f55a6f1");
        assert_eq!(shape(b"select * from t where id=$2"), Some(one));
    }

    #[test]
    fn only_the_beginning_of_a_long_one_is_kept() {
        let long = format!("SELECT {} FROM t", "column_of_t, ".repeat(1000));
        let shape = shape(long.as_bytes()).unwrap();
        assert_eq!(shape.text.len(), KEPT_BYTES);
    }

    #[test]
    fn what_a_backslash_is_makes_no_constant_visible() {
        for (sql, expected) in [
            // Off, as only so the quotes are closed.
            ("SELECT 'it\\'s secret' FROM t", "select ? from t"),
            ("SELECT N'it\\'s secret' FROM t", "select ? from t"),
            // On, likewise.
            (
                "SELECT a LIKE 'x' ESCAPE '\\' FROM t",
                "select a like ? escape ? from t",
            ),
            ("SELECT 'C:\\', 'D:\\' FROM t", "select ? from t"),
            // It cannot be said.
            (
                "SELECT a, 'it\\'s secret', 'it\\'s secret' FROM t",
                "select a, ?",
            ),
            ("BEGIN; SELECT 'a\\'; SELECT secret, '\\'", "select ?"),
            // Both the same.
            ("SELECT 'it''s \\a' FROM t", "select ? from t"),
            (
                "SELECT E'it\\'s'\n'secret\\' secret' FROM t",
                "select ? from t",
            ),
            ("SELECT $a$it\\'s secret$a$ FROM t", "select ? from t"),
            ("SELECT U&'\\0041' FROM t", "select ? from t"),
        ] {
            assert_eq!(text(sql), expected, "{sql}");
        }
        let beginning = shape_of_beginning(b"SELECT a, 'it\\'s sec").unwrap();
        assert_eq!(beginning.text, "select a, ?");
        let shift_jis = shape(b"SELECT E'\x83\\', ' secret ' FROM t").unwrap();
        assert_eq!(shift_jis.text, "select ?");
    }

    proptest! {
            #[test]
            fn no_constant_is_seen_whatever_the_setting(
                parts in prop::collection::vec("('|\\\\|x|SECRET| |--|/\\*|;|\\$\\$|\"){0,8}", 1..5),
                is_on in any::<bool>(), prefix in "|E|N",
            ) {
                let escaped = |part: &String| if is_on && prefix != "E" {
    part.replace('\'', "''")
    } else {
    part.replace('\\', "\\\\").replace('\'', "\\'")
    };
                let constants: Vec<String> = parts.iter().map(|part| format!("{prefix}'{}'", escaped(part))).collect();
                let sql = format!("SELECT {} FROM t", constants.join(", a, "));
                let shown = text(&sql);
                prop_assert!(!shown.contains("secret") && !shown.contains("SECRET"), "{sql}\n{shown}");
            }

            #[test]
            fn any_text_has_a_shape_or_none(sql in prop::collection::vec(any::<u8>(), 0..300)) {
                shape(&sql);
            }

            #[test]
            fn constants_do_not_count(
                number in any::<u32>(), words in "[a-z '\\\\]{0,12}", many in prop::collection::vec(any::<u8>(), 1..9),
            ) {
                let quoted = words.replace('\'', "''");
                let list: Vec<String> = many.iter().map(u8::to_string).collect();
                let sql = format!("UPDATE t SET a = {number}, b = '{quoted}' WHERE c IN ({})", list.join(" , "));
                prop_assert_eq!(text(&sql), "update t set a = ?, b = ? where c in(?)");
            }
        }
}
