//! From the path of a request target to a path below the root, without touching the file system.
//!
//! Refusing beats repairing: everything that could name a file outside the root, or one the owner
//! did not mean to publish, is an error here, before any system call. Symbolic links are the
//! business of the code that opens files.

use http::uri::PathAndQuery;
use http::{Request, Uri};
use std::borrow::Cow;
use thiserror::Error;

/// The one hidden name that is public by its definition (RFC 8615), as first component only.
const WELL_KNOWN: &[u8] = b".well-known";

/// Whether clients may request names that begin with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DotFiles {
    /// They are refused, but for `/.well-known`.
    Refused,
    /// They are files as any others.
    Served,
}

/// A path below the root: components joined by single slashes, none empty, percent-decoded once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target<'a> {
    /// The path without a slash at either end; empty for the root itself.
    pub path: Cow<'a, [u8]>,
    /// Whether the request named it as a directory: with a slash at the end.
    pub is_directory: bool,
}

/// Why a request target is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Not in origin form.
    #[error("the request target must start with a slash")]
    NotAPath,
    /// A `%` without two hexadecimal digits.
    #[error("a percent sign must be followed by two hexadecimal digits")]
    BadEscape,
    /// A byte that no file name may hold, or that some system takes for a separator.
    #[error("the path must not hold an encoded slash, a backslash or a NUL")]
    ForbiddenByte,
    /// A component `.` or `..`.
    #[error("the path must not hold dot segments")]
    DotSegment,
    /// A component that starts with a dot, where such are refused.
    #[error("hidden files are not served")]
    Hidden,
}

/// Takes the path out of a request target in origin form (`/path?query`). O(length); allocates only
/// when the path holds an escape or a doubled slash.
pub fn parse(target: &str, dot_files: DotFiles) -> Result<Target<'_>, TargetError> {
    let raw = target.strip_prefix('/').ok_or(TargetError::NotAPath)?;
    if is_plain(raw.as_bytes()) {
        return Ok(Target {
            path: Cow::Borrowed(raw.strip_suffix('/').unwrap_or(raw).as_bytes()),
            is_directory: raw.is_empty() || raw.ends_with('/'),
        });
    }
    let raw = &raw[..raw.find(['?', '#']).unwrap_or(raw.len())];
    let is_directory = raw.is_empty() || raw.ends_with('/');
    let path = if raw.contains('%') || raw.contains("//") || raw.starts_with('/') {
        Cow::Owned(decode_components(raw)?)
    } else {
        Cow::Borrowed(raw.strip_suffix('/').unwrap_or(raw).as_bytes())
    };
    check_components(&path, dot_files)?;
    Ok(Target { path, is_directory })
}

/// `request` with a path that has no segment `.`, which stays where it is (RFC 3986, 5.2.4): apt
/// asks for them. Routes are found and servers are asked by this path, so that no two readers of it
/// differ. Segments `..` and escaped ones are left to be refused.
pub fn without_single_dots<B>(mut request: Request<B>) -> Request<B> {
    let path = request.uri().path();
    if !path.contains("/./") && !path.ends_with("/.") {
        return request;
    }
    let mut plain = String::with_capacity(
        request
            .uri()
            .path_and_query()
            .map_or(0, |all| all.as_str().len()),
    );
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        match (segment, segments.peek()) {
            (".", Some(_)) => {}
            (".", None) => plain.push('/'),
            _ => plain.extend(["/", segment]),
        }
    }
    if let Some(query) = request.uri().query() {
        plain.extend(["?", query]);
    }
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(plain).ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    request
}

/// Whether there is nothing to decode and nothing to refuse, as in most paths; one look at each
/// byte.
fn is_plain(raw: &[u8]) -> bool {
    let mut before = b'/';
    raw.iter().all(|&byte| {
        let is_inside = before != b'/';
        before = byte;
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => true,
            b'.' | b'/' => is_inside,
            _ => false,
        }
    })
}

fn decode_components(raw: &str) -> Result<Vec<u8>, TargetError> {
    let mut path = Vec::with_capacity(raw.len());
    for component in raw.split('/').filter(|component| !component.is_empty()) {
        if !path.is_empty() {
            path.push(b'/');
        }
        decode_into(component.as_bytes(), &mut path)?;
    }
    Ok(path)
}

fn decode_into(component: &[u8], path: &mut Vec<u8>) -> Result<(), TargetError> {
    let mut rest = component;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            path.push(byte);
            continue;
        }
        let [high, low, ..] = *rest else {
            return Err(TargetError::BadEscape);
        };
        let decoded = (hex_digit(high)? << 4) | hex_digit(low)?;
        if decoded == b'/' {
            return Err(TargetError::ForbiddenByte);
        }
        path.push(decoded);
        rest = &rest[2..];
    }
    Ok(())
}

fn hex_digit(byte: u8) -> Result<u8, TargetError> {
    let digit = char::from(byte)
        .to_digit(16)
        .ok_or(TargetError::BadEscape)?;
    Ok(digit as u8)
}

fn check_components(path: &[u8], dot_files: DotFiles) -> Result<(), TargetError> {
    if path.iter().any(|&byte| byte == 0 || byte == b'\\') {
        return Err(TargetError::ForbiddenByte);
    }
    for (index, component) in path.split(|&byte| byte == b'/').enumerate() {
        match component {
            b"." | b".." => return Err(TargetError::DotSegment),
            WELL_KNOWN if index == 0 => {}
            [b'.', ..] if dot_files == DotFiles::Refused => return Err(TargetError::Hidden),
            _ => {}
        }
    }
    Ok(())
}

/// The absolute path of a directory as a client has to ask for it: escaped, with a slash at either
/// end.
pub fn directory_location(path: &[u8]) -> String {
    let mut location = String::with_capacity(path.len() + 2);
    location.push('/');
    push_escaped(&mut location, path);
    if !path.is_empty() {
        location.push('/');
    }
    location
}

/// Appends a path to a URL: whatever is not unreserved (RFC 3986, 2.3) or a slash is escaped.
pub fn push_escaped(url: &mut String, path: &[u8]) {
    for &byte in path {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                url.push(byte.into());
            }
            _ => push_escape(url, byte),
        }
    }
}

/// Appends `%` and two hexadecimal digits.
pub fn push_escape(url: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    url.push('%');
    url.push(DIGITS[usize::from(byte >> 4)].into());
    url.push(DIGITS[usize::from(byte & 15)].into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path_of(target: &str) -> Result<String, TargetError> {
        parse(target, DotFiles::Refused)
            .map(|target| String::from_utf8_lossy(&target.path).into_owned())
    }

    #[test]
    fn single_dots_go_and_nothing_else() {
        for (before, after) in [
            ("/a/./b?c/./d", "/a/b?c/./d"),
            ("/./././a", "/a"),
            ("/a/.", "/a/"),
            ("/.", "/"),
            ("/./", "/"),
            ("http://h/./a", "http://h/a"),
            ("/a//./b/", "/a//b/"),
            ("/a/../b/%2e/.c/d.", "/a/../b/%2e/.c/d."),
            ("/a/./../b", "/a/../b"),
        ] {
            let request = Request::builder().uri(before).body(()).unwrap();
            let uri = without_single_dots(request).uri().to_string();
            assert_eq!(uri, after, "{before}");
        }
    }

    #[test]
    fn names_files_below_the_root() {
        for (target, path, is_directory) in [
            ("/", "", true),
            ("/index.html", "index.html", false),
            ("/a/b.txt?x=/../y", "a/b.txt", false),
            ("/a/", "a", true),
            ("//a///b//", "a/b", true),
            ("/a%20b/%C3%A9", "a b/\u{e9}", false),
            ("/%2525", "%25", false),
            ("/a..b/c.", "a..b/c.", false),
            (
                "/.well-known/security.txt",
                ".well-known/security.txt",
                false,
            ),
            ("/a:b*c", "a:b*c", false),
        ] {
            let parsed = parse(target, DotFiles::Refused).unwrap();
            assert_eq!(String::from_utf8_lossy(&parsed.path), path, "{target}");
            assert_eq!(parsed.is_directory, is_directory, "{target}");
        }
    }

    #[test]
    fn refuses_what_could_leave_the_root() {
        use TargetError::{BadEscape, DotSegment, ForbiddenByte, Hidden, NotAPath};
        for (target, error) in [
            ("", NotAPath),
            ("*", NotAPath),
            ("a/b", NotAPath),
            ("http://host/a", NotAPath),
            ("/..", DotSegment),
            ("/../etc/passwd", DotSegment),
            ("/a/../../b", DotSegment),
            ("/a/./b", DotSegment),
            ("/%2e%2e/b", DotSegment),
            ("/.%2E/b", DotSegment),
            ("/a%2f..%2fb", ForbiddenByte),
            ("/a%2Fb", ForbiddenByte),
            ("/..%5c..%5cb", ForbiddenByte),
            ("/a\\b", ForbiddenByte),
            ("/a%00.txt", ForbiddenByte),
            ("/%", BadEscape),
            ("/%4", BadEscape),
            ("/%zz", BadEscape),
            ("/%+1", BadEscape),
            ("/.git/config", Hidden),
            ("/a/.env", Hidden),
            ("/%2ehtaccess", Hidden),
            ("/a/.well-known", Hidden),
        ] {
            assert_eq!(path_of(target), Err(error), "{target}");
        }
    }

    #[test]
    fn dot_files_only_when_told_so() {
        for target in ["/.git/config", "/a/.env", "/%2ehtaccess", "/..."] {
            let path = parse(target, DotFiles::Served).unwrap().path;
            assert!(path.contains(&b'.'));
        }
        for target in ["/..", "/a/./b", "/%2e%2e/b"] {
            let refused = parse(target, DotFiles::Served);
            assert_eq!(refused, Err(TargetError::DotSegment), "{target}");
        }
    }

    #[test]
    fn the_root_is_one_slash() {
        assert_eq!(directory_location(b""), "/");
        assert_eq!(directory_location(b"a b/\xfc%"), "/a%20b/%FC%25/");
    }

    proptest! {
        #[test]
        fn is_total_and_stays_below_the_root(target in "(/|[/.%0-9a-fA-F\\\\?]|\\PC){0,40}") {
            if let Ok(parsed) = parse(&target, DotFiles::Served) {
                let path = &parsed.path;
                prop_assert!(!path.contains(&0) && !path.starts_with(b"/") && !path.ends_with(b"/"));
                for component in path.split(|&byte| byte == b'/') {
                    prop_assert!(component != b"." && component != b"..");
                    prop_assert!(!component.is_empty() || path.is_empty());
                }
            }
        }

        #[test]
        fn what_is_plain_is_what_it_is(target in "/([a.~/-]|[a-zA-Z0-9_]){0,12}") {
            let parsed = parse(&target, DotFiles::Refused);
            if is_plain(&target.as_bytes()[1..]) {
                let parsed = parsed.unwrap();
                let mut path = [b"/", parsed.path.as_ref()].concat();
                if parsed.is_directory && path.len() > 1 {
                    path.push(b'/');
                }
                prop_assert_eq!(path, target.as_bytes());
            } else {
                prop_assert!(parsed.is_err() || target.contains("//"));
            }
        }

        #[test]
        fn location_leads_back_to_the_directory(target in "/[^.%\\\\/?#\0]{1,9}(/[^.%\\\\/?#\0]{1,9}){0,3}") {
            let path = parse(&target, DotFiles::Refused).unwrap().path.into_owned();
            let location = directory_location(&path);
            prop_assert!(!location.starts_with("//"));
            let back = parse(&location, DotFiles::Refused).unwrap();
            prop_assert_eq!(back.path.as_ref(), path.as_slice());
            prop_assert!(back.is_directory);
        }
    }
}
