//! The content type of a file, by the end of its name.

use hyper::header::HeaderValue;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The content type of an unknown file.
const UNKNOWN: &str = "application/octet-stream";

/// Where the common table lacks a type or has one that was registered differently since.
const BETTER: [(&str, &str); 32] = [
    ("cbor", "application/cbor"),
    ("cjs", "text/javascript"),
    ("deb", "application/vnd.debian.binary-package"),
    ("dll", "application/octet-stream"),
    ("ipynb", "application/x-ipynb+json"),
    ("jsonl", "application/jsonl"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("m4v", "video/mp4"),
    ("map", "application/json"),
    ("mid", "audio/midi"),
    ("midi", "audio/midi"),
    ("mjs", "text/javascript"),
    ("mka", "audio/matroska"),
    ("mkv", "video/matroska"),
    ("ndjson", "application/x-ndjson"),
    ("otf", "font/otf"),
    ("pdb", "application/x-pilot"),
    ("prc", "application/x-pilot"),
    ("ra", "audio/x-realaudio"),
    ("rpm", "application/x-redhat-package-manager"),
    ("sea", "application/x-sea"),
    ("toml", "application/toml"),
    ("ts", "video/mp2t"),
    ("usdz", "model/vnd.usdz+zip"),
    ("wgsl", "text/wgsl"),
    ("woff", "font/woff"),
    ("xml", "application/xml"),
    ("xsl", "application/xslt+xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zst", "application/zstd"),
];

/// The value of `Content-Type` for a file of this name; text is taken to be UTF-8.
///
/// JSON and XML get no charset: the one has no such parameter (RFC 8259), the other says it itself.
pub fn of(path: &[u8]) -> HeaderValue {
    let kind = known(path).unwrap_or(UNKNOWN);
    if !kind.starts_with("text/") {
        return HeaderValue::from_static(kind);
    }
    HeaderValue::try_from(format!("{kind}; charset=utf-8"))
        .unwrap_or(HeaderValue::from_static(kind))
}

/// Whether the name ends like that of a file of a known type: `app.js` does, `john.doe` does not.
pub fn is_known(path: &[u8]) -> bool {
    known(path).is_some()
}

fn known(path: &[u8]) -> Option<&'static str> {
    let extension = Path::new(OsStr::from_bytes(path)).extension()?.to_str()?;
    BETTER
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(extension))
        .map(|&(_, kind)| kind)
        .or_else(|| mime_guess::from_ext(extension).first_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_today_are_what_they_are() {
        for (name, kind) in [
            ("a/page.html", "text/html; charset=utf-8"),
            ("style.CSS", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.md", "text/markdown; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.js.map", "application/json"),
            ("a.webmanifest", "application/manifest+json"),
            ("a.svg", "image/svg+xml"),
            ("feed.xml", "application/xml"),
            ("a.wasm", "application/wasm"),
            ("a.avif", "image/avif"),
            ("a.webp", "image/webp"),
            ("a.jxl", "image/jxl"),
            ("a.png", "image/png"),
            ("a.JPG", "image/jpeg"),
            ("a.woff", "font/woff"),
            ("a.woff2", "font/woff2"),
            ("a.opus", "audio/ogg"),
            ("a.mp4", "video/mp4"),
            ("a.ts", "video/mp2t"),
            ("a.m3u8", "application/vnd.apple.mpegurl"),
            ("a.tar.gz", "application/gzip"),
            ("noextension", "application/octet-stream"),
            (".profile", "application/octet-stream"),
            ("a.qwertz", "application/octet-stream"),
        ] {
            assert_eq!(of(name.as_bytes()), kind, "{name}");
        }
        assert_eq!(of(b"a.\xff"), UNKNOWN);
    }

    /// Those that were registered differently since.
    const UNLIKE_NGINX: [&str; 6] = ["bmp", "deb", "js", "m4a", "m4v", "xml"];

    #[test]
    fn extensions_that_nginx_knows_are_of_its_types() {
        let test = "extensions_that_nginx_knows_are_of_its_types";
        let Ok(text) = std::fs::read_to_string("/etc/nginx/mime.types") else {
            return sooner_testbed::skip(test, "needs the package nginx");
        };
        let types = text.split_once('{').unwrap().1;
        let mut known = 0;
        for line in types.split(';') {
            let mut words = line.split_whitespace();
            let kind = words.next().unwrap_or_default();
            for extension in words.filter(|own| !UNLIKE_NGINX.contains(own)) {
                let own = of(format!("a.{extension}").as_bytes());
                let own = own.to_str().unwrap().trim_end_matches("; charset=utf-8");
                assert_eq!(own, kind, "{extension}");
                known += 1;
            }
        }
        assert!(known > 90, "{known}");
    }

    #[test]
    fn tells_assets_from_words() {
        assert!(is_known(b"assets/app.123.js") && is_known(b"page.html"));
        assert!(!is_known(b"user/john.doe") && !is_known(b"v1.2") && !is_known(b"about"));
    }
}
