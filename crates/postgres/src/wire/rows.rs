//! Rows: those of answers to the gate's own questions, and those that it answers with itself. All
//! of them are text.

use super::fields::{Fields, Malformed};
use super::frontend::{write_parse, write_sync};
use bytes::{BufMut, BytesMut};

/// The type of a column of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Text.
    Text,
    /// A whole number of 32 bits.
    Int4,
    /// A whole number of 64 bits.
    Int8,
    /// A number of any size.
    Numeric,
}

impl ColumnType {
    /// Its object identifier, and its size in bytes; -1 where sizes vary.
    fn oid_and_size(self) -> (i32, i16) {
        match self {
            Self::Text => (25, -1),
            Self::Int4 => (23, 4),
            Self::Int8 => (20, 8),
            Self::Numeric => (1700, -1),
        }
    }
}

/// The fields of a row (DataRow); `None` is NULL, and what is not UTF-8 is shown as well as it can
/// be.
pub fn texts_of_row(body: &[u8]) -> Result<Vec<Option<String>>, Malformed> {
    let mut rest = Fields(body);
    let count = u16::from_be_bytes([rest.byte()?, rest.byte()?]);
    let mut fields = Vec::new();
    for _ in 0..count {
        let length = rest.int32()?;
        if length < 0 {
            fields.push(None);
            continue;
        }
        let (field, after) = rest
            .0
            .split_at_checked(length as usize)
            .ok_or(Malformed("a field is cut off"))?;
        fields.push(Some(String::from_utf8_lossy(field).into_owned()));
        rest = Fields(after);
    }
    rest.end()?;
    Ok(fields)
}

/// A column of a RowDescription, as far as it matters to clients that have prepared a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The object identifier of its type.
    pub type_oid: i32,
    /// Its type's modifier, -1 where it has none.
    pub type_modifier: i32,
}

/// The columns of a RowDescription.
pub fn columns(body: &[u8]) -> Result<Vec<Column<'_>>, Malformed> {
    let mut rest = Fields(body);
    let count = u16::from_be_bytes([rest.byte()?, rest.byte()?]);
    let mut columns = Vec::new();
    for _ in 0..count {
        let name = rest.text()?;
        let (_table, _number) = (rest.int32()?, rest.int16()?);
        let (type_oid, _size) = (rest.int32()?, rest.int16()?);
        let (type_modifier, _format) = (rest.int32()?, rest.int16()?);
        columns.push(Column {
            name,
            type_oid,
            type_modifier,
        });
    }
    rest.end()?;
    Ok(columns)
}

/// The names of the columns (RowDescription).
pub fn names_of_columns(body: &[u8]) -> Result<Vec<String>, Malformed> {
    let name = |column: &Column<'_>| String::from_utf8_lossy(column.name).into_owned();
    Ok(columns(body)?.iter().map(name).collect())
}

/// Writes the description of columns by their names and types.
pub fn write_columns(out: &mut BytesMut, columns: &[(&str, ColumnType)]) {
    message(out, b'T', |out| {
        out.put_u16(columns.len() as u16);
        for (name, column_type) in columns {
            let (oid, size_bytes) = column_type.oid_and_size();
            out.put_slice(name.as_bytes());
            out.put_u8(0);
            out.put_i32(0);
            out.put_u16(0);
            out.put_i32(oid);
            out.put_i16(size_bytes);
            out.put_i32(-1);
            out.put_u16(0);
        }
    });
}

/// Writes the description of parameters: how many and which types, as they stand in a Parse.
pub fn write_parameter_types(out: &mut BytesMut, parameters: &[u8]) {
    message(out, b't', |out| out.put_slice(parameters));
}

/// Writes a row.
pub fn write_row(out: &mut BytesMut, fields: &[Option<String>]) {
    message(out, b'D', |out| {
        out.put_u16(fields.len() as u16);
        for field in fields {
            match field {
                Some(text) => {
                    out.put_i32(text.len() as i32);
                    out.put_slice(text.as_bytes());
                }
                None => out.put_i32(-1),
            }
        }
    });
}

/// Writes that a command is done.
pub fn write_complete(out: &mut BytesMut, tag: &str) {
    message(out, b'C', |out| {
        out.put_slice(tag.as_bytes());
        out.put_u8(0);
    });
}

/// Writes that there was no command.
pub fn write_empty(out: &mut BytesMut) {
    message(out, b'I', |_| {});
}

/// Before a question of the gate's own: names without a schema are the server's, whatever a
/// database's owner has made or set.
const SEARCH_PATH: &[u8] = b"SET search_path TO pg_catalog, pg_temp";

/// Writes a question with one parameter that is text, to be answered with one row of text.
pub fn write_question(out: &mut BytesMut, sql: &str, parameter: &str) {
    // In the same transaction: neither a pooler nor the database's own settings come between the
    // two.
    write_parse(out, b"", &[SEARCH_PATH, b"\0\0\0"].concat());
    message(out, b'B', |out| out.put_slice(&[0; 8]));
    message(out, b'E', |out| out.put_slice(&[0; 5]));
    write_parse(out, b"", &[sql.as_bytes(), b"\0\0\0"].concat());
    message(out, b'B', |out| {
        // No names, no formats: text.
        out.put_slice(b"\0\0\0\0");
        out.put_u16(1);
        out.put_i32(parameter.len() as i32);
        out.put_slice(parameter.as_bytes());
        out.put_u16(0);
    });
    message(out, b'E', |out| out.put_slice(b"\0\0\0\0\x01"));
    write_sync(out);
}

fn message(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_u8(tag);
    out.put_i32(0);
    body(out);
    let length = (out.len() - at - 1) as i32;
    out[at + 1..at + 5].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use postgres_protocol::message::backend::Message;
    use proptest::prelude::*;

    #[test]
    fn a_question_is_what_postgresqls_own_client_would_send() {
        let mut ours = BytesMut::new();
        write_question(&mut ours, "SELECT $1", "ann");
        let mut theirs = BytesMut::new();
        use postgres_protocol::message::frontend;
        let path = str::from_utf8(SEARCH_PATH).unwrap();
        frontend::parse("", path, [], &mut theirs).unwrap();
        let none = |_: (), _: &mut BytesMut| unreachable!();
        frontend::bind("", "", [], [], none, [], &mut theirs)
            .ok()
            .unwrap();
        frontend::execute("", 0, &mut theirs).unwrap();
        frontend::parse("", "SELECT $1", [], &mut theirs).unwrap();
        let put = |value: &str, out: &mut BytesMut| {
            out.extend_from_slice(value.as_bytes());
            Ok(postgres_protocol::IsNull::No)
        };
        frontend::bind("", "", [], ["ann"], put, [], &mut theirs)
            .ok()
            .unwrap();
        frontend::execute("", 1, &mut theirs).unwrap();
        frontend::sync(&mut theirs);
        assert_eq!(ours, theirs);
    }

    #[test]
    fn columns_have_names_and_types() {
        let mut out = BytesMut::new();
        let columns = [
            ("name", ColumnType::Text),
            ("count", ColumnType::Int4),
            ("bytes", ColumnType::Int8),
            ("sum", ColumnType::Numeric),
        ];
        write_columns(&mut out, &columns);
        let names = names_of_columns(&out[5..]).unwrap();
        assert_eq!(names, ["name", "count", "bytes", "sum"]);
        let Some(Message::RowDescription(body)) = Message::parse(&mut out).unwrap() else {
            panic!("no columns");
        };
        use fallible_iterator::FallibleIterator;
        let types: Vec<u32> = body
            .fields()
            .map(|field| Ok(field.type_oid()))
            .collect()
            .unwrap();
        assert_eq!(types, [25, 23, 20, 1700]);
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_written(row: Vec<Option<String>>) {
            let mut out = BytesMut::new();
            write_row(&mut out, &row);
            prop_assert_eq!(texts_of_row(&out[5..]), Ok(row));
            prop_assert!(matches!(Message::parse(&mut out), Ok(Some(Message::DataRow(_)))));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = (texts_of_row(&bytes), names_of_columns(&bytes));
        }
    }
}
