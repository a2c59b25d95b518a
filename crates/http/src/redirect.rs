//! Redirects: from a path, or all paths that begin like it, to another place.
//!
//! What a client sent becomes part of the new place only behind its host: no request makes this
//! server send a client to a host that the owner did not name. `$host` names the one that the
//! request is for, by which the client came here.

use crate::host;
use crate::path_pattern::{self, first_byte};
use crate::target::push_escape;
use http::StatusCode;
use thiserror::Error;

/// What stands for the rest of the path.
const REST: &str = "$1";
/// What stands for the host that a request is for.
const HOST: &str = "$host";

/// One redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    from: Pattern,
    to: Destination,
    status: StatusCode,
}

/// Which paths: one, or those that begin with it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    /// As [`path_pattern::plain`] gives it.
    path: Vec<u8>,
    is_prefix: bool,
}

/// Where to: the text around each [`REST`], and the fragment at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Destination {
    /// The scheme before [`HOST`], which then comes before everything else.
    scheme_of_host: Option<&'static str>,
    around: Vec<String>,
    has_query: bool,
    fragment: String,
}

/// Why a redirect cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RedirectError {
    /// `from` is not a path.
    #[error("from is a path and starts with a slash; the query of a request is kept as it is")]
    FromNotAPath,
    /// A star within `from`.
    #[error("from may have a star only at its end, for the rest of the path")]
    StarWithin,
    /// `to` is neither path nor URL.
    #[error(
        "to is a path that starts with one slash, or a URL that starts with http:// or https://"
    )]
    ToNotADestination,
    /// `$1` without something it could stand for.
    #[error("$1 is the text that the star at the end of from matches, and from has no star")]
    RestOfNothing,
    /// Another `$` and digit.
    #[error("$1 is the only variable; it is the text that the star at the end of from matches")]
    OtherRest,
    /// `$1` where it could change the host, or where no server sees it.
    #[error(
        "write $1 behind the host and its slash, and before a #; otherwise clients could choose the host"
    )]
    RestInHost,
    /// A status that is not a redirect's.
    #[error(
        "status is 301 or 308 (permanent), or 302 or 307 (temporary); 307 and 308 keep the method"
    )]
    Status,
    /// A place that is redirected again by the same rule.
    #[error("the same rule redirects `to` again, in a loop")]
    Loop,
}

impl Redirect {
    /// Reads a redirect as the configuration has it.
    pub fn parse(from: &str, to: &str, status: u16) -> Result<Self, RedirectError> {
        let redirect = Self {
            from: Pattern::parse(from)?,
            to: Destination::parse(to)?,
            status: parse_status(status).ok_or(RedirectError::Status)?,
        };
        if redirect.to.has_rest() && !redirect.from.is_prefix {
            return Err(RedirectError::RestOfNothing);
        }
        let destination = redirect.to.with("", b"x", None);
        let path = &destination[..destination.find(['?', '#']).unwrap_or(destination.len())];
        if redirect.from.rest_of(path).is_some() {
            return Err(RedirectError::Loop);
        }
        Ok(redirect)
    }

    /// Where a request at `host` (as [`host::of`] gives it) for `path` (as in the request, escaped)
    /// is sent, if this rule is about it: a value for `Location`.
    pub fn location(&self, host: &str, path: &str, query: Option<&str>) -> Option<String> {
        Some(self.to.with(host, self.from.rest_of(path)?, query))
    }

    /// The scheme under which it leads to the host of the request itself.
    pub fn scheme_at_own_host(&self) -> Option<&'static str> {
        self.to.scheme_of_host
    }

    /// Whether what it leads to at the host of the request is again a path that it is about.
    pub fn repeats_at_own_host(&self) -> bool {
        let destination = self.to.with("", b"x", None);
        let scheme = self.to.scheme_of_host.unwrap_or_default();
        let place = destination.strip_prefix(scheme).unwrap_or_default();
        let path = &place[..place.find(['?', '#']).unwrap_or(place.len())];
        let path = if path.is_empty() { "/" } else { path };
        self.to.scheme_of_host.is_some() && self.from.rest_of(path).is_some()
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether every path `other` is about is one that `self` is about.
    pub fn covers(&self, other: &Self) -> bool {
        if self.from.is_prefix {
            other.from.path.starts_with(&self.from.path)
        } else {
            self.from == other.from
        }
    }
}

fn parse_status(status: u16) -> Option<StatusCode> {
    match status {
        301 => Some(StatusCode::MOVED_PERMANENTLY),
        302 => Some(StatusCode::FOUND),
        307 => Some(StatusCode::TEMPORARY_REDIRECT),
        308 => Some(StatusCode::PERMANENT_REDIRECT),
        _ => None,
    }
}

impl Pattern {
    fn parse(from: &str) -> Result<Self, RedirectError> {
        if !from.starts_with('/') || from.contains(['?', '#']) {
            return Err(RedirectError::FromNotAPath);
        }
        let (path, is_prefix) = match from.strip_suffix('*') {
            Some(path) => (path, true),
            None => (from, false),
        };
        if path.contains('*') {
            return Err(RedirectError::StarWithin);
        }
        Ok(Self {
            path: path_pattern::plain(path).into_owned(),
            is_prefix,
        })
    }

    /// What follows the pattern in `path`, still escaped; nothing when the path is another one.
    /// Slashes in a row are one, as for locations, but what follows keeps them.
    fn rest_of<'a>(&self, path: &'a str) -> Option<&'a [u8]> {
        let mut rest = path.as_bytes();
        for &wanted in &self.path {
            let (byte, tail) = first_byte(rest)?;
            if byte != wanted {
                return None;
            }
            rest = match byte {
                b'/' => behind_slashes(tail),
                _ => tail,
            };
        }
        (self.is_prefix || rest.is_empty()).then_some(rest)
    }
}

/// What is left of an escaped path behind the slashes that it begins with.
fn behind_slashes(mut path: &[u8]) -> &[u8] {
    while let Some((b'/', tail)) = first_byte(path) {
        path = tail;
    }
    path
}

impl Destination {
    fn parse(to: &str) -> Result<Self, RedirectError> {
        let (to, fragment) = to.split_at(to.find('#').unwrap_or(to.len()));
        if fragment.contains(REST) {
            return Err(RedirectError::RestInHost);
        }
        let is_other_rest = |(index, _): (usize, &str)| {
            let next = to[index + 1..].bytes().next();
            next.is_some_and(|byte| byte.is_ascii_digit()) && !is_rest(&to[index..])
        };
        if to.match_indices('$').any(is_other_rest) {
            return Err(RedirectError::OtherRest);
        }
        let scheme_of_host = scheme_of(to).filter(|scheme| is_own_host(&to[scheme.len()..]));
        let to = scheme_of_host.map_or(to, |scheme| &to[scheme.len() + HOST.len()..]);
        if scheme_of_host.is_some() && to.is_empty() {
            return Ok(Self {
                scheme_of_host,
                around: vec![String::new()],
                has_query: false,
                fragment: escaped(fragment),
            });
        }
        let before_path = match scheme_of_host {
            Some(_) => 0,
            None => before_path(to).ok_or(RedirectError::ToNotADestination)?,
        };
        if to.find(REST).is_some_and(|rest| rest <= before_path) {
            return Err(RedirectError::RestInHost);
        }
        if !is_place(&to[..before_path]) {
            return Err(RedirectError::ToNotADestination);
        }
        Ok(Self {
            scheme_of_host,
            around: to.split(REST).map(escaped).collect(),
            has_query: to.contains('?'),
            fragment: escaped(fragment),
        })
    }

    fn has_rest(&self) -> bool {
        self.around.len() > 1
    }

    fn with(&self, host: &str, rest: &[u8], query: Option<&str>) -> String {
        let mut destination = String::new();
        if let Some(scheme) = self.scheme_of_host {
            destination.push_str(scheme);
            push_visible(&mut destination, host.as_bytes());
        }
        for (index, text) in self.around.iter().enumerate() {
            if index > 0 {
                push_rest(&mut destination, rest);
            }
            destination.push_str(match destination.as_str() {
                "/" => text.trim_start_matches('/'),
                _ => text,
            });
        }
        if let Some(query) = query {
            destination.push(if self.has_query { '&' } else { '?' });
            push_visible(&mut destination, query.as_bytes());
        }
        destination.push_str(&self.fragment);
        destination
    }
}

/// `$1`, and not the beginning of `$12`.
fn is_rest(text: &str) -> bool {
    text.strip_prefix(REST)
        .is_some_and(|tail| !tail.starts_with(|next: char| next.is_ascii_digit()))
}

/// How long scheme and host are, if it is a path (0) or may be a URL.
fn before_path(to: &str) -> Option<usize> {
    if to.starts_with('/') {
        return (!to.starts_with("//") && !to.starts_with("/\\")).then_some(0);
    }
    let scheme = scheme_of(to)?;
    let host = &to[scheme.len()..];
    Some(scheme.len() + host.find(['/', '?']).unwrap_or(host.len()))
}

fn scheme_of(to: &str) -> Option<&'static str> {
    ["http://", "https://"]
        .into_iter()
        .find(|scheme| to.starts_with(scheme))
}

/// Whether the host of the request stands here, and behind it a path, a query or nothing.
fn is_own_host(place: &str) -> bool {
    let behind = place.strip_prefix(HOST);
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(['/', '?']))
}

/// Whether what comes before the path is nothing, or scheme and host.
fn is_place(before_path: &str) -> bool {
    let Some(scheme) = scheme_of(before_path) else {
        return before_path.is_empty();
    };
    host::parse(&before_path.as_bytes()[scheme.len()..])
        .is_some_and(|host| !host.is_empty() && !host.contains('$'))
}

/// Two slashes at the beginning of a place would name a host, so a slash is never followed by
/// another one here, nor by what stands behind an empty rest.
fn push_rest(destination: &mut String, mut rest: &[u8]) {
    while let (true, [b'/', tail @ ..]) = (destination.ends_with('/'), rest) {
        rest = tail;
    }
    push_visible(destination, rest);
}

/// Appends with everything escaped that has no place in a URL; what is escaped stays as it is.
fn push_visible(destination: &mut String, text: &[u8]) {
    for &byte in text {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                push_escape(destination, byte);
            }
            0x21..=0x7e => destination.push(byte.into()),
            _ => push_escape(destination, byte),
        }
    }
}

fn escaped(text: &str) -> String {
    let mut destination = String::with_capacity(text.len());
    push_visible(&mut destination, text.as_bytes());
    destination
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(from: &str, to: &str, path: &str, query: Option<&str>) -> Option<String> {
        Redirect::parse(from, to, 301)
            .unwrap_or_else(|error| panic!("{from} {to}: {error}"))
            .location("h.org", path, query)
    }

    #[test]
    fn sends_to_where_the_owner_said() {
        for (from, to, path, location) in [
            ("/a", "/b", "/a", Some("/b")),
            ("/a", "/b", "/a/", None),
            ("/a", "/b", "/ab", None),
            ("/a", "/b", "/%61", Some("/b")),
            ("/a%20b", "/b", "/a%20b", Some("/b")),
            ("/caf\u{e9}", "/th\u{e9}", "/caf%C3%A9", Some("/th%C3%A9")),
            ("/old/*", "/new/$1", "/old/", Some("/new/")),
            ("/old/*", "/new/$1", "/old", None),
            ("/old/*", "/new/$1", "/old/a/b%20c", Some("/new/a/b%20c")),
            ("/old*", "/new$1", "/older", Some("/newer")),
            ("/old/*", "/$1/new", "/old/", Some("/new")),
            ("/old/*", "/$1/new", "/old/a", Some("/a/new")),
            ("/old/*", "/gone.html", "/old/a", Some("/gone.html")),
            ("/*", "https://b.org/x/$1", "/a", Some("https://b.org/x/a")),
            ("/*", "https://b.org/$1", "//a", Some("https://b.org/a")),
            (
                "/s/*",
                "https://b.org?q=$1",
                "/s/a",
                Some("https://b.org?q=a"),
            ),
            ("/*", "http://b.org", "/a", Some("http://b.org")),
            ("/a/*", "/$1-$1.html", "/a/b", Some("/b-b.html")),
            ("/a", "/$x$", "/a", Some("/$x$")),
            ("/*", "https://$host/$1", "/a", Some("https://h.org/a")),
            ("/*", "https://$host/$1", "//a", Some("https://h.org/a")),
            ("/a", "https://$host", "/a", Some("https://h.org")),
            ("/a", "https://$host?b", "/a", Some("https://h.org?b")),
            ("/a", "/b", "//a", Some("/b")),
            ("/a", "/b", "/%2fa", Some("/b")),
            ("//a", "/b", "/a", Some("/b")),
            ("/", "/b", "//", Some("/b")),
            ("/old/*", "/new$1", "//old//a//b", Some("/newa//b")),
        ] {
            let got = sent(from, to, path, None);
            assert_eq!(got.as_deref(), location, "{from} {to} {path}");
        }
    }

    #[test]
    fn the_query_is_kept() {
        for (to, location) in [
            ("/b", "/b?x=1"),
            ("/b?y=2", "/b?y=2&x=1"),
            ("/b#part", "/b?x=1#part"),
        ] {
            assert_eq!(sent("/a", to, "/a", Some("x=1")).unwrap(), location);
        }
    }

    #[test]
    fn nobody_else_names_the_host() {
        for path in [
            "/r//evil.org",
            "/r///evil.org",
            "/r/\\evil.org",
            "/r/\\/evil.org",
        ] {
            let location = sent("/r/*", "/$1", path, None).unwrap();
            assert!(!location.starts_with("//"), "{location}");
            assert!(!location.contains('\\'), "{location}");
        }
        for to in ["https://b.org$1", "https://$1", "https://b.org:8$1/"] {
            let error = Redirect::parse("/*", to, 301).unwrap_err();
            assert_eq!(error, RedirectError::RestInHost, "{to}");
        }
    }

    #[test]
    fn knows_what_leads_to_itself_at_the_host_of_the_request() {
        for (from, to, repeats) in [
            ("/*", "https://$host/$1", true),
            ("/*", "https://$host", true),
            ("/a", "https://$host/b", false),
            ("/a", "https://$host/a", true),
            ("/*", "https://b.org/$1", false),
        ] {
            let redirect = Redirect::parse(from, to, 301).unwrap();
            assert_eq!(redirect.repeats_at_own_host(), repeats, "{from} {to}");
        }
    }

    #[test]
    fn what_cannot_be_a_redirect() {
        use RedirectError::*;
        for (from, to, status, error) in [
            ("a", "/b", 301, FromNotAPath),
            ("", "/b", 301, FromNotAPath),
            ("/a?x", "/b", 301, FromNotAPath),
            ("/a*/b", "/b", 301, StarWithin),
            ("/a**", "/b", 301, StarWithin),
            ("/a", "b", 301, ToNotADestination),
            ("/a", "", 301, ToNotADestination),
            ("/a", "//b.org/", 301, ToNotADestination),
            ("/a", "/\\b.org/", 301, ToNotADestination),
            ("/a", "ftp://b.org/", 301, ToNotADestination),
            ("/a", "https:///x", 301, ToNotADestination),
            ("/a", "https://u@b.org/", 301, ToNotADestination),
            ("/a", "https://b.org\\x", 301, ToNotADestination),
            ("/a", "https://m\u{fc}nchen.de/", 301, ToNotADestination),
            ("/a", "https://b.org:x/", 301, ToNotADestination),
            ("/a", "https://$host.evil.org/", 301, ToNotADestination),
            ("/a", "https://$hostess/", 301, ToNotADestination),
            ("/*", "https://$host$1", 301, RestInHost),
            ("/a", "/b/$1", 301, RestOfNothing),
            ("/a/*", "/b/$2", 301, OtherRest),
            ("/a/*", "/b/$12", 301, OtherRest),
            ("/a/*", "/b#$1", 301, RestInHost),
            ("/a", "/b", 200, Status),
            ("/a", "/b", 303, Status),
            ("/a", "/a", 301, Loop),
            ("/a", "/a?x", 301, Loop),
            ("/*", "/maintenance.html", 302, Loop),
            ("/a/*", "/a/b/$1", 301, Loop),
            ("/a/b", "/a//b", 301, Loop),
        ] {
            let parsed = Redirect::parse(from, to, status);
            assert_eq!(parsed, Err(error), "{from} {to} {status}");
        }
    }

    #[test]
    fn knows_which_can_never_be_reached() {
        let redirect = |from| Redirect::parse(from, "https://b.org", 302).unwrap();
        for (first, second, covers) in [
            ("/a", "/a", true),
            ("/a*", "/a", true),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/b/*", true),
            ("/a/b", "/a/*", false),
            ("/a/*", "/a", false),
            ("/a", "/a*", false),
            ("/a", "/%61", true),
            ("/a/b", "/a//b", true),
        ] {
            assert_eq!(
                redirect(first).covers(&redirect(second)),
                covers,
                "{first} {second}"
            );
        }
    }

    proptest! {
        #[test]
        fn parsing_is_total(from in "/?\\PC{0,12}\\*?", to in "(/|https://)?[$1/#?\\PC]{0,12}", status: u16) {
            let _ = Redirect::parse(&from, &to, status);
        }

        #[test]
        fn a_location_is_a_header_and_stays_on_its_host(
            path in "/r/[/\\\\.a%0-9\u{e9}]{0,12}",
            query in proptest::option::of("[a=&\u{e9}\"]{0,5}"),
        ) {
            for (to, start) in [("/$1", "/"), ("/x$1", "/x"), ("https://b.org/$1", "https://b.org/")] {
                let location = sent("/r/*", to, &path, query.as_deref()).unwrap();
                prop_assert!(location.starts_with(start) && !location.starts_with("//"));
                prop_assert!(location.bytes().all(|byte| (0x21..0x7f).contains(&byte) && byte != b'\\'));
            }
        }
    }
}
