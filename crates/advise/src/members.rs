//! An object of JSON as texts by name.

use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// An object; its members are read when they are wanted.
#[derive(Debug)]
pub struct Object<'a>(HashMap<String, &'a RawValue>);

impl<'a> Object<'a> {
    /// Reads one; none of what is no object.
    pub fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// Whether it has a member of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// An object that is inside under this name, as it stands there.
    pub fn inside(&self, name: &str) -> Option<&'a str> {
        let raw = self.0.get(name)?.get();
        raw.starts_with('{').then_some(raw)
    }

    /// A text or a number; of a name with a dot also that of an object inside.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        if let Some(value) = self.0.get(name) {
            return scalar(value.get());
        }
        let (outer, inner) = name.split_once('.')?;
        let inside: HashMap<String, &RawValue> =
            serde_json::from_str(self.0.get(outer)?.get()).ok()?;
        scalar(inside.get(inner)?.get())
    }
}

fn scalar(raw: &str) -> Option<Cow<'_, str>> {
    match raw.as_bytes().first()? {
        b'"' => serde_json::from_str::<String>(raw).ok().map(Cow::Owned),
        b'0'..=b'9' if raw.contains(['e', 'E']) => {
            let value: f64 = raw.parse().ok()?;
            (value < 1e18).then(|| Cow::Owned(format!("{value}")))
        }
        b'0'..=b'9' | b'-' => Some(Cow::Borrowed(raw)),
        _ => None,
    }
}
