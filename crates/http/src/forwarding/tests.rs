//! Header lines, as the tests of this module write them.

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

/// The headers with these lines.
pub fn map(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    headers
}
