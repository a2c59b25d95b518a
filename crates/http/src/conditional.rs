//! Conditional requests (RFC 9110, 13): whether the client already has it, and whether a range
//! still fits.

use http::HeaderMap;
use http::header::{
    HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, RANGE,
};
use std::time::{Duration, SystemTime};

/// What identifies the version of a file.
#[derive(Debug, Clone, Copy)]
pub struct Validators<'a> {
    /// The entity tag, strong, with its quotes.
    pub etag: &'a HeaderValue,
    /// When the file was last changed; `None` when that is not announced, because no date can tell.
    pub modified: Option<SystemTime>,
}

/// What the preconditions of a request demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Answer as if there were none.
    Proceed,
    /// The client has this version already (status 304).
    NotModified,
    /// The client wanted another version (status 412).
    Failed,
}

/// Whether a request says more than which file it wants: preconditions, or a range. One look at the
/// names, because most requests say no more, and looking for each of six names costs several times
/// as much.
pub fn has_conditions_or_range(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        let name = name.as_str();
        name.starts_with("if-") || name == RANGE.as_str()
    })
}

/// Evaluates the preconditions of a GET or HEAD in the order of RFC 9110, 13.2.2.
pub fn evaluate(headers: &HeaderMap, validators: Validators<'_>) -> Outcome {
    if headers.contains_key(IF_MATCH) {
        if !any_tag(headers, IF_MATCH, |tag| tag == validators.etag.as_bytes()) {
            return Outcome::Failed;
        }
    } else if let Some((modified, date)) = dates(headers, IF_UNMODIFIED_SINCE, validators)
        && modified > date
    {
        return Outcome::Failed;
    }
    let has_it = if headers.contains_key(IF_NONE_MATCH) {
        any_tag(headers, IF_NONE_MATCH, |tag| {
            without_weakness(tag) == validators.etag.as_bytes()
        })
    } else {
        dates(headers, IF_MODIFIED_SINCE, validators)
            .is_some_and(|(modified, date)| modified <= date)
    };
    if has_it {
        Outcome::NotModified
    } else {
        Outcome::Proceed
    }
}

/// Whether a `Range` may be honoured at `now`: no `If-Range`, or one that names exactly this
/// version (RFC 9110, 13.1.5).
pub fn range_applies(headers: &HeaderMap, validators: Validators<'_>, now: SystemTime) -> bool {
    let mut values = headers.get_all(IF_RANGE).iter();
    let Some(value) = values.next() else {
        return true;
    };
    if values.next().is_some() {
        return false;
    }
    if value.as_bytes().starts_with(b"\"") {
        return value == validators.etag;
    }
    dates(headers, IF_RANGE, validators)
        .is_some_and(|(modified, date)| modified == date && is_strong(modified, now))
}

/// Whether a date, in seconds, tells versions apart (RFC 9110, 8.8.2.2): while its second lasts the
/// file may still be changed under the same date, and two halves of different versions would look
/// like one.
fn is_strong(modified: u64, now: SystemTime) -> bool {
    modified < in_seconds(now)
}

/// Whether `If-None-Match` names the strong `tag` as a weak one, and not as it is.
pub fn names_weakly(headers: &HeaderMap, tag: &[u8]) -> bool {
    let named = || {
        let values = headers.get_all(IF_NONE_MATCH).iter();
        values.flat_map(|value| tags(value.as_bytes().trim_ascii()))
    };
    let is_weak = |named: &[u8]| named.strip_prefix(b"W/") == Some(tag);
    !named().any(|named| named == tag) && named().any(is_weak)
}

fn any_tag(headers: &HeaderMap, name: HeaderName, mut matches: impl FnMut(&[u8]) -> bool) -> bool {
    headers.get_all(name).iter().any(|value| {
        let value = value.as_bytes().trim_ascii();
        value == b"*" || tags(value).any(&mut matches)
    })
}

/// The entity tags of a list, each with its quotes and its `W/`; the list ends where it can no
/// longer be read.
fn tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let start = rest
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        rest = &rest[start..];
        let opening = if rest.starts_with(b"W/") { 2 } else { 0 };
        if rest.get(opening) != Some(&b'"') {
            return None;
        }
        let closing = rest[opening + 1..].iter().position(|&byte| byte == b'"')? + opening + 1;
        let (tag, tail) = rest.split_at(closing + 1);
        rest = tail;
        Some(tag)
    })
}

fn without_weakness(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The file's date and the one in the header, in seconds; nothing where one of them does not count
/// (RFC 9110, 13.1.3 and 13.1.4): no date of the file, none or several in the request, or one that
/// cannot be read.
fn dates(headers: &HeaderMap, name: HeaderName, validators: Validators<'_>) -> Option<(u64, u64)> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    let date = httpdate::parse_http_date(value.to_str().ok()?).ok()?;
    Some((in_seconds(validators.modified?), in_seconds(date)))
}

/// HTTP dates have whole seconds, so files are compared by theirs.
fn in_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

    fn with<T>(
        headers: &[(&'static str, &str)],
        check: impl FnOnce(&HeaderMap, Validators<'_>) -> T,
    ) -> T {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let modified = httpdate::parse_http_date(DATE).unwrap() + Duration::from_millis(700);
        check(
            &map,
            Validators {
                etag: &HeaderValue::from_static("\"v1\""),
                modified: Some(modified),
            },
        )
    }

    #[test]
    fn preconditions_in_order() {
        use Outcome::{Failed, NotModified, Proceed};
        for (headers, outcome) in [
            (&[][..], Proceed),
            (&[("if-none-match", "\"v1\"")], NotModified),
            (&[("if-none-match", "W/\"v1\"")], NotModified),
            (&[("if-none-match", "*")], NotModified),
            (
                &[("if-none-match", "\"a,b\", W/\"c\" ,\"v1\"")],
                NotModified,
            ),
            (
                &[("if-none-match", "\"a\""), ("if-none-match", "\"v1\"")],
                NotModified,
            ),
            (&[("if-none-match", "\"v2\"")], Proceed),
            (&[("if-none-match", "v1")], Proceed),
            (&[("if-none-match", "\"v1")], Proceed),
            (
                &[("if-none-match", "\"v2\""), ("if-modified-since", DATE)],
                Proceed,
            ),
            (&[("if-modified-since", DATE)], NotModified),
            (&[("if-modified-since", EARLIER)], Proceed),
            (&[("if-modified-since", "yesterday")], Proceed),
            (
                &[("if-modified-since", DATE), ("if-modified-since", DATE)],
                Proceed,
            ),
            (&[("if-match", "\"v1\"")], Proceed),
            (&[("if-match", "*")], Proceed),
            (
                &[("if-match", "\"v1\""), ("if-none-match", "\"v1\"")],
                NotModified,
            ),
            (
                &[("if-unmodified-since", EARLIER), ("if-none-match", "*")],
                Failed,
            ),
            (&[("if-unmodified-since", "yesterday")], Proceed),
            (&[("if-match", "W/\"v1\"")], Failed),
            (&[("if-match", "\"v2\"")], Failed),
            (&[("if-unmodified-since", DATE)], Proceed),
            (&[("if-unmodified-since", EARLIER)], Failed),
            (
                &[("if-match", "\"v1\""), ("if-unmodified-since", EARLIER)],
                Proceed,
            ),
        ] {
            assert_eq!(with(headers, evaluate), outcome, "{headers:?}");
        }
    }

    #[test]
    fn sees_whether_there_is_more_to_a_request() {
        let is_more = |name| {
            with(&[("accept", "x"), (name, "y")], |headers, _| {
                has_conditions_or_range(headers)
            })
        };
        for name in [
            "if-match",
            "if-none-match",
            "if-modified-since",
            "if-unmodified-since",
            "if-range",
            "range",
        ] {
            assert!(is_more(name), "{name}");
        }
        assert!(!is_more("accept-ranges") && !is_more("host"));
    }

    #[test]
    fn ranges_only_of_the_same_version() {
        for (headers, applies) in [
            (&[][..], true),
            (&[("if-range", "\"v1\"")], true),
            (&[("if-range", "W/\"v1\"")], false),
            (&[("if-range", "\"v2\"")], false),
            (&[("if-range", DATE)], true),
            (&[("if-range", EARLIER)], false),
            (&[("if-range", "?")], false),
            (&[("if-range", "\"v1\""), ("if-range", "\"v1\"")], false),
        ] {
            let got = with(headers, |headers, validators| {
                range_applies(headers, validators, a_second_later())
            });
            assert_eq!(got, applies, "{headers:?}");
        }
    }

    #[test]
    fn a_date_whose_second_lasts_is_no_strong_validator() {
        let applies = |value, now| {
            with(&[("if-range", value)], |headers, validators| {
                range_applies(headers, validators, now)
            })
        };
        let same_second = a_second_later() - Duration::from_millis(1);
        assert!(!applies(DATE, same_second));
        assert!(applies("\"v1\"", same_second), "a tag is strong at once");
        assert!(applies(DATE, a_second_later()));
        let clock_went_back = a_second_later() - Duration::from_secs(60);
        assert!(!applies(DATE, clock_went_back));
    }

    /// The first moment at which the Date of a response is a second later than the file's.
    fn a_second_later() -> SystemTime {
        httpdate::parse_http_date(DATE).unwrap() + Duration::from_secs(1)
    }

    #[test]
    fn a_date_that_was_not_announced_decides_nothing() {
        for name in ["if-modified-since", "if-unmodified-since"] {
            let outcome = with(&[(name, EARLIER)], |headers, validators| {
                evaluate(
                    headers,
                    Validators {
                        modified: None,
                        ..validators
                    },
                )
            });
            assert_eq!(outcome, Outcome::Proceed);
        }
    }
}
