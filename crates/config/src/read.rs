//! From text to values: TOML's errors and serde's, each as a mistake with key and place.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, Deserializer, Error};

use super::Misconfigured;
use super::key_path::{key_at, leave_out};
use super::keys::keys;
use super::wording::reword;

/// The most mistakes that are told at once.
const READINGS_MAX: usize = 20;

/// Reads a TOML document; the first mistake is the error. Every table's type must deny unknown
/// fields.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Misconfigured> {
    let table = DeTable::parse(text).map_err(|error| not_toml(text, &error))?;
    T::deserialize(Deserializer::from(table.clone()))
        .map_err(|error| does_not_fit::<T>(table.get_ref(), &error))
}

/// All mistakes in a TOML document that can be told at once, in its order; none if [`read`] reads
/// it. What is wrong is left out, and the rest is read again: a key that is missing then is no
/// mistake of the document's.
pub fn mistakes<T: DeserializeOwned>(text: &str) -> Vec<Misconfigured> {
    let mut table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => return vec![not_toml(text, &error)],
    };
    let mut mistakes: Vec<Misconfigured> = Vec::new();
    for _ in 0..READINGS_MAX {
        let whole = Spanned::new(0..text.len(), table.clone());
        let Err(error) = T::deserialize(Deserializer::from(whole)) else {
            break;
        };
        let mistake = does_not_fit::<T>(&table, &error);
        let span = mistake.span.clone();
        // A table may lack what was left out of it.
        let below = format!("{}.", mistake.key);
        let holds_another = mistakes.iter().any(|it| it.key.starts_with(&below));
        let is_missing = !mistakes.is_empty() && mistake.message.starts_with("missing;");
        let follows_from_another = is_missing || holds_another;
        if !follows_from_another {
            mistakes.push(mistake);
        }
        if !span.is_some_and(|span| leave_out(&mut table, &span)) {
            break;
        }
    }
    mistakes.sort_by_key(|mistake| mistake.span.as_ref().map_or(0, |span| span.start));
    mistakes
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what cannot be read is looked at")]
    struct Document {
        #[serde(default)]
        size: u8,
        #[serde(default)]
        item: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what cannot be read is looked at")]
    struct Item {
        name: String,
        #[serde(default)]
        is_large: bool,
    }

    fn keys_of(text: &str) -> Vec<String> {
        let mistakes = mistakes::<Document>(text);
        assert_eq!(
            mistakes.is_empty(),
            read::<Document>(text).is_ok(),
            "{text}"
        );
        mistakes.into_iter().map(|mistake| mistake.key).collect()
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let item = "[[item]]\nname = \"a\"\n";
        for (text, keys) in [
            ("size = 1\n", &[][..]),
            ("size = 999\nsise = 1\n", &["size", "sise"]),
            (
                "size = \"x\"\n[[item]]\nname = 1\nis_large = 5\n",
                &["size", "item.name", "item.is_large"],
            ),
            ("[[item]]\nis_large = true\n", &["item.name"]),
            ("size =\nsise = 1\n", &["syntax"]),
        ] {
            assert_eq!(keys_of(text), keys, "{text}");
        }
        let text = format!("sise = 1\n{item}{item}small = 1\n[item.x]\n");
        assert_eq!(keys_of(&text), ["sise", "item.small", "item.x"]);
    }
}
