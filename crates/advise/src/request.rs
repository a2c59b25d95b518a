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
    /// Behind the path, apart from it.
    pub query: Option<&'a [u8]>,
    /// A language model.
    pub model: Option<&'a [u8]>,
}

/// A request as it can be sent again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requested {
    /// Its method.
    pub method: String,
    /// Path and query, in letters that a URL may have.
    pub target: String,
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
        // A path apart from the line may be what a server made of that in the line.
        let asked = second.filter(|target| without_host(target).starts_with(b"/"));
        let path = asked.or(self.path).or(second)?;
        let method = String::from_utf8_lossy(self.method.or(first).unwrap_or_default());
        Some(folded(&method, path))
    }
}

impl Asked<'_> {
    /// Method and target; none where the line does not say them, or says none that HTTP has.
    pub fn requested(&self) -> Option<Requested> {
        let line = self.line.map(unescaped).unwrap_or_default();
        let mut words = line.split(|byte| *byte == b' ');
        let first = words.next().filter(|word| is_method(word));
        // A blank in a target is a mistake of the client that servers write as it came.
        let rest: Vec<&[u8]> = words.filter(|_| first.is_some()).collect();
        let rest = match rest.split_last() {
            Some((version, target)) if version.starts_with(b"HTTP/") => target,
            _ => rest.as_slice(),
        };
        let of_line = rest.join(&b' ');
        let method = self.method.or(first).unwrap_or(b"GET").to_ascii_uppercase();
        let asked = without_host(&of_line);
        let mut target = match self.path {
            Some(path) if !asked.starts_with(b"/") => encoded(without_host(path)),
            _ => return requested(&method, encoded(asked)),
        };
        if let Some(query) = self.query.filter(|_| !target.contains('?')) {
            let query = query.strip_prefix(b"?").unwrap_or(query);
            target = format!("{target}?{}", encoded(query));
        }
        requested(&method, target)
    }
}

fn requested(method: &[u8], target: String) -> Option<Requested> {
    target.starts_with('/').then(|| Requested {
        method: String::from_utf8_lossy(method).into_owned(),
        target,
    })
}

/// Without the backslashes that nginx and Apache put in: `\x22` is a quote.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut place = 0;
    while let Some(byte) = text.get(place) {
        let (value, length) = match (byte, text.get(place + 1)) {
            (b'\\', Some(b'x')) => {
                let digits = text.get(place + 2..place + 4);
                let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
                match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    Some(value) => (value, 4),
                    None => (*byte, 1),
                }
            }
            (b'\\', Some(escaped @ (b'"' | b'\\'))) => (*escaped, 2),
            _ => (*byte, 1),
        };
        out.push(value);
        place += length;
    }
    out
}

/// What a URL may not have is written as `%20` is; what was so already stays.
fn encoded(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.split(|byte| *byte == b'#').next().unwrap_or(text) {
        match byte {
            b'!' | b'$'..=b';' | b'=' | b'?'..=b'Z' | b'[' | b']' | b'_' | b'a'..=b'z' | b'~' => {
                out.push(char::from(*byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
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

    fn sent(line: &[u8]) -> Option<(String, String)> {
        let asked = Asked {
            line: Some(line),
            ..Asked::default()
        };
        let requested = asked.requested()?;
        Some((requested.method, requested.target))
    }

    #[test]
    fn a_request_can_be_sent_again_as_it_was() {
        for (line, method, target) in [
            ("GET /a?b=c%20d HTTP/1.1", "GET", "/a?b=c%20d"),
            ("POST https://example.org:80/a#b HTTP/2.0", "POST", "/a"),
            ("GET /", "GET", "/"),
            ("GET /a b HTTP/1.1", "GET", "/a%20b"),
            (
                r#"GET /\x22a\xC3\xA4\"\\ HTTP/1.1"#,
                "GET",
                "/%22a%C3%A4%22%5C",
            ),
            ("HEAD http://example.org HTTP/1.1", "HEAD", "/"),
        ] {
            let expected = Some((method.to_owned(), target.to_owned()));
            assert_eq!(sent(line.as_bytes()), expected, "{line}");
        }
        for line in [
            "",
            "-",
            r"\x16\x03\x01",
            "<BADREQ>",
            "GET",
            "OPTIONS * HTTP/1.1",
        ] {
            assert_eq!(sent(line.as_bytes()), None, "{line}");
        }
        let columns = Asked {
            method: Some(b"get"),
            path: Some(b"/a"),
            query: Some(b"x=1"),
            ..Asked::default()
        };
        let requested = columns.requested().expect("columns say it");
        assert_eq!(
            (requested.method.as_str(), requested.target.as_str()),
            ("GET", "/a?x=1")
        );
    }

    #[test]
    fn what_the_client_asked_goes_before_what_the_server_made_of_it() {
        let rewritten = Asked {
            line: Some(b"GET /blog/post?id=7 HTTP/1.1"),
            path: Some(b"/index.php"),
            query: Some(b"id=7"),
            ..Asked::default()
        };
        let target = |asked: Asked<'_>| asked.requested().expect("a request").target;
        assert_eq!(target(rewritten), "/blog/post?id=7");
        assert_eq!(rewritten.kind().as_deref(), Some("GET /blog/post"));
        // What is no line of a request says nothing.
        for line in [&b"served a page"[..], b"GET HTTP/1.1", b"GET * HTTP/1.1"] {
            let asked = Asked {
                line: Some(line),
                ..rewritten
            };
            assert_eq!(target(asked), "/index.php?id=7");
        }
        let with = |path: &'static [u8], query: &'static [u8]| {
            target(Asked {
                line: None,
                path: Some(path),
                query: Some(query),
                ..rewritten
            })
        };
        assert_eq!(with(b"/y?a=b", b"a=b"), "/y?a=b");
        assert_eq!(with(b"/y", b"?a=b"), "/y?a=b");
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
