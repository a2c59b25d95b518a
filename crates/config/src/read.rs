//! From text to values: TOML's errors and serde's, each as a mistake with key and place.

use serde::de::DeserializeOwned;
use toml::de::{DeTable, Deserializer, Error};

use super::Misconfigured;
use super::key_path::key_at;
use super::keys::keys;
use super::wording::reword;

/// Reads a TOML document; the first mistake is the error. Every table's type must deny unknown fields.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Misconfigured> {
    let table = DeTable::parse(text).map_err(|error| not_toml(text, &error))?;
    T::deserialize(Deserializer::from(table.clone()))
        .map_err(|error| does_not_fit::<T>(table.get_ref(), &error))
}

/// A breach of TOML's own rules.
fn not_toml(text: &str, error: &Error) -> Misconfigured {
    let span = error.span();
    let at = span.clone().and_then(|span| text.get(span));
    let (key, message) = match (error.message(), at) {
        ("duplicate key", Some(key)) => (key, "given twice; keep one of them".to_owned()),
        (message, _) => ("syntax", message.replacen(", expected ", "; expected ", 1)),
    };
    Misconfigured {
        span,
        key: key.into(),
        message,
    }
}

/// TOML that says something else than a configuration can.
fn does_not_fit<T: DeserializeOwned>(table: &DeTable<'_>, error: &Error) -> Misconfigured {
    let span = error.span();
    let key = span.as_ref().map(|span| key_at(table, span));
    let (missing, message) = reword(error.message(), keys::<T>);
    let path: Vec<String> = key
        .into_iter()
        .chain(missing)
        .filter(|name| !name.is_empty())
        .collect();
    Misconfigured {
        span,
        key: path.join("."),
        message,
    }
}
