//! No file of passwords, no header and no path panics; what is read as a user is one word of the
//! file, and what is protected by the root is everything.

use sooner_http::basic_auth::{Credentials, ProtectedPaths};
use sooner_http::forwarding::routes::check_path;
use sooner_web::auth::Users;

/// Tries one input.
pub fn run(input: (&[u8], &[u8], &str, &str)) {
    let (file, header, protected, path) = input;
    if let Err((line, mistake)) = Users::parse(file) {
        assert!(line >= 1 && line <= file.len() + 1);
        assert_eq!(mistake.to_string().lines().count(), 1);
    }
    if let Ok(value) = http::HeaderValue::from_bytes(header) {
        let mut headers = http::HeaderMap::new();
        headers.insert(http::header::AUTHORIZATION, value);
        if let Some(credentials) = Credentials::of(&headers) {
            assert!(!credentials.user.is_empty() && !credentials.user.contains(&b':'));
        }
    }
    let mut paths = ProtectedPaths::default();
    if check_path(protected).is_ok() {
        paths.add(protected, Some(()));
        assert!(paths.find(protected).is_some());
    }
    paths.add("/", Some(()));
    assert!(paths.find(path).is_some());
}
