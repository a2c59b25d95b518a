//! One header block (RFC 7541, 6), looked through for fields that the HTTP/2 library takes for a
//! broken connection.
//!
//! The library gives up a connection when a field's name or value has octets that it cannot have,
//! or a pseudo-header field is not known. The standard asks for less: the request is malformed, and
//! its stream ends (RFC 9113, 8.1.1). So such a field is replaced by one that can be read and is as
//! long, so that the tables of both sides stay the same; and a field is added that is malformed in
//! a way for which the library ends the stream alone.
//!
//! A path with bytes that it does not take and servers commonly do, as in HTTP/1
//! ([`escaped_target`]), is percent-encoded. Not where a client has it put into its table, which
//! would change in size: that request counts as malformed.

use super::huffman;
use super::table::{Entry, Kind, Name, TABLE_BYTES_MAX, Table};
use crate::request_text::escaped_target;
use http::header::HeaderName;
use http::{Method, StatusCode};

/// `connection: x`, not to be indexed: no request has it in HTTP/2 (RFC 9113, 8.2.2).
const MALFORMED_FIELD: &[u8] = b"\x00\x0aconnection\x01x";

/// What is to become of a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Checked {
    /// It can be read.
    Readable,
    /// It can be read so.
    Rewritten(Vec<u8>),
    /// It can be read, and is malformed: this one stands for it.
    Malformed(Vec<u8>),
    /// It is not HPACK: the library ends the connection.
    Undecodable,
}

/// Looks through the blocks of one connection, in their order.
#[derive(Debug, Default)]
pub struct Blocks {
    table: Table,
}

/// It is not HPACK.
struct Undecodable;

/// What is left of a block.
struct Reader<'a> {
    rest: &'a [u8],
}

/// A literal: a field that is written out, or the value of one.
struct Literal {
    name: Name,
    value_bytes: usize,
    is_malformed: bool,
    /// How many bytes its type and name take in the block.
    name_end: usize,
    /// The value as the library takes it, where that differs.
    escaped: Option<Vec<u8>>,
}

impl Blocks {
    /// Looks through the next block; a trailer section has no pseudo-header fields.
    pub fn check(&mut self, block: &[u8], is_trailers: bool) -> Checked {
        let mut reader = Reader { rest: block };
        let (mut instead, mut is_malformed) = (None::<Vec<u8>>, false);
        while !reader.rest.is_empty() {
            let before = reader.rest;
            let Ok(field) = self.read_field(&mut reader) else {
                return Checked::Undecodable;
            };
            let read = &before[..before.len() - reader.rest.len()];
            let is_misplaced = is_trailers && matches!(field, Field::Of(name) if name.is_pseudo());
            is_malformed |= is_misplaced || matches!(field, Field::Malformed(_));
            if is_malformed || matches!(field, Field::Rewritten(_)) {
                instead.get_or_insert_with(|| block[..block.len() - before.len()].to_vec());
            }
            if let Some(instead) = &mut instead {
                instead.extend_from_slice(match &field {
                    Field::Malformed(substitute) | Field::Rewritten(substitute) => substitute,
                    Field::Of(_) | Field::None => read,
                });
            }
        }
        match instead {
            None => Checked::Readable,
            Some(instead) if !is_malformed => Checked::Rewritten(instead),
            Some(mut instead) => {
                instead.extend_from_slice(MALFORMED_FIELD);
                Checked::Malformed(instead)
            }
        }
    }

    fn read_field(&mut self, reader: &mut Reader<'_>) -> Result<Field, Undecodable> {
        let block = reader.rest;
        let &first = block.first().ok_or(Undecodable)?;
        match first {
            0x80.. => {
                let entry = self.table.entry(reader.integer(7)?).ok_or(Undecodable)?;
                Ok(if entry.is_malformed {
                    Field::Malformed(Vec::new())
                } else {
                    Field::Of(entry.name)
                })
            }
            0x40..0x80 => {
                let literal = self.read_literal(reader, 6)?;
                let (substitute, name) = literal.substitute(block)?;
                self.table.insert(Entry {
                    name,
                    value_bytes: literal.name.bytes + literal.value_bytes - name.bytes,
                    is_malformed: literal.is_malformed,
                });
                Ok(if literal.is_malformed {
                    Field::Malformed(substitute)
                } else {
                    Field::Of(name)
                })
            }
            0x20..0x40 => {
                let bytes_max = reader.integer(5)?;
                if bytes_max > TABLE_BYTES_MAX {
                    return Err(Undecodable);
                }
                self.table.set_bytes_max(bytes_max);
                Ok(Field::None)
            }
            _ => {
                let literal = self.read_literal(reader, 4)?;
                if let Some(escaped) = &literal.escaped {
                    let mut rewritten = block[..literal.name_end].to_vec();
                    push_string(&mut rewritten, escaped);
                    return Ok(Field::Rewritten(rewritten));
                }
                Ok(if literal.is_malformed {
                    Field::Malformed(Vec::new())
                } else {
                    Field::Of(literal.name)
                })
            }
        }
    }

    fn read_literal(
        &self,
        reader: &mut Reader<'_>,
        prefix_bits: u32,
    ) -> Result<Literal, Undecodable> {
        let bytes_before = reader.rest.len();
        let mut text = Vec::new();
        let name = match reader.integer(prefix_bits)? {
            0 => {
                let name = reader.string(&mut text)?;
                Name {
                    bytes: name.len(),
                    kind: kind_of(name),
                }
            }
            index => self.table.entry(index).ok_or(Undecodable)?.name,
        };
        let name_end = bytes_before - reader.rest.len();
        text.clear();
        let value = reader.string(&mut text)?;
        Ok(Literal {
            name,
            value_bytes: value.len(),
            is_malformed: !name.kind.is_some_and(|kind| may_have(kind, value)),
            name_end,
            escaped: escaped(name.kind, value),
        })
    }
}

/// One step through a block.
enum Field {
    /// No field: the size of the table changes.
    None,
    /// One that can be read.
    Of(Name),
    /// One that can be read so, and is in no table.
    Rewritten(Vec<u8>),
    /// One that cannot, and what stands for it.
    Malformed(Vec<u8>),
}

impl Literal {
    /// What stands for the literal at the start of `block` in the tables if it is malformed, and
    /// its name there. As long as what was sent: the name is kept where it is not what is wrong.
    fn substitute(&self, block: &[u8]) -> Result<(Vec<u8>, Name), Undecodable> {
        if !self.is_malformed {
            return Ok((Vec::new(), self.name));
        }
        let filler = vec![b'x'; self.value_bytes];
        if self.name.kind.is_some_and(|kind| may_have(kind, &filler)) {
            let mut substitute = block[..self.name_end].to_vec();
            push_string(&mut substitute, &filler);
            return Ok((substitute, self.name));
        }
        let value_bytes = (self.name.bytes + self.value_bytes).checked_sub(1);
        let filler = vec![b'x'; value_bytes.ok_or(Undecodable)?];
        let mut substitute = vec![0x40];
        push_string(&mut substitute, b"x");
        push_string(&mut substitute, &filler);
        let name = Name {
            bytes: 1,
            kind: None,
        };
        Ok((substitute, name))
    }
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, Undecodable> {
        let (&byte, rest) = self.rest.split_first().ok_or(Undecodable)?;
        self.rest = rest;
        Ok(byte)
    }

    /// An integer with a first part of `prefix_bits` (RFC 7541, 5.1).
    fn integer(&mut self, prefix_bits: u32) -> Result<usize, Undecodable> {
        let mask = (1 << prefix_bits) - 1;
        let mut value = usize::from(self.byte()? & mask);
        if value < usize::from(mask) {
            return Ok(value);
        }
        // No length and no index of a client that keeps the rules takes more.
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Undecodable)
    }

    /// A string (RFC 7541, 5.2); `text` holds it where it is not written as it is.
    fn string<'t>(&mut self, text: &'t mut Vec<u8>) -> Result<&'t [u8], Undecodable>
    where
        'a: 't,
    {
        let is_coded = self.rest.first().is_some_and(|byte| byte & 0x80 != 0);
        let bytes = self.integer(7)?;
        let (string, rest) = self.rest.split_at_checked(bytes).ok_or(Undecodable)?;
        self.rest = rest;
        if !is_coded {
            return Ok(string);
        }
        huffman::decode(string, text).map_err(|_| Undecodable)?;
        Ok(text)
    }
}

/// What the name stands for; `None` where no field has it.
fn kind_of(name: &[u8]) -> Option<Kind> {
    match name {
        b":authority" | b":scheme" | b":protocol" => Some(Kind::Text),
        b":path" => Some(Kind::Path),
        b":method" => Some(Kind::Method),
        b":status" => Some(Kind::Status),
        _ => HeaderName::from_lowercase(name).ok().map(|_| Kind::Field),
    }
}

/// Whether the library reads such a value.
fn may_have(kind: Kind, value: &[u8]) -> bool {
    match kind {
        Kind::Text => std::str::from_utf8(value).is_ok(),
        Kind::Path => std::str::from_utf8(value).is_ok() && escaped(Some(kind), value).is_none(),
        Kind::Method => Method::from_bytes(value).is_ok(),
        Kind::Status => StatusCode::from_bytes(value).is_ok(),
        Kind::Field => value
            .iter()
            .all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)),
    }
}

/// A path that the library does not take as it is.
fn escaped(kind: Option<Kind>, value: &[u8]) -> Option<Vec<u8>> {
    match kind {
        Some(Kind::Path) => escaped_target(value),
        _ => None,
    }
}

/// A string as it is, without a code.
fn push_string(block: &mut Vec<u8>, string: &[u8]) {
    let mut left = string.len();
    if left < 0x7f {
        block.push(left as u8);
    } else {
        block.push(0x7f);
        left -= 0x7f;
        while left >= 0x80 {
            block.push(0x80 | (left % 0x80) as u8);
            left /= 0x80;
        }
        block.push(left as u8);
    }
    block.extend_from_slice(string);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A literal with a name that is written out.
    fn literal(first: u8, name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut block = vec![first];
        push_string(&mut block, name);
        push_string(&mut block, value);
        block
    }

    fn check(block: &[u8]) -> Checked {
        Blocks::default().check(block, false)
    }

    fn is_malformed(block: &[u8]) -> bool {
        matches!(check(block), Checked::Malformed(_))
    }

    #[test]
    fn what_the_standard_shows_can_be_read() {
        // RFC 7541, C.4: three requests on one connection.
        let mut blocks = Blocks::default();
        for block in [
            &b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..],
            b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
            b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
        ] {
            assert_eq!(blocks.check(block, false), Checked::Readable);
        }
        let values: Vec<usize> = (62..65)
            .map(|index| blocks.table.entry(index).unwrap().value_bytes)
            .collect();
        assert_eq!(values, [12, 8, 15]);
    }

    #[test]
    fn malformed_fields_are_found_whatever_way_they_are_written() {
        for first in [0x00, 0x10, 0x40] {
            for (name, value) in [
                (&b":authority"[..], &b"\xff"[..]),
                (b":scheme", b"\xff"),
                (b":method", b"G T"),
                (b":method", b""),
                (b":status", b"20"),
                (b":unknown", b"x"),
                (b":", b"x"),
                (b"", b"x"),
                (b"Upper", b"x"),
                (b"with space", b"x"),
                (b"x", b"a\0b"),
                (b"x", b"a\r\nb"),
                (b"x", b"\x7f"),
            ] {
                let block = literal(first, name, value);
                assert!(is_malformed(&block), "{first} {name:?} {value:?}");
            }
            for (name, value) in [
                (&b":path"[..], &b"/\"{|}^\\?`{|}^\\"[..]),
                (b":method", b"get"),
                (b"x", b"\xe9\t"),
                (b"x", b""),
                (b"te", b"gzip"),
            ] {
                let block = literal(first, name, value);
                assert_eq!(check(&block), Checked::Readable, "{name:?} {value:?}");
            }
        }
        // The name `user-agent` of the static table, the value coded: "\0" has 13 bits.
        assert!(is_malformed(b"\x0f\x2b\x82\xff\xc7"));
    }

    #[test]
    fn a_path_that_servers_take_is_escaped_where_no_table_has_it() {
        for first in [0x00, 0x10] {
            for (path, escaped) in [
                (
                    &b"/\xe9\"<`>?\"<`>?"[..],
                    &b"/%E9\"%3C%60%3E?%22%3C`%3E?"[..],
                ),
                ("/\u{e9}".as_bytes(), b"/%C3%A9"),
            ] {
                let block = |path: &[u8]| {
                    let mut block = literal(first, b"before", b"1");
                    block.extend(literal(first, b":path", path));
                    block.extend(literal(0x40, b"behind", b"2"));
                    block
                };
                let rewritten = Checked::Rewritten(block(escaped));
                assert_eq!(check(&block(path)), rewritten);
                assert_eq!(check(&block(escaped)), Checked::Readable);
                assert!(is_malformed(&literal(0x40, b":path", path)));
            }
        }
        // By its number in the static table.
        let rewritten = Checked::Rewritten(b"\x04\x05/?%22".to_vec());
        assert_eq!(check(b"\x04\x03/?\""), rewritten);
    }

    #[test]
    fn what_stands_for_a_malformed_field_keeps_the_tables_alike() {
        let mut blocks = Blocks::default();
        let mut block = literal(0x40, b"first", b"1");
        block.extend(literal(0x40, b"second", b"a\0b"));
        block.extend(literal(0x40, b"Third", b"3"));
        let Checked::Malformed(instead) = blocks.check(&block, false) else {
            panic!("it is");
        };
        let mut expected = literal(0x40, b"first", b"1");
        expected.extend(literal(0x40, b"second", b"xxx"));
        expected.extend(literal(0x40, b"x", b"xxxxx"));
        expected.extend(MALFORMED_FIELD);
        assert_eq!(instead, expected);
        // The first is still what it was; of the second the name is, and of the third nothing.
        assert_eq!(blocks.check(b"\xc0", false), Checked::Readable);
        assert_eq!(blocks.check(b"\x7f\x00\x01y", false), Checked::Readable);
        for block in [&b"\xc0"[..], b"\xbf", b"\x7f\x00\x01y"] {
            assert!(
                !matches!(blocks.check(block, false), Checked::Readable),
                "{block:?}"
            );
        }
    }

    #[test]
    fn what_is_no_hpack_is_left_to_the_library() {
        for block in [
            &b"\x80"[..],
            b"\xbe",
            b"\xff",
            b"\xff\xff\xff\xff\xff\x0f",
            b"\x40",
            b"\x00\x05ab",
            b"\x00\x01a\x81\x00",
            b"\x3f\xe2\x1f",
            b"\x40\x00\x00",
        ] {
            assert_eq!(check(block), Checked::Undecodable, "{block:?}");
        }
    }

    #[test]
    fn trailers_have_no_pseudo_header_fields() {
        let block = literal(0, b":path", b"/");
        assert_eq!(Blocks::default().check(&block, false), Checked::Readable);
        let checked = Blocks::default().check(&block, true);
        assert!(matches!(checked, Checked::Malformed(_)));
        let checked = Blocks::default().check(b"\x84", true);
        assert!(matches!(checked, Checked::Malformed(_)));
    }
}
