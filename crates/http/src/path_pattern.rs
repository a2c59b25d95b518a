//! Which paths a location of a site is about: texts in which a star stands for anything.
//!
//! Paths are compared as files are named by them, decoded once and with single slashes, so that no
//! other spelling of a path leads past a location that refuses it.

use std::borrow::Cow;
use thiserror::Error;

/// The most stars in one text: each may be tried at every place of a path.
const STARS_MAX: usize = 4;

/// Which paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    /// The texts around the stars: one more than there are stars.
    pieces: Vec<Vec<u8>>,
    ignores_case: bool,
}

/// Why a text says of no path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathPatternError {
    /// Nothing that a path could be.
    #[error("begins with a slash or a star, as in /static/* or *.php; a query is no part of it")]
    NotAPath,
    /// More than there may be.
    #[error("has more than {STARS_MAX} stars; name the paths one by one")]
    Stars,
}

impl PathPattern {
    /// Reads one text: `/a` is that path, `/a/*` all that begin so, `*.php` all that end so.
    pub fn parse(text: &str, ignores_case: bool) -> Result<Self, PathPatternError> {
        if !text.starts_with(['/', '*']) || text.contains(['?', '#']) {
            return Err(PathPatternError::NotAPath);
        }
        let pieces: Vec<Vec<u8>> = text.split('*').map(decoded).collect();
        if pieces.len() > STARS_MAX + 1 {
            return Err(PathPatternError::Stars);
        }
        Ok(Self {
            pieces,
            ignores_case,
        })
    }

    /// Whether it is about this path, which is as [`plain`] gives it. O(length of the path) for
    /// each star.
    pub fn fits(&self, path: &[u8]) -> bool {
        let Some((first, others)) = self.pieces.split_first() else {
            return false;
        };
        if !self.begins(path, first) {
            return false;
        }
        let Some((last, between)) = others.split_last() else {
            return path.len() == first.len();
        };
        let mut rest = &path[first.len()..];
        for piece in between {
            let Some(at) = (0..=rest.len()).find(|at| self.begins(&rest[*at..], piece)) else {
                return false;
            };
            rest = &rest[at + piece.len()..];
        }
        rest.len() >= last.len() && self.begins(&rest[rest.len() - last.len()..], last)
    }

    fn begins(&self, path: &[u8], piece: &[u8]) -> bool {
        path.get(..piece.len()).is_some_and(|start| {
            if self.ignores_case {
                start.eq_ignore_ascii_case(piece)
            } else {
                start == piece
            }
        })
    }
}

/// A path of a request as files are named by it: decoded once, with single slashes.
pub fn plain(path: &str) -> Cow<'_, [u8]> {
    if !path.contains('%') && !path.contains("//") {
        return Cow::Borrowed(path.as_bytes());
    }
    let mut plain = Vec::with_capacity(path.len());
    for byte in decoded(path) {
        if byte != b'/' || plain.last() != Some(&b'/') {
            plain.push(byte);
        }
    }
    Cow::Owned(plain)
}

/// The first byte of an escaped path, decoded, and what follows; a `%` that escapes nothing is
/// itself.
pub(crate) fn first_byte(path: &[u8]) -> Option<(u8, &[u8])> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    if let [b'%', high, low, tail @ ..] = path
        && let (Some(high), Some(low)) = (digit(*high), digit(*low))
    {
        return Some((((high << 4) | low) as u8, tail));
    }
    path.split_first().map(|(&byte, tail)| (byte, tail))
}

fn decoded(path: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, tail)) = first_byte(rest) {
        decoded.push(byte);
        rest = tail;
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fits(pattern: &str, path: &str) -> bool {
        let pattern = PathPattern::parse(pattern, false).unwrap();
        pattern.fits(&plain(path))
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, path, is_about) in [
            ("/a", "/a", true),
            ("/a", "/a/", false),
            ("/a", "/ab", false),
            ("/a/*", "/a/", true),
            ("/a/*", "/a/b/c", true),
            ("/a/*", "/a", false),
            ("/a*", "/ab", true),
            ("*.php", "/x/y.php", true),
            ("*.php", "/x/y.php/z", false),
            ("*.php", ".php", true),
            ("*/.*", "/x/.git/config", true),
            ("*/.*", "/x.y", false),
            ("/a/*.php", "/a/b.php", true),
            ("/a/*.php", "/b/b.php", false),
            ("/ab*ba", "/aba", false),
            ("/ab*ba", "/abba", true),
            ("*a*a*", "/a", false),
            ("*a*a*", "/a/a", true),
            ("*", "/anything", true),
        ] {
            assert_eq!(fits(pattern, path), is_about, "{pattern} {path}");
        }
    }

    #[test]
    fn another_spelling_leads_past_nothing() {
        for path in ["/adm%69n/x", "//admin//x", "/admin%2Fx", "/%61dmin/x"] {
            assert!(fits("/admin/*", path), "{path}");
        }
        assert!(fits("/caf\u{e9}", "/caf%C3%A9"));
        let loose = PathPattern::parse("*.BAK", true).unwrap();
        assert!(loose.fits(b"/a.bak") && loose.fits(b"/a.Bak"));
        assert!(!fits("*.BAK", "/a.bak"));
    }

    #[test]
    fn what_is_no_pattern() {
        use PathPatternError::*;
        for (text, error) in [
            ("", NotAPath),
            ("a", NotAPath),
            ("/a?b", NotAPath),
            ("*a*b*c*d*", Stars),
        ] {
            assert_eq!(PathPattern::parse(text, false), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_is_what_a_search_by_trying_everything_finds(
            pattern in "[/*][ab*]{0,5}", path in "[ab/]{0,8}",
        ) {
            fn tries(pattern: &[u8], path: &[u8]) -> bool {
                match pattern.split_first() {
                    None => path.is_empty(),
                    Some((b'*', rest)) => (0..=path.len()).any(|at| tries(rest, &path[at..])),
                    Some((byte, rest)) => {
                        path.split_first().is_some_and(|(own, tail)| own == byte && tries(rest, tail))
                    }
                }
            }
            prop_assume!(pattern.matches('*').count() <= STARS_MAX);
            let parsed = PathPattern::parse(&pattern, false).unwrap();
            prop_assert_eq!(parsed.fits(path.as_bytes()), tries(pattern.as_bytes(), path.as_bytes()));
        }
    }
}
