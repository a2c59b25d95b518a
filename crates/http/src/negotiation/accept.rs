//! The `Accept` request header (RFC 9110, 12.5.1), as far as listings need it: HTML or JSON.

use super::quality::{self, Weight};

/// Weight, then how exactly the type was named: `application/json` is meant more than `*/*`.
type Preference = (Weight, u8);

/// Whether a client would rather have JSON than HTML; one that does not care gets HTML. Total;
/// O(length).
pub fn prefers_json<'a>(values: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut json, mut html): (Preference, Preference) = ((0, 0), (0, 0));
    for (range, weight) in quality::elements(values) {
        let take = |preference: &mut Preference, exact: &str, family: &str| {
            let exactness = match range {
                b"*/*" => 1,
                _ if range.eq_ignore_ascii_case(family.as_bytes()) => 2,
                _ if range.eq_ignore_ascii_case(exact.as_bytes()) => 3,
                _ => return,
            };
            // The most exact range that fits is the one that counts.
            if exactness >= preference.1 {
                *preference = (weight, exactness);
            }
        };
        take(&mut json, "application/json", "application/*");
        take(&mut html, "text/html", "text/*");
    }
    json.0 > 0 && json > html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_only_when_it_is_meant() {
        for (accept, is_json) in [
            ("", false),
            ("*/*", false),
            ("application/json", true),
            ("Application/JSON;q=0.1", true),
            ("application/json, text/plain, */*", true),
            ("application/*, */*", true),
            ("text/html, application/json", false),
            ("text/html;q=0.9, application/json", true),
            ("application/json;q=0.9, text/html", false),
            ("application/json;q=0.9, */*", false),
            ("application/json;q=0, */*", false),
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                false,
            ),
            ("image/png", false),
        ] {
            let prefers = prefers_json(std::iter::once(accept.as_bytes()));
            assert_eq!(prefers, is_json, "{accept}");
        }
        assert!(!prefers_json(std::iter::empty()));
    }
}
