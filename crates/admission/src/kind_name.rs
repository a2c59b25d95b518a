//! Which requests are alike: those that differ only in numbers and identifiers.

/// Most names are shorter: they are put together without a second allocation.
const KIND_BYTES_USUAL: usize = 96;
/// Longer names are cut, bytes: the table of estimates is as large as its names.
const KIND_BYTES_MAX: usize = 256;
/// Hexadecimal digits in a row from which on they are an identifier.
const IDENTIFIER_DIGITS_MIN: usize = 16;

/// The name of a kind, put together from what tells its jobs from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindName {
    text: String,
}

impl Default for KindName {
    fn default() -> Self {
        Self {
            text: String::with_capacity(KIND_BYTES_USUAL),
        }
    }
}

impl KindName {
    /// One more part, as it is.
    pub fn add(&mut self, part: &str) {
        self.begin_part();
        let left = KIND_BYTES_MAX.saturating_sub(self.text.len());
        self.text.push_str(&part[..part.floor_char_boundary(left)]);
    }

    /// One more part, with every number as `N` and every long identifier as `X`.
    pub fn add_alike(&mut self, part: &str) {
        self.begin_part();
        for (index, segment) in part.split('/').enumerate() {
            if self.text.len() >= KIND_BYTES_MAX {
                break;
            }
            if index > 0 {
                self.text.push('/');
            }
            push_alike(&mut self.text, segment);
        }
        let end = self.text.floor_char_boundary(KIND_BYTES_MAX);
        self.text.truncate(end);
    }

    /// The name.
    pub fn into_text(self) -> String {
        self.text
    }

    fn begin_part(&mut self) {
        if !self.text.is_empty() && self.text.len() < KIND_BYTES_MAX {
            self.text.push(' ');
        }
    }
}

fn push_alike(text: &mut String, segment: &str) {
    if is_identifier(segment) {
        text.push('X');
        return;
    }
    let mut in_number = false;
    for letter in segment.chars().take(KIND_BYTES_MAX) {
        let is_digit = letter.is_ascii_digit();
        if !is_digit {
            text.push(letter);
        } else if !in_number {
            text.push('N');
        }
        in_number = is_digit;
    }
}

/// A UUID, a hash, an object id: hexadecimal digits, perhaps with hyphens, and at least one digit,
/// or a long word would be one.
fn is_identifier(segment: &str) -> bool {
    let digits = segment.bytes().filter(u8::is_ascii_hexdigit).count();
    digits >= IDENTIFIER_DIGITS_MIN
        && segment.bytes().any(|byte| byte.is_ascii_digit())
        && segment
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(method: &str, route: &str, path: &str) -> String {
        let mut name = KindName::default();
        name.add(method);
        name.add(route);
        name.add_alike(path);
        name.into_text()
    }

    #[test]
    fn numbers_and_identifiers_make_no_difference() {
        assert_eq!(
            kind("GET", "/api", "/api/users/17"),
            "GET /api /api/users/N"
        );
        assert_eq!(
            kind(
                "GET",
                "/",
                "/o/3f2504e0-4f89-11d3-9a0c-0305e82c3301/v2.json"
            ),
            "GET / /o/X/vN.json"
        );
        assert_eq!(
            kind("GET", "/", "/d41d8cd98f00b204e9800998ecf8427e"),
            "GET / /X"
        );
        assert_eq!(kind("PUT", "/", "/deadbeef"), "PUT / /deadbeef");
        assert_eq!(kind("PUT", "/", ""), "PUT / ");
        assert_ne!(kind("GET", "/a", "/x"), kind("GET", "/b", "/x"));
    }

    proptest! {
        #[test]
        fn a_name_is_short_and_has_no_digits_of_the_path(
            route in "[a-zé]{0,300}",
            path in "(/[a-z0-9é]{0,40}){0,20}",
        ) {
            let kind = kind("GET", &route, &path);
            prop_assert!(kind.len() <= KIND_BYTES_MAX);
            prop_assert!(!kind.bytes().any(|byte| byte.is_ascii_digit()));
        }
    }
}
