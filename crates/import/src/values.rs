//! Values as PgBouncer writes them: numbers, times, lists, quoted names and connection strings.

use crate::ini::{At, ImportError};
use sooner_pooler::config;
use std::sync::Arc;

/// Longer ones mean without end, and the configuration has none.
const SECONDS_MAX: f64 = config::SECONDS_MAX as f64;

/// A whole number: decimal, octal after a 0, hexadecimal after 0x, with a sign.
pub fn whole(text: &str) -> Result<i64, String> {
    let bare = text.trim();
    let (is_negative, digits) = match bare.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, bare.strip_prefix('+').unwrap_or(bare)),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (lower.as_str(), 10),
    };
    let number = i32::from_str_radix(digits, radix);
    match number {
        Ok(number) if !digits.starts_with(['+', '-']) => Ok(if is_negative {
            -i64::from(number)
        } else {
            i64::from(number)
        }),
        _ => Err(format!("{text:?} is not a whole number; write digits")),
    }
}

/// A time in seconds, or with the unit written to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seconds {
    /// Rounded up: 0 means something else.
    pub whole: u64,
    /// Whether that changed it.
    pub is_rounded: bool,
}

/// Reads a time: `15`, `0.5`, `500ms`, `2min`.
pub fn seconds(text: &str) -> Result<Seconds, String> {
    let bare = text.trim();
    let end = bare.find(|letter: char| !letter.is_ascii_digit() && !".+-".contains(letter));
    let (number, unit) = bare.split_at(end.unwrap_or(bare.len()));
    let factor = match unit.trim() {
        "" | "s" => 1.0,
        "us" => 1e-6,
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => {
            return Err(format!(
                "{text:?} is not a time; write seconds, like 15 or 0.5"
            ));
        }
    };
    let value = number.parse::<f64>().map(|number| number * factor);
    match value {
        Ok(value) if value >= 0.0 => {
            let whole = value.min(SECONDS_MAX).ceil();
            Ok(Seconds {
                // Between 0 and a year, and whole.
                whole: whole as u64,
                is_rounded: (whole - value).abs() > 1e-9,
            })
        }
        _ => Err(format!(
            "{text:?} is not a time; write seconds, like 15 or 0.5"
        )),
    }
}

/// A text in double quotes at the beginning, and what follows it.
pub fn in_double_quotes(text: &str) -> Option<(String, &str)> {
    in_quotes(text, '"')
}

/// The same with any quote.
pub fn in_quotes(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut rest = text.strip_prefix(quote)?;
    loop {
        let (part, behind) = rest.split_once(quote)?;
        inside.push_str(part);
        match behind.strip_prefix(quote) {
            Some(more) => {
                inside.push(quote);
                rest = more;
            }
            None => return Some((inside, behind)),
        }
    }
}

/// Who stands in a userlist.txt, whatever the secrets: with `trust` an empty one is good enough.
pub fn of_userlist(file: &str, text: &str) -> Result<Vec<String>, ImportError> {
    let file: Arc<str> = file.into();
    let mut names = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        let Some((name, _)) = in_double_quotes(line) else {
            let at = At {
                file,
                line: index + 1,
            };
            return Err(at.wrong("no name in quotes; a line is \"name\" \"secret\""));
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Names between commas.
pub fn list(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The pairs in their order; of a parameter that comes twice the last one counts, as PgBouncer has
/// it.
pub fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
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
    fn whole_numbers_have_c_s_prefixes() {
        let read = |text| whole(text).ok();
        assert_eq!(read("20"), Some(20));
        assert_eq!(read(" -1"), Some(-1));
        assert_eq!(read("0x10"), Some(16));
        assert_eq!(read("010"), Some(8));
        assert_eq!(read("0"), Some(0));
        for text in ["", "x", "2k", "--1", "0x", "99999999999", "1.5", "0x-1"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_rounded_up_so_that_none_becomes_never() {
        let read = |text| seconds(text).ok().map(|time| (time.whole, time.is_rounded));
        assert_eq!(read("15"), Some((15, false)));
        assert_eq!(read("15.0"), Some((15, false)));
        assert_eq!(read("0.1"), Some((1, true)));
        assert_eq!(read("0"), Some((0, false)));
        assert_eq!(read("2min"), Some((120, false)));
        assert_eq!(read("1500 ms"), Some((2, true)));
        assert_eq!(read("9999d"), Some((config::SECONDS_MAX, true)));
        for text in ["", "-1", "x", "1y", "1e400", "nan", "inf"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn pairs_are_words_with_values_that_may_be_quoted() {
        let read = |text| {
            let pairs = super::pairs(text).unwrap();
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
            let error = pairs(text).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
