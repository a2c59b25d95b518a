//! Which route a request takes: the longest path that fits, and of equals the one with the most
//! specific host.
//!
//! Paths are compared as RFC 3986, 6.2.2 makes them equal: `%61` is `a`. What goes to the upstream
//! is what the client sent.

use crate::host;
use std::borrow::Cow;

/// A table of routes to something.
#[derive(Clone, Debug)]
pub struct Routes<T> {
    /// The longest path first, then the most specific host.
    entries: Vec<Entry<T>>,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    path: String,
    host: HostPattern,
    target: T,
}

/// Which hosts a route is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// All.
    Any,
    /// All below this name; kept with its leading dot.
    Below(String),
    /// This one; an address in its shortest form.
    Exact(String),
}

/// Text that is no host of a route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a host: write a name or an address without port, example.org, *.example.org or [2001:db8::1]"
)]
pub struct NotAHost(String);

/// A path no route may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not begin at the root.
    #[error("a path begins with /")]
    Relative,
    /// It has what never matches.
    #[error(
        "a path is ASCII without ?, #, * and space, and has no segment . or ..; write other letters as %XX"
    )]
    Unmatchable,
}

/// The same host and path are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap;

impl HostPattern {
    /// Reads one entry of `hosts`.
    pub fn parse(text: &str) -> Result<Self, NotAHost> {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let is_name = !name.is_empty()
            && name.split('.').all(|label| {
                !label.is_empty()
                    && label
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            });
        let is_address = text.starts_with('[') && host::parse(text.as_bytes()) == Some(text);
        if !is_name && !is_address {
            return Err(NotAHost(text.into()));
        }
        if is_address {
            return Ok(Self::Exact(host::normal(text).into_owned()));
        }
        let name = name.to_ascii_lowercase();
        Ok(if name.len() == text.len() {
            Self::Exact(name)
        } else {
            Self::Below(format!(".{name}"))
        })
    }

    /// Whether it is for `host`, which is as [`host::normal`] gives it.
    fn fits(&self, host: Option<&str>) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Exact(name), Some(host)) => host == name,
            (Self::Below(end), Some(host)) => host.len() > end.len() && host.ends_with(end),
            (_, None) => false,
        }
    }

    /// How much it says of a host.
    fn weight(&self) -> usize {
        match self {
            Self::Any => 0,
            Self::Below(end) => end.len(),
            Self::Exact(_) => usize::MAX,
        }
    }
}

/// Whether a route may have `path`.
pub fn check_path(path: &str) -> Result<(), PathError> {
    if !path.starts_with('/') {
        return Err(PathError::Relative);
    }
    let is_unmatchable = path.contains(['?', '#', '*'])
        || path.bytes().any(|byte| byte <= b' ' || byte >= 0x7f)
        || has_dot_segment(path);
    if is_unmatchable {
        return Err(PathError::Unmatchable);
    }
    Ok(())
}

impl<T> Default for Routes<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
        }
    }
}

impl<T> Routes<T> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a route.
    pub fn add(&mut self, host: HostPattern, path: &str, target: T) -> Result<(), Overlap> {
        let path = normalised(path).into_owned();
        let is_same = |entry: &Entry<T>| entry.host == host && entry.path == path;
        if self.entries.iter().any(is_same) {
            return Err(Overlap);
        }
        let order = |path: &str, host: &HostPattern| {
            (
                std::cmp::Reverse(path.len()),
                std::cmp::Reverse(host.weight()),
            )
        };
        let new = order(&path, &host);
        let at = self
            .entries
            .partition_point(|entry| order(&entry.path, &entry.host) <= new);
        self.entries.insert(at, Entry { path, host, target });
        Ok(())
    }

    /// The route of a request for `path` at `host` (a name without its port).
    pub fn find(&self, host: Option<&str>, path: &str) -> Option<&T> {
        if self.entries.is_empty() {
            return None;
        }
        let (path, host) = (normalised(path), host.map(host::normal));
        self.entries
            .iter()
            .find(|entry| begins_with(&path, &entry.path) && entry.host.fits(host.as_deref()))
            .map(|entry| &entry.target)
    }
}

/// Whether `path` begins with `prefix` and the prefix ends where a segment ends.
fn begins_with(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
}

/// What is left of `path` behind a route's `prefix`, as the client wrote it; begins with `/`.
pub fn without_prefix<'a>(path: &'a str, prefix: &str) -> Cow<'a, str> {
    let prefix = normalised(prefix.strip_suffix('/').unwrap_or(prefix));
    // The client may have written a letter of the prefix as %XX: count letters, not bytes.
    let mut rest = path;
    for _ in 0..prefix.len() {
        let bytes = unit_bytes(rest);
        rest = rest.get(bytes..).unwrap_or("");
    }
    if rest.starts_with('/') {
        Cow::Borrowed(rest)
    } else {
        Cow::Owned(format!("/{rest}"))
    }
}

/// The bytes of the first byte of a normalised path as they stand in `path`: three for `%61`, one
/// otherwise.
fn unit_bytes(path: &str) -> usize {
    if unreserved(path.as_bytes()).is_some() {
        3
    } else {
        1
    }
}

/// The unreserved character that `%XX` at the front of `bytes` stands for (RFC 3986, 2.3).
fn unreserved(bytes: &[u8]) -> Option<char> {
    let [b'%', high, low, ..] = *bytes else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = (digit(high)? * 16 + digit(low)?) as u8;
    let is_unreserved = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    is_unreserved.then_some(char::from(byte))
}

/// `path` with those characters written out that need no escape.
fn normalised(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut plain = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(letter) = rest.chars().next() {
        let bytes = match unreserved(rest.as_bytes()) {
            Some(letter) => {
                plain.push(letter);
                3
            }
            None => {
                plain.push(letter);
                letter.len_utf8()
            }
        };
        rest = &rest[bytes..];
    }
    Cow::Owned(plain)
}

/// Whether a segment is `.` or `..`, also as `%2e`, between `%2f` or before `;` (where some see
/// parameters): such a path may mean another one to the upstream than it does here.
pub fn has_dot_segment(path: &str) -> bool {
    let has_one = |path: &str| {
        path.split(['/', '\\'])
            .filter_map(|segment| segment.split(';').next())
            .any(|name| matches!(name, "." | ".."))
    };
    match normalised(path) {
        path if !path.contains('%') => has_one(&path),
        path => {
            let path = path.to_ascii_lowercase();
            let path = path.replace("%2f", "/").replace("%5c", "/");
            has_one(&path.replace("%3b", ";"))
        }
    }
}

/// The name in a `Host` header: without its port and a last dot.
pub fn host_name(authority: &str) -> &str {
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => authority,
    };
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn routes(entries: &[(&str, &str)]) -> Routes<usize> {
        let mut routes = Routes::default();
        for (index, (host, path)) in entries.iter().enumerate() {
            let host = match *host {
                "" => HostPattern::Any,
                host => HostPattern::parse(host).unwrap(),
            };
            routes.add(host, path, index).unwrap();
        }
        routes
    }

    #[test]
    fn the_longest_path_wins_and_ends_with_a_segment() {
        let routes = routes(&[("", "/api"), ("", "/"), ("", "/api/v2/"), ("", "/apix/y")]);
        let find = |path| routes.find(Some("h"), path).copied();
        assert_eq!(find("/api"), Some(0));
        assert_eq!(find("/api/"), Some(0));
        assert_eq!(find("/api/v2"), Some(0));
        assert_eq!(find("/api/v2/"), Some(2));
        assert_eq!(find("/api/v2/x"), Some(2));
        assert_eq!(find("/apix"), Some(1));
        assert_eq!(find("/%61pi/x"), Some(0));
        assert_eq!(find("*"), None);
    }

    #[test]
    fn of_equal_paths_the_host_that_says_most_wins() {
        let routes = routes(&[
            ("", "/"),
            ("*.example.org", "/"),
            ("a.example.org", "/"),
            ("*.b.example.org", "/"),
            ("example.net", "/only"),
        ]);
        let find = |host, path| routes.find(host, path).copied();
        assert_eq!(find(Some("A.Example.org"), "/"), Some(2));
        assert_eq!(find(Some("x.example.org"), "/"), Some(1));
        assert_eq!(find(Some("x.b.example.org"), "/"), Some(3));
        assert_eq!(find(Some("example.org"), "/"), Some(0));
        assert_eq!(find(None, "/"), Some(0));
        assert_eq!(find(None, "/only"), Some(0));
        assert_eq!(find(Some("example.net"), "/only"), Some(4));
    }

    #[test]
    fn an_address_has_many_spellings() {
        let mut routes = routes(&[("[2001:DB8:0::1]", "/")]);
        for host in [
            "[2001:db8::1]",
            "[2001:0db8:0:0:0:0:0:1]",
            "[2001:DB8::0.0.0.1]",
        ] {
            assert_eq!(routes.find(Some(host), "/"), Some(&0), "{host}");
        }
        assert_eq!(routes.find(Some("[2001:db8::2]"), "/"), None);
        let again = HostPattern::parse("[2001:db8::1]").unwrap();
        assert_eq!(routes.add(again, "/", 9), Err(Overlap));
    }

    #[test]
    fn the_same_host_and_path_twice_overlap() {
        let mut routes = routes(&[("", "/api"), ("a", "/api")]);
        assert_eq!(routes.add(HostPattern::Any, "/%61pi", 9), Err(Overlap));
        let a = HostPattern::parse("A").unwrap();
        assert_eq!(routes.add(a, "/api", 9), Err(Overlap));
    }

    #[test]
    fn hosts_and_paths_that_never_match_are_refused() {
        for host in [
            "",
            "*",
            "*.",
            "a..b",
            "a:80",
            "http://a",
            "a b",
            "*.[::1]",
            "[foo]",
            "[]",
            "[::1]:80",
            "[1.2.3.4]",
            "[::1",
            "::1",
        ] {
            assert!(HostPattern::parse(host).is_err(), "{host}");
        }
        assert!(HostPattern::parse("[::1]").is_ok());
        for path in ["", "api", "/a?b", "/a/../b", "/a b", "/*", "/é"] {
            assert!(check_path(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_prefix_is_taken_off_as_the_client_wrote_it() {
        assert_eq!(without_prefix("/api/x%2Fy", "/api"), "/x%2Fy");
        assert_eq!(without_prefix("/%61pi/x", "/api/"), "/x");
        assert_eq!(without_prefix("/api", "/api"), "/");
        assert_eq!(without_prefix("/x", "/"), "/x");
    }

    #[test]
    fn dot_segments_are_seen_however_they_are_written() {
        for path in [
            "/..",
            "/a/./b",
            "/%2e%2E/a",
            "/.%2e",
            "/a\\..\\b",
            "/%2F..",
            "/..%5c",
            "/..;/a",
            "/a/.;x=1/b",
            "/%2e%2e;a;b",
            "/..%3B/a",
        ] {
            assert!(has_dot_segment(path), "{path}");
        }
        for path in ["/", "/...", "/a.b/.c", "/a%2fb", "/a;..", "/...;", "/;"] {
            assert!(!has_dot_segment(path), "{path}");
        }
    }

    #[test]
    fn a_host_has_a_name() {
        assert_eq!(host_name("example.org:80"), "example.org");
        assert_eq!(host_name("example.org."), "example.org");
        assert_eq!(host_name("[::1]:80"), "[::1]");
        assert_eq!(host_name("[::1]"), "[::1]");
    }

    proptest! {
        #[test]
        fn any_path_can_be_looked_up_and_cut(path in "(/|%|[a-c.é]|%6[0-9]|%2[ef]){0,20}") {
            let routes = routes(&[("", "/a"), ("", "/")]);
            if routes.find(None, &path) == Some(&0) {
                prop_assert!(without_prefix(&path, "/a").starts_with('/'));
            }
        }
    }
}
