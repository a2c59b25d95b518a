//! What a transaction says of itself before it is let in: comments and the shape of its first
//! statement, read off what its client has sent so far.
//!
//! Nothing is waited for: what is not there yet says nothing. A client that sends BEGIN alone and
//! waits for the answer has said no more than what stands in a comment of that.

use crate::sql::{self, Shape};
use crate::statements::ClientStatements;
use crate::wire::HEADER_BYTES;
use bytes::Buf;

/// Messages that are looked at: BEGIN and what comes with it may be before the first statement.
const MESSAGES_MAX: usize = 16;
/// Keys of comments that name what a transaction is, the most telling first.
const KINDS: [&str; 4] = ["kind", "route", "action", "controller"];

/// What a transaction says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Keys and values of its comments.
    pub tags: Vec<(String, String)>,
    /// Its first statement that does something.
    pub shape: Option<Shape>,
}

impl Hints {
    /// What a text says.
    pub fn of(sql: &[u8]) -> Self {
        Self {
            tags: sql::comment_tags(sql),
            shape: sql::shape(sql),
        }
    }

    /// What the beginning of a text says, the rest of which has not come.
    fn of_beginning(sql: &[u8]) -> Self {
        Self {
            tags: sql::comment_tags(sql),
            shape: sql::shape_of_beginning(sql),
        }
    }

    /// The value of a key, of the first comment that has it.
    pub fn tag(&self, key: &str) -> Option<&str> {
        let found = self.tags.iter().find(|(own, _)| own == key);
        found.map(|(_, value)| value.as_str())
    }

    /// What its like are known by: what its comment calls it, else its first statement's
    /// fingerprint.
    pub fn kind(&self) -> Option<String> {
        let shape = || Some(format!("{:016x}", self.shape.as_ref()?.fingerprint));
        self.named_kind().map(str::to_owned).or_else(shape)
    }

    /// What its comment calls it.
    pub fn named_kind(&self) -> Option<&str> {
        KINDS.iter().find_map(|key| self.tag(key))
    }

    fn add(&mut self, other: Self) {
        self.tags.extend(other.tags);
        self.shape = self.shape.take().or(other.shape);
    }
}

/// What a client with these statements says by the messages in `input`, the last of which may not
/// be whole.
pub fn hints_of(input: &[u8], statements: &ClientStatements) -> Hints {
    let (mut hints, mut rest) = (Hints::default(), input);
    for _ in 0..MESSAGES_MAX {
        let Some((tag, body, is_whole)) = message(&mut rest) else {
            break;
        };
        let of = |sql: &[u8]| {
            if is_whole {
                Hints::of(text(sql))
            } else {
                Hints::of_beginning(text(sql))
            }
        };
        match tag {
            b'Q' => hints.add(of(body)),
            b'P' => {
                let (_, text_and_types) = cut(body);
                hints.add(of(text_and_types));
            }
            b'B' => {
                let (_, behind_portal) = cut(body);
                let known = statements.named(text(behind_portal)).ok();
                known
                    .into_iter()
                    .for_each(|known| hints.add(known.hints().clone()));
            }
            _ => {}
        }
        if hints.shape.is_some() || !is_whole {
            break;
        }
    }
    hints
}

/// The next message's tag, what is there of its body, and whether that is all.
pub(crate) fn message<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8], bool)> {
    if rest.len() < HEADER_BYTES {
        return None;
    }
    let tag = rest.get_u8();
    let body_bytes = (rest.get_i32() as usize).checked_sub(HEADER_BYTES - 1)?;
    let is_whole = rest.len() >= body_bytes;
    let (body, behind) = rest.split_at(body_bytes.min(rest.len()));
    *rest = behind;
    Some((tag, body, is_whole))
}

/// Up to the first zero, and what is behind it.
pub(crate) fn cut(body: &[u8]) -> (&[u8], &[u8]) {
    match body.iter().position(|byte| *byte == 0) {
        Some(at) => (&body[..at], &body[at + 1..]),
        None => (body, b""),
    }
}

pub(crate) fn text(body: &[u8]) -> &[u8] {
    cut(body).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sent::{bind, parse, prepared, query, sync};
    use proptest::prelude::*;

    /// What is said, as words.
    fn words(input: &[u8], statements: &ClientStatements) -> String {
        let hints = hints_of(input, statements);
        let shape = hints.shape.as_ref().map_or("", |shape| &shape.text);
        format!("{} {shape}", hints.tag("class").unwrap_or("-"))
    }

    #[test]
    fn a_statement_is_seen_however_it_comes() {
        let own = prepared(&[("s1", "/*class='gold'*/ UPDATE t SET a = $1")]);
        let silver = parse("", "SELECT 1 /*class=silver*/");
        for (input, expected) in [
            (query("SELECT 1"), "- select ?"),
            (query("BEGIN"), "- "),
            (query("/*class=gold*/ BEGIN"), "gold "),
            (
                [query("/*class=gold*/ BEGIN"), query("SELECT 2")].concat(),
                "gold select ?",
            ),
            (silver.clone(), "silver select ?"),
            (bind("s1"), "gold update t set a = ?"),
            (bind("s2"), "- "),
            ([sync(), bind("s1")].concat(), "gold update t set a = ?"),
            ([query("BEGIN"), silver].concat(), "silver select ?"),
            (sync(), "- "),
            (Vec::new(), "- "),
        ] {
            assert_eq!(words(&input, &own), expected, "{input:?}");
        }
    }

    #[test]
    fn half_a_message_says_what_is_there_of_it() {
        let whole = query("/*class=gold*/ SELECT a FROM t");
        let own = ClientStatements::default();
        assert_eq!(words(&whole[..28], &own), "gold select a");
        assert_eq!(words(&whole[..4], &own), "- ");
    }

    #[test]
    fn a_kind_is_what_a_comment_calls_it_or_a_fingerprint() {
        let kind = |sql: &str| Hints::of(sql.as_bytes()).kind();
        assert_eq!(
            kind("SELECT 1 /*action=pay,route='/x'*/").as_deref(),
            Some("/x")
        );
        assert_eq!(
            kind("SELECT * FROM t WHERE id = 1").as_deref(),
            Some("90356c2a5f55a6f1")
        );
        assert_eq!(kind("COMMIT"), None);
    }

    proptest! {
        #[test]
        fn whatever_is_sent_says_something_or_nothing(input in prop::collection::vec(any::<u8>(), 0..200)) {
            hints_of(&input, &ClientStatements::default());
        }
    }
}
