//! Messages from a client: those that a pooler has to read, and the same with another statement's
//! name.

use super::fields::{Fields, Malformed};
use super::frame::{HEADER_BYTES, Look};
use bytes::{BufMut, BytesMut};

/// The longest name of a statement or portal; PostgreSQL cuts identifiers at 63 bytes, but not
/// these.
const NAME_BYTES_MAX: usize = 8192;
/// Of a query, to see what it does to its session.
const QUERY_HEAD_BYTES: usize = 8192;
/// A Parse of so many bytes is kept; of a longer one only the beginning is looked at.
pub const STATEMENT_BYTES_MAX: usize = 1 << 18;
/// Answers to requests for a password.
const PASSWORD_BYTES_MAX: usize = 1 << 16;

/// What of a client's messages has to be there before they are looked at.
pub fn look_at_frontend(tag: u8) -> Look {
    match tag {
        b'D' | b'C' => Look::Whole(1 + NAME_BYTES_MAX + 1),
        b'p' => Look::Whole(PASSWORD_BYTES_MAX),
        b'Q' => Look::Head(QUERY_HEAD_BYTES),
        b'P' => Look::Head(STATEMENT_BYTES_MAX),
        b'B' => Look::Head(2 * (NAME_BYTES_MAX + 1)),
        // What a body that should be empty has in it is the server's to refuse.
        b'E' | b'F' | b'd' | b'f' | b'S' | b'H' | b'X' | b'c' => Look::Head(0),
        _ => Look::Unknown,
    }
}

/// What Describe and Close are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// A message from a client, as far as it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontendMessage<'a> {
    /// The beginning of a text with one or more commands.
    Query(&'a [u8]),
    /// Prepare a statement.
    Parse {
        /// Under this name; empty: until the next.
        name: &'a [u8],
        /// Text, zero and types, or their beginning.
        rest: &'a [u8],
    },
    /// Make a portal of a statement.
    Bind {
        /// The portal's name.
        portal: &'a [u8],
        /// The statement's.
        statement: &'a [u8],
        /// How many bytes of the body the names have.
        names_bytes: usize,
    },
    /// Say what it returns.
    Describe(Target, &'a [u8]),
    /// Forget it.
    Close(Target, &'a [u8]),
    /// Run a portal.
    Execute,
    /// End of a cycle.
    Sync,
    /// Send what there is.
    Flush,
    /// Call a function by number.
    FunctionCall,
    /// Rows of a COPY.
    CopyData,
    /// The last of them has come.
    CopyDone,
    /// There will be no more of them.
    CopyFail,
    /// A password, or a step of SASL.
    Password(&'a [u8]),
    /// The session ends.
    Terminate,
}

impl<'a> FrontendMessage<'a> {
    /// Reads what [`look_at_frontend`] asks for of a message; `is_whole` says whether that is all
    /// of it.
    pub fn read(tag: u8, body: &'a [u8], is_whole: bool) -> Result<Self, Malformed> {
        let mut fields = Fields(body);
        let message = match tag {
            b'Q' => Self::Query(query(body, is_whole)?),
            b'P' => {
                let name = fields.text()?;
                Self::Parse {
                    name,
                    rest: fields.0,
                }
            }
            b'B' => {
                let (portal, statement) = (fields.text()?, fields.text()?);
                Self::Bind {
                    portal,
                    statement,
                    names_bytes: portal.len() + statement.len() + 2,
                }
            }
            b'D' | b'C' => {
                let target = match fields.byte()? {
                    b'S' => Target::Statement,
                    b'P' => Target::Portal,
                    _ => return Err(Malformed("neither a statement nor a portal is meant")),
                };
                let name = fields.text()?;
                fields.end()?;
                match tag {
                    b'D' => Self::Describe(target, name),
                    _ => Self::Close(target, name),
                }
            }
            b'E' => Self::Execute,
            b'S' => Self::Sync,
            b'H' => Self::Flush,
            b'F' => Self::FunctionCall,
            b'd' => Self::CopyData,
            b'c' => Self::CopyDone,
            b'f' => Self::CopyFail,
            b'p' => Self::Password(body),
            b'X' => Self::Terminate,
            _ => return Err(Malformed("no client sends this")),
        };
        Ok(message)
    }
}

/// The text without its zero.
fn query(body: &[u8], is_whole: bool) -> Result<&[u8], Malformed> {
    match (is_whole, body.split_last()) {
        (false, _) => Ok(body),
        (true, Some((0, text))) => Ok(text),
        (true, _) => Err(Malformed("a query does not end")),
    }
}

/// Writes a Parse of `rest` (text, zero and types) under another name.
pub fn write_parse(out: &mut BytesMut, name: &[u8], rest: &[u8]) {
    header(out, b'P', name.len() + 1 + rest.len());
    put_text(out, name);
    out.put_slice(rest);
}

/// Writes the beginning of a Parse under another name. `first` is its first piece, header included;
/// what follows that piece follows as it is.
pub fn write_renamed_parse(out: &mut BytesMut, first: &[u8], name: &[u8], renamed: &[u8]) {
    let behind = &first[HEADER_BYTES + name.len() + 1..];
    header(out, b'P', body_bytes(first) - name.len() + renamed.len());
    put_text(out, renamed);
    out.put_slice(behind);
}

/// Writes the beginning of a Bind with another name of its statement. `first` is its first piece,
/// header included, `names_bytes` are those of the names in it; what follows that piece follows as
/// it is.
pub fn write_bind(
    out: &mut BytesMut,
    first: &[u8],
    portal: &[u8],
    statement: &[u8],
    names_bytes: usize,
) {
    let rest_bytes = body_bytes(first).saturating_sub(names_bytes);
    header(out, b'B', portal.len() + statement.len() + 2 + rest_bytes);
    put_text(out, portal);
    put_text(out, statement);
    out.put_slice(&first[HEADER_BYTES + names_bytes..]);
}

/// Writes a Bind of a statement without parameters, to a portal of the same name, and its Execute.
pub fn write_run(out: &mut BytesMut, name: &[u8]) {
    // Neither formats nor parameters, and as many rows as there are.
    const NONE: &[u8] = &[0; 6];
    const ALL: &[u8] = &[0; 4];
    header(out, b'B', 2 * (name.len() + 1) + NONE.len());
    put_text(out, name);
    put_text(out, name);
    out.put_slice(NONE);
    header(out, b'E', name.len() + 1 + ALL.len());
    put_text(out, name);
    out.put_slice(ALL);
}

/// Writes a Describe of a statement.
pub fn write_describe_statement(out: &mut BytesMut, name: &[u8]) {
    about_statement(out, b'D', name);
}

/// Writes a Close of a statement.
pub fn write_close_statement(out: &mut BytesMut, name: &[u8]) {
    about_statement(out, b'C', name);
}

/// Writes a Close of a portal.
pub fn write_close_portal(out: &mut BytesMut, name: &[u8]) {
    header(out, b'C', 1 + name.len() + 1);
    out.put_u8(b'P');
    put_text(out, name);
}

fn about_statement(out: &mut BytesMut, tag: u8, name: &[u8]) {
    header(out, tag, 1 + name.len() + 1);
    out.put_u8(b'S');
    put_text(out, name);
}

/// Writes a password, or a step of SASL.
pub fn write_password(out: &mut BytesMut, body: &[u8]) {
    header(out, b'p', body.len());
    out.put_slice(body);
}

/// Writes the first step of SASL by `mechanism`.
pub fn write_sasl_first(out: &mut BytesMut, mechanism: &str, first: &[u8]) {
    header(out, b'p', mechanism.len() + 1 + 4 + first.len());
    put_text(out, mechanism.as_bytes());
    out.put_i32(first.len() as i32);
    out.put_slice(first);
}

/// Writes a Sync.
pub fn write_sync(out: &mut BytesMut) {
    header(out, b'S', 0);
}

/// Writes a Flush.
pub fn write_flush(out: &mut BytesMut) {
    header(out, b'H', 0);
}

/// Writes a Terminate.
pub fn write_terminate(out: &mut BytesMut) {
    header(out, b'X', 0);
}

/// Writes a Query.
pub fn write_query(out: &mut BytesMut, sql: &[u8]) {
    header(out, b'Q', sql.len() + 1);
    put_text(out, sql);
}

/// Of all of the message of which this is the first piece.
fn body_bytes(first: &[u8]) -> usize {
    let length = i32::from_be_bytes([first[1], first[2], first[3], first[4]]);
    (length as usize).saturating_sub(4)
}

fn header(out: &mut BytesMut, tag: u8, body_bytes: usize) {
    out.put_u8(tag);
    out.put_i32((4 + body_bytes) as i32);
}

fn put_text(out: &mut BytesMut, text: &[u8]) {
    out.put_slice(text);
    out.put_u8(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Part, Splitter};
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out);
        out.to_vec()
    }

    fn read(bytes: &[u8]) -> Result<FrontendMessage<'_>, Malformed> {
        let mut splitter = Splitter::new(look_at_frontend);
        let piece = splitter.next(bytes).unwrap().unwrap();
        assert_eq!(piece.part, Part::First);
        FrontendMessage::read(piece.tag, piece.body(), piece.is_last)
    }

    #[test]
    fn what_it_says_has_the_bytes_of_the_protocol() {
        let parse = written(|out| write_parse(out, b"s1", b"SELECT $1\0\0\x01\0\0\0\x17"));
        assert_eq!(parse, b"P\0\0\0\x17s1\0SELECT $1\0\0\x01\0\0\0\x17");
        let rest = &b"SELECT $1\0\0\x01\0\0\0\x17"[..];
        assert_eq!(
            read(&parse),
            Ok(FrontendMessage::Parse { name: b"s1", rest })
        );
        let close = written(|out| write_close_statement(out, b"s1"));
        assert_eq!(close, b"C\0\0\0\x08Ss1\0");
        assert_eq!(
            read(&close),
            Ok(FrontendMessage::Close(Target::Statement, b"s1"))
        );
        let describe = written(|out| write_describe_statement(out, b"s1"));
        assert_eq!(
            read(&describe),
            Ok(FrontendMessage::Describe(Target::Statement, b"s1"))
        );
        let query = written(|out| write_query(out, b"BEGIN"));
        assert_eq!(query, b"Q\0\0\0\x0aBEGIN\0");
        assert_eq!(read(&query), Ok(FrontendMessage::Query(b"BEGIN")));
        assert_eq!(written(write_sync), b"S\0\0\0\x04");
    }

    /// A Bind of statement `s` with one parameter of `value_bytes` bytes.
    fn bind(statement: &[u8], value_bytes: usize) -> Vec<u8> {
        let body = [
            b"\0",
            statement,
            b"\0\0\0\0\x01",
            &(value_bytes as i32).to_be_bytes(),
            &vec![b'v'; value_bytes],
            b"\0\0",
        ]
        .concat();
        [&b"B"[..], &(4 + body.len() as i32).to_be_bytes(), &body].concat()
    }

    #[test]
    fn a_bind_gets_another_statement_however_much_of_it_is_there() {
        for value_bytes in [0, 10, 100_000] {
            let whole = bind(b"mine", value_bytes);
            for there_bytes in [HEADER_BYTES + 2 * (NAME_BYTES_MAX + 1), whole.len()] {
                let there = &whole[..there_bytes.min(whole.len())];
                let mut splitter = Splitter::new(look_at_frontend);
                let Ok(Some(piece)) = splitter.next(there) else {
                    panic!("nothing of {there_bytes} bytes");
                };
                let message = FrontendMessage::read(b'B', piece.body(), piece.is_last);
                let Ok(FrontendMessage::Bind {
                    portal,
                    statement,
                    names_bytes,
                }) = message
                else {
                    panic!("{message:?}");
                };
                assert_eq!((portal, statement), (&b""[..], &b"mine"[..]));
                let mut out = BytesMut::new();
                write_bind(&mut out, piece.bytes, portal, b"sooner_12", names_bytes);
                out.extend_from_slice(&whole[there.len()..]);
                assert_eq!(out, bind(b"sooner_12", value_bytes));
            }
        }
    }

    #[test]
    fn a_parse_gets_another_name_however_much_of_it_is_there() {
        for text_bytes in [0, 10, 2 * STATEMENT_BYTES_MAX] {
            let rest = [&vec![b'x'; text_bytes][..], b"\0\0\0"].concat();
            let whole = written(|out| write_parse(out, b"mine", &rest));
            let there = &whole[..whole.len().min(HEADER_BYTES + STATEMENT_BYTES_MAX)];
            let mut out = BytesMut::new();
            write_renamed_parse(&mut out, there, b"mine", b"another");
            out.extend_from_slice(&whole[there.len()..]);
            assert_eq!(out, written(|out| write_parse(out, b"another", &rest)));
        }
    }

    #[test]
    fn what_a_message_does_not_have_is_a_mistake() {
        let refused = |tag, body: &[u8]| FrontendMessage::read(tag, body, true).unwrap_err().0;
        assert_eq!(refused(b'Q', b"SELECT 1"), "a query does not end");
        assert_eq!(refused(b'P', b"name"), "a text does not end");
        assert_eq!(refused(b'B', b"portal\0name"), "a text does not end");
        assert_eq!(
            refused(b'D', b"Xname\0"),
            "neither a statement nor a portal is meant"
        );
        assert_eq!(
            refused(b'C', b"Sname\0more"),
            "there is more than the message has"
        );
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(tag: u8, body in prop::collection::vec(any::<u8>(), 0..40), is_whole: bool) {
            let _ = FrontendMessage::read(tag, &body, is_whole);
        }
    }
}
