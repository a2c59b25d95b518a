//! Basic authentication (RFC 7617): the name and password that a request brings, the challenge to a
//! request without, and which paths are protected.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::fmt;
use thiserror::Error;

/// The longest name or password that is looked at, bytes: `htpasswd` takes 255. What a check costs
/// grows with its length.
pub const PART_BYTES_MAX: usize = 255;

/// Base64 with or without the padding that some clients leave out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A name and a password, as a client sent them.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub user: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

/// Does not show the password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.user))
    }
}

impl Credentials {
    /// Those of a request; `None` without any, with several, and where they cannot be anyone's.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut fields = headers.get_all(AUTHORIZATION).iter();
        let (Some(field), None) = (fields.next(), fields.next()) else {
            return None;
        };
        let (scheme, encoded) = field.to_str().ok()?.split_once(' ')?;
        let encoded = encoded.trim_matches(' ');
        // The longest of both with their colon, in base64.
        let is_short = encoded.len() <= (2 * PART_BYTES_MAX + 1).div_ceil(3) * 4;
        if !scheme.eq_ignore_ascii_case("basic") || !is_short {
            return None;
        }
        let plain = BASE64.decode(encoded).ok()?;
        let colon = plain.iter().position(|&byte| byte == b':')?;
        let (user, password) = (&plain[..colon], &plain[colon + 1..]);
        let is_one = |part: &[u8]| {
            part.len() <= PART_BYTES_MAX && !part.iter().any(|byte| byte.is_ascii_control())
        };
        (!user.is_empty() && is_one(user) && is_one(password)).then(|| Self {
            user: user.to_vec(),
            password: password.to_vec(),
        })
    }
}

/// Text that no realm can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a realm is printable ASCII in one line, as in \"Staff only\"")]
pub struct NotARealm;

/// The value of `WWW-Authenticate` for a realm.
pub fn challenge(realm: &str) -> Result<String, NotARealm> {
    if realm.bytes().any(|byte| !matches!(byte, b' '..=b'~')) {
        return Err(NotARealm);
    }
    let quoted = realm.replace('\\', "\\\\").replace('"', "\\\"");
    Ok(format!("Basic realm=\"{quoted}\", charset=\"UTF-8\""))
}

/// What is said of paths by their beginnings; the longest that fits counts.
///
/// A server behind this one may read a path otherwise than we do, so each is looked at twice: as
/// the file system would, and as generously as any server might (`%2f` and `\` divide segments, a
/// segment ends at `;`). Where the two differ, the one that protects counts.
#[derive(Clone, Debug)]
pub struct ProtectedPaths<T>(Vec<(Segments, Option<T>)>);

/// A path, decoded.
type Segments = Vec<Vec<u8>>;

impl<T> Default for ProtectedPaths<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ProtectedPaths<T> {
    /// Whether nothing is said of any path.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Protects what begins with `path`, or with `None` leaves it open; `false` if something is
    /// said of it already.
    pub fn add(&mut self, path: &str, protection: Option<T>) -> bool {
        let segments = exact(path);
        if self.0.iter().any(|(other, _)| *other == segments) {
            return false;
        }
        let at = self
            .0
            .partition_point(|(other, _)| other.len() >= segments.len());
        self.0.insert(at, (segments, protection));
        true
    }

    /// What protects `path`, as it stands in a request.
    pub fn find(&self, path: &str) -> Option<&T> {
        if self.0.is_empty() {
            return None;
        }
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let exact = self.longest(&exact(path));
        exact.or_else(|| self.longest(&generous(path)))
    }

    fn longest(&self, path: &[Vec<u8>]) -> Option<&T> {
        let fits = |(beginning, _): &&(Segments, Option<T>)| path.starts_with(beginning);
        self.0.iter().find(fits)?.1.as_ref()
    }
}

/// The segments of a path, each decoded.
fn exact(path: &str) -> Segments {
    let segments = path.split('/').map(|segment| decoded(segment.as_bytes()));
    without_dots(segments)
}

/// The segments that any server might see.
fn generous(path: &str) -> Segments {
    let plain = decoded(path.as_bytes());
    let segments = plain.split(|byte| matches!(byte, b'/' | b'\\'));
    without_dots(segments.map(|segment| {
        let end = segment.iter().position(|&byte| byte == b';');
        segment[..end.unwrap_or(segment.len())].to_vec()
    }))
}

fn without_dots(segments: impl Iterator<Item = Vec<u8>>) -> Segments {
    let mut plain = Vec::new();
    for segment in segments {
        match segment.as_slice() {
            b"" | b"." => {}
            b".." => _ = plain.pop(),
            _ => plain.push(segment),
        }
    }
    plain
}

/// With every `%XX` as the byte it stands for; what is no escape stays.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let digit = |at: usize| char::from(*tail.get(at)?).to_digit(16);
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                rest = &tail[2..];
            }
            _ => {
                plain.push(byte);
                rest = tail;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn of(value: &str) -> Option<(String, String)> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        let found = Credentials::of(&headers)?;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Some((text(found.user), text(found.password)))
    }

    fn basic(plain: &[u8]) -> String {
        format!("Basic {}", BASE64.encode(plain))
    }

    #[test]
    fn a_name_ends_at_the_first_colon() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        // RFC 7617, 2 and 2.1.
        let aladdin = pair("Aladdin", "open sesame");
        assert_eq!(of("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), aladdin);
        assert_eq!(of("bAsIc   QWxhZGRpbjpvcGVuIHNlc2FtZQ== "), aladdin);
        assert_eq!(of("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ"), aladdin);
        assert_eq!(of("Basic dGVzdDoxMjPCow=="), pair("test", "123\u{a3}"));
        assert_eq!(of(&basic(b"a:b:c")), pair("a", "b:c"));
        assert_eq!(of(&basic(b"a:")), pair("a", ""));
    }

    #[test]
    fn what_is_no_ones_is_refused_unseen() {
        let long = [&[b'a'; PART_BYTES_MAX + 1][..], b":b"].concat();
        let longest = [&[b'a'; PART_BYTES_MAX][..], b":", &[b'b'; PART_BYTES_MAX]].concat();
        assert!(of(&basic(&longest)).is_some());
        for value in [
            "Basic".to_owned(),
            "Basic ".to_owned(),
            "Basic !".to_owned(),
            "Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned(),
            basic(b"no colon"),
            basic(b":password"),
            basic(b"a:b\0c"),
            basic(b"a\n:b"),
            basic(&long),
            format!("Basic {}", "QQ".repeat(10_000)),
        ] {
            assert_eq!(of(&value), None, "{value}");
        }
        let mut twice = HeaderMap::new();
        let value = HeaderValue::from_str(&basic(b"a:b")).unwrap();
        twice.append(AUTHORIZATION, value.clone());
        twice.append(AUTHORIZATION, value);
        assert_eq!(Credentials::of(&twice), None);
        assert_eq!(Credentials::of(&HeaderMap::new()), None);
    }

    #[test]
    fn a_password_is_not_shown() {
        let credentials = Credentials {
            user: b"anna".to_vec(),
            password: b"secret".to_vec(),
        };
        assert_eq!(format!("{credentials:?}"), "\"anna\"");
    }

    #[test]
    fn a_realm_is_quoted() {
        let quoted = challenge("a \"b\" \\c").unwrap();
        assert_eq!(quoted, r#"Basic realm="a \"b\" \\c", charset="UTF-8""#);
        assert!(challenge("a\nb").is_err() && challenge("\u{fc}").is_err());
    }

    fn paths() -> ProtectedPaths<&'static str> {
        let mut paths = ProtectedPaths::default();
        assert!(paths.add("/admin", Some("admin")));
        assert!(paths.add("/admin/open", None));
        assert!(paths.add("/a%20b/", Some("blank")));
        assert!(!paths.add("/%61dmin/", None));
        paths
    }

    #[test]
    fn the_longest_beginning_counts_however_it_is_written() {
        let paths = paths();
        for (path, protection) in [
            ("/", None),
            ("/administrator", None),
            ("/admin", Some("admin")),
            ("/admin?a", Some("admin")),
            ("/admin/x", Some("admin")),
            ("//admin//x", Some("admin")),
            ("/%61dmin/x", Some("admin")),
            ("/./admin", Some("admin")),
            ("/x/../admin", Some("admin")),
            ("/admin%2fx", Some("admin")),
            ("/x%2f..%2fadmin", Some("admin")),
            ("/admin\\x", Some("admin")),
            ("/admin;a=b/x", Some("admin")),
            ("/admin%3ba/x", Some("admin")),
            ("/admin/open", None),
            ("/admin/open/x", None),
            ("/admin/open/../x", Some("admin")),
            ("/admin/open%2fx", Some("admin")),
            ("/admin/open;a", Some("admin")),
            ("/admin/openx", Some("admin")),
            ("/a b/c", Some("blank")),
            ("/a%20b", Some("blank")),
            ("/Admin", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(paths.find(path).copied(), protection, "{path}");
        }
    }

    #[test]
    fn the_root_protects_everything() {
        let mut paths = ProtectedPaths::default();
        paths.add("/", Some(()));
        for path in ["", "*", "/", "/a", "/..", "/%", "/%zz"] {
            assert!(paths.find(path).is_some(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_credentials_or_not(value in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let mut headers = HeaderMap::new();
                headers.insert(AUTHORIZATION, value);
                Credentials::of(&headers);
            }
        }

        #[test]
        fn what_the_file_system_finds_below_is_protected(
            before in prop::sample::select(vec!["", "/", "//", "/.", "/./"]),
            name in prop::sample::select(vec!["admin", "%61dmin", "a%64m%69n"]),
            after in "[a-z%/.;0-9]{0,12}",
        ) {
            let path = format!("{before}/{name}/{after}");
            let target = crate::target::parse(&path, crate::target::DotFiles::Served);
            if let Ok(target) = target {
                let is_open = target.path.starts_with(b"admin/open");
                prop_assert!(is_open || paths().find(&path).is_some(), "{}", path);
            }
        }
    }
}
