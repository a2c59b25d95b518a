//! A cycle as a client has sent it, a query or what stands before a Sync: whether it can be sent
//! again as if it had not been, and whether it ends the transaction that it is in.

use crate::hints::{cut, message, text};
use crate::sql::{self, Encoding};
use crate::statements::ClientStatements;
use crate::wire::HEADER_BYTES;

/// The longest cycle that is kept to be sent again.
pub const REPEATABLE_BYTES_MAX: usize = 16 * 1024;

/// What a cycle does to the transaction that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// It rolls it back.
    GivesUp,
    /// It commits it.
    Commits,
    /// Neither.
    No,
}

/// Whether `input` is exactly one cycle, all of it, with one statement that stands alone, so that
/// outside a transaction the server may get it twice where it failed the first time. One that
/// prepares a statement by name is none, because that stays where the rest fails; nor is one that
/// asks for its answers early. Texts come in this encoding.
pub fn is_repeatable(input: &[u8], statements: &ClientStatements, encoding: Encoding) -> bool {
    if input.len() > REPEATABLE_BYTES_MAX {
        return false;
    }
    let stands_alone = |sql| sql::stands_alone(&sql::without_ascii_inside(sql, encoding));
    let mut rest = input;
    let mut alone = None;
    let mut executed = 0;
    while let Some((tag, body, true)) = message(&mut rest) {
        match tag {
            b'Q' => return rest.is_empty() && alone.is_none() && stands_alone(text(body)),
            b'P' if body.first() == Some(&0) && alone.is_none() => {
                alone = Some(stands_alone(text(cut(body).1)));
            }
            b'B' if executed == 0 => {
                let name = text(cut(body).1);
                let is_own = name.is_empty() && alone.is_some();
                if !is_own {
                    let known = statements.named(name).ok();
                    alone = Some(known.is_some_and(|known| sql::stands_alone(known.read())));
                }
            }
            b'D' => {}
            b'E' if alone.is_some() => executed += 1,
            b'C' if body.first() == Some(&b'P') => {}
            b'S' => return rest.is_empty() && executed == 1 && alone == Some(true),
            _ => return false,
        }
    }
    false
}

/// What the cycle that begins in `input` does to its transaction; none where too little of it has
/// come to tell.
pub fn ends(input: &[u8], statements: &ClientStatements) -> Option<Ends> {
    let mut rest = input;
    // What is longer is no command that ends a transaction.
    if input.len() > REPEATABLE_BYTES_MAX {
        return Some(Ends::No);
    }
    while rest.len() >= HEADER_BYTES {
        let Some((tag, body, is_whole)) = message(&mut rest) else {
            return Some(Ends::No);
        };
        let sql = match tag {
            b'Q' | b'P' | b'B' if !is_whole => return None,
            b'Q' => text(body),
            b'P' => text(cut(body).1),
            b'B' => match statements.named(text(cut(body).1)) {
                Ok(known) => known.read(),
                Err(_) => return Some(Ends::No),
            },
            // What comes before the first command, as Close and Describe.
            b'C' | b'D' if is_whole => continue,
            _ if !is_whole => return None,
            _ => return Some(Ends::No),
        };
        return Some(if sql::gives_up(sql) {
            Ends::GivesUp
        } else if sql::commits_open(sql) {
            Ends::Commits
        } else {
            Ends::No
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sent::{bind, execute, frame, parse, prepared, query, sync};
    use proptest::prelude::*;

    fn known() -> ClientStatements {
        prepared(&[
            ("s1", "UPDATE t SET a = $1"),
            ("end", "COMMIT"),
            ("p", "CALL p()"),
        ])
    }

    #[test]
    fn one_statement_alone_is_repeatable() {
        let own = known();
        let update = "UPDATE t SET a = 1";
        for input in [
            query(update),
            [bind("s1"), execute(), sync()].concat(),
            [
                parse("", update),
                bind(""),
                frame(b'D', b"P\0"),
                execute(),
                sync(),
            ]
            .concat(),
        ] {
            assert!(is_repeatable(&input, &own, Encoding::Utf8), "{input:?}");
            assert!(
                !is_repeatable(&input[..input.len() - 1], &own, Encoding::Utf8),
                "not all has come"
            );
            let twice = [&input[..], &input].concat();
            assert!(
                !is_repeatable(&twice, &own, Encoding::Utf8),
                "something comes behind it"
            );
        }
        for input in [
            query("BEGIN"),
            query("CALL p()"),
            query(&format!("{update}; {update}")),
            [parse("named", update), bind("named"), execute(), sync()].concat(),
            [bind("p"), execute(), sync()].concat(),
            [bind("unknown"), execute(), sync()].concat(),
            [bind("s1"), execute(), bind("s1"), execute(), sync()].concat(),
            [bind("s1"), execute(), frame(b'H', b""), sync()].concat(),
            [bind("s1"), sync()].concat(),
            sync(),
            Vec::new(),
        ] {
            assert!(!is_repeatable(&input, &own, Encoding::Utf8), "{input:?}");
        }
        let long = query(&format!(
            "{update} /* {} */",
            "x".repeat(REPEATABLE_BYTES_MAX)
        ));
        assert!(!is_repeatable(&long, &own, Encoding::Utf8));
        // Two commands in Shift JIS, where the backslash is half a letter.
        let two = b"SELECT E'\x83\\'; LISTEN news; SELECT 'x'\0";
        let two = frame(b'Q', two);
        assert!(!is_repeatable(&two, &own, Encoding::ShiftJis));
    }

    #[test]
    fn what_ends_a_transaction_is_seen_however_it_comes() {
        let own = known();
        for (input, expected) in [
            (query("COMMIT"), Some(Ends::Commits)),
            (query("end"), Some(Ends::Commits)),
            (query("ROLLBACK"), Some(Ends::GivesUp)),
            (query("PREPARE TRANSACTION 'a'"), Some(Ends::Commits)),
            (query("PREPARE q AS SELECT 1"), Some(Ends::No)),
            (query("COMMIT PREPARED 'a'"), Some(Ends::No)),
            (query("ROLLBACK TO a"), Some(Ends::No)),
            (query("SELECT 1"), Some(Ends::No)),
            (parse("x", "rollback"), Some(Ends::GivesUp)),
            (
                [frame(b'C', b"Sx\0"), bind("end")].concat(),
                Some(Ends::Commits),
            ),
            (bind("unknown"), Some(Ends::No)),
            (sync(), Some(Ends::No)),
            // Its client waits for an answer now.
            (
                [frame(b'D', b"Sx\0"), frame(b'H', b"")].concat(),
                Some(Ends::No),
            ),
            (vec![b'd', 0, 0, 0, 1], Some(Ends::No)),
            (
                [&[b'd', 127, 0, 0, 0][..], &[0; REPEATABLE_BYTES_MAX]].concat(),
                Some(Ends::No),
            ),
            (query("COMMIT")[..8].to_vec(), None),
            (Vec::new(), None),
        ] {
            assert_eq!(ends(&input, &own), expected, "{input:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_one_or_the_other(input in prop::collection::vec(any::<u8>(), 0..200)) {
            let own = known();
            is_repeatable(&input, &own, Encoding::Utf8);
            ends(&input, &own);
        }
    }
}
