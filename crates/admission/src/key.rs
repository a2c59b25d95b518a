//! Which requests are alike: those that differ only in numbers and identifiers.

/// Longer keys are cut, bytes: the table of estimates is as large as its keys.
const KEY_BYTES_MAX: usize = 256;
/// Hexadecimal digits in a row from which on they are an identifier.
const IDENTIFIER_DIGITS_MIN: usize = 16;

/// The key of a request: its method, its route, and its path with every number as `N` and every
/// long identifier as `X`.
pub fn key(method: &str, route: &str, path: &str) -> String {
    let mut key =
        String::with_capacity(KEY_BYTES_MAX.min(method.len() + route.len() + path.len() + 2));
    key.push_str(method);
    key.push(' ');
    key.push_str(route);
    key.push(' ');
    for (index, segment) in path.split('/').enumerate() {
        if key.len() >= KEY_BYTES_MAX {
            break;
        }
        if index > 0 {
            key.push('/');
        }
        push_alike(&mut key, segment);
    }
    let mut end = key.len().min(KEY_BYTES_MAX);
    while !key.is_char_boundary(end) {
        end -= 1;
    }
    key.truncate(end);
    key
}

fn push_alike(key: &mut String, segment: &str) {
    if is_identifier(segment) {
        key.push('X');
        return;
    }
    let mut in_number = false;
    for letter in segment.chars().take(KEY_BYTES_MAX) {
        let is_digit = letter.is_ascii_digit();
        if !is_digit {
            key.push(letter);
        } else if !in_number {
            key.push('N');
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

    #[test]
    fn numbers_and_identifiers_make_no_difference() {
        assert_eq!(key("GET", "/api", "/api/users/17"), "GET /api /api/users/N");
        assert_eq!(
            key(
                "GET",
                "/",
                "/o/3f2504e0-4f89-11d3-9a0c-0305e82c3301/v2.json"
            ),
            "GET / /o/X/vN.json"
        );
        assert_eq!(
            key("GET", "/", "/d41d8cd98f00b204e9800998ecf8427e"),
            "GET / /X"
        );
        assert_eq!(key("PUT", "/", "/deadbeef"), "PUT / /deadbeef");
        assert_eq!(key("PUT", "/", ""), "PUT / ");
        assert_ne!(key("GET", "/a", "/x"), key("GET", "/b", "/x"));
    }

    proptest! {
        #[test]
        fn a_key_is_short_and_has_no_digits_of_the_path(path in "(/[a-z0-9é]{0,40}){0,20}") {
            let key = key("GET", "/r", &path);
            prop_assert!(key.len() <= KEY_BYTES_MAX);
            prop_assert!(!key.bytes().any(|byte| byte.is_ascii_digit()));
        }
    }
}
