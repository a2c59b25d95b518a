//! What a client says of a response's priority: the Priority field and the value of PRIORITY_UPDATE
//! (RFC 9218).

use http::HeaderMap;
use sfparse::{Parser, Value};

/// The urgency of a response without a priority (RFC 9218, 4.1).
pub const DEFAULT_URGENCY: u8 = 3;
/// The least urgent.
pub const URGENCY_MAX: u8 = 7;

/// The parameters that were given; unknown ones, and known ones of a wrong type or range, are not
/// (RFC 9218, 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority {
    /// `u`: 0 first, 7 last.
    pub urgency: Option<u8>,
    /// `i`: whether parts of the response are of use before the rest.
    pub incremental: Option<bool>,
}

impl Priority {
    /// Reads the value of a Priority field; `None` when it is no dictionary, and counts as not
    /// sent.
    pub fn parse(field: &[u8]) -> Option<Self> {
        let mut priority = Self::default();
        let mut parser = Parser::new(field);
        while let Some((key, value)) = parser.parse_dict().ok()? {
            priority.set(key, value);
        }
        Some(priority)
    }

    /// The Priority field of a message; several lines are one dictionary (RFC 9651, 4.2).
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all("priority").iter();
        let first = lines.next()?;
        let mut rest = lines.peekable();
        if rest.peek().is_none() {
            return Self::parse(first.as_bytes());
        }
        let mut joined = first.as_bytes().to_vec();
        for line in rest {
            joined.push(b',');
            joined.extend_from_slice(line.as_bytes());
        }
        Self::parse(&joined)
    }

    /// What a client that says this wants: what it left out is the default.
    pub fn urgency_or_default(self) -> u8 {
        self.urgency.unwrap_or(DEFAULT_URGENCY)
    }

    /// Whether a client that says this can use parts of the response.
    pub fn is_incremental(self) -> bool {
        self.incremental.unwrap_or(false)
    }

    // A key given twice counts as given last, even if what was given last is not used (RFC 9651,
    // 3.2).
    fn set(&mut self, key: &str, value: Value) {
        match (key, value) {
            ("u", Value::Integer(urgency)) => {
                let urgency = u8::try_from(urgency).ok();
                self.urgency = urgency.filter(|&urgency| urgency <= URGENCY_MAX);
            }
            ("u", _) => self.urgency = None,
            ("i", Value::Bool(incremental)) => self.incremental = Some(incremental),
            ("i", _) => self.incremental = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::HeaderValue;
    use proptest::prelude::*;

    fn parse(field: &str) -> Option<(Option<u8>, Option<bool>)> {
        Priority::parse(field.as_bytes()).map(|priority| (priority.urgency, priority.incremental))
    }

    #[test]
    fn reads_what_browsers_send() {
        assert_eq!(parse("u=0, i"), Some((Some(0), Some(true))));
        assert_eq!(parse("u=5,i=?0"), Some((Some(5), Some(false))));
        assert_eq!(parse("i"), Some((None, Some(true))));
        assert_eq!(parse(""), Some((None, None)));
    }

    #[test]
    fn ignores_one_by_one_what_it_does_not_know() {
        assert_eq!(parse("u=8, i"), Some((None, Some(true))));
        assert_eq!(parse("u=-1"), Some((None, None)));
        assert_eq!(parse("u=2.0, i=1, x=(a b)"), Some((None, None)));
        assert_eq!(parse("u=1;q=2, i;a"), Some((Some(1), Some(true))));
        assert_eq!(parse("u=1, u=4"), Some((Some(4), None)));
        assert_eq!(parse("u"), Some((None, None)));
    }

    #[test]
    fn ignores_as_a_whole_what_is_malformed() {
        for field in ["u=1,", "u=1 i", "U=1", "u=", "u=1; ;", "\u{fffd}"] {
            assert_eq!(parse(field), None, "{field}");
        }
        let fields = [
            ",",
            "a,",
            "a,,b",
            "a b",
            "A",
            "1=a",
            "a=",
            "a=,b",
            "a=-",
            "a=1.",
            "a=.5",
            "a=1.2345",
            "a=1234567890123456",
            "a=1234567890123.1",
            "a=\"x",
            "a=\"\\x\"",
            "a=\"\u{e9}\"",
            "a=:x",
            "a=?2",
            "a=?",
            "a=(1",
            "a=(1,2)",
            "a;",
            "a;=1",
            "a;B",
            "=1",
            "a= 1",
            "a =1",
        ];
        for field in fields {
            assert_eq!(parse(field), None, "{field}");
            let behind = format!("u=1, {field}");
            assert_eq!(parse(&behind), None, "{behind}");
        }
    }

    #[test]
    fn members_of_every_type_are_ignored_one_by_one() {
        let field = r#" a, b=-12;p;q="x", c=1.5,	d="\"\\ ,", e=tok/en:*, f=:aGk=:, g=?0, h=(1 "x";y (), *i=( ), u=2 "#;
        assert_eq!(parse(field), None, "lists do not nest");
        let field = field.replace(" ()", ")");
        assert_eq!(parse(&field), Some((Some(2), None)));
        // Dates and display strings are of RFC 9651, which takes the place of RFC 8941.
        assert_eq!(parse("a=@1, b=%\"%c3%bc\", u=2"), Some((Some(2), None)));
        assert_eq!(parse("  "), Some((None, None)));
    }

    #[test]
    fn several_lines_are_one_dictionary() {
        let mut headers = HeaderMap::new();
        assert_eq!(Priority::of(&headers), None);
        headers.append("priority", HeaderValue::from_static("u=1, i"));
        headers.append("priority", HeaderValue::from_static("u=6"));
        let priority = Priority::of(&headers).unwrap();
        assert_eq!(
            (priority.urgency, priority.incremental),
            (Some(6), Some(true))
        );
        headers.append("priority", HeaderValue::from_static(""));
        assert_eq!(Priority::of(&headers), None, "an empty member");
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_valid_urgency_or_none(field in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(priority) = Priority::parse(&field) {
                prop_assert!(priority.urgency_or_default() <= URGENCY_MAX);
            }
        }

        #[test]
        fn what_is_written_is_read(urgency in 0..=URGENCY_MAX, incremental: bool, blank in "[ \t]{0,3}") {
            let flag = if incremental { "?1" } else { "?0" };
            let field = format!("u={urgency}{blank},{blank}i={flag}");
            prop_assert_eq!(parse(&field), Some((Some(urgency), Some(incremental))));
        }
    }
}
