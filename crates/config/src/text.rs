//! Values that are written as text and are more than text: read by their own `FromStr`, refused
//! with its words and the text's place.

use serde::Deserializer;
use serde::de::{Error, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// For `#[serde(deserialize_with)]` and `Deserialize`: a text that `T` can be read from.
pub fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    deserializer.deserialize_str(Text(PhantomData))
}

struct Text<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
