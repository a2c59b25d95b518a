//! What a body says in a field is what a JSON parser says of it.

use sooner_http::json_fields::{FieldPath, VALUE_BYTES_MAX, find};

/// Tries one input.
pub fn run(input: (bool, &[u8])) {
    let (is_whole, body) = input;
    let texts = ["model", "stream", "a.b"];
    let paths: Vec<FieldPath> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    let found = find(body, is_whole, &paths);
    assert_eq!(found.len(), texts.len());
    let found = found.iter().flatten();
    assert!(found.clone().all(|text| text.len() <= VALUE_BYTES_MAX));
    if is_whole && found.count() > 0 {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        assert!(serde_json::from_slice::<serde_json::Value>(body).is_ok());
    }
}
