//! What a request was for, as far as a log says: its kind, without numbers and identifiers.

use sooner_admission::KindName;

/// Longer names are cut.
const KIND_LETTERS_MAX: usize = 256;

/// What is known of a request while its line is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// `GET /a HTTP/1.1`.
    pub line: Option<&'a [u8]>,
    /// Apart from a line.
    pub method: Option<&'a [u8]>,
    /// Apart from a line.
    pub path: Option<&'a [u8]>,
    /// A language model.
    pub model: Option<&'a [u8]>,
}

impl Asked<'_> {
    /// The kind: a model, or method and path with numbers and identifiers folded.
    pub fn kind(&self) -> Option<String> {
        if let Some(model) = self.model {
            return Some(shown(model));
        }
        let mut words = self.line.unwrap_or_default().split(|byte| *byte == b' ');
        let first = words.next().filter(|word| is_method(word));
        let second = words.next().filter(|_| first.is_some());
        let path = self.path.or(second)?;
        let method = String::from_utf8_lossy(self.method.or(first).unwrap_or_default());
        Some(folded(&method, path))
    }
}

fn folded(method: &str, path: &[u8]) -> String {
    let path = String::from_utf8_lossy(without_host(path));
    let end = path.find(['?', '#', ';']).unwrap_or(path.len());
    let mut kind = KindName::default();
    kind.add(method);
    kind.add_alike(&shown(&path.as_bytes()[..end]));
    kind.into_text()
}

/// On one line, and not too long.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let letters = text.chars().take(KIND_LETTERS_MAX);
    letters
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// `http://example.org/a` is `/a`.
fn without_host(path: &[u8]) -> &[u8] {
    let Some(scheme) = path.windows(3).take(8).position(|three| three == b"://") else {
        return path;
    };
    let rest = &path[scheme + 3..];
    let slash = rest.iter().position(|byte| *byte == b'/');
    slash.map_or(b"/", |place| &rest[place..])
}

/// Letters only: what is no request's line has none.
fn is_method(word: &[u8]) -> bool {
    (1..=20).contains(&word.len()) && word.iter().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<String> {
        let line = Some(line.as_bytes());
        let asked = Asked {
            line,
            ..Asked::default()
        };
        asked.kind()
    }

    #[test]
    fn a_kind_is_a_method_and_a_path_without_numbers() {
        let is = |line, kind: &str| assert_eq!(of(line).as_deref(), Some(kind), "{line}");
        is("GET /users/17/posts?page=3 HTTP/1.1", "GET /users/N/posts");
        is("POST https://example.org:80/a#b HTTP/1.1", "POST /a");
        is("GET http://example.org HTTP/1.1", "GET /");
        is("GET /o/d41d8cd98f00b204e9800998ecf8427e", "GET /o/X");
        for line in ["", "-", "\\x16\\x03\\x01", "<BADREQ>", "GET"] {
            assert_eq!(of(line), None, "{line}");
        }
        let asked = Asked {
            method: Some(b"GET"),
            path: Some(b"/a b"),
            ..Asked::default()
        };
        assert_eq!(asked.kind().as_deref(), Some("GET /a b"));
        let model = Asked {
            model: Some(b"llama-3:8b"),
            ..asked
        };
        assert_eq!(model.kind().as_deref(), Some("llama-3:8b"));
    }
}
