//! Files of other servers, which have sections and no braces.

use crate::ini::{At, ImportError};
use std::sync::Arc;

/// What begins a section of HAProxy's.
const OF_HAPROXY: [&str; 8] = [
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "peers",
    "resolvers",
    "userlist",
];

/// Says what is in front of the first directive that nginx takes for a part of its name.
pub fn check_beginning(file: &str, text: &str) -> Result<(), ImportError> {
    if !text.starts_with('\u{feff}') {
        return Ok(());
    }
    let at = At {
        file: Arc::from(file),
        line: 1,
    };
    Err(at.wrong(
        "the file begins with a byte order mark, which nginx takes for an unknown directive; save \
         it as UTF-8 without one",
    ))
}

/// Says of which server a file is, where it is not nginx's.
pub fn check(file: &str, text: &str) -> Result<(), ImportError> {
    let numbered = text
        .lines()
        .zip(1..)
        .map(|(line, number)| (line.trim(), number));
    let mut said = numbered.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let Some((first, line)) = said.next() else {
        return Ok(());
    };
    let second = said.next().map_or("", |(line, _)| line);
    let word = first.split_whitespace().next().unwrap_or_default();
    let is_plain = !first.contains(['{', ';']) && !second.contains(['{', ';']);
    let server = if first.starts_with('<') && first.ends_with('>') {
        "Apache"
    } else if OF_HAPROXY.contains(&word) && is_plain {
        "HAProxy"
    } else {
        return Ok(());
    };
    let at = At {
        file: Arc::from(file),
        line,
    };
    Err(at.wrong(format!(
        "{word} begins a section of {server}, so this is not a file of nginx; name an nginx.conf, or \
         a file of conf.d or sites-available"
    )))
}
