//! A table as an answer.

use bytes::BytesMut;
use sooner_config::printable;
use sooner_postgres::wire::{write_columns, write_complete, write_row};

/// Columns, of which some hold numbers, and rows.
pub struct Table {
    columns: Vec<(&'static str, bool)>,
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

impl Table {
    /// Without rows. Columns with `#` before their name hold numbers, and are called by the rest of
    /// it.
    pub fn new(columns: &[&'static str]) -> Self {
        let column = |name: &&'static str| match name.strip_prefix('#') {
            Some(name) => (name, true),
            None => (*name, false),
        };
        Self {
            columns: columns.iter().map(column).collect(),
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
        let text = |field| match field {
            Field::Text(text) => Some(printable(&text).into_owned()),
            Field::Number(number) => Some(number.to_string()),
            Field::Null => None,
        };
        let row: Vec<Option<String>> = fields.into_iter().map(text).collect();
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
