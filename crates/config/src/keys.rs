//! All keys there are, found by asking the very types that read them: a developer who adds a key
//! need not write it down twice.
//!
//! Each table is given a key that no table has; the refusal lists those it does have, and each of
//! them is tried as a table of its own.

use serde::de::DeserializeOwned;

/// A key that no table has.
const NOBODYS: &str = "no-such-key";

/// Every key that holds a value, by its path: `listen`, `site.redirect.from`.
pub fn keys<T: DeserializeOwned>() -> Vec<String> {
    let mut found = Vec::new();
    collect::<T>("", "", &mut found);
    found
}

/// Adds the keys below `path`, which exists in a document that begins with `head`.
fn collect<T: DeserializeOwned>(path: &str, head: &str, found: &mut Vec<String>) {
    for key in keys_of_table::<T>(head).unwrap_or_default() {
        let path = if path.is_empty() {
            key
        } else {
            format!("{path}.{key}")
        };
        let as_table = format!("{head}[{path}]\n");
        let as_list = format!("{head}[[{path}]]\n");
        match [as_table, as_list]
            .into_iter()
            .find(|head| keys_of_table::<T>(head).is_some())
        {
            Some(head) => collect::<T>(&path, &head, found),
            None => found.push(path),
        }
    }
}

/// The keys of the table that `head` opens; `None` when it is not one with keys of its own.
fn keys_of_table<T: DeserializeOwned>(head: &str) -> Option<Vec<String>> {
    let text = format!("{head}{NOBODYS} = 1\n");
    let refusal = T::deserialize(toml::Deserializer::parse(&text).ok()?).err()?;
    let (_, choice) = refusal
        .message()
        .split_once(&format!("unknown field `{NOBODYS}`, expected "))?;
    Some(
        choice
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, default)]
    #[derive(Default)]
    struct Whole {
        listen: String,
        limits: Limits,
        site: Vec<Site>,
    }

    #[derive(Deserialize, Default)]
    #[serde(deny_unknown_fields, default)]
    struct Limits {
        head_bytes: u64,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its keys are asked for")]
    struct Site {
        root: String,
    }

    #[test]
    fn keys_of_all_depths_are_found() {
        assert_eq!(
            keys::<Whole>(),
            ["listen", "limits.head_bytes", "site.root"]
        );
    }
}
