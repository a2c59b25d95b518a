//! `host=... password='it''s'`: what stands behind a name in `[databases]`, `[users]` and
//! `[peers]`.

use crate::names::in_quotes;

/// The pairs in their order; of a parameter that comes twice the last one counts, as PgBouncer has
/// it.
pub fn read(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, behind) = match rest.split_once('=') {
            Some((key, behind)) if is_one_word(key.trim_end()) => (key.trim_end(), behind),
            _ => return Err(format!("{rest:?} has no value; write KEY=VALUE")),
        };
        let behind = behind.trim_start();
        let (value, behind) = if behind.starts_with('\'') {
            in_quotes(behind, '\'').ok_or_else(|| {
                format!("the quote of {key} has no end; write '...', and '' for one inside")
            })?
        } else {
            let (value, behind) = behind.split_once(' ').unwrap_or((behind, ""));
            (value.to_owned(), behind)
        };
        if value.is_empty() {
            return Err(format!("{key} is empty; leave it out"));
        }
        pairs.retain(|(own, _)| own != key);
        pairs.push((key.to_owned(), value));
        rest = behind.trim_start();
    }
    Ok(pairs)
}

fn is_one_word(key: &str) -> bool {
    !key.is_empty() && !key.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_words_with_values_that_may_be_quoted() {
        let read = |text| {
            let pairs = read(text).unwrap();
            let pairs = pairs.iter().map(|(key, value)| format!("{key}:{value}"));
            pairs.collect::<Vec<_>>().join("|")
        };
        assert_eq!(read(""), "");
        assert_eq!(read("host=a  port = 5433 "), "host:a|port:5433");
        assert_eq!(
            read("password='it''s = x' user=b"),
            "password:it's = x|user:b"
        );
        assert_eq!(read("host=a host=b"), "host:b");
    }

    #[test]
    fn what_is_broken_is_named() {
        for (text, said) in [
            ("host", "\"host\" has no value"),
            ("host=a port", "\"port\" has no value"),
            ("=a", "\"=a\" has no value"),
            ("host=", "host is empty"),
            ("password=''", "password is empty"),
            ("password='x", "the quote of password has no end"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
