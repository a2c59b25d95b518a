//! No request makes a redirect lead to a host that the owner did not name, or to what is no header.

use sooner_http::redirect::Redirect;

/// Tries one input.
pub fn run(input: (&str, &str, &str, Option<&str>)) {
    let (from, to, path, query) = input;
    let Ok(redirect) = Redirect::parse(from, to, 301) else {
        return;
    };
    let Some(location) = redirect.location("h.org", path, query) else {
        return;
    };
    assert!(location.bytes().all(|byte| (0x21..0x7f).contains(&byte)));
    assert!(!location.contains('\\'));
    if to.starts_with('/') {
        assert!(location.starts_with('/') && !location.starts_with("//"));
    } else if redirect.scheme_at_own_host().is_some() {
        assert_eq!(host_of(&location), Some("h.org"), "{location}");
    } else {
        assert_eq!(host_of(&location), host_of(to), "{location}");
    }
}

fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split(['/', '?', '#']).next()
}
