//! Sizes, times, numbers and words of a directive, read as nginx reads them.

/// What the arguments of a directive are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Looked at elsewhere, or not at all.
    Any,
    /// `on` or `off`.
    Flag,
    /// Digits.
    Number,
    /// Bytes, up to megabytes.
    Size,
    /// Bytes, up to gigabytes.
    Offset,
    /// A time that milliseconds may be part of.
    Time,
    /// A time in whole seconds.
    Seconds,
    /// A number and a size.
    Buffers,
}

impl Kind {
    /// The one that these words name.
    pub fn of(words: &[&str]) -> Self {
        let named = words.iter().find_map(|word| {
            Some(match *word {
                "flag" => Self::Flag,
                "number" => Self::Number,
                "size" => Self::Size,
                "offset" => Self::Offset,
                "time" => Self::Time,
                "seconds" => Self::Seconds,
                "buffers" => Self::Buffers,
                _ => return None,
            })
        });
        named.unwrap_or(Self::Any)
    }

    /// What is wrong with these arguments, and what would be right.
    pub fn check(self, args: &[String]) -> Result<(), String> {
        let first = args.first().map_or("", String::as_str);
        let second = args.get(1).map(String::as_str);
        match self {
            Self::Any => Ok(()),
            Self::Flag => flag(first),
            Self::Number => number(first),
            Self::Size => size(first),
            Self::Offset => offset(first),
            Self::Time => {
                time(first)?;
                second.map_or(Ok(()), seconds)
            }
            Self::Seconds => seconds(first),
            Self::Buffers => {
                number(first)?;
                size(second.unwrap_or_default())
            }
        }
    }
}

fn flag(text: &str) -> Result<(), String> {
    words(text, &["on", "off"])
}

/// That a text is one of these words, in letters of any case.
pub fn words(text: &str, all: &[&str]) -> Result<(), String> {
    if all.iter().any(|word| word.eq_ignore_ascii_case(text)) {
        return Ok(());
    }
    Err(format!("{text:?} is not known; write {}", list(all)))
}

/// `a, b or c`.
pub fn list(all: &[&str]) -> String {
    match all {
        [one] => (*one).to_owned(),
        [before @ .., last] => format!("{} or {last}", before.join(", ")),
        [] => String::new(),
    }
}

/// That a text is a number.
pub fn number(text: &str) -> Result<(), String> {
    match is_number(text) {
        true => Ok(()),
        false => Err(format!("{text:?} is not a number; write digits, as in 10")),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<i64>().is_ok()
}

/// That a text is a size.
pub fn size(text: &str) -> Result<(), String> {
    match is_bytes(text, &[('k', 1 << 10), ('m', 1 << 20)]) {
        true => Ok(()),
        false => Err(format!(
            "{text:?} is not a size; write bytes, or a number with k or m behind it, as in 10m"
        )),
    }
}

/// That a text is a size of a file.
pub fn offset(text: &str) -> Result<(), String> {
    match is_bytes(text, &[('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30)]) {
        true => Ok(()),
        false => Err(format!(
            "{text:?} is not a size; write bytes, or a number with k, m or g behind it, as in 10m"
        )),
    }
}

fn is_bytes(text: &str, units: &[(char, i64)]) -> bool {
    let unit = units
        .iter()
        .find(|(letter, _)| text.ends_with([*letter, letter.to_ascii_uppercase()]));
    let (digits, factor) = match unit {
        Some((_, factor)) => (&text[..text.len() - 1], *factor),
        None => (text, 1),
    };
    let number = digits.parse::<i64>().ok().filter(|_| is_number(digits));
    number.is_some_and(|number| number.checked_mul(factor).is_some())
}

/// That a text is a time, of which milliseconds may be part.
pub fn time(text: &str) -> Result<(), String> {
    match is_time(text, false) {
        true => Ok(()),
        false => Err(format!(
            "{text:?} is not a time; write seconds, or units without a space from the longest \
             (w, d, h, m, s, ms), as in 1m30s"
        )),
    }
}

/// That a text is a time in whole seconds.
pub fn seconds(text: &str) -> Result<(), String> {
    match is_time(text, true) {
        true => Ok(()),
        false => Err(format!(
            "{text:?} is not a time; write seconds, or units without a space from the longest \
             (y, M, w, d, h, m, s), as in 1h30m"
        )),
    }
}

/// Whether nginx takes this time: units once each, the longest first.
pub fn is_time(text: &str, is_seconds: bool) -> bool {
    const UNITS: [(&str, i64); 8] = [
        ("y", 31_536_000),
        ("M", 2_592_000),
        ("w", 604_800),
        ("d", 86_400),
        ("h", 3600),
        ("ms", 0),
        ("m", 60),
        ("s", 1),
    ];
    // The place of a unit in the order, from the longest on.
    let step = |unit: &str| match unit {
        "ms" => 8,
        "m" => 6,
        "s" => 7,
        _ => 1 + UNITS.iter().position(|(own, _)| *own == unit).unwrap_or(8),
    };
    let mut last = if is_seconds { 0 } else { 2 };
    let mut rest = text;
    let mut has_number = false;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        has_number |= digits > 0;
        let found = UNITS.iter().find(|(unit, _)| tail.starts_with(unit));
        let (unit, factor) = match found {
            Some((unit, factor)) => (*unit, *factor),
            // What has no unit is the seconds, and comes last.
            None if tail.is_empty() || tail.starts_with(' ') => ("s", 1),
            None => return false,
        };
        if step(unit) <= last || unit == "ms" && is_seconds {
            return false;
        }
        last = step(unit);
        let number = if digits == 0 { "0" } else { number };
        let in_bounds = number
            .parse::<i64>()
            .ok()
            .and_then(|number| number.checked_mul(factor.max(1)));
        if in_bounds.is_none() {
            return false;
        }
        let is_named = found.is_some();
        rest = if is_named { &tail[unit.len()..] } else { tail };
        rest = rest.trim_start_matches(' ');
    }
    has_number
}

/// Directives of which each argument is one of some words.
const WORDS: [(&str, &[&str]); 12] = [
    ("satisfy", &["all", "any"]),
    ("autoindex_format", &["html", "xml", "json", "jsonp"]),
    ("gzip_static", &["off", "on", "always"]),
    ("brotli_static", &["off", "on", "always"]),
    (
        "ssl_verify_client",
        &["off", "on", "optional", "optional_no_ca"],
    ),
    ("gzip_http_version", &["1.0", "1.1"]),
    ("proxy_http_version", &["1.0", "1.1", "2"]),
    ("if_modified_since", &["off", "exact", "before"]),
    ("lingering_close", &["off", "on", "always"]),
    (
        "dav_methods",
        &["off", "PUT", "DELETE", "MKCOL", "COPY", "MOVE"],
    ),
    (
        "gzip_proxied",
        &[
            "off",
            "expired",
            "no-cache",
            "no-store",
            "private",
            "no_last_modified",
            "no_etag",
            "auth",
            "any",
        ],
    ),
    ("client_body_in_file_only", &["off", "on", "clean"]),
];

const PROTOCOLS: [&str; 6] = ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

/// What makes nginx ask the next server of an upstream.
const NEXT: [&str; 13] = [
    "error",
    "timeout",
    "invalid_header",
    "non_idempotent",
    "http_500",
    "http_502",
    "http_503",
    "http_504",
    "http_403",
    "http_404",
    "http_429",
    "updating",
    "off",
];

/// That the arguments of a directive with fixed words are such.
pub fn check_words(name: &str, args: &[String]) -> Result<(), String> {
    let own = WORDS.iter().find(|(own, _)| *own == name);
    let all: &[&str] = match own {
        Some((_, all)) => all,
        None if name.ends_with("ssl_protocols") => &PROTOCOLS,
        None if name.ends_with("_next_upstream") => &NEXT,
        None => return Ok(()),
    };
    args.iter().try_for_each(|arg| words(arg, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_nginx() {
        for text in ["5", "5s", "1h30m", "1h 5m", "1d", "500ms", "0", "1m30"] {
            assert!(is_time(text, false), "{text}");
        }
        for text in [
            "", "5 s", "5m1h", "1.5", "-1", "1y", "7M", "x", "5x", "1s1s", "s",
        ] {
            assert!(!is_time(text, false), "{text}");
        }
        assert!(is_time("1y2M", true) && !is_time("5ms", true));
        assert!(!is_time("99999999999999999999", true));
    }

    #[test]
    fn sizes_are_those_of_nginx() {
        for (text, is_size, is_offset) in [
            ("10m", true, true),
            ("8K", true, true),
            ("1g", false, true),
            ("0", true, true),
            ("10mb", false, false),
            ("1.5m", false, false),
            ("-1", false, false),
            ("+1", false, false),
            ("m", false, false),
            ("", false, false),
            ("9223372036854775807k", false, false),
        ] {
            assert_eq!(size(text).is_ok(), is_size, "{text}");
            assert_eq!(offset(text).is_ok(), is_offset, "{text}");
        }
    }
}
