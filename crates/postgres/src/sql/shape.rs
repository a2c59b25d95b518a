//! What a statement does, whatever constants stand in it: for classes by statement, and to learn from its like how long it will take.

use super::tokens::{Token, Tokens};

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
    /// In lower case, with one space where there is any, comments and constants left out, lists of constants as one; its beginning.
    pub text: String,
    /// FNV-1a, 64 bits, of all of that.
    pub fingerprint: u64,
}

/// The shape of the first command of a text that is more than the frame of a transaction.
pub fn shape(sql: &[u8]) -> Option<Shape> {
    let text = whole(&sql[..sql.len().min(LOOKED_AT_BYTES)], is_constant)?;
    Some(Shape {
        fingerprint: fingerprint(&text),
        text: readable(&text),
    })
}

/// The shape, to its end, of a text in which `?` stands for a constant.
pub fn shape_of_shape(text: &str) -> Option<Vec<u8>> {
    whole(text.as_bytes(), |written| {
        written == CONSTANT || is_constant(written)
    })
}

/// The shape to its end, with what is a constant besides words and quoted names.
fn whole(sql: &[u8], is_constant: IsConstant) -> Option<Vec<u8>> {
    let mut tokens = Tokens::new(sql);
    loop {
        let (text, is_last) = command(&mut tokens, is_constant);
        let first = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let is_around = AROUND.iter().any(|word| word.as_bytes() == first);
        match (text.is_empty() || is_around, is_last) {
            (false, _) => return Some(text),
            (true, true) => return None,
            (true, false) => {}
        }
    }
}

/// Fowler, Noll and Vo's hash: the same everywhere and for ever, so that it can stand in a configuration.
fn fingerprint(text: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn readable(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(KEPT_BYTES)]).into_owned()
}

/// The next command, and whether it is the last.
fn command(tokens: &mut Tokens<'_>, is_constant: IsConstant) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    loop {
        match tokens.next_with_text() {
            None => return (out, true),
            Some((Token::Semicolon, _)) => return (out, false),
            Some((token, text)) => {
                let is_constant = token == Token::Other && is_constant(text);
                push(&mut out, token, text, is_constant);
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

    proptest! {
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
