//! Encodings of clients: which bytes make one character. PostgreSQL converts a text to the
//! database's encoding before it reads it (`pg_any_to_server`), so what looks like a backslash or a
//! letter inside a character is none.

use super::tokens::{Token, Tokens};
use std::borrow::Cow;

/// How many bytes a character has, by its first (PostgreSQL's `wchar.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// One.
    SingleByte,
    /// One to four: UTF-8.
    Utf8,
    /// One, or two where the first is beyond ASCII: BIG5, GBK and UHC, and EUC_CN.
    DoubleByte,
    /// The same, but for the katakana of one byte: SJIS and SHIFT_JIS_2004.
    ShiftJis,
    /// One, two or four.
    Gb18030,
    /// One, two or three: EUC_JP and its like.
    Euc,
    /// One, two, three or four.
    EucTw,
}

impl Encoding {
    /// By its name as PostgreSQL reports it.
    pub fn of(name: &[u8]) -> Self {
        match name {
            b"UTF8" => Self::Utf8,
            b"BIG5" | b"GBK" | b"UHC" | b"EUC_CN" => Self::DoubleByte,
            b"SJIS" | b"SHIFT_JIS_2004" => Self::ShiftJis,
            b"GB18030" => Self::Gb18030,
            b"EUC_JP" | b"EUC_KR" | b"EUC_JIS_2004" | b"JOHAB" => Self::Euc,
            b"EUC_TW" => Self::EucTw,
            _ => Self::SingleByte,
        }
    }

    /// How many characters a text has. What is cut off at its end is one.
    pub fn characters(self, text: &[u8]) -> usize {
        let (mut rest, mut count) = (text, 0);
        while !rest.is_empty() {
            rest = &rest[self.character_bytes(rest).min(rest.len())..];
            count += 1;
        }
        count
    }

    /// Bytes of the character with which a text begins that is not empty.
    fn character_bytes(self, text: &[u8]) -> usize {
        let second = text.get(1).copied().unwrap_or_default();
        match (self, text[0]) {
            (_, 0..0x80) | (Self::SingleByte, _) | (Self::ShiftJis, 0xa1..=0xdf) => 1,
            (Self::Utf8, 0xf0..) | (Self::EucTw, 0x8e) => 4,
            (Self::Utf8, 0xe0..) | (Self::Euc | Self::EucTw, 0x8f) => 3,
            (Self::Utf8, 0xc0..) => 2,
            (Self::Utf8, _) => 1,
            (Self::Gb18030, _) if second.is_ascii_digit() => 4,
            _ => 2,
        }
    }

    /// Whether a byte of ASCII may be part of a longer character.
    fn has_ascii_inside(self) -> bool {
        matches!(self, Self::DoubleByte | Self::ShiftJis | Self::Gb18030)
    }
}

/// A text as it reads to the server: each byte stays where it is, and inside characters of more
/// than one byte none looks like ASCII.
pub fn without_ascii_inside(sql: &[u8], encoding: Encoding) -> Cow<'_, [u8]> {
    /// The lowest of such bytes: the digits of GB18030. No quote is among them.
    const LOWEST: u8 = b'0';
    if !encoding.has_ascii_inside() || sql.is_ascii() {
        return Cow::Borrowed(sql);
    }
    let mut read = sql.to_vec();
    let mut rest = &mut read[..];
    while !rest.is_empty() {
        let bytes = encoding.character_bytes(rest).min(rest.len());
        let (character, behind) = rest.split_at_mut(bytes);
        let inside = character.iter_mut().skip(1);
        inside
            .filter(|byte| **byte >= LOWEST)
            .for_each(|byte| *byte |= 0x80);
        rest = behind;
    }
    Cow::Owned(read)
}

/// Whether the words of a text are others in some encoding.
pub fn depends_on_encoding(sql: &[u8]) -> bool {
    let is_other = |encoding| match without_ascii_inside(sql, encoding) {
        Cow::Borrowed(_) => false,
        Cow::Owned(read) => !places(sql).eq(places(&read)),
    };
    // The four bytes of GB18030 are two pairs.
    [Encoding::DoubleByte, Encoding::ShiftJis]
        .into_iter()
        .any(is_other)
}

/// Where each word begins and what it is.
fn places(sql: &[u8]) -> impl Iterator<Item = (std::mem::Discriminant<Token<'_>>, usize, usize)> {
    let mut tokens = Tokens::new(sql);
    std::iter::from_fn(move || {
        let (token, text) = tokens.next_with_text()?;
        let start = text.as_ptr() as usize - sql.as_ptr() as usize;
        Some((std::mem::discriminant(&token), start, text.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{SessionChange, Tie, session_changes};
    use proptest::prelude::*;

    const WITH_ASCII: [&str; 6] = ["SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "UHC", "GB18030"];

    fn listens(sql: &[u8], encoding: &str) -> bool {
        let read = without_ascii_inside(sql, Encoding::of(encoding.as_bytes()));
        session_changes(&read) == [SessionChange::Tie(Tie::Listening)]
    }

    #[test]
    fn what_stands_behind_half_a_letter_is_seen() {
        for encoding in WITH_ASCII {
            for sql in [
                &b"SELECT E'\x83\\'; LISTEN news; SELECT 'x'"[..],
                b"SELECT $\x83\\$ ' $\x83\\$; LISTEN news",
                b"SELECT $\x83{$ ' $\x83{$; LISTEN news",
                b"SELECT E'\x83\\\\''; LISTEN news",
            ] {
                assert!(!listens(sql, "UTF8"), "{encoding}");
                assert!(listens(sql, encoding), "{encoding}");
                assert!(depends_on_encoding(sql));
            }
        }
        // Katakana of one byte stand before a backslash.
        let katakana = b"SELECT E'\xb1\\'; LISTEN news; --'";
        assert!(!listens(katakana, "SJIS") && listens(katakana, "GBK"));
        let four = b"SELECT E'\x81\x30\x81\x34\\'; LISTEN news; --'";
        assert!(!listens(four, "GB18030"));
    }

    #[test]
    fn texts_that_read_the_same_do_not_depend_on_the_encoding() {
        for sql in [
            "SELECT 'caf\u{e9}', E'\\n'",
            "SELECT \"\u{e9}t\u{e9}\" FROM \u{e9}t\u{e9}",
            "LISTEN news",
        ] {
            assert!(!depends_on_encoding(sql.as_bytes()), "{sql}");
        }
        assert!(depends_on_encoding("SELECT E'\u{3042}\\'; x'".as_bytes()));
    }

    #[test]
    fn characters_are_counted_as_postgresql_does() {
        for (encoding, text, expected) in [
            ("UTF8", "a\u{e9}\u{65e5}\u{1f600}".as_bytes(), 4),
            ("LATIN1", b"a\xe9\xe8", 3),
            ("SQL_ASCII", b"a\xe9\xe8", 3),
            ("SJIS", b"a\x83\\\xb1\x83\x41", 4),
            ("BIG5", b"\xa4\\\xa4\xa4a", 3),
            ("GB18030", b"\x81\\\x81\x30\x81\x34a", 3),
            ("EUC_JP", b"\xa5\xbd\x8e\xb1\x8f\xb0\xa1a", 4),
            ("EUC_TW", b"\x8e\xa1\xa1\xa1\xa4\xa4a", 3),
            ("EUC_KR", b"\xb0\xa1\xb0", 2),
        ] {
            let encoding_of = Encoding::of(encoding.as_bytes());
            assert_eq!(encoding_of.characters(text), expected, "{encoding}");
        }
    }

    proptest! {
        #[test]
        fn each_byte_stays_where_it_is(
            sql in prop::collection::vec(any::<u8>(), 0..40), name in prop::sample::select(&WITH_ASCII[..]),
        ) {
            let encoding = Encoding::of(name.as_bytes());
            let read = without_ascii_inside(&sql, encoding);
            prop_assert_eq!(read.len(), sql.len());
            let is_kept = |(own, read): (&u8, &u8)| own == read || own | 0x80 == *read;
            prop_assert!(sql.iter().zip(read.iter()).all(is_kept));
            // Of a text that no encoding has, the digits may be taken for others.
            if encoding != Encoding::Gb18030 {
                prop_assert_eq!(&without_ascii_inside(&read, encoding), &read);
            }
            prop_assert!(encoding.characters(&sql) <= sql.len());
            depends_on_encoding(&sql);
        }
    }
}
