//! A table as an answer.

use bytes::BytesMut;
use sooner_config::printable;
use sooner_postgres::wire::{ColumnType, write_columns, write_complete, write_row};

/// Columns with their types, and rows.
pub struct Table {
    columns: Vec<(&'static str, ColumnType)>,
    rows: Vec<Vec<Option<String>>>,
}

/// A field of a row.
pub enum Field {
    /// Text.
    Text(String),
    /// A number.
    Number(u64),
    /// Nothing is known.
    Null,
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Field {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for Field {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<bool> for Field {
    fn from(is_so: bool) -> Self {
        Self::Number(u64::from(is_so))
    }
}

impl<T: Into<Field>> From<Option<T>> for Field {
    fn from(field: Option<T>) -> Self {
        field.map_or(Self::Null, T::into)
    }
}

/// The most that a column of PostgreSQL's `int4` can hold.
const INT4_MAX: u64 = i32::MAX as u64;

fn typed(column: &'static str) -> (&'static str, ColumnType) {
    let column_type = match column.split_once(' ') {
        Some((_, "int4")) => ColumnType::Int4,
        Some((_, "int8")) => ColumnType::Int8,
        Some((_, "numeric")) => ColumnType::Numeric,
        _ => ColumnType::Text,
    };
    (bare(column), column_type)
}

/// The name of a column, without its type.
pub fn bare(column: &str) -> &str {
    column.split_once(' ').map_or(column, |(name, _)| name)
}

impl Table {
    /// Without rows. A column may have a type behind its name, as in SQL: `int4`, `int8` or
    /// `numeric`; else it is text.
    pub fn new(columns: &[&'static str]) -> Self {
        Self {
            columns: columns.iter().map(|column| typed(column)).collect(),
            rows: Vec::new(),
        }
    }

    /// With more columns, all of them 0.
    pub fn widen(mut self, columns: &[&'static str]) -> Self {
        self.columns.extend(Self::new(columns).columns);
        for row in &mut self.rows {
            row.resize(self.columns.len(), Some("0".into()));
        }
        self
    }

    /// Adds a row, a field a column.
    pub fn row(&mut self, fields: impl IntoIterator<Item = Field>) {
        let text = |(at, field)| match (field, self.columns.get(at)) {
            (Field::Text(text), _) => Some(printable(&text).into_owned()),
            // What a driver cannot read ends its whole answer.
            (Field::Number(number), Some((_, ColumnType::Int4))) => {
                Some(number.min(INT4_MAX).to_string())
            }
            (Field::Number(number), _) => Some(number.to_string()),
            (Field::Null, _) => None,
        };
        let row: Vec<Option<String>> = fields.into_iter().enumerate().map(text).collect();
        debug_assert_eq!(row.len(), self.columns.len(), "{:?}", self.columns);
        self.rows.push(row);
    }

    /// Writes it as the answer to a command.
    pub fn write(&self, out: &mut BytesMut) {
        write_columns(out, &self.columns);
        for row in &self.rows {
            write_row(out, row);
        }
        write_complete(out, "SHOW");
    }
}
