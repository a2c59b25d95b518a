//! Whole answers of a site, without a server around it.

use super::*;
use crate::files::CacheLimits;
use sooner_http::target::push_escaped;
use std::future::poll_fn;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

mod choosing;
mod configuration;
mod directories;
mod elsewhere;
mod expiring;
mod locations;
mod ranges;
mod refusing;

/// A site in a folder of its own.
pub(super) struct Fixture {
    folder: TempDir,
    pub site: StaticSite,
}

/// An answer with its body.
pub(super) struct Got {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// What the answer said before the body was read.
    pub announced_bytes: Option<u64>,
}

/// The settings of a site in `root`: `settings` are lines of TOML.
pub(super) fn config(root: &Path, settings: &str) -> StaticConfig {
    let root = root.to_str().unwrap();
    toml::from_str(&format!("root = {root:?}\n{settings}")).unwrap()
}

/// The resource of a file.
pub(super) fn resource(root: &Path, name: &str) -> Rc<Resource> {
    let config = config(root, "");
    let site = StaticSite::new(&config, CacheLimits::default(), 4).unwrap();
    let disk = site.disk.as_ref().unwrap();
    match disk.find(name.as_bytes(), false, Moment::now()) {
        Ok(Lookup::Resource(resource)) => resource,
        other => panic!("{other:?}"),
    }
}

impl Fixture {
    /// A site with the default settings.
    pub fn plain() -> Self {
        Self::new("")
    }

    /// A site with `settings`, lines of TOML; it looks at every file again at every request, and
    /// keeps those of up to 1000 bytes in memory.
    pub fn new(settings: &str) -> Self {
        let limits = CacheLimits {
            memory_file_bytes_max: 1000,
            valid_for: Duration::ZERO,
            ..CacheLimits::default()
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        let config = config(&folder.path().join("root"), settings);
        let site = StaticSite::new(&config, limits, 7).unwrap();
        Self { folder, site }
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("root").join(name)
    }

    /// Writes a file, dated far in the past.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        self.date(name, 784_111_777);
    }

    pub fn date(&self, name: &str, seconds: u64) {
        let file = std::fs::File::options().write(true).open(self.path(name));
        let date = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        file.unwrap().set_modified(date).unwrap();
    }

    pub fn get(&self, target: &str, headers: &[(&str, &str)]) -> Got {
        self.ask(Method::GET, target, headers)
    }

    /// Asks, and checks what holds for every answer: the announced length is that of the body, and
    /// HEAD says the same as GET.
    pub fn ask(&self, method: Method, target: &str, headers: &[(&str, &str)]) -> Got {
        let got = self.ask_once(method.clone(), target, headers);
        assert_eq!(got.announced_bytes, Some(got.body.len() as u64));
        match got.headers.get(CONTENT_LENGTH) {
            Some(length) => assert_eq!(length, &got.body.len().to_string()),
            None => assert!(got.body.is_empty()),
        }
        let has_range = headers.iter().any(|(name, _)| *name == "range");
        if method == Method::GET && !has_range {
            let head = self.ask_once(Method::HEAD, target, headers);
            assert_eq!((head.status, &head.headers), (got.status, &got.headers));
            assert_eq!((head.announced_bytes, head.body.len()), (Some(0), 0));
        }
        got
    }

    fn ask_once(&self, method: Method, target: &str, headers: &[(&str, &str)]) -> Got {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        read(
            self.site
                .response(&request.body(()).unwrap(), Moment::now()),
        )
    }
}

/// Reads an answer to its end.
pub(super) fn read(mut response: Response) -> Got {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let announced_bytes = response.source.len();
    let mut body = Vec::new();
    runtime.block_on(async {
        while let Some(frame) = poll_fn(|cx| response.source.poll_frame(cx)).await {
            body.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
    });
    assert!(response.source.is_end());
    Got {
        status: response.status.as_u16(),
        headers: response.headers,
        body,
        announced_bytes,
    }
}

impl Got {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

#[test]
fn a_file_and_what_is_said_about_it() {
    let fixture = Fixture::new("headers = { x-frame-options = 'DENY' }");
    fixture.write("a.html", "<p>hello");
    let got = fixture.get("/a.html?query", &[]);
    assert_eq!((got.status, got.text()), (200, "<p>hello"));
    assert_eq!(got.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(got.header("last-modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(got.header("accept-ranges"), "bytes");
    assert_eq!(got.header("x-frame-options"), "DENY");
    assert_eq!(got.header("vary"), "");
    assert!(got.header("etag").starts_with('"'));
}

#[test]
fn what_the_client_has_is_not_sent_but_described() {
    let fixture = Fixture::new("headers = { cache-control = 'max-age=60' }");
    fixture.write("a.html", "<p>hello");
    let etag = fixture.get("/a.html", &[]).header("etag").to_owned();
    let got = fixture.get("/a.html", &[("if-none-match", &etag)]);
    assert_eq!((got.status, got.body.len()), (304, 0));
    assert_eq!(got.header("etag"), etag);
    assert_eq!(got.header("cache-control"), "max-age=60");
    for absent in ["content-type", "content-length", "accept-ranges"] {
        assert_eq!(got.header(absent), "", "{absent}");
    }
    let got = fixture.get("/a.html", &[("if-match", "\"other\"")]);
    assert_eq!(
        (got.status, got.header("cache-control")),
        (412, "max-age=60")
    );
}

#[test]
fn a_missing_file_is_not_found_whatever_the_conditions() {
    let fixture = Fixture::plain();
    for condition in [("if-match", "*"), ("if-none-match", "*")] {
        assert_eq!(fixture.get("/a", &[condition]).status, 404);
    }
}
