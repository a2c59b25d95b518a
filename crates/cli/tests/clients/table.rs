//! What a client requests, and what must come: the one table for all clients.

use super::site::{LARGE_BYTES, Site};
use super::way::Way;
use std::fmt::Debug;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// One request and its answer.
#[derive(Debug)]
pub struct Case {
    pub name: &'static str,
    pub method: &'static str,
    pub path: &'static str,
    pub fields: Vec<(&'static str, String)>,
    status: u16,
    answer_fields: Vec<(&'static str, String)>,
    body: Body,
}

/// What the body of an answer must be.
#[derive(Debug)]
enum Body {
    /// A file.
    Whole(&'static str),
    /// Some bytes of a file.
    Part(&'static str, Range<usize>),
    /// Several pieces of a file.
    Parts(&'static str, [Range<usize>; 2]),
    /// A file's packed form, with `.gz` at its end; the file for a client that unpacks.
    Packed(&'static str),
    /// Nothing.
    Empty,
    /// Whatever the server says of a failure.
    Any,
}

/// The table. HEAD stands last because Node's `fetch` ends a connection after it.
pub fn cases(site: &Site) -> Vec<Case> {
    let size = LARGE_BYTES;
    vec![
        get("index", "/", Body::Whole("index.html"))
            .gives("content-type", "text/html; charset=utf-8"),
        get("whole file", "/text.txt", Body::Whole("text.txt"))
            .gives("content-type", "text/plain; charset=utf-8"),
        get("large file", "/large.bin", Body::Whole("large.bin")),
        get("escaped name", "/a%20b%C3%BC.txt", Body::Whole("a bü.txt")),
        get("not modified", "/text.txt", Body::Empty)
            .with("if-none-match", &site.tag("/text.txt"))
            .status(304),
        get("modified", "/text.txt", Body::Whole("text.txt")).with("if-none-match", "\"old\""),
        get(
            "one range",
            "/large.bin",
            Body::Part("large.bin", 1_000_000..1_200_000),
        )
        .with("range", "bytes=1000000-1199999")
        .gives("content-range", &format!("bytes 1000000-1199999/{size}"))
        .status(206),
        get(
            "two ranges",
            "/large.bin",
            Body::Parts("large.bin", [0..1000, 3_000_000..3_000_500]),
        )
        .with("range", "bytes=0-999,3000000-3000499")
        .status(206),
        get("no such range", "/text.txt", Body::Any)
            .with("range", "bytes=9999999-")
            .status(416),
        get("missing", "/missing", Body::Any).status(404),
        get("packed", "/style.css", Body::Packed("style.css"))
            .with("accept-encoding", "gzip")
            .gives("content-encoding", "gzip")
            .gives("vary", "accept-encoding"),
        get("not packed", "/style.css", Body::Whole("style.css"))
            .with("accept-encoding", "identity")
            .gives("vary", "accept-encoding"),
        Case {
            method: "HEAD",
            ..get("head", "/large.bin", Body::Empty).gives("content-length", &size.to_string())
        },
    ]
}

fn get(name: &'static str, path: &'static str, body: Body) -> Case {
    Case {
        name,
        method: "GET",
        path,
        fields: Vec::new(),
        status: 200,
        answer_fields: Vec::new(),
        body,
    }
}

impl Case {
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.fields.push((name, value.to_owned()));
        self
    }

    fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    fn gives(mut self, name: &'static str, value: &str) -> Self {
        self.answer_fields.push((name, value.to_owned()));
        self
    }

    /// Compares what came with what must come.
    pub fn check(&self, got: &Got, site: &Site, way: Way, unpacks: bool) {
        let what = (way, self.name);
        let Got { status, fields, .. } = got;
        assert_eq!(*status, self.status, "{what:?}: {fields:?}");
        for (name, value) in &self.answer_fields {
            let came = got.field(name).map(str::to_ascii_lowercase);
            assert_eq!(came.as_ref(), Some(value), "{what:?}: {name}");
        }
        match &self.body {
            Body::Whole(file) => {
                let content = site.content(file);
                let length = content.len().to_string();
                assert_eq!(got.field("content-length"), Some(&*length), "{what:?}");
                check_bytes(what, &got.body, &content);
            }
            Body::Part(file, range) => {
                check_bytes(what, &got.body, &site.content(file)[range.clone()]);
            }
            Body::Parts(file, ranges) => check_parts(got, &site.content(file), ranges),
            Body::Packed(file) if unpacks => check_bytes(what, &got.body, &site.content(file)),
            Body::Packed(file) => {
                check_bytes(what, &got.body, &site.content(&format!("{file}.gz")));
            }
            Body::Empty => check_bytes(what, &got.body, b""),
            Body::Any => {}
        }
    }
}

/// Not `assert_eq`, which would print megabytes.
fn check_bytes(what: impl Debug, came: &[u8], expected: &[u8]) {
    let (count, wanted) = (came.len(), expected.len());
    assert!(
        came == expected,
        "{what:?}: {count} bytes came that are not the {wanted} expected ones"
    );
}

/// A multipart body must consist of these pieces of `file` (RFC 9110, 14.6).
fn check_parts(got: &Got, file: &[u8], ranges: &[Range<usize>]) {
    let kind = got.field("content-type").unwrap_or_default();
    let boundary = kind
        .strip_prefix("multipart/byteranges; boundary=")
        .expect(kind);
    let mut rest = &got.body[..];
    for range in ranges {
        rest = after(rest, format!("\r\n--{boundary}\r\n").as_bytes());
        let end = rest
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
        let (first, last) = (range.start, range.end - 1);
        let place = format!("content-range: bytes {first}-{last}/{}", file.len());
        assert!(head.lines().any(|line| line == place), "{head}");
        rest = after(&rest[end + 4..], &file[range.clone()]);
    }
    assert_eq!(rest, format!("\r\n--{boundary}--\r\n").as_bytes());
}

fn after<'a>(bytes: &'a [u8], beginning: &[u8]) -> &'a [u8] {
    let shown = || String::from_utf8_lossy(&beginning[..beginning.len().min(100)]);
    let rest = bytes.strip_prefix(beginning);
    rest.unwrap_or_else(|| panic!("expected here: {}", shown()))
}

/// What a client got.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    /// Names in small letters.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Got {
    /// From the last head in `text`, where lines may be indented, and the body in a file, if there
    /// is one.
    pub fn read(text: &str, body: &Path) -> Self {
        let (mut status, mut fields) = (0, Vec::new());
        for line in text.lines().map(str::trim) {
            if let Some(version_and_status) = line.strip_prefix("HTTP/") {
                let code = version_and_status.split(' ').nth(1);
                status = code.and_then(|code| code.parse().ok()).unwrap_or(0);
                fields.clear();
            } else if let Some((name, value)) = line.split_once(": ") {
                fields.push((name.to_ascii_lowercase(), value.to_owned()));
            }
        }
        Self {
            status,
            fields,
            body: fs::read(body).unwrap_or_default(),
        }
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let (_, value) = fields.find(|(named, _)| named == name)?;
        Some(value)
    }
}
