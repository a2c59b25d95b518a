//! No request target leads out of the root: any text is a path below it or an error.

use sooner_http::target::{self, DotFiles};

/// Tries one input.
pub fn run(text: &str) {
    let hidden_too = target::parse(text, DotFiles::Served);
    let Ok(target) = target::parse(text, DotFiles::Refused) else {
        return;
    };
    assert_eq!(hidden_too.as_ref(), Ok(&target));
    let path = target.path.as_ref();
    assert!(!path.contains(&0), "a NUL ends the name early");
    assert!(!path.starts_with(b"/"), "an absolute path");
    for component in path.split(|byte| *byte == b'/') {
        assert!(component != b"..", "out of the root");
        assert!(component != b"." && (path.is_empty() || !component.is_empty()));
    }
    let location = target::directory_location(path);
    let again =
        target::parse(&location, DotFiles::Refused).expect("a location we send is one we serve");
    assert_eq!(again.path.as_ref(), path);
}
