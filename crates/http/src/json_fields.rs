//! What a request's body says in a few fields, where it is a JSON object (RFC 8259).
//!
//! What is not JSON says nothing, and neither does a field that is there twice, is long, or is no
//! text, number or truth value. Of a body that is longer than what was looked at the fields count
//! that are complete by then.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A longer text counts as not there, bytes.
pub const VALUE_BYTES_MAX: usize = 1024;
/// Fields of fields, at most.
const DEPTH_MAX: usize = 8;

/// A field of an object, or of an object in it: `model`, `metadata.tier`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath {
    names: Vec<String>,
}

/// A text that is the path of no field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a field of a body; write its name, or names with dots between them: metadata.tier")]
pub struct NoFieldPath;

impl std::str::FromStr for FieldPath {
    type Err = NoFieldPath;

    fn from_str(text: &str) -> Result<Self, NoFieldPath> {
        let names: Vec<String> = text.split('.').map(str::to_owned).collect();
        let is_path = names.len() <= DEPTH_MAX && names.iter().all(|name| !name.is_empty());
        is_path.then_some(Self { names }).ok_or(NoFieldPath)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join("."))
    }
}

/// What one field says.
#[derive(Clone, Debug, Default, PartialEq)]
enum Found {
    #[default]
    Nothing,
    Once(String),
    Twice,
}

/// The values of `paths` in `body`, as text, in their order; `is_whole` where the body ends there.
pub fn find(body: &[u8], is_whole: bool, paths: &[FieldPath]) -> Vec<Option<String>> {
    let mut found = vec![Found::Nothing; paths.len()];
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let body = if is_whole { body } else { without_number(body) };
    // A part may end within a letter; what is no text anywhere else is no JSON (RFC 8259, 8.1).
    let text = match str::from_utf8(body) {
        Err(error) if !is_whole && error.error_len().is_none() => {
            str::from_utf8(&body[..error.valid_up_to()])
        }
        text => text,
    };
    let Ok(text) = text else {
        return vec![None; paths.len()];
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let paths_left = paths.iter().map(|path| path.names.as_slice());
    let root = Value {
        wanted: paths_left.enumerate().collect(),
        found: &mut found,
    };
    let read = root.deserialize(&mut deserializer);
    let read = read.and_then(|()| deserializer.end());
    let is_json = read.is_ok() || read.is_err_and(|error| error.is_eof() && !is_whole);
    let text = |found| match found {
        Found::Once(text) if is_json => Some(text),
        _ => None,
    };
    found.into_iter().map(text).collect()
}

/// What comes before the number that the end may have cut off: 51 of 512 is a number as well.
fn without_number(body: &[u8]) -> &[u8] {
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let end = body.iter().rposition(|byte| !is_of_number(byte));
    &body[..end.map_or(0, |end| end + 1)]
}

/// A value, and what is looked for in it: the place of a path among all, and what is left of it.
struct Value<'a> {
    wanted: Vec<(usize, &'a [String])>,
    found: &'a mut [Found],
}

impl Value<'_> {
    /// The value of the paths that end here.
    fn is<E>(self, text: impl fmt::Display) -> Result<(), E> {
        let text = text.to_string();
        let ends = self.wanted.iter().filter(|(_, left)| left.is_empty());
        for &(at, _) in ends.filter(|_| text.len() <= VALUE_BYTES_MAX) {
            self.found[at] = Found::Once(text.clone());
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.wanted.is_empty() {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.is(value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.is(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.is(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.is(value)
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        if value.len() <= VALUE_BYTES_MAX {
            return self.is(value);
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = vec![false; self.wanted.len()];
        while let Some(name) = fields.next_key::<String>()? {
            let mut last = Vec::new();
            for (&(at, left), seen) in self.wanted.iter().zip(&mut seen) {
                if left.first().is_some_and(|own| *own == name) {
                    last.push((at, &left[1..], std::mem::replace(seen, true)));
                }
            }
            let value = Value {
                wanted: last.iter().map(|&(at, left, _)| (at, left)).collect(),
                found: &mut *self.found,
            };
            fields.next_value_seed(value)?;
            let twice = last.iter().filter(|(.., is_again)| *is_again);
            twice.for_each(|&(at, ..)| self.found[at] = Found::Twice);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
